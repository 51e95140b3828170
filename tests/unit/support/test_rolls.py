from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.figures import Figures
from tests.support.rolls import Roll, held_seconds, push_errors
from tests.support.sampling import History

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_failed_push_is_told_with_the_broker_that_was_leaving_and_those_before_the_roll_are_not() -> None:
    history = History(3)
    history.away["1"].append((START.timestamp() + 40, START.timestamp() + 60))
    errors = [[5.0, "push", "early"], [35.0, "push", "cut"], [36.0, "poll", "cut"], [90.0, "push", "late"]]
    report = {"started_at": START.isoformat(), "errors": errors}

    assert push_errors(report, history, since=START.timestamp() + 30) == [
        {"second_of_roll": 5.0, "kind": "cut", "leaving": ["1"]},
        {"second_of_roll": 60.0, "kind": "late", "leaving": []},
    ]


def test_figures_go_into_the_folder_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEEN_FIGURES", str(tmp_path / "new"))

    Figures.of_environment().note("roll.image", {"seconds": 1})
    Figures.of_environment().note("roll.image", {"seconds": 2})

    noted = json.loads((tmp_path / "new" / "roll.image.json").read_text())
    assert (noted["name"], noted["seconds"]) == ("roll.image", 2)
    assert datetime.fromisoformat(noted["measured_at"]) <= datetime.now(UTC)


STEADY = [
    (1.0, "CloseToPushes"),
    (3.0, "RestartBroker orders-0"),
    (30.0, "Wait ... is not Ready."),
    (40.0, "CloseToPushes"),
]


def rolled(*plans: tuple[float, str]) -> tuple[Roll, History]:
    """Brokers away from second 4 to 30, 42 to 60 and 70 to 90."""
    history = History(3)
    for broker, (start, end) in zip("012", ((4, 30), (42, 60), (70, 90)), strict=True):
        history.away[broker].append((1000.0 + start, 1000.0 + end))
    return Roll(1000.0, 95.0, {}, list(plans)), history


def test_a_roll_whose_guards_waited_for_the_roll_alone_was_not_held() -> None:
    assert held_seconds(*rolled(*STEADY)) == 0


def test_the_time_between_two_restarts_is_held_when_an_answer_was_late_in_it() -> None:
    late = "Wait orders-1 is to be restarted and waits: orders-2 has not answered lately."

    assert held_seconds(*rolled(*STEADY[:2], (33.0, late), (38.0, "CloseToPushes"))) == 42 - 30 - 5
    assert held_seconds(*rolled(*STEADY[:2], (25.0, late), (38.0, "CloseToPushes"))) == 42 - 30 - 5


def test_a_late_answer_while_a_broker_is_away_anyway_holds_nothing() -> None:
    away = "Wait orders-1 is to be restarted and waits: PostgreSQL is away (Frozen): no answer"

    assert held_seconds(*rolled(*STEADY[:2], (10.0, away), (28.0, "Wait for something else"))) == 0
