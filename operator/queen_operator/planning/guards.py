"""Named guards of a restart. Each returns None, or the reason and the sentence why a broker may not be stopped now.

The order of ``GUARDS`` is the order in which a user wants to hear them: what is broken first, then what is busy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from queen_operator.api.spec import QueenClusterSpec
from queen_operator.api.units import duration_seconds
from queen_operator.planning.observed import Observed
from queen_operator.planning.reasons import Reason
from queen_operator.planning.trouble import database_down, trouble_of
from queen_operator.planning.views import Broker, standing_since

# During a rollout keepers are asked every two seconds: three missed answers make a spool unknown.
FRESH: Final = timedelta(seconds=7)
# PostgreSQL is asked every five seconds then.
DATABASE_FRESH: Final = timedelta(seconds=15)
# A peer that comes is heard within 5 s, its longest pause between dials; one that was killed is dropped after 5 s.
MESH_SECONDS: Final = 20.0
# Every broker is told at least so many names from the start, of brokers that exist or not.
MESH_KNOWN_BROKERS: Final = 3


CLAIM_GOES_WITH_ITS_POD: Final = "its claim was deleted and goes with its pod, and what its spool holds with it."
KEEP_THE_POD: Final = (
    "Keep the pod until its spool is empty and all others are Ready; then delete it: a new claim is made."
)


@dataclass(frozen=True, slots=True)
class Scene:
    """What a guard looks at: the broker that is to be stopped and everything around it.

    ``others`` are the brokers that stay, ``surplus`` those that are being taken away: nobody waits for them to be
    Ready, but what they still hold and what still ends of them counts.
    """

    observed: Observed
    spec: QueenClusterSpec
    candidate: Broker
    others: tuple[Broker, ...]
    surplus: tuple[Broker, ...] = ()


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a restart is held back. ``stalled``: waiting will not end it."""

    reason: Reason
    message: str
    stalled: bool = False


def why_others_leave(scene: Scene) -> Hold | None:
    """A pod that somebody else stops counts as a broker that is away."""
    for broker in (*scene.others, *scene.surplus):
        if broker.leaving:
            pods = ", ".join(pod.name for pod in broker.leaving)
            return Hold(Reason.BROKER_LEAVING, f"{broker.name} is leaving (pod {pods}).")
    for broker in scene.surplus:
        if broker.removed_by is not None and broker.deployment is None and broker.pod is not None:
            # Its Deployment was deleted, by us: its pod is told to end the next moment.
            return Hold(Reason.BROKER_LEAVING, f"{broker.name} is leaving (pod {broker.pod.name}).")
    return None


def why_others_are_not_ready(scene: Scene) -> Hold | None:
    """Never a second broker away: every other one must be Ready, and have been for minReadySeconds."""
    deadline_seconds = duration_seconds(scene.spec.rollout.broker_deadline)
    now = scene.observed.now
    for broker in scene.others:
        trouble = trouble_of(broker, scene.observed.database, now, deadline_seconds)
        if trouble is not None:
            return Hold(trouble.reason, f"{broker.name} is not Ready. {trouble.message}", stalled=trouble.needs_person)
        if not broker.ready_for(scene.spec.rollout.min_ready_seconds, now):
            return Hold(
                Reason.RESTARTING,
                f"{broker.name} has been Ready for less than {scene.spec.rollout.min_ready_seconds} s.",
            )
    return None


def why_database_is_away(scene: Scene) -> Hold | None:
    """A booting broker needs the schema: without PostgreSQL it would exit, and then could not even spool."""
    database = scene.observed.database
    if database is not None and database_down(database):
        return Hold(Reason.DATABASE_AWAY, f"PostgreSQL is away ({database.state}): {database.message}")
    if database is None or scene.observed.now - database.asked_at > DATABASE_FRESH:
        return Hold(Reason.DATABASE_UNKNOWN, "PostgreSQL has not been asked lately.")
    for broker in (scene.candidate, *scene.others):
        page = broker.page
        if page is not None and page.alive and (not page.answering or page.cluster_series is False):
            return Hold(Reason.DATABASE_AWAY, f"PostgreSQL does not answer {broker.name}.")
    return None


def why_others_do_not_answer(scene: Scene) -> Hold | None:
    """Ready is what Kubernetes saw last; a broker that is to carry the cluster alone must answer now."""
    for broker in scene.others:
        page = broker.page
        if page is None or not page.alive or scene.observed.now - page.asked_at > FRESH:
            return Hold(Reason.BROKER_AWAY, f"{broker.name} has not answered lately.")
    return None


def why_maintenance_is_on(scene: Scene) -> Hold | None:
    """In maintenance mode every push is spooled and no spool drains: a person set it, a person ends it."""
    for broker in (scene.candidate, *scene.others, *scene.surplus):
        if broker.page is not None and broker.page.maintenance:
            return Hold(
                Reason.MAINTENANCE, f"maintenance mode is on at {broker.name}; no spool drains until it is off."
            )
    return None


def why_others_hold_a_spool(scene: Scene) -> Hold | None:
    """A message in a spool has one copy; while one broker holds some, no other one is stopped.

    One that is being taken away and cannot drain waits for a person, and the rest does not wait with it.
    """
    leaving = tuple(b for b in scene.surplus if b.running and not drain_is_stuck(b, scene))
    for broker in (*scene.others, *leaving):
        unknown = _unknown_spool(broker, scene.observed)
        if unknown is not None:
            return unknown
        if broker.spool is not None and not broker.spool.empty:
            return Hold(
                Reason.SPOOL_NOT_EMPTY,
                f"{broker.name} still holds {broker.spool.files} spool files ({broker.spool.bytes} bytes).",
            )
    return None


def _unknown_spool(broker: Broker, observed: Observed) -> Hold | None:
    """A keeper's word counts while it is young and was given after the broker became Ready."""
    spool, pod = broker.spool, broker.pod
    if spool is None or (pod is not None and pod.ready_since is not None and spool.asked_at < pod.ready_since):
        words = f"the spool keeper of {broker.name} has not been asked; unknown is not empty."
        return Hold(Reason.SPOOL_UNKNOWN, words)
    if observed.now - spool.asked_at > FRESH:
        words = f"the spool keeper of {broker.name} has not answered lately; unknown is not empty."
        return Hold(Reason.SPOOL_UNKNOWN, words)
    return None


def why_own_spool_is_not_empty(scene: Scene) -> Hold | None:
    """The broker drains faster than the next boot would replay, and consumers wait less."""
    broker = scene.candidate
    if not broker.running:
        return None  # nothing drains: its volume keeps the files, and the next boot replays them
    unknown = _unknown_spool(broker, scene.observed)
    if unknown is not None or broker.spool is None:
        return unknown
    if broker.spool.empty:
        return None
    stuck, deadline_seconds = drain_is_stuck(broker, scene), duration_seconds(scene.spec.rollout.spool_deadline)
    words = f"{broker.name} drains its spool first: {broker.spool.files} files, {broker.spool.bytes} bytes"
    if stuck:
        words += f"; no file went away for longer than spoolDeadline, {deadline_seconds} s"
    return Hold(Reason.SPOOL_STUCK if stuck else Reason.SPOOL_DRAINING, words + ".", stalled=stuck)


def drain_is_stuck(broker: Broker, scene: Scene) -> bool:
    """No file went away for longer than spoolDeadline."""
    if broker.spool is None or broker.spool.empty:
        return False
    waited = scene.observed.now - standing_since(broker, scene.observed)
    return waited.total_seconds() > duration_seconds(scene.spec.rollout.spool_deadline)


def why_mesh_is_incomplete(scene: Scene) -> Hold | None:
    """Without the mesh a message waits seconds at the wrong broker: let a newcomer be heard before the next one goes.

    Only for a while after the last one became Ready: brokers with the old and the new secret never hear each other,
    and a rollout of the secret must not wait for that.
    """
    members = (scene.candidate, *scene.others)
    if len(members) > MESH_KNOWN_BROKERS:
        return None  # brokers from before do not know those that came later until they are restarted themselves
    young = not all(broker.ready_for(MESH_SECONDS, scene.observed.now) for broker in members)
    for broker in members:
        alive = broker.page.servers_alive if broker.page is not None else None
        if young and alive is not None and alive < len(members) - 1:
            words = f"{broker.name} hears {alive} of {len(members) - 1} other brokers on the mesh yet."
            return Hold(Reason.MESH_INCOMPLETE, words)
    return None


def why_claim_is_leaving(scene: Scene) -> Hold | None:
    """A deleted claim stays as long as its pod: with the pod goes the volume, and what its spool holds."""
    if not scene.candidate.claim_is_leaving:
        return None
    return Hold(Reason.CLAIM_DELETED, f"{CLAIM_GOES_WITH_ITS_POD} {KEEP_THE_POD}", stalled=True)


Guard = Callable[[Scene], Hold | None]

GUARDS: tuple[Guard, ...] = (
    why_others_leave,
    why_database_is_away,
    why_others_are_not_ready,
    why_others_do_not_answer,
    why_maintenance_is_on,
    why_others_hold_a_spool,
    why_own_spool_is_not_empty,
    why_mesh_is_incomplete,
    why_claim_is_leaving,
)


def why_not_restart(scene: Scene, guards: tuple[Guard, ...] = GUARDS) -> Hold | None:
    """Return the first reason that holds this restart back, or None when the broker may be stopped."""
    for guard in guards:
        hold = guard(scene)
        if hold is not None:
            return hold
    return None
