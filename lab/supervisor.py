"""Programs that belong together: started by one process, ended with it, and named when one of them dies."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.progress import LabError


class ProcessDiedError(LabError):
    """A program of the group ended by itself; the text names it and shows the end of its log."""


class Supervisor:
    """Starts programs that die with this process, each with a log file of its own."""

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        # The kernel ties "die with the parent" to the *thread* that started the child, so one thread that lives as
        # long as this process starts them all; started from a test's worker thread they would die with that thread.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lab-starter")

    @property
    def pids(self) -> frozenset[int]:
        """Process numbers of all programs started here."""
        return frozenset(process.pid for process in self._running.values())

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start one program; its output goes to NAME.log. FileNotFoundError when there is no such program."""
        command = ["setpriv", "--pdeathsig", "KILL", "--", *(str(part) for part in argv)]

        def start_now() -> subprocess.Popen[bytes]:
            with (self._log_dir / f"{name}.log").open("ab") as log:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=cwd,
                    env={**os.environ, **(environment or {})},
                    pass_fds=pass_fds,
                )

        program = Path(argv[0])
        if program.is_absolute() and not program.exists():
            raise FileNotFoundError(f"{program} is missing")
        self._running[name] = self._starter.submit(start_now).result()

    def raise_if_one_died(self) -> None:
        """ProcessDiedError when any of the programs has ended."""
        for name, process in self._running.items():
            if process.poll() is not None:
                tail = (self._log_dir / f"{name}.log").read_text(errors="replace")[-3000:]
                raise ProcessDiedError(f"{name} ended with code {process.returncode}; the end of its log:\n{tail}")

    def wait_until(self, what: str, condition: Callable[[], bool], seconds: float) -> None:
        """Return when the condition holds; an OSError from it counts as "not yet".

        ProcessDiedError when a program ends meanwhile, TimeoutError after that many seconds.
        """
        deadline = time.monotonic() + seconds
        while True:
            self.raise_if_one_died()
            try:
                if condition():
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}; logs are in {self._log_dir}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Kill all programs, the last started first, and wait for their end."""
        for process in reversed(self._running.values()):
            process.kill()
        for process in self._running.values():
            process.wait()
        self._running.clear()
        self._starter.shutdown()
