"""The ledger of the load program, against a server that misbehaves as a test says."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lab import cache
from tests.load.running import LoadPlan, Running
from tests.support.ports import free_port
from tests.support.waiting import wait_until
from tests.unit.lab_node.small_broker import Answers, pushed, small_broker


class HonestQueue:
    """Keeps what is pushed, hands each message out once, takes every ack."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.acked: list[str] = []
        self.lock = threading.Lock()

    def __call__(self, method: str, path: str, body: Any) -> tuple[int, Any] | None:
        if path.endswith("/push"):
            return self.push(body)
        return self.pop() if method == "GET" else self.ack(body)

    def push(self, body: Any) -> tuple[int, Any] | None:
        with self.lock:
            self.waiting.append(body["items"][0]["transactionId"])
        return pushed("queued", body)

    def pop(self) -> tuple[int, Any] | None:
        time.sleep(0.01)
        with self.lock:
            taken, self.waiting = self.waiting, []
        return (200, {"messages": [message(one) for one in taken]}) if taken else (204, None)

    def ack(self, body: Any) -> tuple[int, Any] | None:
        with self.lock:
            self.acked += [item["transactionId"] for item in body["acknowledgments"]]
        return 200, [{"success": True} for _ in body["acknowledgments"]]


def message(transaction: str) -> dict[str, str]:
    return {"transactionId": transaction, "partitionId": "p", "leaseId": "l"}


def run(answers: Answers, folder: Path, **changes: Any) -> dict[str, Any]:
    with small_broker(answers) as (url, _):
        return Running(plan(url, folder, **changes)).run()


def plan(url: str, folder: Path, **changes: Any) -> LoadPlan:
    given: dict[str, Any] = {"seconds": 0.5, "rate": 60, "poll_seconds": 0.05, "finish_seconds": 30, "lease_seconds": 5}
    return LoadPlan(url, url, "q", "g", folder, **{**given, **changes})


def test_honest_broker_and_clients_balance(tmp_path: Path) -> None:
    queue = HonestQueue()

    report = run(queue, tmp_path)

    messages = report["messages"]
    accepted = (tmp_path / "accepted").read_text().split()
    assert messages["accepted"] == messages["acked"] == report["acks"]["taken"] == len(accepted) > 0
    assert sorted(queue.acked) == sorted(accepted)
    assert (messages["lost"], messages["duplicated"], messages["redelivered"], messages["foreign"]) == (0, 0, 0, 0)
    assert report["errors"] == []
    assert report == json.loads((tmp_path / "report.json").read_text())


def test_a_message_that_never_comes_is_lost_and_named(tmp_path: Path) -> None:
    class Forgetful(HonestQueue):
        def push(self, body: Any) -> tuple[int, Any] | None:
            dropped = body["items"][0]["transactionId"].endswith("-3")
            return pushed("queued", body) if dropped else super().push(body)

    report = run(Forgetful(), tmp_path, finish_seconds=0.5)

    assert report["messages"]["lost"] == 1
    assert report["messages"]["lost_ids"][0].endswith("-3")
    assert report["messages"]["acked"] == report["messages"]["accepted"] - 1


def test_a_message_that_comes_after_its_ack_was_taken_is_duplicated(tmp_path: Path) -> None:
    class Repeating(HonestQueue):
        def ack(self, body: Any) -> tuple[int, Any] | None:
            with self.lock:
                again = [item["transactionId"] for item in body["acknowledgments"]]
                self.waiting += [one for one in again if one.endswith("-0") and one not in self.acked]
            return super().ack(body)

    report = run(Repeating(), tmp_path)

    assert (report["messages"]["duplicated"], report["messages"]["lost"]) == (1, 0)


def test_a_message_twice_in_one_answer_is_duplicated(tmp_path: Path) -> None:
    class Doubling(HonestQueue):
        def push(self, body: Any) -> tuple[int, Any] | None:
            if body["items"][0]["transactionId"].endswith("-0"):
                super().push(body)
            return super().push(body)

    report = run(Doubling(), tmp_path)

    assert report["messages"]["duplicated"] == 1


def test_a_message_whose_ack_is_not_taken_is_redelivered_and_not_duplicated(tmp_path: Path) -> None:
    class Refusing(HonestQueue):
        first = True

        def ack(self, body: Any) -> tuple[int, Any] | None:
            with self.lock:
                refuse, self.first = self.first, False
                if refuse:
                    self.waiting += [item["transactionId"] for item in body["acknowledgments"]]
                    return 200, [{"success": False} for _ in body["acknowledgments"]]
            return super().ack(body)

    report = run(Refusing(), tmp_path, consumers=1)

    assert report["acks"]["not_taken"] == report["messages"]["redelivered"] > 0
    assert (report["messages"]["duplicated"], report["messages"]["lost"]) == (0, 0)


def test_an_ack_that_is_cut_is_repeated_and_what_it_did_stays_open(tmp_path: Path) -> None:
    class Cutting(HonestQueue):
        cut: tuple[str, ...] = ()

        def ack(self, body: Any) -> tuple[int, Any] | None:
            ids = tuple(item["transactionId"] for item in body["acknowledgments"])
            if not self.cut:
                self.cut = ids  # taken, and nobody hears of it
                return None
            if ids == self.cut:
                return 200, [{"success": False} for _ in ids]  # its lease is over, since it was taken
            return super().ack(body)

    queue = Cutting()
    report = run(queue, tmp_path, lease_seconds=0, finish_seconds=60, found_again_seconds=0.5)

    assert report["acks"]["errors"] == 1
    assert report["messages"]["unconfirmed"] == len(queue.cut) > 0
    assert (report["messages"]["lost"], report["messages"]["duplicated"]) == (0, 0)


def test_a_foreign_message_is_named(tmp_path: Path) -> None:
    queue = HonestQueue()
    queue.waiting.append("somebody's")

    report = run(queue, tmp_path)

    assert (report["messages"]["foreign"], report["messages"]["foreign_ids"]) == (1, ["somebody's"])
    assert report["messages"]["lost"] == 0


def test_a_push_without_an_answer_may_come_and_is_neither_lost_nor_foreign(tmp_path: Path) -> None:
    class Silent(HonestQueue):
        def push(self, body: Any) -> tuple[int, Any] | None:
            number = int(body["items"][0]["transactionId"].rpartition("-")[2])
            answer = super().push(body)
            return None if number in (2, 4) else answer

    report = run(Silent(), tmp_path)

    messages = report["messages"]
    assert (report["pushed"]["errors"], messages["maybe_stored"]) == (2, 2)
    assert (messages["lost"], messages["foreign"]) == (0, 0)
    assert messages["acked"] == messages["accepted"] + 2
    assert report["error_kinds"] == {"push RemoteDisconnected": 2}
    assert [(who, kind) for _, who, kind in report["errors"]] == [("push", "RemoteDisconnected")] * 2
    assert all(0 <= second <= report["seconds"] for second, _, _ in report["errors"])


def test_a_poll_that_was_open_and_is_cut_is_told_from_one_that_met_no_broker(tmp_path: Path) -> None:
    class CutsOnePoll(HonestQueue):
        polls = itertools.count()

        def pop(self) -> tuple[int, Any] | None:
            match next(self.polls):
                case 0:
                    time.sleep(1.3)
                    return None
                case 1:
                    return None
                case 2:
                    return 503, {"error": "pool"}
            return super().pop()

    report = run(CutsOnePoll(), tmp_path, consumers=1)

    polls = report["polls"]
    assert (polls["cut"], polls["refused"], polls["errors"]) == (1, 1, 1)
    assert polls["longest_seconds"] >= 1.3
    assert report["error_kinds"] == {"poll HTTP 503": 1, "poll RemoteDisconnected": 2}
    assert report["messages"]["lost"] == 0


def test_refused_connections_are_counted_on_both_sides_and_the_list_is_bounded(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"

    report = Running(plan(url, tmp_path, rate=1000, seconds=0.6, finish_seconds=0)).run()

    assert report["pushed"]["refused"] == report["pushed"]["attempted"] > 200
    assert report["polls"]["refused"] > 0
    assert report["error_kinds"]["push ConnectionRefusedError"] == report["pushed"]["refused"]
    assert sum(1 for _, who, _ in report["errors"] if who == "push") == 200
    assert any(who == "poll" for _, who, _ in report["errors"])


def test_no_final_wait_is_no_wait(tmp_path: Path) -> None:
    class Keeping(HonestQueue):
        def pop(self) -> tuple[int, Any] | None:
            time.sleep(0.01)
            return 204, None

    report = run(Keeping(), tmp_path, finish_seconds=0)

    assert report["messages"]["lost"] == report["messages"]["accepted"] > 0
    assert report["seconds"] < 20


@pytest.mark.parametrize(("connections", "least", "most"), [("kept", 3, 4), ("half", 10, 1000)])
def test_the_command_line_runs_until_it_is_told_to_end_and_then_takes_what_is_left(
    tmp_path: Path, connections: str, least: int, most: int
) -> None:
    with small_broker(HonestQueue()) as (url, seen):
        to = ["--push-url", url, "--pop-url", url, "--queue", "q", "--group", "g", "--folder", str(tmp_path)]
        ways = ["--connections", connections, "--producers", "2", "--poll-seconds", "0.1"]
        argv = [sys.executable, "-m", "tests.load", *to, *ways, "--seconds", "600", "--rate", "100"]
        process = subprocess.Popen(argv, cwd=cache.CHECKOUT, stdout=subprocess.PIPE, text=True)
        accepted = tmp_path / "accepted"
        wait_until("messages", lambda: accepted.exists() and accepted.read_text().count("\n") > 30)
        os.kill(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=60)

    report = json.loads(output)
    assert process.returncode == 0
    assert report == json.loads((tmp_path / "report.json").read_text())
    assert report["messages"]["accepted"] == report["messages"]["acked"] > 30
    assert least <= len(seen) <= most
