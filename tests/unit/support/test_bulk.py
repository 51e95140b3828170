"""Bulk pushes against a little server: every message once, and what the broker said of each."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.support.bulk import BulkPush, transaction


class Broker(ThreadingHTTPServer):
    """Takes pushes; refuses the request that brings a certain message."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.came: Counter[str] = Counter()
        self.partitions: Counter[str] = Counter()
        self.refused = ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Broker

    def do_POST(self) -> None:
        items: list[dict[str, Any]] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["items"]
        names = [item["transactionId"] for item in items]
        if self.server.refused in names:
            self._answer(503, {"error": "away"})
            return
        self.server.came.update(names)
        self.server.partitions.update(item["partition"] for item in items)
        self._answer(201, [{"status": "buffered"} for _ in items])

    def _answer(self, status: int, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    server = Broker()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def push_to(broker: Broker, count: int, partitions: int = 1) -> BulkPush:
    push = BulkPush(f"http://127.0.0.1:{broker.server_address[1]}", "q", "r", count, partitions)
    push.run()
    return push


def test_every_message_is_pushed_once_under_a_name_that_its_number_tells(broker: Broker) -> None:
    push = push_to(broker, 1203, partitions=3)

    assert broker.came == Counter({transaction("r", number): 1 for number in range(1203)})
    assert broker.partitions == Counter({"0": 401, "1": 401, "2": 401})
    assert push.outcomes == {"buffered": 1203}


def test_a_request_that_is_refused_counts_for_each_message_in_it(broker: Broker) -> None:
    broker.refused = transaction("r", 1100)

    push = push_to(broker, 1200)

    assert push.outcomes == {"buffered": 1000, "HTTP 503": 200}
