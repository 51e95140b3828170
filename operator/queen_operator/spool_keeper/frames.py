"""The records of one spool file, counted without reading what is in them.

A file is a sequence of `u32 little-endian length, JSON object` (broker 1.3.0, `file_buffer.rs`). The broker skips a
record that does not parse without a word, so a record that cannot be right is worth counting here.
"""

from __future__ import annotations

import os

WINDOW_BYTES = 4096
HEADER_BYTES = 4
# The broker takes request bodies up to 64 MiB: a longer record is four bytes of text, read as a length.
LARGEST_RECORD_BYTES = 256 * 1024 * 1024


class _Window:
    """A page of the file that moves along; one page is all the memory that a file costs."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._start = 0
        self._page = b""

    def read(self, offset: int, count: int) -> bytes:
        """Return `count` bytes at `offset`, fewer at the end of the file."""
        if not self._start <= offset <= offset + count <= self._start + len(self._page):
            self._start, self._page = offset, os.pread(self._fd, WINDOW_BYTES, offset)
        return self._page[offset - self._start : offset - self._start + count]


def count_records(fd: int, size: int, finished: bool) -> tuple[int, bool]:
    """Count the whole records in the first `size` bytes: (records, whether a broken one ended the count).

    What follows a broken record cannot be told apart, so it is not counted. In an unfinished file (`.tmp`) a record
    that is not all there yet is the broker's next write and not broken, unless its length cannot be true.
    """
    window = _Window(fd)
    offset = records = 0
    while offset < size:
        head = window.read(offset, min(HEADER_BYTES + 1, size - offset))
        if len(head) <= HEADER_BYTES:
            return records, finished
        length = int.from_bytes(head[:HEADER_BYTES], "little")
        end = offset + HEADER_BYTES + length
        if not 0 < length <= LARGEST_RECORD_BYTES or head[HEADER_BYTES:] != b"{":
            return records, True
        if end > size:
            return records, finished
        if window.read(end - 1, 1) != b"}":
            return records, True
        records += 1
        offset = end
    return records, False
