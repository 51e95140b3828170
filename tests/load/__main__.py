"""Load on brokers from a command line inside the node: see `--help`. Prints its report as one JSON line.

    python -m tests.load --push-url U --pop-url U --queue q --group g --folder DIR --seconds 60

SIGTERM ends the producing early; the consumers then finish as they would at its end.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.load.running import LoadPlan, Running, kept_connections


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tests.load", description="Producers and consumers with a ledger.")
    made.add_argument("--push-url", required=True, help="http://ADDRESS:6632 for pushes")
    made.add_argument("--pop-url", required=True, help="http://ADDRESS:6632 for pops and acks")
    made.add_argument("--queue", required=True)
    made.add_argument("--group", required=True)
    made.add_argument("--folder", type=Path, required=True, help="takes report.json, and accepted ids as they come")
    made.add_argument("--seconds", type=float, required=True, help="how long to push")
    made.add_argument("--rate", type=float, default=50, help="messages per second in total")
    made.add_argument("--producers", type=int, default=6)
    made.add_argument("--connections", choices=("kept", "new", "half"), default="kept")
    made.add_argument("--retries", type=int, default=0, help="further tries of a message that was not accepted")
    made.add_argument("--push-timeout", type=float, default=40, help="seconds to wait for the answer to a push")
    made.add_argument("--consumers", type=int, default=2)
    made.add_argument("--poll-seconds", type=float, default=30, help="length of a long poll")
    made.add_argument("--lease-seconds", type=int, default=60)
    made.add_argument("--finish-seconds", type=float, default=120, help="longest wait for messages after the last push")
    made.add_argument("--payload-bytes", type=int, default=100)
    made.add_argument("--partitions", type=int, default=4)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one load; exit code 0 with one JSON line, whatever the brokers did."""
    given = vars(parser().parse_args(arguments))
    kept = kept_connections(given["producers"], given.pop("connections"))
    running = Running(LoadPlan(kept_producers=kept, push_timeout_seconds=given.pop("push_timeout"), **given))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: running.stop())
    print(json.dumps(running.run()), flush=True)  # noqa: T201 - the report is what the command line gives
    return 0


if __name__ == "__main__":
    sys.exit(main())
