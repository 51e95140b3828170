from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.figures import Figures
from tests.support.rolls import push_errors
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
