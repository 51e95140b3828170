"""One line per event on standard error; a log that cannot be written never stops the keeper."""

import os


def log(text: str) -> None:
    """Write one line."""
    try:  # noqa: SIM105 - contextlib costs memory in the process that must stay small
        os.write(2, f"spool-keeper[{os.getpid()}]: {text}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass
