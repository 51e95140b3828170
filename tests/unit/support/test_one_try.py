"""Failed pushes are given to the broker that was leaving when they failed."""

from __future__ import annotations

from tests.support.one_try import assign, drain_seconds
from tests.support.pod_lives import PodLife

START = "2026-01-01T00:00:00+00:00"
START_SECONDS = 1767225600.0


def departure(name: str, leaving: float, gone: float | None) -> PodLife:
    gone_at = START_SECONDS + gone if gone is not None else None
    return PodLife(name, "0", leaving_at=START_SECONDS + leaving, gone_at=gone_at)


def report(*errors: tuple[float, str, str]) -> dict[str, object]:
    return {"started_at": START, "errors": [list(error) for error in errors]}


def test_a_refused_push_belongs_to_the_broker_that_was_leaving() -> None:
    seen = assign(
        report((58.0, "push", "refused"), (150.0, "push", "reset"), (151.0, "push", "reset")),
        [departure("b-0", 60, 80), departure("b-1", 140, 160)],
    )

    assert seen.by_departure == (("b-0", ((58.0, "refused"),)), ("b-1", ((150.0, "reset"), (151.0, "reset"))))
    assert seen.most_at_one_departure == 2
    assert seen.apart == ()


def test_a_push_that_fails_while_nobody_leaves_is_told_apart() -> None:
    seen = assign(report((20.0, "push", "refused")), [departure("b-0", 60, 80)])

    assert seen.apart == ((20.0, "refused"),)
    assert seen.most_at_one_departure == 0


def test_of_two_brokers_that_leave_the_later_one_is_blamed() -> None:
    seen = assign(report((90.0, "push", "refused")), [departure("b-0", 60, 85), departure("b-1", 88, None)])

    assert seen.by_departure == (("b-0", ()), ("b-1", ((90.0, "refused"),)))


def test_troubles_of_polls_and_acks_are_no_pushes() -> None:
    seen = assign(report((65.0, "poll", "cut"), (66.0, "ack", "cut")), [departure("b-0", 60, 80)])

    assert seen.by_departure == (("b-0", ()),)
    assert seen.apart == ()


def test_a_pod_that_is_not_gone_yet_has_no_drain_time() -> None:
    assert drain_seconds([departure("b-0", 60, 80.26), departure("b-1", 88, None)]) == [20.3]
