"""A real Kubernetes node on this machine, seen from outside: start, find, use and end it.

The whole node (control plane, container runtime, kubelet, DNS, volumes, PostgreSQL) lives in network, process, mount,
IPC and host name namespaces of its own. Nothing of the machine is touched, several nodes run side by side, and the end
of one process is the end of all. It needs root.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lab import node_launch
from lab.control_plane import ApiAccess
from lab.kubelet import CONTAINERD_SOCKET, NODE_ADDRESS
from lab.node_launch import MARK, Record
from lab.pki import Authority
from lab.postgres import Postgres
from lab.progress import LabError

_START_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Node:
    """One running node. It outlives the process that started it; any process may attach to it and stop it."""

    record: Record

    @classmethod
    def start(cls, state_dir: Path, bin_dir: Path, images: Sequence[Path], port: int, *, audit: bool = False) -> Node:
        """Start a node whose API listens on 127.0.0.1:port; return when it is Ready, DNS answers, images are loaded.

        images are tars as `ctr images import` takes them; without docker.io/local/pause:1 among them no pod starts.
        state_dir is the node's alone and is emptied first. audit writes each API request to `audit_log`. LabError says
        what is missing or did not start; nothing is left running then.
        """
        node = cls(node_launch.launch(state_dir, bin_dir.resolve(), port, audit))
        try:
            node.wait_until("containerd", node.path(CONTAINERD_SOCKET).exists)
            for image in images:
                node.load_image(image)
            node.wait_until("the node", (node.state_dir / "ready").exists)
        except BaseException:
            node.stop()
            raise
        return node

    @classmethod
    def attach(cls, state_dir: Path) -> Node:
        """The node that runs in this state folder; LookupError when none does."""
        record = Record.read(state_dir)
        if record is None or not record.init.alive():
            raise LookupError(f"no node runs in {state_dir}")
        return cls(record)

    # -- what it is ------------------------------------------------------

    @property
    def state_dir(self) -> Path:
        """The node's folder on the machine; its `logs` has a file for each program."""
        return self.record.state_dir

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator, for use from the machine."""
        return self.state_dir / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """One JSON line for each finished API request, when the node was started with audit."""
        return self.state_dir / "audit.log"

    @property
    def pid(self) -> int:
        """Number of the node's first process."""
        return self.record.init.pid

    @property
    def address(self) -> str:
        """The node's IP, reachable from its pods and from `run_inside`, not from the machine."""
        return NODE_ADDRESS

    @property
    def postgres(self) -> Postgres:
        """The node's PostgreSQL, started or not."""
        return Postgres(self.record.init)

    @property
    def access(self) -> ApiAccess:
        """Maker of further kubeconfigs: for users, groups and service accounts."""
        authority = Authority(self.state_dir / "pki")
        return ApiAccess(f"https://127.0.0.1:{self.record.port}", authority, self.record.bin_dir)

    def is_running(self) -> bool:
        """Whether the node lives."""
        return self.record.init.alive()

    def last_words(self) -> str:
        """End of the node's own log: which program ended, when the node stopped by itself."""
        return self.record.log.read_text(errors="replace")[-4000:].strip()

    # -- what it does ----------------------------------------------------

    def load_image(self, tar: Path) -> None:
        """Import an image tar; LabError when it is no image."""
        # Through standard input: the node may see another file under the same path.
        with tar.open("rb") as file:
            self._images(f"image {tar} cannot be loaded", "import", "-", stdin=file)

    def tag_image(self, name: str, other_name: str) -> None:
        """Give an image that the node has a second full name; LabError when there is no such image."""
        self._images(f"image {name} cannot be tagged", "tag", "--force", name, other_name)

    def run_inside(self, argv: Sequence[str | Path], **kwargs: Any) -> subprocess.CompletedProcess[str]:
        """Run a program of the machine in the node's network, with the machine's files; text mode, output captured.

        Names of the cluster resolve. kwargs go to subprocess.run and win over the defaults.
        """
        captured = "stdout" not in kwargs and "stderr" not in kwargs
        defaults: dict[str, Any] = {"capture_output": captured, "text": True, "check": False}
        environment = self._environment(kwargs.pop("env", None))
        return subprocess.run(self._inside(argv), env=environment, **{**defaults, **kwargs})

    def popen_inside(self, argv: Sequence[str | Path], **kwargs: Any) -> subprocess.Popen[Any]:
        """Start a program as `run_inside` does; it is killed when the node stops, if it runs still."""
        return subprocess.Popen(self._inside(argv), env=self._environment(kwargs.pop("env", None)), **kwargs)

    def path(self, inside: Path) -> Path:
        """Where the machine sees a path of the node, with the node's mounts."""
        return Path(f"/proc/{self.pid}/root") / inside.relative_to("/")

    def wait_until(self, what: str, reached: Callable[[], bool]) -> None:
        """Return when the condition holds; LabError when the node ends before, or after three minutes."""
        deadline = time.monotonic() + _START_SECONDS
        while not reached():
            if not self.is_running():
                raise LabError(self.last_words() or "the node ended without a word")
            if time.monotonic() > deadline:
                raise LabError(f"{what} is not up after {_START_SECONDS} s; logs are in {self.state_dir / 'logs'}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End every process of the node and remove its cgroups, data and mounts; logs stay in the state folder.

        Returns when all is gone; LabError names what is not. A node that has ended already is cleaned up the same way.
        """
        try:
            self.record.init.kill(seconds=60)
        except TimeoutError as error:
            raise LabError(f"the node does not end: {error}") from error
        node_launch.remove_traces(self.record.name)
        node_launch.empty_state(self.state_dir)

    # -- how -------------------------------------------------------------

    def _images(self, trouble: str, *arguments: str, stdin: IO[bytes] | None = None) -> None:
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--net"]
        argv = [*enter, "ctr", "--namespace=k8s.io", "images", *arguments]
        result = subprocess.run(argv, stdin=stdin, capture_output=True, text=True, check=False)
        if result.returncode:
            raise LabError(f"{trouble}: {result.stderr.strip()}")

    def _environment(self, given: Mapping[str, str] | None) -> dict[str, str]:
        return {**(os.environ if given is None else given), MARK: self.record.name}

    def _inside(self, argv: Sequence[str | Path]) -> list[str]:
        if not self.is_running():
            raise LabError(f"the node in {self.state_dir} does not run any more: {self.last_words()}")
        # A mount namespace of its own, for one file: names resolve through the node's DNS.
        script = 'mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@"'
        enter = ["nsenter", f"--target={self.pid}", "--net", "unshare", "--mount", "sh", "-c", script]
        return [*enter, str(self.state_dir / "resolv.conf"), *(str(part) for part in argv)]
