import json
import logging
from typing import Any

import pytest

from queen_operator.broker.keeper import read_spool
from queen_operator.planning.observed import Spool
from tests.unit.broker.loops import NOW

SAID: dict[str, Any] = {
    "held": True,
    "directory": "/var/lib/queen/spool",
    "writable": True,
    "files": 2,
    "bytes": 424,
    "events": 2,
    "unfinished_files": 1,
    "quarantined_files": 3,
    "quarantined_bytes": 636,
    "broken_records": 0,
    "oldest_age_seconds": 1.5,
    "free_bytes": 5_000_000_000,
    "total_bytes": 5_368_709_120,
    "error": None,
}
NEEDED = tuple(name for name in SAID if name not in ("directory", "quarantined_bytes", "error"))


def said(**changes: Any) -> bytes:
    return json.dumps(SAID | changes).encode()


def test_a_keepers_answer_becomes_a_spool() -> None:
    assert read_spool(said(), NOW) == Spool(
        asked_at=NOW,
        held=True,
        writable=True,
        files=2,
        bytes=424,
        events=2,
        oldest_age_seconds=1.5,
        unfinished_files=1,
        quarantined_files=3,
        broken_records=0,
        free_bytes=5_000_000_000,
        total_bytes=5_368_709_120,
    )


def test_what_the_keeper_has_not_counted_is_unknown_and_the_rest_counts() -> None:
    spool = read_spool(said(events=None, oldest_age_seconds=None), NOW)
    assert spool is not None
    assert (spool.events, spool.oldest_age_seconds, spool.files) == (None, None, 2)


def test_an_age_in_whole_seconds_is_an_age() -> None:
    spool = read_spool(said(oldest_age_seconds=3), NOW)
    assert spool is not None
    assert spool.oldest_age_seconds == 3.0


@pytest.mark.parametrize("name", NEEDED)
def test_an_answer_without_one_of_its_fields_is_unknown(name: str) -> None:
    less = {key: value for key, value in SAID.items() if key != name}
    assert read_spool(json.dumps(less).encode(), NOW) is None


@pytest.mark.parametrize("value", ["0", 0.0, 0.5, True, -1, None, [], {}])
def test_a_number_of_files_that_is_no_number_is_unknown_never_empty(value: Any) -> None:
    assert read_spool(said(files=value), NOW) is None


@pytest.mark.parametrize("value", ["true", 1, None])
def test_a_flag_that_is_no_flag_is_unknown(value: Any) -> None:
    assert read_spool(said(writable=value), NOW) is None


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-1", '"1"'])
def test_an_impossible_age_is_unknown(word: str) -> None:
    assert read_spool(said().replace(b"1.5", word.encode()), NOW) is None


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"0", b"held\n", b"\xff\xfe", b"[" * 200_000, said()[:-1], said() + said()]
)
def test_what_is_no_keepers_answer_is_unknown(body: bytes) -> None:
    assert read_spool(body, NOW) is None


def test_the_log_names_the_field_and_not_its_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    read_spool(said(files="as if"), NOW)
    assert "files" in caplog.text
    assert "as if" not in caplog.text
