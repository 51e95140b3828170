"""The HTTP child as its parent sees it: started, told about the lock, started again when it dies."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

from queen_operator.spool_keeper.lock import DirectoryLock
from queen_operator.spool_keeper.log import log

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
STEADY_SECONDS = 10.0
STOP_SECONDS = 1.0


class HttpChild:
    """A forked process that serves HTTP; `pid` is 0 while there is none."""

    def __init__(self, directory: str, port: int) -> None:
        self.pid = 0
        self._directory = directory
        self._port = port
        self._pipe = -1
        self._told: bytes = b""
        self._start_at = 0.0
        self._started_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS

    def seconds_to_start(self, now: float) -> float:
        """How long until `start_if_due` has something to do; infinite while the child runs."""
        return float("inf") if self.pid else max(0.0, self._start_at - now)

    def start_if_due(self, now: float, lock: DirectoryLock) -> None:
        """Fork the child if there is none and its pause is over. `lock` is what the child must not inherit."""
        if self.pid or now < self._start_at:
            return
        try:
            reading, self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self._could_not_start(error, now)
            return
        try:
            # What is there now is shared with the child as long as no collector writes to it.
            gc.freeze()
            self.pid = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(self._pipe)
            self._pipe = -1
            self._could_not_start(error, now)
            return
        if self.pid == 0:
            self._be_the_child(reading, lock)
        os.close(reading)
        self._started_at, self._told = now, b""

    def _be_the_child(self, reading: int, lock: DirectoryLock) -> None:
        """Serve until the end, and never return into the parent's code."""
        try:
            lock.forget()
            os.close(self._pipe)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            gc.enable()
            from queen_operator.spool_keeper.server import serve

            os._exit(serve(self._directory, self._port, reading))
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)

    def tell(self, held: bool, why_not: str) -> None:
        """Tell the child whether the lock is held, once per change. The pipe's end tells it that we are gone."""
        line = b"held\n" if held else b"waiting " + why_not.encode("utf-8", "backslashreplace") + b"\n"
        if self._pipe < 0 or line == self._told:
            return
        try:
            os.write(self._pipe, line)
            self._told = line
        except OSError:
            pass  # a dying child: the next one is told anew; a full pipe: tried again at the next wake-up

    def ended(self, status: int, now: float) -> None:
        """Note the child's death and choose when the next one starts: 0.1 s later, doubling up to 5 s."""
        log(f"the HTTP child ended with {os.waitstatus_to_exitcode(status)}, the lock stays")
        os.close(self._pipe)
        self.pid, self._pipe = 0, -1
        if now - self._started_at >= STEADY_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        self._wait_longer(now)

    def _could_not_start(self, error: OSError, now: float) -> None:
        log(f"cannot start the HTTP child: {error.strerror}")
        self._wait_longer(now)

    def _wait_longer(self, now: float) -> None:
        self._start_at = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def stop(self) -> None:
        """End the child: SIGTERM, and SIGKILL a second later."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.pid:
                os.kill(self.pid, number)
                self._await_end(time.monotonic() + STOP_SECONDS)

    def _await_end(self, deadline: float) -> None:
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            signal.sigtimedwait((signal.SIGCHLD,), left)
        self.pid = 0
