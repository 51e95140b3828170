"""The operator's own metrics, with controller-runtime's names where they fit."""

from contextlib import AbstractContextManager
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from queen_operator.api.names import PLURAL

# The library appends _total to the name of a counter.
ROUNDS: Final = Counter("controller_runtime_reconcile", "Rounds by result.", ["result"])
ROUND_SECONDS: Final = Histogram(
    "controller_runtime_reconcile_time_seconds", "Seconds that a round took.", ["controller"]
)
CLUSTERS: Final = Gauge("queen_operator_clusters", "QueenClusters that this operator serves.")
RELEASED: Final = Counter(
    "queen_operator_finalizer_released",
    "Deleted QueenClusters that were let go: drained, or with claims that others deleted before any proof.",
    ["outcome"],
)
LEADER: Final = Gauge("leader_election_master_status", "1 while this process leads.", ["name"])


def round_timer() -> AbstractContextManager[object]:
    """Time one round."""
    return ROUND_SECONDS.labels(PLURAL).time()
