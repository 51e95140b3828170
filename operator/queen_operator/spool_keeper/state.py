"""All that the keeper knows about a spool at one moment, and how it is gathered."""

from __future__ import annotations

import os
import time

from queen_operator.spool_keeper.contents import Contents, Reader
from queen_operator.spool_keeper.writable import why_not_writable


class State:
    """One moment. `contents` is None when the directory cannot be read: then there are no numbers, not zeros."""

    def __init__(self, reader: Reader, held: bool, why_not_held: str) -> None:
        """Look now. Never raises OSError: what cannot be told is None, and `error` says why."""
        self.directory = reader.directory
        self.held = held
        why_not = why_not_writable(reader.directory)
        self.writable = not why_not
        self.at = time.time()
        self.contents: Contents | None = None
        self.free_bytes: int | None = None
        self.total_bytes: int | None = None
        self.error = why_not_held or why_not
        try:
            contents = reader.look()
            room = os.statvfs(reader.directory)
        except OSError as error:
            self.error = f"cannot read {reader.directory}: {error.strerror}"
            return
        self.contents = contents
        self.free_bytes = room.f_bavail * room.f_frsize
        self.total_bytes = room.f_blocks * room.f_frsize
        self.error = self.error or contents.trouble

    @property
    def oldest_age_seconds(self) -> float | None:
        """Age of the oldest file in the spool, None when there is none."""
        if self.contents is None or self.contents.oldest_at is None:
            return None
        return max(0.0, round(self.at - self.contents.oldest_at, 3))
