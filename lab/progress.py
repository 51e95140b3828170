"""Do independent pieces of work side by side and say every few seconds what is going on."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import IO

REPORT_SECONDS = 15.0
# Programs that run now, each the first of a process group of its own.
_running: set[subprocess.Popen[bytes]] = set()


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


class _Run:
    """The state of one `run_all`; the reporter thread reads `started` while the tasks change it."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.logs = {task.name: task.log for task in tasks}
        self.waiting = {task.name: task for task in tasks}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.started: dict[str, float] = {}
        self.lock = threading.Lock()

    def to_the_end(self) -> None:
        """Run what can be run until nothing is left that could start."""
        running: dict[Future[str], str] = {}
        with ThreadPoolExecutor(max_workers=max(1, len(self.waiting))) as pool:
            try:
                while running := running | self._start_what_can(pool):
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        self._note_end(running.pop(future), future)
            except BaseException:
                # Interrupted, or an error of our own. The pool waits for its threads, and they for these programs.
                _end_programs()
                raise

    def _start_what_can(self, pool: ThreadPoolExecutor) -> dict[Future[str], str]:
        ready = [name for name, task in self.waiting.items() if all(need in self.seconds for need in task.after)]
        with self.lock:
            self.started.update(dict.fromkeys(ready, time.monotonic()))
        return {pool.submit(self.waiting.pop(name).work): name for name in ready}

    def _note_end(self, name: str, future: Future[str]) -> None:
        with self.lock:
            elapsed = time.monotonic() - self.started.pop(name)
        error = future.exception()
        if error is None:
            self.seconds[name] = elapsed
            say(f"  {elapsed:4.0f} s  {name}: {future.result()}")
            return
        if not isinstance(error, (LabError, OSError, subprocess.SubprocessError)):
            raise error
        self.failed.append(name)
        log = self.logs[name]
        where = f" (log: {log})" if log is not None and log.exists() else ""
        say(f"  {elapsed:4.0f} s  {name}: FAILED: {error}{where}")

    def report_until(self, stop: threading.Event) -> None:
        """Print one line for each running task every REPORT_SECONDS."""
        while not stop.wait(REPORT_SECONDS):
            now = time.monotonic()
            with self.lock:
                running = sorted(self.started.items())
            for name, since in running:
                say(f"  {now - since:4.0f} s  {name}: {last_line(self.logs[name])}")


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
    run = _Run(tasks)
    stop = threading.Event()
    threading.Thread(target=run.report_until, args=(stop,), daemon=True).start()
    try:
        run.to_the_end()
    finally:
        stop.set()
    if run.failed or run.waiting:
        skipped = f"; not tried after that: {', '.join(sorted(run.waiting))}" if run.waiting else ""
        raise LabError(f"failed: {', '.join(run.failed)}{skipped}")
    return run.seconds


def run_logged(
    argv: Sequence[str | Path], log: Path, *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> None:
    """Run a program with its output in ``log``; raises LabError with the last lines when it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(a) for a in argv]
    with log.open("ab") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        code = _run(command, output, env, cwd)
    if code != 0:
        tail = log.read_text(errors="replace").splitlines()[-12:]
        raise LabError(f"{Path(command[0]).name} ended with {code}:\n    " + "\n    ".join(tail))


def _run(command: list[str], output: IO[bytes], env: Mapping[str, str] | None, cwd: Path | None) -> int:
    try:
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
            process_group=0,
        )
    except FileNotFoundError:
        raise LabError(f"{command[0]} is not installed") from None
    _running.add(program)
    try:
        return program.wait()
    finally:
        _running.discard(program)


def _end_programs() -> None:
    for program in list(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGTERM)
