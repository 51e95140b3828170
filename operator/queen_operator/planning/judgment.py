"""What to believe about PostgreSQL: the operator's own look, unless the brokers prove that it has no way there."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from queen_operator.planning.observed import Database, DatabaseState, Observed
from queen_operator.planning.views import Broker

# Readiness fails 10 to 16 s after PostgreSQL stops answering brokers: two probes, five seconds apart, of three seconds.
BROKERS_NOTICE_WITHIN: Final = timedelta(seconds=25)
_CERTAIN: Final = frozenset({DatabaseState.REACHABLE, DatabaseState.READ_ONLY, DatabaseState.UNSUPPORTED_VERSION})


def judged(observed: Observed, brokers: tuple[Broker, ...]) -> Observed:
    """Return what was observed, with the look at PostgreSQL weighed against the brokers.

    A NetworkPolicy or pg_hba that keeps out the operator alone looks like an outage from here. While every running
    broker stays Ready beyond the time in which a real outage shows, the look is unknown and the brokers' word counts.
    """
    seen = observed.database
    if seen is None or seen.state in _CERTAIN or seen.state is DatabaseState.UNKNOWN:
        return observed
    since = seen.state_since or seen.asked_at
    running = [broker for broker in brokers if broker.running]
    outlasted = observed.now - since > BROKERS_NOTICE_WITHIN
    if not running or not outlasted or not all(broker.pod is not None and broker.pod.ready for broker in running):
        return observed
    message = f"The operator has no way to PostgreSQL ({seen.message}), and every running broker does."
    unknown = Database(observed.now, DatabaseState.UNKNOWN, message, seen.version, seen.max_connections)
    return replace(observed, database=unknown)
