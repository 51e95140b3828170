from __future__ import annotations

from typing import Any

import pytest

from tests.support.sampling import History


def pod(broker: str, uid: str, *, ready: bool = True, leaving: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"uid": uid, "labels": {"queen-operator.dev/broker": broker}}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": metadata, "status": {"conditions": conditions}}


ALL = [pod("0", "a"), pod("1", "b"), pod("2", "c")]


@pytest.mark.parametrize(
    "first",
    [
        [],
        [pod("0", "a", ready=False)],
        [pod("0", "a", leaving=True)],
        [pod("0", "a", leaving=True), pod("0", "new", ready=False)],
    ],
)
def test_a_broker_is_away_unless_a_ready_pod_of_it_stays(first: list[dict[str, Any]]) -> None:
    history = History(3)
    history.take(ALL, 10.0)
    history.take([*first, *ALL[1:]], 10.2)
    history.take(ALL, 10.6)

    assert (history.most_away, history.most_away_who) == (1, ("0",))
    assert history.away["0"] == [(10.2, 10.6)]
    assert history.away["1"] == history.away["2"] == []


def test_a_new_pod_beside_the_leaving_one_serves() -> None:
    history = History(3)
    history.take([pod("0", "a", leaving=True), pod("0", "new"), *ALL[1:]], 10.0)

    assert history.most_away == 0
    assert history.uids["0"] == ["a", "new"]


def test_the_most_at_once_counts_and_not_all_that_were_ever_away() -> None:
    history = History(3)
    history.take(ALL[1:], 1.0)
    history.take([ALL[0], ALL[2]], 2.0)
    history.take(ALL[2:], 3.0)

    assert (history.most_away, history.most_away_who) == (2, ("0", "1"))


def test_who_is_away_at_the_end_was_away_until_then() -> None:
    history = History(3)
    history.take(ALL[:2], 5.0)
    history.close(8.0)

    assert history.away["2"] == [(5.0, 8.0)]
    assert history.away_near(7.0) == ["2"]
    assert history.away_near(9.0) == []
    assert history.away_near(9.0, margin_seconds=2) == ["2"]


def test_the_longest_gap_tells_what_may_have_been_missed() -> None:
    history = History(3)
    for moment in (1.0, 1.2, 3.2, 3.4):
        history.take(ALL, moment)

    assert history.longest_gap_seconds() == pytest.approx(2.0)
    assert history.as_json()["samples"] == 4


def test_a_broker_that_lost_its_readiness_by_itself_is_away_and_not_stopped() -> None:
    history = History(3)
    history.take(ALL, 1.0)
    history.take([pod("0", "a", leaving=True), pod("1", "b", ready=False), ALL[2]], 2.0)

    assert (history.most_away, history.most_stopped) == (2, 1)


def test_a_new_pod_that_was_never_ready_is_stopped_still() -> None:
    history = History(3)
    history.take(ALL, 1.0)
    history.take([pod("0", "new", ready=False), pod("1", "b", leaving=True), ALL[2]], 2.0)

    assert history.most_stopped == 2
