"""The spool, told once: for the one-shot pod that proves a volume empty, and as the keeper's last word."""

from __future__ import annotations

from queen_operator.spool_keeper.contents import Reader
from queen_operator.spool_keeper.last_word import LONGEST_BYTES
from queen_operator.spool_keeper.lock import DirectoryLock
from queen_operator.spool_keeper.render import Value, as_json, spool_values
from queen_operator.spool_keeper.state import State

EXIT_EMPTY = 0
EXIT_NOT_EMPTY = 3
EXIT_UNKNOWN = 4
COUNTING_SECONDS = 30.0
LONGEST_ERROR_CHARACTERS = 256  # each may take 12 bytes as JSON
LAST_WORD = ("held", "files", "bytes", "quarantined_files", "quarantined_bytes", "error")


def report(directory: str) -> tuple[str, int]:
    """Return the JSON of `/spool`, in at most 4095 bytes, and the exit code: 0 empty, 3 not empty, 4 unknown.

    `held` says here whether the lock was free for us, that is, whether nobody else is at this directory. Beside
    somebody else nothing is known, empty or not: a broker may write or drain the next moment.
    """
    lock = DirectoryLock(directory)
    lock.try_take()
    state = State(Reader(directory, COUNTING_SECONDS), lock.held, lock.why_not)
    text = _short_json(spool_values(state))
    if state.contents is None or not state.held:
        return text, EXIT_UNKNOWN
    return text, EXIT_EMPTY if state.contents.is_empty else EXIT_NOT_EMPTY


def _short_json(values: dict[str, Value]) -> str:
    """Render with all numbers, and with as much of the words as fits: names of files and directories can be long."""
    text = as_json(values)
    if len(text) < LONGEST_BYTES:
        return text
    error = values["error"]
    short = error[:LONGEST_ERROR_CHARACTERS] if isinstance(error, str) else error
    return as_json({**values, "directory": None, "error": short})


def last_word(directory: str, held: bool) -> str:
    """Return what is left in the spool, as short JSON; messages are not counted, because there is no time for it."""
    values = spool_values(State(Reader(directory, counting_seconds=0.0), held, why_not_held=""))
    return as_json({name: values[name] for name in LAST_WORD})
