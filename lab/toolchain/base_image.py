"""The base of the operator's image where no registry of images can be reached: Debian with Python, by debootstrap."""

import subprocess
from pathlib import Path

from lab import cache, image_tar, progress

SUITE = "bookworm"
_PACKAGES = "python3,python3-venv,ca-certificates"
# Copied from this machine by debootstrap; a container gets its own from Kubernetes.
_MACHINE_FILES = ("etc/hostname", "etc/resolv.conf")
# Documentation, translations and package lists are half of the image and nobody reads them in a container.
_DROP = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache/apt", "var/lib/apt/lists")
PART = cache.Part("base-image", SUITE, (_PACKAGES, *_DROP, *_MACHINE_FILES))
NAME = f"localhost/lab-base:{PART.key}"


def make() -> str:
    """Write ``image.tar``, the base image as a Docker archive, unless it is there."""
    return "built" if PART.make(_build) else "already there"


def _build(into: Path) -> None:
    root = PART.workshop / "root"
    # A half-made root file system cannot be continued.
    cache.remove_tree(root)
    root.mkdir(parents=True)
    command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", SUITE, str(root), _mirror()]
    progress.run_logged(command, PART.log)
    for name in _DROP:
        cache.remove_tree(root / name)
        (root / name).mkdir(parents=True)
    for name in _MACHINE_FILES:
        (root / name).write_text("")
    layer = PART.workshop / "layer.tar"
    progress.run_logged(["tar", "--numeric-owner", "--exclude=./dev/*", "-C", root, "-cf", layer, "."], PART.log)
    image_tar.pack_layer(image_tar.Image(NAME), layer, into / "image.tar")


def _mirror() -> str:
    """Return the package source that apt uses on this machine for the suite; raises LabError when it has none."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in listed.stdout.splitlines():
        address, _, rest = line.partition(" ")
        if rest == f"{SUITE} main":
            return address
    raise progress.LabError(f"apt has no source for Debian {SUITE}: run apt-get update, or add one")
