"""What each file was found to hold, remembered in 16 bytes a file.

A dictionary would need 130 bytes a file: 13 MiB for the 100,000 files that a long outage leaves.
"""

from __future__ import annotations

import mmap

FIRST_SLOTS = 256
MOST_SLOTS = 131_072
FULLNESS = 7 / 8
WORD = 0xFFFF_FFFF_FFFF_FFFF


class CountTable:
    """A table from a 64-bit mark of a file (name, size, mtime) to its count; beyond 114,688 files it takes no more."""

    def __init__(self) -> None:
        self._allot(FIRST_SLOTS)

    def _allot(self, slots: int) -> None:
        self._slots = slots
        self._used = 0
        # Two words a slot, in a mapping of its own: the allocator would keep the memory of each table that is dropped.
        mapping = mmap.mmap(-1, 16 * slots, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._words = memoryview(mapping).cast("Q")

    @staticmethod
    def mark(name: str, size: int, mtime_ns: int) -> int:
        """Return the key of a file in this state; never 0, which marks a free slot."""
        return hash((name, size, mtime_ns)) & WORD or 1

    def _place(self, mark: int) -> int:
        place = mark % self._slots
        while self._words[2 * place] not in (0, mark):
            place = (place + 1) % self._slots
        return place

    def get(self, mark: int) -> tuple[int, bool] | None:
        """Return (records, broken) of the file with this mark, or None when it was not counted yet."""
        place = self._place(mark)
        if self._words[2 * place] == 0:
            return None
        value = self._words[2 * place + 1]
        return value >> 1, bool(value & 1)

    def put(self, mark: int, records: int, broken: bool) -> None:
        """Remember a count; without effect when the table is full."""
        if self._used >= self._slots * FULLNESS:
            if self._slots >= MOST_SLOTS:
                return
            self._grow()
        place = self._place(mark)
        if self._words[2 * place] == 0:
            self._used += 1
        self._words[2 * place] = mark
        self._words[2 * place + 1] = records << 1 | broken

    def _grow(self) -> None:
        old = self._words
        self._allot(2 * self._slots)
        for place in range(0, len(old), 2):
            if old[place]:
                self.put(old[place], old[place + 1] >> 1, bool(old[place + 1] & 1))
