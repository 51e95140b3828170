from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lab import traffic
from lab.broker_http import path_of
from lab.consuming import DrainPlan, drain
from lab.producing import Pusher, PushPlan, percentile, push
from tests.support.ports import free_port
from tests.unit.lab_node.small_broker import pushed, small_broker


def test_a_push_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="would never end"):
        PushPlan("http://127.0.0.1:1", "q")


def test_every_message_has_an_id_of_its_own_and_accepted_ones_are_recorded(tmp_path: Path) -> None:
    seen: list[str] = []

    def answers(_method: str, _path: str, body: Any) -> tuple[int, Any]:
        seen.append(body["items"][0]["transactionId"])
        return pushed("queued", body)

    with small_broker(answers) as (url, connections):
        report = push(PushPlan(url, "q", count=30, clients=3, record=tmp_path / "record"))

    assert (report.attempted, report.accepted, report.queued) == (30, 30, 30)
    assert len(set(seen)) == 30
    assert sorted((tmp_path / "record").read_text().split()) == sorted(seen)
    assert len(connections) == 3


def test_clients_without_a_kept_connection_open_one_per_message() -> None:
    with small_broker(lambda _m, _p, body: pushed("queued", body)) as (url, connections):
        report = push(PushPlan(url, "q", count=10, clients=2, kept_clients=0))

    assert report.accepted == 10
    assert len(connections) == 10


@pytest.mark.parametrize(
    ("said", "field"),
    [("buffered", "buffered"), ("duplicate", "duplicate"), ("failed", "failed"), ("error", "failed")],
)
def test_the_items_own_status_decides_not_the_201(said: str, field: str) -> None:
    with small_broker(lambda _m, _p, body: pushed(said, body)) as (url, _):
        report = push(PushPlan(url, "q", count=4))

    assert getattr(report, field) == 4
    assert report.accepted == (0 if field == "failed" else 4)


def test_refused_is_what_met_no_listener_and_is_known_to_be_lost(tmp_path: Path) -> None:
    unknown = tmp_path / "unknown"
    report = push(PushPlan(f"http://127.0.0.1:{free_port()}", "q", count=5, record_unknown=unknown))

    assert (report.refused, report.errors, report.accepted) == (5, 0, 0)
    assert report.kinds == {"ConnectionRefusedError": 5}
    assert unknown.read_text() == ""


def test_a_connection_cut_before_the_answer_leaves_the_message_unknown(tmp_path: Path) -> None:
    unknown = tmp_path / "unknown"
    with small_broker(lambda *_: None) as (url, _):
        report = push(PushPlan(url, "q", count=5, record_unknown=unknown))

    assert (report.refused, report.errors) == (0, 5)
    assert len(unknown.read_text().split()) == 5


def test_a_kept_connection_that_was_closed_while_idle_is_replaced_and_costs_no_push() -> None:
    with small_broker(lambda _m, _p, body: pushed("queued", body), closes=True) as (url, connections):
        report = push(PushPlan(url, "q", count=4, clients=1, rate=10))

    assert (report.accepted, report.errors) == (4, 0)
    assert len(connections) == 4


def test_an_http_error_is_an_error_with_its_number() -> None:
    with small_broker(lambda *_: (500, {"error": "pool"})) as (url, _):
        report = push(PushPlan(url, "q", count=3))

    assert (report.errors, report.kinds) == (3, {"HTTP 500": 3})


def test_a_retry_keeps_the_id_and_is_off_unless_asked_for() -> None:
    ids: list[str] = []

    def answers(_method: str, _path: str, body: Any) -> tuple[int, Any]:
        ids.append(body["items"][0]["transactionId"])
        return (503, None) if len(ids) % 2 else pushed("queued", body)

    with small_broker(answers) as (url, _):
        patient = push(PushPlan(url, "q", count=1, retries=3))
        hasty = push(PushPlan(url, "q", count=1))

    assert (patient.accepted, patient.retried) == (1, 1)
    assert ids[0] == ids[1]
    assert (hasty.accepted, hasty.retried, hasty.errors) == (0, 0, 1)


def test_the_rate_is_not_exceeded_and_the_time_ends_it() -> None:
    with small_broker(lambda _m, _p, body: pushed("queued", body)) as (url, _):
        report = push(PushPlan(url, "q", rate=50, seconds=0.5))

    assert report.accepted <= 25
    assert report.seconds >= 0.48 - 1 / 50


def test_the_longest_silence_counts_time_without_an_accepted_push() -> None:
    with small_broker(lambda *_: (500, None)) as (url, _):
        report = push(PushPlan(url, "q", rate=100, seconds=0.3))

    assert report.longest_silence_seconds == report.seconds


def test_a_stopped_push_ends_early_with_a_complete_report() -> None:
    first = threading.Event()

    def answers(_method: str, _path: str, body: Any) -> tuple[int, Any]:
        first.set()
        return pushed("queued", body)

    with small_broker(answers) as (url, _):
        pusher = Pusher(PushPlan(url, "q", rate=20, seconds=600))

        def stop_after_the_first() -> None:
            first.wait(30)
            pusher.stop()

        threading.Thread(target=stop_after_the_first, daemon=True).start()
        report = pusher.run()

    assert report.attempted == report.accepted >= 1
    assert report.seconds < 60


def message(transaction: str) -> dict[str, str]:
    return {"transactionId": transaction, "partitionId": "p", "leaseId": "l"}


def test_a_drain_names_duplicates_missing_and_foreign_messages() -> None:
    batches = iter([[message("a"), message("b")], [message("b"), message("x"), message("m")]])
    acknowledged: list[str] = []
    asked: list[str] = []

    def answers(method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            asked.append(path)
            batch = next(batches, None)
            return (204, None) if batch is None else (200, {"messages": batch})
        acknowledged.extend(item["transactionId"] for item in body["acknowledgments"])
        return 200, [{"success": item["transactionId"] != "x"} for item in body["acknowledgments"]]

    with small_broker(answers) as (url, _):
        report = drain(DrainPlan(url, "q", "g", seconds=0.5, wait_ms=10), ["a", "b", "c"], also_possible=["m"])

    assert (report.received, report.unique, report.duplicates) == (5, 4, 1)
    assert (report.missing_ids, report.foreign_ids) == (["c"], ["x"])
    assert report.unacknowledged == 1
    assert acknowledged == ["a", "b", "b", "x", "m"]
    assert parse_qs(urlsplit(asked[0]).query)["subscriptionMode"] == ["all"]


def test_a_drain_ends_when_all_came_and_the_queue_is_empty() -> None:
    answers_left = itertools.chain([(200, {"messages": [message("a")]})], itertools.repeat((204, None)))

    def answers(method: str, _path: str, _body: Any) -> tuple[int, Any]:
        return next(answers_left) if method == "GET" else (200, [{"success": True}])

    with small_broker(answers) as (url, _):
        report = drain(DrainPlan(url, "q", "g", seconds=600, wait_ms=10), ["a"])

    assert (report.missing, report.unique) == (0, 1)


def test_an_interrupted_drain_goes_on() -> None:
    steps = iter([None, (500, {"error": "pool"}), (200, {"messages": [message("a")]}), (204, None)])

    def answers(method: str, _path: str, _body: Any) -> tuple[int, Any] | None:
        return next(steps) if method == "GET" else (200, [{"success": True}])

    with small_broker(answers) as (url, _):
        report = drain(DrainPlan(url, "q", "g", seconds=60, wait_ms=10), ["a"])

    assert (report.errors, report.missing) == (2, 0)


def test_the_command_line_prints_one_json_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with small_broker(lambda _m, _p, body: pushed("queued", body)) as (url, connections):
        to_broker = ["--url", url, "--queue", "q", "--count", "8", "--clients", "4"]
        code = traffic.main(["push", *to_broker, "--connections", "half", "--record", str(tmp_path / "ids")])

    assert code == 0
    assert json.loads(capsys.readouterr().out)["accepted"] == 8
    assert len((tmp_path / "ids").read_text().split()) == 8
    assert len(connections) >= 2


def test_the_command_line_explains_what_cannot_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert traffic.main(["push", "--url", "http://127.0.0.1:1", "--queue", "q"]) == 1

    assert "would never end" in capsys.readouterr().err


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([], 50) == 0
    assert percentile([3, 1, 2], 50) == 2
    assert percentile(range(1, 101), 95) == 95
    assert percentile([7], 95) == percentile([7], 100) == 7


def test_paths_are_quoted_and_empty_options_left_out() -> None:
    assert path_of("api", "v1", "pop", "queue", "a/b c", wait=True, batch=2, group="") == (
        "/api/v1/pop/queue/a%2Fb%20c?wait=true&batch=2"
    )
