"""Which broker is restarted next, and how: the only decisions that stop a running broker.

Order: a broker that does not run and is out of date goes first, unguarded, since this change may be its cure and
its spool is on its volume. Then one at a time behind all guards. While PostgreSQL is away only a change of the
connection itself is tried, by one broker.
"""

from dataclasses import dataclass
from datetime import timedelta

from queen_operator.api.units import duration_seconds
from queen_operator.manifests.compare import difference
from queen_operator.manifests.config import RestartCause, of_the_volume, touches_connection
from queen_operator.planning.actions import Action, CloseToPushes, ReplacePod, RestartBroker, Wait
from queen_operator.planning.guards import (
    GUARDS,
    Hold,
    Scene,
    why_claim_is_leaving,
    why_database_is_away,
    why_maintenance_is_on,
    why_not_restart,
    why_others_leave,
)
from queen_operator.planning.observed import DatabaseState, JsonObject, Observed
from queen_operator.planning.reasons import Reason
from queen_operator.planning.trouble import CRASHES_TO_CALL_A_PERSON, Trouble, database_down, trouble_of
from queen_operator.planning.views import Broker
from queen_operator.planning.wanted import Manifest, Wanted

# A label change reaches the nodes' rules within 1.1 s; new connections have stopped after 2 s (measured: none failed).
PUSHES_GONE_AFTER = timedelta(seconds=2)
LOOK_AGAIN_SECONDS = 2.0
# Troubles that pass by themselves, unless they last beyond brokerDeadline.
_ON_ITS_WAY = frozenset({Reason.STARTING, Reason.POD_UNSCHEDULABLE, Reason.REPLAYING})


@dataclass(frozen=True, slots=True)
class OutOfDate:
    """A broker whose template is not what the user's spec wants, and why."""

    broker: Broker
    causes: tuple[RestartCause, ...]


def plan_restarts(
    observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], late: list[OutOfDate]
) -> Action | None:
    """Return the next step of a rollout, or None when every broker is up to date."""
    if not late:
        return None
    kept_away = _secrets_unusable(observed)
    if kept_away is None and observed.database is None:
        kept_away = Hold(Reason.DATABASE_UNKNOWN, "PostgreSQL has not been asked yet.")
    if kept_away is not None:
        return _wait(kept_away, late[0].broker)
    late = [item for item in late if not _refused(observed, item.broker)]
    if not late:
        return None  # the server takes none of them now; the status tells its words, and the rest goes on
    first = _not_running(observed, wanted, late)
    if first is not None:
        return _cure(observed, wanted, brokers, [first, *(item for item in late if item is not first)])
    if all(touches_connection(item.causes) for item in late) and not any(item.broker.ready for item in late):
        return _follow_connection(observed, wanted, brokers, late)
    chosen = _next(late)
    in_vain = _tried_in_vain(observed, wanted, brokers, late) if touches_connection(chosen.causes) else None
    if in_vain is not None:
        return _wait(in_vain, chosen.broker)
    # A new connection must be tried by one broker even when the operator has no way to PostgreSQL itself; that the
    # others are Ready is still asked for, so it is one broker at most.
    unasked = (why_database_is_away,) if touches_connection(chosen.causes) else ()
    guards = tuple(guard for guard in GUARDS if guard not in unasked)
    hold = why_not_restart(_scene(observed, wanted, brokers, chosen.broker), guards)
    if hold is not None:
        return _wait(hold, chosen.broker)
    return _stop_gently(observed, wanted, chosen)


def _refused(observed: Observed, broker: Broker) -> bool:
    """The server took neither its Deployment nor, when that is what is due, the end of its pod lately."""
    pod = broker.pod.name if broker.pod is not None else ""
    return ("Deployment", broker.name) in observed.refused or ("Pod", pod) in observed.refused


def _secrets_unusable(observed: Observed) -> Hold | None:
    broken = [ref.problem for ref in observed.references if ref.problem]
    if not broken:
        return None
    return Hold(Reason.SECRET_MISSING, f"{broken[0]} No broker is restarted into a Secret that it cannot read.", True)


def _not_running(observed: Observed, wanted: Wanted, late: list[OutOfDate]) -> OutOfDate | None:
    """One that is broken, else one that is only on its way up."""
    down = [item for item in late if not item.broker.running and not item.broker.leaving]
    return min(down, key=lambda item: _comes_by_itself(observed, wanted, item.broker), default=None)


def _comes_by_itself(observed: Observed, wanted: Wanted, broker: Broker) -> bool:
    """It is on an ordinary way to be Ready as it was: after a drain, an eviction, a reboot of its node."""
    trouble = _trouble(observed, wanted, broker)
    return trouble is None or (trouble.reason in _ON_ITS_WAY and not trouble.needs_person)


def _trouble(observed: Observed, wanted: Wanted, broker: Broker) -> Trouble | None:
    deadline_seconds = duration_seconds(wanted.context.spec.rollout.broker_deadline)
    return trouble_of(broker, observed.database, observed.now, deadline_seconds)


def _next(late: list[OutOfDate]) -> OutOfDate:
    """One that was already taken out of the push Service, else one that is not Ready, else the lowest index."""

    def order(item: OutOfDate) -> tuple[bool, bool, int]:
        pod = item.broker.pod
        return (pod is None or pod.closed_since is None, item.broker.ready, item.broker.index)

    return min(late, key=order)


def _scene(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], candidate: Broker) -> Scene:
    return scene_around(observed, wanted, brokers, candidate, wanted.replicas)


def scene_around(
    observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], candidate: Broker, staying: int
) -> Scene:
    """Return what the guards look at when this broker is to be stopped and the first ``staying`` ones stay."""
    around = [broker for broker in brokers if broker.index != candidate.index]
    others = tuple(broker for broker in around if broker.index < staying)
    surplus = tuple(broker for broker in around if broker.index >= staying and broker.exists)
    return Scene(observed, wanted.context.spec, candidate, others, surplus)


def _up_to_date_and_not_ready(brokers: tuple[Broker, ...], wanted: Wanted, late: list[OutOfDate]) -> Broker | None:
    out_of_date = {item.broker.index for item in late}
    tried = (b for b in brokers if b.index < wanted.replicas and b.index not in out_of_date and not b.ready)
    return next((b for b in tried if b.deployment is not None), None)


def _cure(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], late: list[OutOfDate]) -> Action:
    """Give the first, which does not run, its new template; unguarded unless PostgreSQL is away."""
    first = late[0]
    going = why_claim_is_leaving(_scene(observed, wanted, brokers, first.broker))
    if going is not None and first.broker.is_lost_with_its_pod:
        return _wait(going, first.broker)
    if first.broker.boots_unasked:
        words = f"{first.broker.name} boots and its spool keeper has not been asked; it may be replaying."
        return Wait(Reason.SPOOL_UNKNOWN, words, LOOK_AGAIN_SECONDS, broker=first.broker.index)
    if first.broker.replaying and first.broker.settled:
        spool = first.broker.spool
        files = spool.files if spool else 0
        return Wait(
            Reason.REPLAYING,
            f"{first.broker.name} replays its spool ({files} files left) and is restarted afterwards.",
            LOOK_AGAIN_SECONDS,
            broker=first.broker.index,
        )
    if database_down(observed.database):
        hold = _the_one_try(observed, wanted, brokers, late)
        if hold is not None:
            return _wait(hold, first.broker)
    unproven = _unproven(observed, wanted, brokers, late)
    if unproven is not None:
        return _wait(unproven, first.broker)
    return _restart(wanted, first)


def _unproven(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], late: list[OutOfDate]) -> Hold | None:
    """A broker that comes up by itself is not given what another one has not come up with: a bad change takes one."""
    tried = _up_to_date_and_not_ready(brokers, wanted, late)
    trouble = _trouble(observed, wanted, tried) if tried is not None else None
    if tried is None or trouble is None or not _comes_by_itself(observed, wanted, late[0].broker):
        return None
    return Hold(trouble.reason, f"{tried.name} is not Ready. {trouble.message}", trouble.needs_person)


def _the_one_try(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], late: list[OutOfDate]) -> Hold | None:
    """While PostgreSQL is away: only a change of the connection, and only one broker with it."""
    if not touches_connection(late[0].causes):
        return Hold(Reason.DATABASE_AWAY, f"{_away(observed)} No broker is restarted until it is back.")
    return _tried_in_vain(observed, wanted, brokers, late)


def _tried_in_vain(
    observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], late: list[OutOfDate]
) -> Hold | None:
    """One broker has the new connection, and the operator's own look, made with it, says what is wrong with it.

    A start takes a moment and a look may be some seconds old: a person is asked for once the broker has crashed twice,
    or is late.
    """
    tried, database = _up_to_date_and_not_ready(brokers, wanted, late), observed.database
    if tried is None or database is None or database.state is DatabaseState.REACHABLE:
        return None
    trouble = _trouble(observed, wanted, tried)
    container = tried.pod.broker if tried.pod is not None else None
    crashed = container is not None and container.restarts >= CRASHES_TO_CALL_A_PERSON
    words = _away(observed)
    if not database_down(database):  # unknown: the broker's own words tell as much
        words = f"{trouble.message if trouble is not None else ''} Of PostgreSQL: {database.message}"
    message = f"{tried.name} tries the new connection and is not Ready; the others wait for it. {words}"
    return Hold(Reason.CONNECTION_TRIED, message, stalled=crashed or (trouble is not None and trouble.needs_person))


def _away(observed: Observed) -> str:
    database = observed.database
    return f"PostgreSQL is away ({database.state}): {database.message}" if database else "PostgreSQL is away."


def _follow_connection(
    observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], late: list[OutOfDate]
) -> Action:
    """No broker with the old connection is Ready: one tries the new one, the others follow once it is Ready.

    Their spools cannot drain through the old connection, so no guard waits for that: each stays on its volume.
    """
    chosen = _next(late)
    tried = _up_to_date_and_not_ready(brokers, wanted, late)
    if tried is not None:
        return Wait(
            Reason.CONNECTION_TRIED,
            f"{tried.name} tries the new connection and is not Ready yet; the others wait for it.",
            LOOK_AGAIN_SECONDS,
            broker=chosen.broker.index,
        )
    scene = _scene(observed, wanted, brokers, chosen.broker)
    hold = why_others_leave(scene) or why_maintenance_is_on(scene) or why_claim_is_leaving(scene)
    if hold is not None:
        return _wait(hold, chosen.broker)
    return _stop_gently(observed, wanted, chosen)


def _stop_gently(observed: Observed, wanted: Wanted, chosen: OutOfDate) -> Action:
    """Out of the push Service first; the Deployment changes once new connections have stopped."""
    pod = chosen.broker.pod
    if pod is not None and pod.broker_started:
        if pod.closed_since is None or pod.closed_since > observed.now or pod.in_push_service:
            return CloseToPushes(pod.name, pod.uid, leaving_since=observed.now.isoformat())
        if observed.now - pod.closed_since < PUSHES_GONE_AFTER:
            return Wait(
                Reason.RESTARTING,
                f"{chosen.broker.name} has left the push Service and is restarted next.",
                PUSHES_GONE_AFTER.total_seconds() / 2,
                broker=chosen.broker.index,
            )
    return _restart(wanted, chosen)


def _restart(wanted: Wanted, item: OutOfDate) -> RestartBroker | ReplacePod:
    causes = ", ".join(cause.sentence for cause in item.causes)
    manifest = wanted.deployments[item.broker.index]
    live, pod = item.broker.deployment, item.broker.pod
    if pod is not None and live is not None and of_the_volume(item.causes) and _same_template(manifest, live):
        words = f"{item.broker.name} is restarted with a new pod: {causes}."
        return ReplacePod(pod.name, pod.uid, item.broker.index, item.causes, words)
    if live is not None:
        # With the UID the apply changes this Deployment or none: it never makes one that was deleted meanwhile.
        manifest = {**manifest, "metadata": {**manifest["metadata"], "uid": live["metadata"]["uid"]}}
    return RestartBroker(
        index=item.broker.index,
        manifest=manifest,
        causes=item.causes,
        message=f"{item.broker.name} is restarted: {causes}.",
    )


def _same_template(manifest: Manifest, live: JsonObject) -> bool:
    """An apply would not change the pod template, and so restart nothing."""
    return difference({"spec": {"template": manifest["spec"]["template"]}}, live) is None


def _wait(hold: Hold, broker: Broker) -> Wait:
    return Wait(
        hold.reason,
        f"{broker.name} is to be restarted and waits: {hold.message}",
        LOOK_AGAIN_SECONDS,
        stalled=hold.stalled,
        broker=broker.index,
    )
