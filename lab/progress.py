"""Do independent pieces of work side by side and say every few seconds what is going on."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

REPORT_SECONDS = 15.0


class LabError(Exception):
    """Something the user should read as one sentence, without a traceback."""


@dataclass(frozen=True)
class Task:
    """A named piece of work that starts when the tasks named in ``after`` have succeeded.

    ``work`` returns what the closing line says about it, for example ``"already there"``.
    """

    name: str
    work: Callable[[], str]
    after: tuple[str, ...] = ()
    log: Path | None = None


@dataclass
class _Board:
    """What runs since when; the reporter thread reads it while the tasks change it."""

    started: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def lines(self, logs: Mapping[str, Path | None], now: float) -> list[str]:
        with self.lock:
            running = sorted(self.started.items())
        return [f"  {now - since:4.0f} s  {name}: {last_line(logs[name])}" for name, since in running]


def last_line(log: Path | None, width: int = 90) -> str:
    """Return the last non-empty line of a log file, cut to ``width``; "working" when there is none yet."""
    if log is None or not log.exists():
        return "working"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = [line.strip() for line in file.read().decode(errors="replace").replace("\r", "\n").splitlines()]
    return next((line[:width] for line in reversed(lines) if line), "working")


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def run_all(tasks: Sequence[Task]) -> dict[str, float]:
    """Run all tasks, each as soon as those before it have succeeded, and return the seconds that each took.

    A failure is shown at once; tasks that do not need it go on, since what they make is kept. Raises LabError at the
    end when any failed.
    """
    board = _Board()
    logs = {task.name: task.log for task in tasks}
    waiting = {task.name: task for task in tasks}
    seconds: dict[str, float] = {}
    failed: list[str] = []
    stop = threading.Event()
    reporter = threading.Thread(target=_report, args=(board, logs, stop), daemon=True)
    reporter.start()
    running: dict[Future[str], str] = {}
    try:
        with ThreadPoolExecutor(max_workers=max(1, len(tasks))) as pool:
            while waiting or running:
                for name in [n for n, task in waiting.items() if all(a in seconds for a in task.after)]:
                    task = waiting.pop(name)
                    with board.lock:
                        board.started[name] = time.monotonic()
                    running[pool.submit(task.work)] = name
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(future)
                    with board.lock:
                        elapsed = time.monotonic() - board.started.pop(name)
                    if _report_end(name, future, elapsed, logs[name]):
                        seconds[name] = elapsed
                    else:
                        failed.append(name)
    finally:
        stop.set()
    if failed or waiting:
        skipped = f"; not tried after that: {', '.join(sorted(waiting))}" if waiting else ""
        raise LabError(f"failed: {', '.join(failed)}{skipped}")
    return seconds


def _report(board: _Board, logs: Mapping[str, Path | None], stop: threading.Event) -> None:
    while not stop.wait(REPORT_SECONDS):
        for line in board.lines(logs, time.monotonic()):
            say(line)


def _report_end(name: str, future: "Future[str]", elapsed: float, log: Path | None) -> bool:
    error = future.exception()
    if error is None:
        say(f"  {elapsed:4.0f} s  {name}: {future.result()}")
        return True
    if not isinstance(error, (LabError, OSError, subprocess.SubprocessError)):
        raise error
    where = f" (log: {log})" if log is not None and log.exists() else ""
    say(f"  {elapsed:4.0f} s  {name}: FAILED: {error}{where}")
    return False


def run_logged(argv: Sequence[str | Path], log: Path, **options: object) -> None:
    """Run a program with its output in ``log``; raises LabError with the last lines when it fails.

    ``options`` go to subprocess.run (env, cwd).
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(a) for a in argv]
    with log.open("ab") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            done = subprocess.run(  # type: ignore[call-overload]
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False, **options
            )
        except FileNotFoundError:
            raise LabError(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        tail = log.read_text(errors="replace").splitlines()[-12:]
        raise LabError(f"{Path(command[0]).name} ended with {done.returncode}:\n    " + "\n    ".join(tail))


def fail(error: Exception) -> int:
    """Print an error for the user and return the exit code of a failed command."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    return 1
