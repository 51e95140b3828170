"""What the node does to the namespaces that were just made for it: its own /run, /var/lib, /var/log, address, name."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

from lab.kubelet import NODE_ADDRESS, NODE_NAME
from lab.progress import LabError

# Folders in which container programs keep state under fixed names; two nodes, or a node and the machine's own
# containerd, must not meet there. /run lives in memory because sockets and bind mounts of network namespaces need no
# disk.
_COVERED = {Path("/run"): "run", Path("/var/lib"): "var-lib", Path("/var/log"): "var-log"}


def kept_entries(covered: Path, needed: Iterable[Path]) -> set[str]:
    """Names directly below a covered folder that must stay visible, because a needed path lies in them."""
    return {path.relative_to(covered).parts[0] for path in needed if path != covered and path.is_relative_to(covered)}


def cover_shared_folders(state: Path, needed: Iterable[Path]) -> None:
    """Put folders of the state folder over /run, /var/lib and /var/log, leaving needed paths reachable.

    Call it in a fresh mount namespace only: the machine sees nothing of it.
    """
    # Pods get volumes by mounts made after their container runtime started: the tree must pass new mounts on.
    _run("mount", "--make-rshared", "/")
    needed = list(needed)
    for covered, name in _COVERED.items():
        cover = state / name
        cover.mkdir(exist_ok=True)
        if name == "run":
            _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", cover)
        for entry in kept_entries(covered, needed):
            (cover / entry).mkdir(exist_ok=True)
            _run("mount", "--rbind", covered / entry, cover / entry)
        _run("mount", "--rbind", cover, covered)


def bring_up_network() -> None:
    """Give the network namespace loopback, the node's address and a default route, and name the host."""
    socket.sethostname(NODE_NAME)
    # A bridge without ports: kernels without the dummy driver have nothing else that carries an address. Its hardware
    # address is set, or the kernel would change it with the first port.
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "node0", "address", "02:00:00:00:00:01", "type", "bridge")
    _run("ip", "addr", "add", f"{NODE_ADDRESS}/24", "dev", "node0")
    _run("ip", "link", "set", "node0", "up")
    _run("ip", "route", "add", "default", "via", NODE_ADDRESS)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def resolves(name: str, server: str, *, port: int = 53, seconds: float = 1.0) -> bool:
    """Whether a DNS server answers with at least one address for a name; OSError when it does not answer in time."""
    question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    query = b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0" + question + b"\x00\x01\x00\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(seconds)
        sock.sendto(query, (server, port))
        answer = sock.recv(4096)
    return answer[:2] == query[:2] and answer[3] & 0x0F == 0 and int.from_bytes(answer[6:8], "big") > 0


def filesystem_type(path: Path) -> str:
    """Name of the file system that holds a path, for example ext2/ext3 or overlayfs."""
    command = ["stat", "--file-system", "--format=%T", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _run(*argv: str | Path) -> None:
    command = [str(part) for part in argv]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
