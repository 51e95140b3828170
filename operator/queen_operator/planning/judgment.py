"""What to believe about PostgreSQL: the operator's own look, unless the brokers prove that it has no way there."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from queen_operator.manifests.config import touches_connection
from queen_operator.planning.observed import Database, DatabaseState, Observed
from queen_operator.planning.restarts import OutOfDate
from queen_operator.planning.views import Broker

# Readiness fails 10 to 16 s after PostgreSQL stops answering brokers: two probes, five seconds apart, of three seconds.
BROKERS_NOTICE_WITHIN: Final = timedelta(seconds=25)
# A role without connections left is the brokers' role: what they have open goes on, and what they open next fails.
_CERTAIN: Final = frozenset(
    {
        DatabaseState.REACHABLE,
        DatabaseState.READ_ONLY,
        DatabaseState.TOO_MANY_CONNECTIONS,
        DatabaseState.UNSUPPORTED_VERSION,
    }
)


def connected_as_wanted(brokers: tuple[Broker, ...], late: Iterable[OutOfDate]) -> tuple[Broker, ...]:
    """Return the brokers whose word is about the connection of the present spec; the others still have an older one."""
    elsewhere = {item.broker.index for item in late if touches_connection(item.causes)}
    return tuple(broker for broker in brokers if broker.index not in elsewhere)


def judged(observed: Observed, brokers: tuple[Broker, ...], late: Iterable[OutOfDate]) -> Observed:
    """Return what was observed, with the look at PostgreSQL weighed against the brokers.

    A NetworkPolicy or pg_hba that keeps out the operator alone looks like an outage from here. While every running
    broker stays Ready beyond the time in which a real outage shows, the look is unknown and the brokers' word counts.
    Of a changed connection, with which the operator looks at once, only brokers that were restarted with it know.
    """
    seen = observed.database
    if seen is None or seen.state in _CERTAIN or seen.state is DatabaseState.UNKNOWN:
        return observed
    since = seen.state_since or seen.asked_at
    running = [broker for broker in connected_as_wanted(brokers, late) if broker.running]
    outlasted = observed.now - since > BROKERS_NOTICE_WITHIN
    if not running or not outlasted or not all(broker.pod is not None and broker.pod.ready for broker in running):
        return observed
    message = f"The operator has no way to PostgreSQL ({seen.message}), and every running broker does."
    unknown = Database(observed.now, DatabaseState.UNKNOWN, message, seen.version, seen.max_connections)
    return replace(observed, database=unknown)
