"""What a worker remembers of a keeper's answers: since when a volume was seen empty without a break."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from queen_operator.control.memory import Memory
from queen_operator.planning.observed import Spool

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
EMPTY = Spool(NOW, True, True, 0, 0, 0, None, 0, 0, 0, 900, 1000)


def after(*answers: Spool | None, memory: Memory | None = None) -> datetime | None:
    """Since when the pod is known to be empty after these answers, two seconds apart."""
    memory = memory or Memory({})
    for number, answer in enumerate(answers):
        at = NOW + timedelta(seconds=2 * number)
        memory.take_spool("pod", None if answer is None else replace(answer, asked_at=at))
    return memory.spools["pod"].empty_since


def test_a_first_empty_answer_begins_the_time_and_the_next_ones_keep_it() -> None:
    assert after(EMPTY) == NOW
    assert after(EMPTY, EMPTY, EMPTY) == NOW


def test_an_answer_with_files_or_quarantine_ends_it_and_it_begins_anew() -> None:
    for held in (replace(EMPTY, files=1), replace(EMPTY, quarantined_files=1)):
        assert after(EMPTY, held) is None
        assert after(EMPTY, held, EMPTY) == NOW + timedelta(seconds=4)


def test_no_answer_neither_begins_nor_ends_it() -> None:
    assert after(EMPTY, None, EMPTY) == NOW


def test_what_the_answer_itself_says_of_it_is_not_believed() -> None:
    assert after(replace(EMPTY, empty_since=NOW - timedelta(hours=1))) == NOW


def test_a_pod_that_is_gone_is_forgotten_with_its_time() -> None:
    memory = Memory({})
    after(EMPTY, memory=memory)
    memory.forget_pods(set())

    assert memory.spools == {}
