"""What a round finds out once and every part of the status then reads."""

from dataclasses import dataclass

from queen_operator.api.status import Phase
from queen_operator.api.units import duration_seconds
from queen_operator.planning.actions import Action
from queen_operator.planning.children import out_of_date, rendering_pending
from queen_operator.planning.judgment import judged
from queen_operator.planning.observed import Database, DatabaseState, Observed
from queen_operator.planning.restarts import OutOfDate
from queen_operator.planning.trouble import Trouble, trouble_of
from queen_operator.planning.views import Broker, read_brokers
from queen_operator.planning.wanted import Wanted


@dataclass(frozen=True, slots=True)
class Findings:
    """Brokers, what is wrong with each, and what waits to be done."""

    observed: Observed
    wanted: Wanted
    action: Action
    brokers: tuple[Broker, ...]
    troubles: dict[int, Trouble]  # by broker index; a missing index is a broker that is Ready
    late: list[OutOfDate]
    rendering: tuple[str, ...]
    database: Database

    @property
    def members(self) -> tuple[Broker, ...]:
        """Brokers that the spec wants."""
        return tuple(broker for broker in self.brokers if broker.index < self.wanted.replicas)

    @property
    def surplus(self) -> tuple[Broker, ...]:
        """Brokers beyond spec.replicas that still exist."""
        beyond = (broker for broker in self.brokers if broker.index >= self.wanted.replicas)
        return tuple(broker for broker in beyond if broker.deployment is not None)

    @property
    def ready_count(self) -> int:
        """Wanted brokers that are Ready."""
        return sum(broker.ready for broker in self.members)

    @property
    def young(self) -> bool:
        """The cluster comes up for the first time: it has not left Pending yet."""
        before = (self.observed.resource.get("status") or {}).get("phase")
        return before in (None, Phase.PENDING)


def find(observed: Observed, wanted: Wanted, action: Action) -> Findings:
    """Read everything that the status needs from this round's inputs."""
    brokers = read_brokers(observed, wanted.context.name, wanted.replicas)
    observed = judged(observed, brokers)
    deadline_seconds = duration_seconds(wanted.context.spec.rollout.broker_deadline)
    troubles: dict[int, Trouble] = {}
    for broker in brokers:
        trouble = trouble_of(broker, observed.database, observed.now, deadline_seconds)
        if trouble is not None:
            troubles[broker.index] = trouble
    return Findings(
        observed=observed,
        wanted=wanted,
        action=action,
        brokers=brokers,
        troubles=troubles,
        late=out_of_date(observed, wanted, brokers),
        rendering=rendering_pending(wanted, brokers),
        database=_database(observed, brokers),
    )


def _database(observed: Observed, brokers: tuple[Broker, ...]) -> Database:
    """The operator's own look; where it has none, the brokers' word: Ready means that /health reached PostgreSQL."""
    seen = observed.database
    if seen is not None and seen.state is not DatabaseState.UNKNOWN:
        return seen
    if any(broker.ready for broker in brokers):
        message = seen.message if seen is not None else "The brokers reach it."
        return Database(observed.now, DatabaseState.REACHABLE, message)
    frozen = [b.name for b in brokers if b.page is not None and b.page.alive and not b.page.answering]
    if frozen:
        return Database(observed.now, DatabaseState.FROZEN, f"It does not answer {', '.join(frozen)}.")
    message = seen.message if seen is not None else "It has not been asked yet."
    return Database(observed.now, DatabaseState.UNKNOWN, message)
