"""Load against a broker Service, from a command line inside the node: push, drain, depth. Prints one JSON line.

    python -m lab.traffic push --url http://ADDRESS:6632 --queue q --rate 100 --seconds 30 --record accepted
    python -m lab.traffic drain --url http://ADDRESS:6632 --queue q --group g --expect accepted --seconds 60

The parts are importable: lab.producing, lab.consuming.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.consuming import DrainPlan, depth, drain, read_ids
from lab.producing import Pusher, PushPlan


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m lab.traffic", description="Load against a broker Service.")
    verbs = top.add_subparsers(dest="verb", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--url", required=True, help="http://ADDRESS:6632")
    common.add_argument("--queue", required=True)
    common.add_argument("--token", default="", help="bearer token, when the broker wants one")

    push = verbs.add_parser("push", parents=[common], help="push single messages, report what became of each")
    push.add_argument("--count", type=int, default=0, help="messages; 0: as many as fit into --seconds")
    push.add_argument("--seconds", type=float, default=0, help="end after this time; 0: after --count")
    push.add_argument("--rate", type=float, default=0, help="messages per second in total; 0: as fast as possible")
    push.add_argument("--clients", type=int, default=4)
    push.add_argument("--connections", choices=("kept", "new", "half"), default="kept")
    push.add_argument("--partitions", type=int, default=1)
    push.add_argument("--retries", type=int, default=0, help="further tries of a message that was not accepted")
    push.add_argument("--timeout", type=float, default=40, help="seconds to wait for an answer")
    push.add_argument("--payload-bytes", type=int, default=100)
    push.add_argument("--record", type=Path, help="file for accepted transactionIds")
    push.add_argument("--record-unknown", type=Path, help="file for transactionIds whose push got no answer")

    empty = verbs.add_parser("drain", parents=[common], help="pop and acknowledge, compare with what was accepted")
    empty.add_argument("--group", required=True)
    empty.add_argument("--expect", type=Path, required=True, help="file of transactionIds that must come")
    empty.add_argument("--may-contain", type=Path, help="file of transactionIds that may come")
    empty.add_argument("--seconds", type=float, required=True, help="give up after this time")
    empty.add_argument("--settle", type=float, default=0, help="seconds to wait for late duplicates")

    waiting = verbs.add_parser("depth", parents=[common], help="what waits in the queue, as the broker counts")
    waiting.add_argument("--group", default="")
    return top


def _push(given: argparse.Namespace) -> dict[str, Any]:
    kept = {"kept": given.clients, "new": 0, "half": given.clients // 2}[given.connections]
    plan = PushPlan(
        url=given.url,
        queue=given.queue,
        count=given.count,
        rate=given.rate,
        seconds=given.seconds,
        clients=given.clients,
        kept_clients=kept,
        partitions=given.partitions,
        retries=given.retries,
        payload_bytes=given.payload_bytes,
        timeout_seconds=given.timeout,
        token=given.token,
        record=given.record,
        record_unknown=given.record_unknown,
    )
    pusher = Pusher(plan)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: pusher.stop())
    return pusher.run().as_json()


def _drain(given: argparse.Namespace) -> dict[str, Any]:
    plan = DrainPlan(given.url, given.queue, given.group, given.seconds, settle_seconds=given.settle, token=given.token)
    return drain(plan, read_ids(given.expect), read_ids(given.may_contain)).as_json()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; exit code 0 with one JSON line, 1 with a sentence when nothing could be done."""
    given = parser().parse_args(arguments)
    try:
        match given.verb:
            case "push":
                summary = _push(given)
            case "drain":
                summary = _drain(given)
            case _:
                summary = depth(given.url, given.queue, given.group, given.token)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(summary), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
