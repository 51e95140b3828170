import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import cache, progress
from lab.progress import LabError, Task, run_all


def test_a_task_starts_after_those_it_needs() -> None:
    order: list[str] = []

    def note(name: str) -> str:
        order.append(name)
        return "done"

    seconds = run_all([Task("b", lambda: note("b"), ("a",)), Task("a", lambda: note("a"))])
    assert order == ["a", "b"]
    assert set(seconds) == {"a", "b"}


def test_independent_tasks_run_side_by_side() -> None:
    together = threading.Barrier(2, timeout=60)

    def meet() -> str:
        together.wait()
        return "met"

    run_all([Task("a", meet), Task("b", meet)])


def test_a_failure_is_told_with_its_log_and_the_others_still_finish(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "broken.log"
    finished: list[str] = []

    def fail() -> str:
        progress.run_logged([sys.executable, "-c", "print('the compiler speaks'); raise SystemExit(3)"], log)
        return "never"

    def succeed() -> str:
        finished.append("other")
        return "built"

    tasks = [
        Task("broken", fail, log=log),
        Task("other", succeed),
        Task("needs broken", lambda: pytest.fail("started"), ("broken",)),
    ]
    with pytest.raises(LabError, match="failed: broken; not tried after that: needs broken"):
        run_all(tasks)
    printed = capsys.readouterr().out
    assert "broken: FAILED" in printed
    assert "the compiler speaks" in printed
    assert str(log) in printed
    assert finished == ["other"]


def test_a_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no-such-compiler is not installed"):
        progress.run_logged(["no-such-compiler"], tmp_path / "log")


def test_what_runs_is_reported_with_the_last_line_of_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "REPORT_SECONDS", 0.01)
    log = tmp_path / "log"
    log.write_text("first\nCompiling serde\r\n\n")
    reported = threading.Event()
    original = progress.say

    def say(text: str) -> None:
        original(text)
        reported.set()

    monkeypatch.setattr(progress, "say", say)
    run_all([Task("broker", lambda: str(reported.wait(60)), log=log)])
    assert "broker: Compiling serde\n" in capsys.readouterr().out


def test_an_interrupted_setup_ends_the_programs_that_it_started(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, signal\n"
        "from pathlib import Path\n"
        "from lab.progress import Task, run_all, run_logged\n"
        "signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        "child = 'import os, pathlib, time; pathlib.Path(\"pid\").write_text(str(os.getpid())); time.sleep(600)'\n"
        "run_all([Task('long', lambda: run_logged([sys.executable, '-c', child], Path('log')) or 'done')])\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(cache.CHECKOUT))
    setup = subprocess.Popen([sys.executable, script], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    wait_until((tmp_path / "pid").exists)
    wait_until(lambda: (tmp_path / "pid").read_text() != "")
    setup.send_signal(signal.SIGTERM)
    assert setup.wait(60) != 0
    child = Path("/proc") / (tmp_path / "pid").read_text()
    wait_until(lambda: not child.exists())


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)
