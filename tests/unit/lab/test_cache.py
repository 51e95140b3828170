import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from lab import cache


@pytest.fixture(autouse=True)
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "queen-operator"


PART = cache.Part("thing", "1.0", ("flag",))


def test_a_part_lies_in_the_users_cache_under_its_name_version_and_hash(own_root: Path) -> None:
    assert PART.path.parent == own_root
    assert PART.path.name.startswith("thing-1.0-")


@pytest.mark.parametrize(
    "other",
    [
        cache.Part("thing", "1.1", ("flag",)),
        cache.Part("thing", "1.0", ("other flag",)),
        cache.Part("thing", "1.0", ("flag", "")),
        cache.Part("thing", "1.0", ("fl", "ag")),
        cache.Part("thing", "1.0", ()),
    ],
)
def test_another_version_or_flag_is_another_part(other: cache.Part) -> None:
    assert other.path != PART.path


def test_a_part_is_made_once() -> None:
    assert PART.make(lambda into: (into / "program").write_text("x")) is True
    assert PART.make(lambda _: pytest.fail("made again")) is False
    assert (PART.path / "program").read_text() == "x"


def test_a_part_is_not_there_while_it_is_being_made() -> None:
    seen: list[bool] = []
    PART.make(lambda _: seen.append(PART.is_present()))
    assert seen == [False]
    assert PART.is_present()


def test_a_failed_build_leaves_no_part_but_its_workshop_and_log() -> None:
    def fails(into: Path) -> None:
        (into / "half").write_text("half")
        PART.workshop.mkdir(parents=True)
        (PART.workshop / "compiled").write_text("kept for the next try")
        PART.log.write_text("why")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        PART.make(fails)
    assert not PART.is_present()
    assert (PART.workshop / "compiled").exists()
    assert PART.log.read_text() == "why"


def test_the_next_try_starts_from_an_empty_directory_and_clears_the_workshop() -> None:
    with pytest.raises(OSError, match="disk full"):
        PART.make(_half_then_fail)
    PART.workshop.mkdir(parents=True)
    PART.make(lambda into: (into / "whole").write_text("whole"))
    assert [p.name for p in PART.path.iterdir()] == ["whole"]
    assert not PART.workshop.exists()


def _half_then_fail(into: Path) -> None:
    (into / "half").write_text("half")
    raise OSError("disk full")


def _append_and_wait(into: Path, journal: Path) -> None:
    with journal.open("a") as file:
        file.write("built\n")
    while not (journal.parent / "go on").exists():
        time.sleep(0.01)
    (into / "program").write_text("x")


def _make(journal: Path) -> None:
    PART.make(lambda into: _append_and_wait(into, journal))


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def test_of_two_processes_at_once_one_builds_and_the_other_waits_for_it(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=_make, args=(journal,)) for _ in range(2)]
    for process in both:
        process.start()
    _wait_for(journal)
    (tmp_path / "go on").write_text("")
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert journal.read_text() == "built\n"


def test_a_killed_build_does_not_block_the_next_one(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    process = multiprocessing.get_context("fork").Process(target=_make, args=(journal,))
    process.start()
    _wait_for(journal)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert not PART.is_present()
    assert PART.make(lambda _: None) is True


def test_a_pointer_can_be_moved_to_another_target(tmp_path: Path) -> None:
    pointer = tmp_path / "deep" / "pointer"
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
        cache.point(pointer, tmp_path / name)
        assert pointer.read_text() == name
    assert [p.name for p in pointer.parent.iterdir()] == ["pointer"]


def test_read_only_directories_are_removed_too(tmp_path: Path) -> None:
    inner = tmp_path / "modules" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0o555)
    cache.remove_tree(tmp_path / "modules")
    assert not (tmp_path / "modules").exists()


def test_a_fingerprint_covers_content_and_names_but_not_byte_code(tmp_path: Path) -> None:
    source = tmp_path / "package"
    (source / "__pycache__").mkdir(parents=True)
    (source / "a.py").write_text("1")
    first = cache.fingerprint(source)
    (source / "__pycache__" / "a.pyc").write_text("compiled")
    assert cache.fingerprint(source) == first
    (source / "a.py").write_text("2")
    second = cache.fingerprint(source)
    (source / "a.py").rename(source / "b.py")
    assert len({first, second, cache.fingerprint(source)}) == 3


def test_a_fingerprint_does_not_depend_on_where_the_checkout_lies(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place / "package").mkdir(parents=True)
        (tmp_path / place / "package" / "a.py").write_text("1")
    assert cache.fingerprint(tmp_path / "here" / "package") == cache.fingerprint(tmp_path / "there" / "package")
