"""The last word of a container, which Kubernetes keeps in the status of its pod."""

from __future__ import annotations

import os

from queen_operator.spool_keeper.log import log

# Kubernetes cuts longer messages, and JSON that is cut can no longer be read.
LONGEST_BYTES = 4096


def leave_last_word(text: str, termination_log: str) -> None:
    """Append a line of ASCII to the file that Kubernetes made for it; only log why when there is none to write to."""
    try:
        fd = os.open(termination_log, os.O_WRONLY | os.O_APPEND)
        os.write(fd, text.encode()[: LONGEST_BYTES - 1] + b"\n")
        os.close(fd)
    except OSError as error:
        log(f"no termination message: {termination_log}: {error.strerror}")
