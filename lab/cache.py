"""Where the laboratory keeps what is slow to make, and the one way in which it is made.

A *part* is a directory that some function fills once (compiled programs, an image, a Python environment). It lives at
``<root>/<name>-<version>-<hash>`` where the hash covers everything that decides its content, so a changed flag or lock
file makes a new directory and never half-reuses an old one.
"""

import fcntl
import hashlib
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
# Pointers from this checkout into the shared cache: two checkouts with different versions never mix their programs.
POINTERS = CHECKOUT / ".lab"


def root() -> Path:
    """Return the cache directory that all checkouts of this user share (it may not exist yet)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "queen-operator"


def bin_dir() -> Path:
    """Return this checkout's directory of programs: etcd, kube-*, kubelet, coredns, pause, kubectl, helm, queen."""
    return POINTERS / "bin"


def image(name: str) -> Path:
    """Return the tar of an image for ``ctr images import``; ``name`` is pause, broker or operator."""
    return POINTERS / "images" / f"{name}.tar"


def virtual_environment() -> Path:
    """Return the Python environment of this checkout, with everything in requirements-dev.lock."""
    return CHECKOUT / ".venv"


@dataclass(frozen=True)
class Part:
    """One cached directory; ``inputs`` are all strings that decide its content: flags, locks, keys of other parts."""

    name: str
    version: str
    inputs: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return ``<name>-<version>-<hash>``, the same for the same inputs on the same kind of processor."""
        digest = hashlib.sha256()
        for text in (platform.machine(), *self.inputs):
            # Lengths keep ("ab", "c") and ("a", "bc") apart.
            digest.update(f"{len(text)}:{text}".encode())
        return f"{self.name}-{self.version}-{digest.hexdigest()[:12]}"

    @property
    def path(self) -> Path:
        """Return the directory of the finished part; it exists only when the part is complete."""
        return root() / self.key

    @property
    def log(self) -> Path:
        """Return the file that takes the output of the programs which make this part."""
        return root() / "logs" / f"{self.key}.log"

    @property
    def workshop(self) -> Path:
        """Return a directory for intermediate results that survives a failed try and is removed after success."""
        return root() / "workshop" / self.key

    def is_present(self) -> bool:
        """Tell whether the part is complete."""
        return self.path.is_dir()

    def make(self, build: Callable[[Path], object]) -> bool:
        """Fill the part by ``build(directory)`` unless it is there, and tell whether that was needed.

        The part appears by one rename after ``build`` returned, so a killed or failing build leaves nothing that looks
        finished. A second process that wants the same part waits for the first and then finds it made.
        """
        if self.is_present():
            return False
        root().mkdir(parents=True, exist_ok=True)
        with exclusive(self.key):
            if self.is_present():
                return False
            scratch = root() / f".{self.key}.unfinished"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.write_text("")
            build(scratch)
            scratch.rename(self.path)
            remove_tree(self.workshop)
        return True


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Hold the lock ``name`` among all processes of this user; the kernel frees it when the holder dies."""
    directory = root() / "locks"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def point(pointer: Path, target: Path) -> None:
    """Make ``pointer`` a symbolic link to ``target`` in one step: readers see the old or the new one, never none."""
    if pointer.is_symlink() and pointer.readlink() == target:
        return
    pointer.parent.mkdir(parents=True, exist_ok=True)
    fresh = pointer.with_name(f".{pointer.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(pointer)


def remove_tree(directory: Path) -> None:
    """Remove a directory with read-only folders in it (Go's module cache is one); nothing happens when it is absent."""
    if not directory.exists():
        return
    for folder, _, _ in os.walk(directory):
        Path(folder).chmod(0o755)
    shutil.rmtree(directory)


def fingerprint(*paths: Path) -> str:
    """Return one hash over the content and the relative names of files and of all files below directories."""
    digest = hashlib.sha256()
    for path in paths:
        base = path.parent
        for file in sorted(p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file()):
            if "__pycache__" in file.parts:
                continue
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(base)}\0{content}\n".encode())
    return digest.hexdigest()
