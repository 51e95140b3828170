"""Debian packages, the only thing that the laboratory changes on the machine outside its cache directory."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import cache, progress

# Taken by the node (containerd to iptables), by PostgreSQL, by the image build (buildah, debootstrap).
PACKAGES = (
    "containerd",
    "runc",
    "containernetworking-plugins",
    "nftables",
    "iptables",
    "iproute2",
    "conntrack",
    "socat",
    "kmod",
    "openssl",
    "util-linux",
    "postgresql-15",
    "buildah",
    "debootstrap",
)
LOG = cache.root() / "logs" / "debian.log"
_SERVICE_POLICY = Path("/usr/sbin/policy-rc.d")
_APT = ("apt-get", "-o", "DPkg::Lock::Timeout=600", "-o", "Dpkg::Use-Pty=0", "-q")


def install() -> str:
    """Install the packages that are missing and return a sentence about it.

    Raises LabError when apt fails or when packages are missing and the user is not root.
    """
    with cache.exclusive("debian"):
        missing = missing_packages()
        if not missing:
            return "all packages are there"
        if os.geteuid() != 0:
            raise progress.LabError(f"run as root, or first: apt-get install {' '.join(missing)}")
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        # One unreachable source of somebody else must not stop us: the installation below has the last word.
        subprocess.run([*_APT, "update"], env=environment, capture_output=True, check=False)
        with _no_services_started():
            command = [*_APT, "install", "--yes", "--no-install-recommends", *missing]
            progress.run_logged(command, LOG, env=environment)
        return f"installed {', '.join(missing)}"


def missing_packages() -> list[str]:
    """Return the packages that are not installed; raises LabError on a system without dpkg."""
    if shutil.which("dpkg-query") is None:
        raise progress.LabError("the laboratory needs Debian 12: there is no dpkg-query here (try `make demo-kind`)")
    wanted = list(PACKAGES)
    if importlib.util.find_spec("ensurepip") is None:
        wanted.append("python3-venv")
    asked = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in wanted if name not in installed]


@contextmanager
def _no_services_started() -> Iterator[None]:
    """Keep Debian's maintainer scripts from starting the services of what is installed (containerd, PostgreSQL)."""
    if _SERVICE_POLICY.exists():
        yield
        return
    _SERVICE_POLICY.write_text("#!/bin/sh\nexit 101\n")
    _SERVICE_POLICY.chmod(0o755)
    try:
        yield
    finally:
        _SERVICE_POLICY.unlink()
