"""How a node comes into being: its folder, its keys, its namespaces; and how its traces are removed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import api_server, cgroups
from lab.control_plane import ApiAccess
from lab.kubelet import NODE_ADDRESS
from lab.node_inside import Settings
from lab.pki import Authority
from lab.processes import ProcessId, children_of, marked_with
from lab.progress import LabError

MARK = "QUEEN_LAB_NODE"  # environment variable by which processes of a node are found again, whoever started them
_RECORD = "node.json"
_TOOLS = ("unshare", "nsenter", "setpriv", "setsid", "ip", "nft", "containerd", "ctr", "runc", "openssl")
_FIRST_PROCESS_SECONDS = 20
# What a stopped node leaves in its folder.
_KEPT_AFTER_STOP = {"logs", "audit.log"}


@dataclass(frozen=True, slots=True)
class Record:
    """What any process must know about a node to use and to end it; stored in the node's folder."""

    state_dir: Path
    name: str  # unique on this machine; also the name of its cgroup
    port: int
    bin_dir: Path
    init: ProcessId  # process 1 of the node's namespaces, as the machine numbers it

    def write(self) -> None:
        """Store it in the node's folder."""
        values = {
            "name": self.name,
            "port": self.port,
            "bin_dir": str(self.bin_dir),
            "init": [self.init.pid, self.init.start_ticks, self.init.boot_id],
        }
        (self.state_dir / _RECORD).write_text(json.dumps(values))

    @classmethod
    def read(cls, state_dir: Path) -> Record | None:
        """The record of a node's folder, whether the node lives or not; None where there is none."""
        state = state_dir.resolve()
        try:
            values = json.loads((state / _RECORD).read_text())
        except FileNotFoundError:
            return None
        return cls(state, values["name"], values["port"], Path(values["bin_dir"]), ProcessId(*values["init"]))

    @property
    def log(self) -> Path:
        """The node's own log: which program ended, when the node stopped by itself."""
        return self.state_dir / "logs/node.log"


def launch(state_dir: Path, bin_dir: Path, port: int, audit: bool) -> Record:
    """Start the first process of a new node and return at once; its programs are coming up.

    LabError when something is missing, the folder is not free, or the port is taken; nothing runs then.
    """
    state = _fresh_state(state_dir)
    name = f"queen-lab-{secrets.token_hex(4)}"
    authority = Authority(state / "pki")
    tokens = authority.create([*api_server.HOSTS, NODE_ADDRESS], api_server.USERS)
    access = ApiAccess(f"https://127.0.0.1:{port}", authority, bin_dir)
    access.with_token(state / "kubeconfig", tokens[api_server.ADMIN.name])
    Settings(name, str(bin_dir), tokens, audit).write(state / "settings.json")
    (state / "audit-policy.yaml").write_text(api_server.AUDIT_POLICY)
    (state / "resolv.conf").write_text(f"nameserver {NODE_ADDRESS}\n")
    try:
        with socket.create_server(("127.0.0.1", port)) as door:
            outer = _start_in_namespaces(state, name, door.fileno())
        record = Record(state, name, port, bin_dir, _only_child(outer, state))
        record.write()
    except BaseException as error:
        remove_traces(name)
        if isinstance(error, OSError):
            raise LabError(f"the node cannot start on port {port}: {error}") from error
        raise
    return record


def _fresh_state(state_dir: Path) -> Path:
    """The state folder, empty; refuses a folder that is not the laboratory's, or in which a node runs."""
    if os.geteuid() != 0:
        raise LabError("a node needs root: it makes namespaces, mounts and cgroups")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise LabError(f"a node needs these programs: {', '.join(missing)}")
    state = state_dir.resolve()
    if state.exists():
        entries = {entry.name for entry in state.iterdir()}
        if entries and "logs" not in entries:
            raise LabError(f"{state} holds something else than a node; give the node a folder of its own")
        old = Record.read(state)
        if old is not None and old.init.alive():
            raise LabError(f"a node runs in {state} already; attach to it or stop it first")
        if old is not None:
            remove_traces(old.name)
        shutil.rmtree(state)
    (state / "logs").mkdir(parents=True)
    return state


def _start_in_namespaces(state: Path, name: str, door: int) -> ProcessId:
    """Start the node's first process, detached from this one; returns the process that holds its namespaces."""
    inside = [sys.executable, "-m", "lab.node_inside", str(state), f"--door={door}"]
    namespaces = ["--net", "--pid", "--mount", "--ipc", "--uts", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
    note_pid = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(state / "outer.pid")]
    environment = {**os.environ, MARK: name, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    with (state / "logs/node.log").open("ab") as log:
        subprocess.run(
            ["setsid", "--fork", *note_pid, "unshare", *namespaces, *inside],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            pass_fds=[door],
            check=True,
        )
    for _ in _tries():
        with contextlib.suppress(FileNotFoundError, ValueError, LookupError):
            return ProcessId.of(int((state / "outer.pid").read_text()))
    raise LabError("the node's first process did not start")


def _only_child(outer: ProcessId, state: Path) -> ProcessId:
    for _ in _tries():
        with contextlib.suppress(LookupError):
            for child in children_of(outer.pid):
                return ProcessId.of(child)
        if not outer.alive():
            break
    raise LabError(f"namespaces cannot be made: {(state / 'logs/node.log').read_text().strip()}")


def _tries() -> Iterator[None]:
    deadline = time.monotonic() + _FIRST_PROCESS_SECONDS
    while time.monotonic() < deadline:
        yield
        time.sleep(0.02)


def remove_traces(name: str) -> None:
    """Kill every process that carries the node's mark and remove its cgroups; LabError when something resists.

    With the last process its namespaces go, and with them the node's network, mounts and /run.
    """
    try:
        for process in marked_with(MARK, name):
            if process.pid != os.getpid():
                process.kill(seconds=60)
        cgroups.remove(name)
    except OSError as error:
        raise LabError(f"the node {name} is not gone completely: {error}") from error


def empty_state(state: Path) -> None:
    """Remove a stopped node's data; its logs stay."""
    for entry in state.iterdir():
        if entry.name in _KEPT_AFTER_STOP:
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
