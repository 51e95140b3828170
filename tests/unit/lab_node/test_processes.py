from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.processes import ProcessId, children_of, marked_with, parent_of
from lab.supervisor import ProcessDiedError, Supervisor
from tests.support.waiting import wait_until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "LAB_TEST_MARK": "sleeper"}) as process:
        yield process
        process.kill()


def test_a_process_is_recognized_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    process = ProcessId.of(sleeper.pid)

    assert process.alive()
    assert parent_of(sleeper.pid) == os.getpid()
    assert sleeper.pid in children_of(os.getpid())
    process.kill(seconds=10)
    assert not process.alive()


def test_a_zombie_counts_as_ended(sleeper: subprocess.Popen[bytes]) -> None:
    process = ProcessId.of(sleeper.pid)
    sleeper.send_signal(signal.SIGKILL)

    # Nobody has collected it, so its number is still taken.
    wait_until("the process to end", lambda: not process.alive(), seconds=10)
    assert Path(f"/proc/{sleeper.pid}").exists()


def test_a_recycled_number_is_neither_alive_nor_killed(sleeper: subprocess.Popen[bytes]) -> None:
    now = ProcessId.of(sleeper.pid)
    for earlier in (replace(now, start_ticks=now.start_ticks - 1), replace(now, boot_id="another boot")):
        assert not earlier.alive()
        assert not earlier.send(signal.SIGKILL)

    assert now.alive()


def test_no_process_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match="no process 4194305"):
        ProcessId.of(4194305)


def test_a_process_is_found_by_the_mark_in_its_environment(sleeper: subprocess.Popen[bytes]) -> None:
    wait_until("the program to run", lambda: marked_with("LAB_TEST_MARK", "sleeper"), seconds=10)

    assert [found.pid for found in marked_with("LAB_TEST_MARK", "sleeper")] == [sleeper.pid]
    assert marked_with("LAB_TEST_MARK", "sleep") == []


def test_the_supervisor_names_the_program_that_died_and_shows_its_last_words(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    supervisor.start("healthy", ["sleep", "600"])
    supervisor.start("broken", ["sh", "-c", "echo no such disk; exit 3"])

    with pytest.raises(ProcessDiedError, match="broken ended with code 3; the end of its log:\nno such disk"):
        supervisor.wait_until("something that never comes", lambda: False, seconds=30)
    supervisor.stop()


def test_the_supervisor_waits_through_refused_connections_and_then_gives_up(tmp_path: Path) -> None:
    def refused() -> bool:
        raise ConnectionRefusedError

    with pytest.raises(TimeoutError, match="waited 0 s in vain for the API server"):
        Supervisor(tmp_path).wait_until("the API server", refused, seconds=0.2)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="/nowhere/etcd is missing"):
        Supervisor(tmp_path).start("etcd", [Path("/nowhere/etcd")])


def test_programs_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    # Started from a thread that has ended: the kernel would take "the parent" for that thread.
    script = f"""
import threading, time
from pathlib import Path
from lab.supervisor import Supervisor
supervisor = Supervisor(Path({str(tmp_path)!r}))
thread = threading.Thread(target=supervisor.start, args=("child", ["sleep", "600"]))
thread.start(); thread.join()
print(*supervisor.pids, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=_with_path()
    ) as parent:
        assert parent.stdout is not None
        child = ProcessId.of(int(parent.stdout.readline()))
        time.sleep(0.3)
        assert child.alive()

        parent.kill()

    wait_until("the child to die with its parent", lambda: not child.alive(), seconds=10)


def _with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
