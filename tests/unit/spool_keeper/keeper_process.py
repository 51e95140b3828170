"""A real spool keeper process, as a pod runs it, with what a test needs to ask it and to hurt it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3] / "operator"
MAIN = ROOT / "queen_operator" / "spool_keeper" / "main.py"
BROKER_UID = 65532
GENEROUS_SECONDS = 20.0

# Becomes another user without a new program, because that user may not be allowed to read this Python installation.
AS_UID = """
import importlib, os, sys
uid, root, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
sys.path.insert(0, root)
for name in sorted(os.listdir(root + "/queen_operator/spool_keeper")):
    if name.endswith(".py"):
        importlib.import_module("queen_operator.spool_keeper." + name[:-3])
os.setgroups([]); os.setgid(uid); os.setuid(uid)
sys.exit(sys.modules["queen_operator.spool_keeper.commands"].run(arguments))
"""


def command(*arguments: str, as_broker_uid: bool = False) -> list[str]:
    """The command line of a keeper; as the broker's uid when we are root, else as ourselves, who may as little."""
    if as_broker_uid and os.getuid() == 0:
        return [sys.executable, "-I", "-S", "-c", AS_UID, str(BROKER_UID), str(ROOT), *arguments]
    return [sys.executable, "-I", "-S", str(MAIN), *arguments]


def run(*arguments: str, as_broker_uid: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, as_broker_uid=as_broker_uid), capture_output=True, text=True, timeout=60, check=False
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(question: Callable[[], object], what: str) -> None:
    """Ask until the answer is true; an answer that cannot be had yet (connection refused) is not true."""
    deadline = time.monotonic() + GENEROUS_SECONDS
    while True:
        try:
            if question():
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Keeper:
    """One `hold` process on a directory."""

    def __init__(
        self,
        directory: Path,
        log: Path,
        prefix: tuple[str, ...] = (),
        as_broker_uid: bool = False,
        port: int | None = None,
    ) -> None:
        self.port = port or free_port()
        self.termination_log = log.with_suffix(".word")
        self._log = log
        arguments = ["hold", "--spool-dir", str(directory), "--port", str(self.port)]
        arguments += ["--termination-log", str(self.termination_log)]
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*prefix, *command(*arguments, as_broker_uid=as_broker_uid)], stdin=subprocess.DEVNULL, stderr=stderr
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def child_pids(self) -> list[int]:
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def child_pid(self) -> int:
        (pid,) = self.child_pids()
        return pid

    def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=GENEROUS_SECONDS)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def spool(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.ask("/spool")[1])
        return values

    def wait_until_serving(self) -> None:
        wait_for(lambda: self.ask("/healthz")[0] == 200, f"keeper serves; its log: {self.log}")

    def wait_until_held(self) -> None:
        wait_for(lambda: self.ask("/held")[0] == 200, f"keeper holds the lock; its log: {self.log}")

    def terminate(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.terminate()
        return self.process.wait(GENEROUS_SECONDS)

    def clean_up(self) -> None:
        """Leave no process behind, whatever the test did."""
        children = self.child_pids() if is_alive(self.pid) else []
        self.process.kill()
        self.process.wait(GENEROUS_SECONDS)
        wait_for(lambda: not any(is_alive(pid) for pid in children), "the HTTP child ends with its parent")


def kill_9(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
