import sys
import threading
from pathlib import Path

import pytest

from lab import progress
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
