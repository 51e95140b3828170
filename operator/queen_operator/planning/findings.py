"""What a round finds out once and every part of the status then reads."""

from dataclasses import dataclass

from queen_operator.api.status import Phase
from queen_operator.api.units import duration_seconds
from queen_operator.planning.actions import Action, DeleteChild
from queen_operator.planning.adoption import plan_adoption
from queen_operator.planning.children import out_of_date, rendering_pending
from queen_operator.planning.judgment import connected_as_wanted, judged
from queen_operator.planning.observed import Database, DatabaseState, Observed
from queen_operator.planning.removal import plan_removal
from queen_operator.planning.reports import Held, held_of_claim
from queen_operator.planning.restarts import OutOfDate
from queen_operator.planning.trouble import Trouble, trouble_of
from queen_operator.planning.views import Broker, claims_of, read_brokers
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
    adoption: Action | None  # what is done for claims from before, and why it waits
    removal: Action | None  # what is done to take surplus brokers away, and why it waits

    @property
    def deleted(self) -> bool:
        """The cluster is deleted, and drained first."""
        return self.observed.deleted

    @property
    def staying(self) -> int:
        """How many brokers stay: none of a deleted cluster."""
        return 0 if self.deleted else self.wanted.replicas

    @property
    def members(self) -> tuple[Broker, ...]:
        """Brokers that the spec wants."""
        return tuple(broker for broker in self.brokers if broker.index < self.staying)

    @property
    def surplus(self) -> tuple[Broker, ...]:
        """Brokers that are to be taken away and of which something is left."""
        beyond = (broker for broker in self.brokers if broker.index >= self.staying)
        return tuple(b for b in beyond if b.exists or (b.removed_by is not None and not self._is_proved(b)))

    def _is_proved(self, broker: Broker) -> bool:
        """Its claim is deleted by us, now or lately: what a deleted cluster leaves in the status was not proved."""
        step, claim = self.removal, broker.claim
        if claim is None or (isinstance(step, DeleteChild) and step.uid == claim["metadata"]["uid"]):
            return True
        told = (self.observed.resource.get("status") or {}).get("brokers") or ()
        return broker.claim_is_leaving and all(item["name"] != broker.name for item in told)

    @property
    def retained(self) -> tuple[tuple[str, Held | None], ...]:
        """Claims of the cluster that no broker uses and none is about to, with what they were last seen to hold."""
        used = {broker.index for broker in self.brokers}
        claims = claims_of(self.observed, self.wanted.context.name)
        unused = (claim for index, claim in claims if index not in used or self._let_be(index))
        return tuple((str(claim["metadata"]["name"]), held_of_claim(claim)) for claim in unused)

    def _let_be(self, index: int) -> bool:
        broker = next(broker for broker in self.brokers if broker.index == index)
        return index >= self.staying and not broker.exists and broker.removed_by is None

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
    late = out_of_date(observed, wanted, brokers)
    observed = judged(observed, brokers, late)
    to_restart = [] if observed.deleted else late
    paused = wanted.context.spec.paused
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
        late=to_restart,
        rendering=rendering_pending(wanted, brokers),
        database=_database(observed, connected_as_wanted(brokers, late)),
        adoption=None if observed.deleted else plan_adoption(observed, wanted, brokers),
        removal=None if paused else plan_removal(observed, wanted, brokers, to_restart),
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
