"""The node's own cgroup: made before kubelet starts, removed with everything below it after the node has ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
# What kubelet wants in the cgroup of its pods, as far as the kernel has it.
_WANTED_CONTROLLERS = {"cpu", "cpuset", "memory", "hugetlb", "pids"}


def hierarchies(root: Path = ROOT) -> list[Path]:
    """Mount points of all cgroup hierarchies: one on cgroup v2, one per controller on v1."""
    if (root / "cgroup.controllers").exists():
        return [root]
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())


def create(name: str, root: Path = ROOT) -> None:
    """Make a cgroup of this name at the top of every hierarchy.

    On cgroup v2 this also switches the controllers on that kubelet wants; they stay on.
    """
    if (root / "cgroup.controllers").exists():
        available = _WANTED_CONTROLLERS.intersection((root / "cgroup.controllers").read_text().split())
        (root / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(available)))
    for hierarchy in hierarchies(root):
        if hierarchy.name == "unified":
            continue
        cgroup = hierarchy / name
        cgroup.mkdir(exist_ok=True)
        for limit in ("cpuset.cpus", "cpuset.mems"):
            # A fresh v1 cpuset allows no processor at all, and no process can be put into it.
            if (cgroup / limit).exists() and not (cgroup / limit).read_text().strip():
                (cgroup / limit).write_text((hierarchy / limit).read_text())


def existing(name: str, root: Path = ROOT) -> list[Path]:
    """Where a cgroup of this name exists."""
    return [hierarchy / name for hierarchy in hierarchies(root) if (hierarchy / name).is_dir()]


def remove(name: str, seconds: float = 20, root: Path = ROOT) -> None:
    """Remove the cgroups of this name with all below; OSError when processes are still in them after that time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            for cgroup in existing(name, root):
                for folder, _, _ in os.walk(cgroup, topdown=False):
                    Path(folder).rmdir()
        except OSError:
            # The kernel lets a cgroup go a moment after its last process has ended.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
