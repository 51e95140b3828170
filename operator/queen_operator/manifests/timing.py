"""How long everything may take, in seconds, and why.

A broker that stops waits for the pops it holds; one that starts waits for the schema lock and replays its spool.
Whatever cuts either short loses work, so the pod's time limits follow from these waits.
"""

from typing import Final

from queen_operator.api.spec import QueenClusterSpec
from queen_operator.api.units import duration_ms

# Between the deletion of a pod and SIGTERM: the time in which the operator takes the pod out of the push Service, and
# in which the nodes hear of it. Measured with 5 s: no refused connection; without: a tenth of them.
PRE_STOP_SECONDS: Final = 5

# Beyond the longest call: the broker's answers have to be written, and the keeper ends after the broker.
GRACE_MARGIN_SECONDS: Final = 10

# The broker waits this long for another broker's schema apply, then gives up by itself.
SCHEMA_LOCK_SECONDS: Final = 600

# The broker replays at most this long before it listens, ...
REPLAY_CAP_SECONDS: Final = 3600

# ... but looks at the clock only between two files, and before that may be held up by locks, statement by statement.
STARTUP_MARGIN_SECONDS: Final = 900

# A broker killed before this has passed may have been in an honest replay and would start it all over again.
STARTUP_BUDGET_SECONDS: Final = SCHEMA_LOCK_SECONDS + REPLAY_CAP_SECONDS + STARTUP_MARGIN_SECONDS

# For finding a node, attaching the volume and pulling the images.
POD_START_SECONDS: Final = 600

# The largest number that Kubernetes takes in these fields; anything above would be refused.
_MOST: Final = 2_147_483_647

# The keeper waits for the lock of the volume as long as another pod drains: never killed for waiting.
KEEPER_STARTUP_FAILURES: Final = _MOST


def longest_call_ms(spec: QueenClusterSpec) -> int:
    """Return the milliseconds that a call to a broker may take: the longest pop, then its statement.

    Made of the user's words alone, since a restart cause is hashed from it.
    """
    broker = spec.broker
    pop = max(duration_ms(broker.pop_timeout), duration_ms(broker.max_pop_timeout))
    return pop + duration_ms(broker.statement_timeout)


def grace_seconds(spec: QueenClusterSpec) -> int:
    """Return terminationGracePeriodSeconds: the preStop sleep counts, then every call ends by itself, then a margin."""
    longest_call_seconds = -(-longest_call_ms(spec) // 1000)
    return min(PRE_STOP_SECONDS + longest_call_seconds + GRACE_MARGIN_SECONDS, _MOST)


def progress_deadline_seconds(spec: QueenClusterSpec) -> int:
    """Return after how long `kubectl rollout status` and GitOps tools may call a start failed.

    Above everything that is no failure: the pod before it drains, the new one gets its node and images, the broker
    gets its schema and replays. The default of 600 s would call each longer replay a failure.
    """
    return min(POD_START_SECONDS + grace_seconds(spec) + STARTUP_BUDGET_SECONDS, _MOST)
