"""The first process of a keeper: it holds the lock, keeps the HTTP child alive, and does nothing else.

Whatever can fail (sockets, listings, parsing) runs in the child: the lock must live exactly as long as the container,
because the moment it is free a second pod's broker may start on the same files.
"""

from __future__ import annotations

import gc
import os
import signal
import time

from queen_operator.spool_keeper.http_child import HttpChild
from queen_operator.spool_keeper.lock import DirectoryLock
from queen_operator.spool_keeper.log import log

LOCK_RETRY_SECONDS = 0.2
LONGEST_SLEEP_SECONDS = 3600.0
ENDING = (signal.SIGTERM, signal.SIGINT)
WAKING = (*ENDING, signal.SIGCHLD)


def hold(directory: str, port: int, termination_log: str) -> int:
    """Hold the lock on `directory` and serve HTTP on `port` until SIGTERM; returns the exit code 0."""
    gc.disable()  # this process makes no cycles, and a collection would un-share its pages from the child's
    # Blocked signals wait for sigtimedwait, even for a PID 1 that has no handlers: none can be lost between two calls.
    signal.pthread_sigmask(signal.SIG_BLOCK, WAKING)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would hide the child's death from us
    lock = DirectoryLock(directory)
    child = HttpChild(directory, port)
    _keep(lock, child)
    log("SIGTERM: ending")
    child.stop()
    _leave_last_word(directory, lock.held, termination_log)
    return 0


def _keep(lock: DirectoryLock, child: HttpChild) -> None:
    reported = ""
    while True:
        lock.try_take()
        state = "holding the lock" if lock.held else f"waiting: {lock.why_not}"
        if state != reported:
            log(state)
            reported = state
        child.start_if_due(time.monotonic(), lock)
        child.tell(lock.held, lock.why_not)
        if _next_signal(lock, child) in ENDING:
            return
        _reap(child)


def _next_signal(lock: DirectoryLock, child: HttpChild) -> int:
    pauses = [LONGEST_SLEEP_SECONDS, child.seconds_to_start(time.monotonic())]
    if not lock.held:
        pauses.append(LOCK_RETRY_SECONDS)
    arrived = signal.sigtimedwait(WAKING, min(pauses))
    return arrived.si_signo if arrived else 0


def _reap(child: HttpChild) -> None:
    """Collect every ended process: the first process of a container also inherits what `kubectl exec` leaves."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == child.pid:
            child.ended(status, time.monotonic())


def _leave_last_word(directory: str, held: bool, termination_log: str) -> None:
    """Write what is in the spool as the container's termination message, if there is a place for it."""
    from queen_operator.spool_keeper.last_word import leave_last_word
    from queen_operator.spool_keeper.report import last_word

    text = last_word(directory, held)
    log(f"last word: {text}")
    leave_last_word(text, termination_log)
