"""Very many messages at once, inside the node: pushed in large requests, taken in large requests. Prints one JSON line.

python -m tests.support.bulk push --url http://ADDRESS:6632 --queue q --run r --count 450000 --partitions 1
python -m tests.support.bulk take --url http://ADDRESS:6632 --queue q --run r --count 450000 --seconds 600

The names of the messages follow from run and number, so that nobody has to write 450,000 of them down.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lab.broker_http import BrokerConnection, path_of
from lab.consuming import DrainPlan, drain

GROUP = "bulk"
_BATCH = 500
_CLIENTS = 4
_ANSWER_SECONDS = 60
_FILLER = "x" * 100


def transaction(run: str, number: int) -> str:
    """The transactionId of one message of a run."""
    return f"{run}-{number}"


class BulkPush:
    """Pushes ``count`` messages, evenly over the partitions; ``outcomes`` counts what the broker said of each."""

    def __init__(self, url: str, queue_name: str, run: str, count: int, partitions: int) -> None:
        self._url, self._queue, self._run, self._partitions = url, queue_name, run, partitions
        self._batches: queue.SimpleQueue[range] = queue.SimpleQueue()
        for first in range(0, count, _BATCH):
            self._batches.put(range(first, min(first + _BATCH, count)))
        self._lock = threading.Lock()
        self.outcomes: Counter[str] = Counter()

    def run(self) -> None:
        """Return when every message has been tried once."""
        clients = [threading.Thread(target=self._client) for _ in range(_CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def _client(self) -> None:
        connection = BrokerConnection(self._url, timeout_seconds=_ANSWER_SECONDS)
        while True:
            try:
                batch = self._batches.get_nowait()
            except queue.Empty:
                connection.close()
                return
            outcomes = self._push(connection, batch)
            with self._lock:
                self.outcomes.update(outcomes)

    def _push(self, connection: BrokerConnection, batch: range) -> list[str]:
        items = [self._item(number) for number in batch]
        try:
            status, answer = connection.request("POST", path_of("api", "v1", "push"), {"items": items})
        except OSError as error:
            return [str(error)] * len(batch)
        if status != 201:
            return [f"HTTP {status}"] * len(batch)
        return [str(result["status"]) for result in answer]

    def _item(self, number: int) -> dict[str, Any]:
        return {
            "queue": self._queue,
            "partition": str(number % self._partitions),
            "payload": {"number": number, "filler": _FILLER},
            "transactionId": transaction(self._run, number),
        }


def _push(given: argparse.Namespace) -> dict[str, Any]:
    push = BulkPush(given.url, given.queue, given.run, given.count, given.partitions)
    push.run()
    return dict(push.outcomes)


def _take(given: argparse.Namespace) -> dict[str, Any]:
    plan = DrainPlan(given.url, given.queue, GROUP, given.seconds, batch=_BATCH, settle_seconds=given.settle)
    return drain(plan, (transaction(given.run, number) for number in range(given.count))).as_json()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and print its summary; 1 with a sentence when nothing could be done."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.bulk")
    verbs = parser.add_subparsers(dest="verb", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--url", required=True)
    common.add_argument("--queue", required=True)
    common.add_argument("--run", required=True, help="the first part of every transactionId")
    common.add_argument("--count", type=int, required=True)
    push = verbs.add_parser("push", parents=[common])
    push.add_argument("--partitions", type=int, default=1)
    take = verbs.add_parser("take", parents=[common])
    take.add_argument("--seconds", type=float, required=True, help="give up after this time")
    take.add_argument("--settle", type=float, default=5, help="seconds to wait for late duplicates")
    given = parser.parse_args(arguments)
    try:
        summary = _push(given) if given.verb == "push" else _take(given)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
