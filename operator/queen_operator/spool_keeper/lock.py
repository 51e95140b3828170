"""The lock that keeps a second broker off a spool: `flock` on the directory itself, so no file is ever made for it."""

from __future__ import annotations

import fcntl
import os


class DirectoryLock:
    """An exclusive lock on a directory that lives exactly as long as its process.

    `held` tells whether it is ours, `why_not` says in a sentence why it is not.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.held = False
        self.why_not = f"the lock on {directory} was not asked for yet"
        self._fd = -1

    def try_take(self) -> None:
        """Try once, without waiting.

        Never the waiting form: it resumes after a signal, and a keeper that waits would then outlive its grace period.
        """
        if self.held:
            return
        try:
            if self._fd < 0:
                self._fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.why_not = f"another keeper holds the lock on {self.directory}"
        except OSError as error:
            self.why_not = f"cannot lock {self.directory}: {error.strerror}"
            self.forget()
        else:
            self.held, self.why_not = True, ""

    def forget(self) -> None:
        """Close this process's descriptor.

        In a forked child this drops only the copy: without it the child would hold the lock on after its parent.
        """
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self.held = -1, False
