"""Processes that are recognized again later, by another process, without mistaking a recycled number for them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process of this boot: its number together with the moment it was started, in clock ticks since boot."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """Identity of the process that has this number now; LookupError when there is none."""
        return cls(pid, _stat(pid)[1], _boot_id())

    def alive(self) -> bool:
        """Whether this very process runs still; a zombie does not."""
        try:
            state, start_ticks = _stat(self.pid)
        except LookupError:
            return False
        return state not in "ZX" and start_ticks == self.start_ticks and self.boot_id == _boot_id()

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to this very process; False when it is gone."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            # Only now: the descriptor holds on to one process, so the check and the signal speak of the same one.
            if not self.alive():
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def kill(self, seconds: float) -> None:
        """End it with SIGKILL and return when it is gone; TimeoutError when the kernel needs longer than this."""
        self.send(signal.SIGKILL)
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} is still there {seconds:.0f} s after SIGKILL")
            time.sleep(0.02)


def _stat(pid: int) -> tuple[str, int]:
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError as error:
        raise LookupError(f"no process {pid}") from error
    # The name stands in parentheses and may hold anything, so fields are counted from the last one on.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def _boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def every_pid() -> Iterator[int]:
    """Numbers of all processes that this process can see."""
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def parent_of(pid: int) -> int:
    """Number of the parent; LookupError when the process is gone."""
    try:
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError as error:
        raise LookupError(f"no process {pid}") from error


def children_of(pid: int) -> list[int]:
    """Direct children of a process."""
    children = []
    for candidate in every_pid():
        with contextlib.suppress(LookupError):
            if parent_of(candidate) == pid:
                children.append(candidate)
    return children


def marked_with(variable: str, value: str) -> list[ProcessId]:
    """Every living process whose environment has this variable with this value."""
    wanted = f"{variable}={value}".encode()
    found = []
    for pid in every_pid():
        with contextlib.suppress(OSError, LookupError):
            if wanted in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                process = ProcessId.of(pid)
                if process.alive():
                    found.append(process)
    return found
