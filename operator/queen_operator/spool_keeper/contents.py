"""What is in a spool directory: the broker's files, and those that it set aside in `failed/`."""
# pathlib costs 2 MiB in a container that is given few.
# ruff: noqa: PTH116

from __future__ import annotations

import errno
import os
import stat
import time

from queen_operator.spool_keeper.counts import CountTable
from queen_operator.spool_keeper.frames import count_records

QUARANTINE = "failed"
# The kernel stamps directories with a clock that ticks every 1 to 10 ms: two looks this far apart with the same
# stamps saw the same directory.
STILL_SECONDS = 0.02
LOOKS = 10


class Contents:
    """One look at a spool.

    Files and bytes are exact. `events` and `quarantined_events` are exact too, or None when counting them would have
    taken longer than the time given; the next look goes on where this one stopped.
    """

    __slots__ = (
        "broken_records",
        "bytes",
        "events",
        "files",
        "oldest_at",
        "quarantined_bytes",
        "quarantined_events",
        "quarantined_files",
        "trouble",
        "unfinished_files",
    )

    def __init__(self) -> None:
        self.files = 0
        self.bytes = 0
        self.events: int | None = 0
        self.oldest_at: float | None = None
        self.unfinished_files = 0
        self.quarantined_files = 0
        self.quarantined_bytes = 0
        self.quarantined_events: int | None = 0
        self.broken_records = 0
        self.trouble = ""

    @property
    def is_empty(self) -> bool:
        """Whether no accepted message is left in here, the quarantine included."""
        return self.files == 0 and self.quarantined_files == 0


class Reader:
    """Looks at one spool directory again and again; remembers what it counted, so that only new files are read."""

    def __init__(self, directory: str, counting_seconds: float) -> None:
        self.directory = directory
        self._counting_seconds = counting_seconds
        self._known = CountTable()

    def look(self) -> Contents:
        """Return what is in the directory now. Raises OSError when that cannot be told: unknown is never zero.

        A file that is renamed while a directory is listed can be missing from that listing, so "empty" is only
        said when two looks, one tick apart, found nothing and the directories did not change from before to after.
        """
        for _ in range(LOOKS):
            before = self._stamps()
            contents = self._look_once()
            if not contents.is_empty:
                return contents
            time.sleep(STILL_SECONDS)
            contents = self._look_once()
            if not contents.is_empty or self._stamps() == before:
                return contents
        raise OSError(errno.EAGAIN, "the directory does not hold still long enough to call it empty")

    def _stamps(self) -> tuple[int, int]:
        """Return the change times of the directory and of the quarantine, 0 for one that is not there."""
        first = os.stat(self.directory).st_mtime_ns
        try:
            return first, os.stat(f"{self.directory}/{QUARANTINE}").st_mtime_ns
        except FileNotFoundError:
            return first, 0

    def _look_once(self) -> Contents:
        contents = Contents()
        look = _Look(self._known, self._counting_seconds, contents)
        look.take(self.directory, quarantined=False)
        try:  # noqa: SIM105 - contextlib costs memory
            look.take(f"{self.directory}/{QUARANTINE}", quarantined=True)
        except FileNotFoundError:
            pass  # the broker makes it at boot: a new volume has none
        self._known = look.counted
        return contents


class _Look:
    """One pass over both directories. Entries are taken one by one: a list of 100,000 names would cost 9 MiB."""

    def __init__(self, known: CountTable, counting_seconds: float, contents: Contents) -> None:
        self.counted = CountTable()
        self._known = known
        self._seconds_left = counting_seconds
        self._contents = contents

    def take(self, directory: str, quarantined: bool) -> None:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if is_spool_file(entry.name):
                        self._take_file(fd, entry, quarantined)
        finally:
            os.close(fd)

    def _take_file(self, directory: int, entry: os.DirEntry[str], quarantined: bool) -> None:
        try:
            state = entry.stat(follow_symlinks=False)
            count = self._count(directory, entry.name, state)
        except FileNotFoundError:
            return  # drained while we looked
        into = self._contents
        records = count[0] if count else None
        if quarantined:
            into.quarantined_files += 1
            into.quarantined_bytes += state.st_size
            into.quarantined_events = _sum(into.quarantined_events, records)
        else:
            into.files += 1
            into.bytes += state.st_size
            into.unfinished_files += entry.name.endswith(".tmp")
            into.events = _sum(into.events, records)
            written_at = epoch_seconds(entry.name, state.st_mtime)
            into.oldest_at = written_at if into.oldest_at is None else min(into.oldest_at, written_at)
        into.broken_records += bool(count and count[1])

    def _count(self, directory: int, name: str, state: os.stat_result) -> tuple[int, bool] | None:
        """Return (records, broken) of a file, or None when there was no time or no way to count them."""
        if not stat.S_ISREG(state.st_mode):
            return 0, True
        mark = CountTable.mark(name, state.st_size, state.st_mtime_ns)
        count = self._known.get(mark)
        if count is None:
            if self._seconds_left <= 0:
                return None
            begun = time.monotonic()
            try:
                count = _count_file(directory, name, state.st_size)
            except FileNotFoundError:
                raise
            except OSError as error:
                self._contents.trouble = f"cannot read {name}: {error.strerror}"
                return None
            # Only counting counts: were listing charged too, the last of many files would never have their turn.
            self._seconds_left -= time.monotonic() - begun
        self.counted.put(mark, *count)
        return count


def _sum(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def _count_file(directory: int, name: str, size: int) -> tuple[int, bool]:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        return count_records(fd, size, name.endswith(".buf"))
    finally:
        os.close(fd)


def is_spool_file(name: str) -> bool:
    """Whether the broker counts a file of this name as spool: `.buf` is finished, `.tmp` is being written.

    An empty `.tmp` counts too. An idle broker has none: it gives the file its first record in the call that makes it,
    and drops a file without records at the next drain. One is left by a full disk or a kill between the two steps.
    """
    return name.endswith((".buf", ".tmp")) and not name.startswith(".")


def epoch_seconds(name: str, fallback: float) -> float:
    """Return when a file was begun: from `queen-<13-digit epoch ms>-...`, else `fallback`."""
    digits = name[6:19]
    if name.startswith("queen-") and len(digits) == 13 and digits.isascii() and digits.isdigit() and name[19:20] == "-":
        return int(digits) / 1000
    return fallback
