"""Messages through a QueenCluster as a user's program sends them; runs in a pod with nothing but Python.

python3 -m lab.demo_traffic CLUSTER QUEUE COUNT
"""

import sys
import tempfile
from pathlib import Path

from lab.consuming import DrainPlan, drain, read_ids
from lab.producing import PushPlan, push

_PORT = 6632
_GIVE_UP_SECONDS = 90
_SETTLE_SECONDS = 2.0  # long enough for a message that another broker would hand out a second time


def main() -> int:
    """Push, pop and acknowledge; returns 0 when each message came exactly once, else 1 with the numbers."""
    cluster, queue, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as name:
        accepted, unknown = Path(name) / "accepted", Path(name) / "unknown"
        pushed = push(
            PushPlan(
                url=f"http://{cluster}-push:{_PORT}",
                queue=queue,
                count=count,
                partitions=6,
                retries=5,
                record=accepted,
                record_unknown=unknown,
            )
        )
        print(f"pushed {pushed.accepted} messages through the Service {cluster}-push in {pushed.seconds} s")
        plan = DrainPlan(
            f"http://{cluster}:{_PORT}", queue, "demo", seconds=_GIVE_UP_SECONDS, settle_seconds=_SETTLE_SECONDS
        )
        took = drain(plan, read_ids(accepted), read_ids(unknown))
    print(f"popped and acknowledged {took.unique} messages through the Service {cluster} in {took.seconds} s")
    print(f"{took.missing} missing, {took.duplicates} twice, {took.foreign} unknown")
    exactly_once = pushed.accepted == took.unique == count and not took.duplicates and not took.unacknowledged
    if not exactly_once:
        print(f"expected each of {count} once: {pushed} {took}")
    return 0 if exactly_once else 1


if __name__ == "__main__":
    sys.exit(main())
