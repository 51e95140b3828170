"""What the keeper finds in a spool directory, with real files."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from queen_operator.spool_keeper.contents import Contents, Reader, epoch_seconds
from queen_operator.spool_keeper.counts import MOST_SLOTS, CountTable
from queen_operator.spool_keeper.state import State
from tests.unit.spool_keeper.spool_files import add_file, add_links, file_name, record, records

SEPTEMBER = 1_700_000_000_000


def look(directory: Path, counting_seconds: float = 60.0) -> Contents:
    return Reader(str(directory), counting_seconds).look()


def test_an_empty_directory_is_empty(spool: Path) -> None:
    contents = look(spool)
    assert contents.is_empty
    assert (contents.files, contents.bytes, contents.events, contents.oldest_at) == (0, 0, 0, None)


def test_waiting_and_unfinished_files_are_counted_with_their_messages(spool: Path) -> None:
    add_file(spool, SEPTEMBER, records(3))
    add_file(spool, SEPTEMBER + 5000, records(2, payload_bytes=20_000), ending="tmp")
    contents = look(spool)
    assert (contents.files, contents.unfinished_files, contents.events) == (2, 1, 5)
    assert contents.bytes == len(records(3)) + len(records(2, payload_bytes=20_000))
    assert (contents.broken_records, contents.quarantined_files) == (0, 0)
    assert contents.oldest_at == SEPTEMBER / 1000
    assert not contents.is_empty


def test_quarantined_files_are_counted_apart_and_are_not_empty(spool: Path) -> None:
    add_file(spool / "failed", SEPTEMBER, records(7))
    contents = look(spool)
    assert (contents.files, contents.events, contents.oldest_at) == (0, 0, None)
    assert (contents.quarantined_files, contents.quarantined_events) == (1, 7)
    assert contents.quarantined_bytes == len(records(7))
    assert not contents.is_empty


def test_other_names_are_not_spool(spool: Path) -> None:
    for name in ("lost+found", "notes.txt", ".buf", ".nfs0001.buf", "queen.bufx"):
        (spool / name).write_bytes(b"x")
    assert look(spool).is_empty


def test_an_unfinished_file_without_a_record_is_still_a_file(spool: Path) -> None:
    """Left by a full disk or a kill between making the file and its first record; an idle broker has none."""
    add_file(spool, SEPTEMBER, b"", ending="tmp")
    contents = look(spool)
    assert (contents.files, contents.unfinished_files, contents.events, contents.broken_records) == (1, 1, 0, 0)


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (record(9)[:-1], "the last byte is missing"),
        (record(9)[:20], "most of the record is missing"),
        (record(9)[:3], "not even the length is whole"),
        (record(9)[:4], "only the length is there"),
        (b"\0" * 64, "zeros, as a power cut leaves them"),
        (b"\x05\0\0\0hello" + records(5), "not a JSON object"),
        (b"\x03\0\0\0{ab" + records(5), "an object without an end"),
    ],
)
def test_a_finished_file_with_a_broken_record_says_so_and_counts_what_is_before_it(
    spool: Path, tail: bytes, why: str
) -> None:
    add_file(spool, SEPTEMBER, records(4) + tail)
    contents = look(spool)
    assert (contents.events, contents.broken_records) == (4, 1), why
    assert contents.bytes == len(records(4) + tail)


def test_broken_records_are_counted_once_per_file_and_in_quarantine_too(spool: Path) -> None:
    add_file(spool, SEPTEMBER, records(1) + b"\0" * 500)
    add_file(spool, SEPTEMBER + 1, records(2))
    add_file(spool / "failed", SEPTEMBER + 2, b"junk that is no record")
    assert look(spool).broken_records == 2


def test_a_record_that_is_still_being_written_is_not_broken(spool: Path) -> None:
    for length in range(1, len(record(9))):
        path = add_file(spool, SEPTEMBER, records(4) + record(9)[:length], ending="tmp")
        contents = look(spool)
        assert (contents.events, contents.broken_records) == (4, 0), f"{length} bytes of the next record"
    path.write_bytes(records(5))
    assert look(spool).events == 5


def test_what_follows_a_half_written_record_in_the_active_file_is_seen_as_broken(spool: Path) -> None:
    """After a full disk the broker goes on behind the half record; at the replay it drops all of that in silence."""
    add_file(spool, SEPTEMBER, records(4) + record(9)[:60] + records(50), ending="tmp")
    contents = look(spool)
    assert (contents.events, contents.broken_records) == (4, 1)


def test_large_payloads_are_stepped_over(spool: Path) -> None:
    path = add_file(spool, SEPTEMBER, record(0, 3_000_000) + record(1, 10) + record(2, 5_000_000))
    contents = look(spool)
    assert (contents.events, contents.broken_records, contents.bytes) == (3, 0, path.stat().st_size)


def test_what_is_not_a_regular_file_is_counted_and_never_opened(spool: Path) -> None:
    os.mkfifo(spool / file_name(SEPTEMBER))
    (spool / file_name(SEPTEMBER + 1)).symlink_to("/dev/zero")
    contents = look(spool)
    assert (contents.files, contents.broken_records, contents.events) == (2, 2, 0)


def test_the_age_comes_from_the_name_and_else_from_the_file(spool: Path) -> None:
    assert epoch_seconds(file_name(SEPTEMBER), 5.0) == SEPTEMBER / 1000
    for odd in (
        "queen-170000000000-00000000.buf",
        "queen-17000000000000-0.buf",
        "other.buf",
        "queen-١٢٣٤٥٦٧٨٩٠١٢٣-0.buf",
    ):
        assert epoch_seconds(odd, 5.0) == 5.0
    path = spool / "saved.buf"
    path.write_bytes(records(1))
    os.utime(path, (1_500_000_000, 1_500_000_000))
    state = State(Reader(str(spool), 1.0), held=True, why_not_held="")
    assert state.oldest_age_seconds == pytest.approx(time.time() - 1_500_000_000, abs=60)


def test_a_file_from_the_future_has_age_zero(spool: Path) -> None:
    add_file(spool, int(time.time() * 1000) + 3_600_000, records(1))
    assert State(Reader(str(spool), 1.0), held=True, why_not_held="").oldest_age_seconds == 0.0


def test_messages_are_unknown_when_time_runs_out_and_exact_a_few_looks_later(spool: Path) -> None:
    add_links(spool, SEPTEMBER, [records(3)], 2000)
    reader = Reader(str(spool), counting_seconds=0.005)
    first = reader.look()
    assert (first.files, first.bytes, first.events) == (2000, 2000 * len(records(3)), None)
    for _ in range(200):
        contents = reader.look()
        assert contents.files == 2000
        if contents.events is not None:
            break
    assert contents.events == 6000


def test_a_counted_file_is_read_again_only_when_it_changed(spool: Path) -> None:
    path = add_file(spool, SEPTEMBER, records(3))
    reader = Reader(str(spool), 60.0)
    assert reader.look().events == 3
    accessed = path.stat().st_mtime_ns
    garbage = b"x" * path.stat().st_size
    path.write_bytes(garbage)
    os.utime(path, ns=(accessed, accessed))
    assert reader.look().events == 3, "same name, size and time: taken from memory"
    path.write_bytes(records(8))
    assert reader.look().events == 8


def test_five_thousand_files_are_counted_exactly(spool: Path) -> None:
    add_links(spool, SEPTEMBER, [records(number) for number in range(4)], 5000)
    contents = look(spool)
    assert contents.files == 5000
    assert contents.events == sum(sequence % 4 for sequence in range(5000))
    assert contents.bytes == sum(len(records(sequence % 4)) for sequence in range(5000))


def test_a_directory_that_is_not_there_is_unknown_and_not_empty(spool: Path) -> None:
    with pytest.raises(FileNotFoundError):
        look(spool / "missing")
    state = State(Reader(str(spool / "missing"), 1.0), held=True, why_not_held="")
    assert state.contents is None
    assert state.error == f"cannot read {spool}/missing: No such file or directory"


def test_a_quarantine_that_cannot_be_listed_makes_all_unknown(spool: Path) -> None:
    (spool / "failed").write_text("not a directory")
    with pytest.raises(NotADirectoryError):
        look(spool)


@contextmanager
def meanwhile(step: Callable[[], None]) -> Iterator[None]:
    """Run `step` again and again in a second thread."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            step()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


def test_a_file_that_is_always_moving_is_never_taken_for_an_empty_spool(spool: Path) -> None:
    """A rename during a listing can hide a file from it: nothing may be concluded from one look."""
    (spool / "failed").mkdir()
    places = [spool / file_name(SEPTEMBER, 0, "tmp"), spool / file_name(SEPTEMBER), spool / "failed" / "x.buf"]
    places[0].write_bytes(records(1))
    turn = count()

    def move() -> None:
        here = next(turn)
        places[here % 3].rename(places[(here + 1) % 3])

    reader = Reader(str(spool), 1.0)
    until = time.monotonic() + 3.0
    looks = unknown = 0
    with meanwhile(move):
        while time.monotonic() < until:
            looks += 1
            try:
                assert not reader.look().is_empty
            except BlockingIOError:  # "does not hold still"
                unknown += 1
    assert looks > 10
    assert unknown < looks


def test_files_that_vanish_while_they_are_listed_are_gone_and_no_error(spool: Path) -> None:
    stays = add_file(spool, SEPTEMBER, records(2))
    outside = [add_file(spool / "outside", SEPTEMBER + 1, records(1), sequence) for sequence in range(20)]
    turn = count()

    def come_and_go() -> None:
        inside = [path.rename(spool / file_name(SEPTEMBER + 2, next(turn))) for path in outside]
        for path, home in zip(inside, outside, strict=True):
            path.rename(home)

    reader = Reader(str(spool), 1.0)
    with meanwhile(come_and_go):
        for _ in range(300):
            contents = reader.look()
            assert 1 <= contents.files <= 21
            assert contents.events is not None
            assert contents.events == contents.files + 1
            assert not contents.trouble
    assert reader.look().bytes == stays.stat().st_size


def test_the_memory_of_counts_is_right_for_every_file_and_stops_growing() -> None:
    table = CountTable()
    marks = [CountTable.mark(file_name(SEPTEMBER, number), number, 7) for number in range(20_000)]
    for number, mark in enumerate(marks):
        table.put(mark, number, broken=number % 3 == 0)
    assert all(table.get(mark) == (number, number % 3 == 0) for number, mark in enumerate(marks))
    assert table.get(CountTable.mark("another", 1, 1)) is None
    more = [CountTable.mark(file_name(SEPTEMBER, number), number, 8) for number in range(MOST_SLOTS)]
    for mark in more:
        table.put(mark, 1, broken=False)
    assert table.get(marks[77]) == (77, False)
    assert table.get(more[-1]) is None
    assert sum(table.get(mark) is not None for mark in marks + more) == MOST_SLOTS * 7 // 8
