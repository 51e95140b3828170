"""Takes surplus brokers away, one at a time and the highest index first, with proof before a claim is deleted.

Out of both Services; the keeper says empty, twice, with PostgreSQL reachable; the Deployment goes; the pod is gone; a
one-shot pod of the keeper reports the volume empty; the claim goes. Each step is read off the objects themselves, so
that a new operator goes on where the last one was, and scaling up again takes the broker back at any step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from queen_operator.api import names
from queen_operator.api.units import duration_seconds
from queen_operator.manifests import render
from queen_operator.manifests.config import RestartCause, changed_causes, touches_connection
from queen_operator.planning import proof
from queen_operator.planning.actions import (
    Action,
    AnnotateClaim,
    CloseToPushes,
    DeleteChild,
    OpenToPushes,
    RestartBroker,
    Wait,
)
from queen_operator.planning.guards import (
    FRESH,
    Guard,
    Hold,
    Scene,
    drain_is_stuck,
    why_claim_is_leaving,
    why_database_is_away,
    why_maintenance_is_on,
    why_not_restart,
    why_others_are_not_ready,
    why_others_do_not_answer,
    why_others_hold_a_spool,
    why_others_leave,
)
from queen_operator.planning.observed import Observed
from queen_operator.planning.reasons import EventReason, Reason
from queen_operator.planning.reports import held_of_claim, read_report, reported_indexes
from queen_operator.planning.restarts import LOOK_AGAIN_SECONDS, PUSHES_GONE_AFTER, OutOfDate, scene_around
from queen_operator.planning.trouble import trouble_of
from queen_operator.planning.views import Broker, claims_of
from queen_operator.planning.wanted import Wanted

# Two answers of the keeper, two seconds apart at least, after the last client could have reached the broker.
EMPTY_FOR: Final = timedelta(seconds=2)

_GUARDS_OF_A_RUNNING_BROKER: Final[tuple[Guard, ...]] = (
    why_database_is_away,
    why_others_leave,
    why_others_are_not_ready,
    why_others_do_not_answer,
    why_maintenance_is_on,
    why_others_hold_a_spool,
)
# Its end takes nothing from clients; that PostgreSQL is there is asked for, since its spool may have to be drained.
_GUARDS_OF_A_DEAD_BROKER: Final[tuple[Guard, ...]] = (why_others_leave, why_database_is_away)


@dataclass(frozen=True, slots=True)
class Removal:
    """What is to go: all brokers from index ``staying`` on, and with a deleted cluster the claims that were kept."""

    observed: Observed
    wanted: Wanted
    brokers: tuple[Broker, ...]
    late: bool  # a broker that stays is being restarted, or about to be

    @property
    def staying(self) -> int:
        """How many brokers stay."""
        return 0 if self.observed.deleted else self.wanted.replicas

    @property
    def uid(self) -> str:
        """UID of the QueenCluster."""
        return self.wanted.context.uid


def plan_removal(
    observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], late: Sequence[OutOfDate] = ()
) -> Action | None:
    """Return the next step that takes a surplus broker away, a Wait that says why not, or None when none is left.

    ``late`` are the brokers that stay and wait to be restarted: one that is to go serves until they are done.
    """
    removal = Removal(observed, wanted, brokers, bool(late))
    blocked: Wait | None = None
    for broker in _surplus(removal):
        step = proof.unless_refused(observed, _next_step(removal, broker), broker)
        if not (isinstance(step, Wait) and step.stalled):
            return step
        blocked = blocked or step  # it waits for a person; those below it do not wait with it
    return blocked


def _surplus(removal: Removal) -> list[Broker]:
    """Brokers of which something is left to take away, highest index first; a pod that looked, if nothing else."""
    cluster = removal.wanted.context.name
    claims = dict(claims_of(removal.observed, cluster))
    known = {broker.index: broker for broker in removal.brokers}
    others = reported_indexes(removal.observed) | (set(claims) if removal.observed.deleted else set())
    for index in others - set(known):
        name = names.broker_name(cluster, index)
        known[index] = Broker(index, name, None, None, (), None, None, None, claims.get(index))
    return [known[index] for index in sorted(known, reverse=True) if _is_left(removal, known[index])]


def _is_left(removal: Removal, broker: Broker) -> bool:
    if broker.index < removal.staying:
        return False
    if broker.exists or read_report(removal.observed, broker.index) is not None:
        return True
    if broker.claim is None or broker.claim_is_leaving:
        return False
    return removal.observed.deleted or broker.removed_by == removal.uid


def _next_step(removal: Removal, broker: Broker) -> Action:
    if not broker.exists:
        return proof.next_step(removal.observed, removal.wanted, broker)
    report = read_report(removal.observed, broker.index)
    if report is not None:
        return proof.put_away(report, f"{broker.name} runs: an earlier look at its volume proves nothing.")
    if broker.leaving:
        pods = ", ".join(pod.name for pod in broker.leaving)
        return _wait(Hold(Reason.BROKER_LEAVING, f"pod {pods} is ending its last requests."), broker)
    if broker.deployment is None:
        # Ours takes its pod along within a second; a Deployment that somebody else deleted may have left it behind.
        words = "its Deployment is gone while its pod runs; if the pod stays, delete its ReplicaSet."
        return _wait(Hold(Reason.BROKER_AWAY, words, stalled=broker.removed_by != removal.uid), broker)
    scene = scene_around(removal.observed, removal.wanted, removal.brokers, broker, removal.staying)
    hold = why_not_restart(scene, _guards(removal, broker)) or _why_it_still_serves(removal, broker)
    if hold is not None:
        return _serve_again(removal, scene) or _wait(hold, broker)
    return _drain(removal, scene) if broker.running else _give_up_running(removal, scene)


def _why_it_still_serves(removal: Removal, broker: Broker) -> Hold | None:
    """Out of the Services it would be the second one away while a broker that stays is restarted."""
    if not removal.late or not broker.running or _cure(removal, broker) is not None:
        return None
    return Hold(Reason.CHANGES_WAIT, "it serves until the brokers that stay have been restarted.")


def _serve_again(removal: Removal, scene: Scene) -> OpenToPushes | None:
    """Back into the Services, when it has left them and one that stays is away meanwhile: whoever serves is needed."""
    pod = scene.candidate.pod
    if pod is None or not pod.broker_started or not (pod.cordoned or not pod.in_push_service):
        return None
    others = why_others_leave(scene) or why_others_are_not_ready(scene)
    needed = others or _why_it_still_serves(removal, scene.candidate)
    return OpenToPushes(pod.name, pod.uid) if needed is not None else None


def _guards(removal: Removal, broker: Broker) -> tuple[Guard, ...]:
    if not broker.running:
        return _GUARDS_OF_A_DEAD_BROKER
    if touches_connection(_changes(removal, broker)):
        return (_why_database_is_away_from_others, *_GUARDS_OF_A_RUNNING_BROKER[1:])
    return _GUARDS_OF_A_RUNNING_BROKER


def _why_database_is_away_from_others(scene: Scene) -> Hold | None:
    """That PostgreSQL does not answer this broker may come of the password that it was made with, and cures nothing."""
    return why_database_is_away(replace(scene, candidate=replace(scene.candidate, page=None)))


def _drain(removal: Removal, scene: Scene) -> Action:
    """Out of both Services, then empty; clients of a broker that was never cordoned would fill it again."""
    broker, now = scene.candidate, removal.observed.now
    pod = broker.pod
    cure = _cure(removal, broker)
    if cure is not None and (broker.spool is None or not broker.spool.empty):
        return cure
    # A time to come was written by another clock, and would keep the broker for as long.
    if pod is None or pod.in_push_service or not pod.cordoned or pod.closed_since is None or pod.closed_since > now:
        assert pod is not None  # noqa: S101 - a running broker has a pod
        return CloseToPushes(pod.name, pod.uid, leaving_since=now.isoformat(), cordon=True)
    quiet_since = pod.closed_since + PUSHES_GONE_AFTER
    spool = broker.spool
    if spool is None or now - spool.asked_at > FRESH or spool.asked_at < quiet_since:
        words = "its spool keeper has not answered since it left the Services; unknown is not empty."
        return _wait(Hold(Reason.SPOOL_UNKNOWN, words), broker)
    if not spool.empty:
        return _wait(_why_not_drained(scene), broker)
    if spool.quarantined_files:
        return _wait(_quarantined(spool.quarantined_files), broker)
    since = max(quiet_since, spool.empty_since or spool.asked_at)
    if spool.asked_at - since < EMPTY_FOR:
        return _wait(Hold(Reason.SPOOL_DRAINING, "its spool is empty and is looked at once more."), broker)
    return _stop(removal, broker)


def _why_not_drained(scene: Scene) -> Hold:
    broker, spool = scene.candidate, scene.candidate.spool
    assert spool is not None  # noqa: S101 - asked before
    events = f", {spool.events} messages" if spool.events is not None else ""
    words = f"it drains its spool first: {spool.files} files, {spool.bytes} bytes{events}"
    deadline_seconds = duration_seconds(scene.spec.rollout.spool_deadline)
    if drain_is_stuck(broker, scene):
        words += f"; no file went away for longer than spoolDeadline, {deadline_seconds} s. Its claim stays."
        return Hold(Reason.SPOOL_STUCK, words, stalled=True)
    return Hold(Reason.SPOOL_DRAINING, f"{words}.")


def _quarantined(files: int) -> Hold:
    words = f"it holds {files} quarantined files, which no broker replays by itself. Requeue them, or remove them."
    return Hold(Reason.QUARANTINED, words, stalled=True)


def _give_up_running(removal: Removal, scene: Scene) -> Action:
    """A broker that does not run: gone with it when nothing is on its volume, as far as anybody knows; else Blocked."""
    broker, observed = scene.candidate, removal.observed
    if broker.boots_unasked or broker.replaying:
        return _wait(Hold(Reason.REPLAYING, "it boots, and may replay its spool."), broker)
    deadline_seconds = duration_seconds(scene.spec.rollout.broker_deadline)
    trouble = trouble_of(broker, observed.database, observed.now, deadline_seconds)
    spool, held = broker.spool, held_of_claim(broker.claim)
    if spool is None and trouble is not None and trouble.reason is Reason.STARTING and not trouble.needs_person:
        return _wait(Hold(Reason.STARTING, "it comes up; what its volume holds is known then."), broker)
    what = f"{spool.files} files ({spool.bytes} bytes) and {spool.quarantined_files} quarantined files" if spool else ""
    if spool is None and held is not None and not held.empty:
        what = held.sentence
    going = why_claim_is_leaving(scene) if spool is None else None
    if going is not None:
        return _wait(going, broker)
    if not what or (spool is not None and spool.holds_nothing):
        return _stop(removal, broker)
    cure = _cure(removal, broker)
    if cure is not None:
        return cure
    why = trouble.message if trouble is not None else "It does not run."
    needs_person = trouble is None or trouble.needs_person
    words = f"it does not run and its volume holds {what}; its claim stays until they are drained. {why}"
    return _wait(Hold(Reason.REMOVAL_BLOCKED, words, stalled=needs_person), broker)


def _cure(removal: Removal, broker: Broker) -> RestartBroker | None:
    """A broker with messages that cannot drain as it was made gets what the user wrote since: a new password, say."""
    causes = _changes(removal, broker)
    if broker.is_lost_with_its_pod:
        return None
    if not causes or broker.deployment is None or ("Deployment", broker.name) in removal.observed.refused:
        return None
    manifest = render.broker_deployment(removal.wanted.context, broker.index)
    manifest["metadata"]["uid"] = broker.deployment["metadata"]["uid"]
    words = ", ".join(cause.sentence for cause in causes)
    message = f"{broker.name} is restarted, to drain before it is taken away: {words}."
    return RestartBroker(broker.index, manifest, causes, message)


def _changes(removal: Removal, broker: Broker) -> tuple[RestartCause, ...]:
    """What the user wrote since a broker was made that is not Ready; nothing while a Secret cannot be read."""
    if broker.ready or any(reference.digest is None for reference in removal.observed.references):
        return ()
    return changed_causes(broker.config, removal.wanted.parts)


def _stop(removal: Removal, broker: Broker) -> Action:
    """The claim is marked first: without the mark nobody would know, after the Deployment is gone, that it is to go."""
    claim, deployment = broker.claim, broker.deployment
    assert deployment is not None  # noqa: S101 - asked before
    if claim is not None and (broker.removed_by != removal.uid or held_of_claim(claim) is not None):
        marks = {names.REMOVING_ANNOTATION: removal.uid, names.HELD_ANNOTATION: None}
        return AnnotateClaim(claim["metadata"]["name"], claim["metadata"]["uid"], marks)
    return DeleteChild(
        "Deployment",
        broker.name,
        deployment["metadata"]["uid"],
        f"{broker.name} is taken away: its spool is empty, as far as is known; its volume is looked at next.",
        EventReason.BROKER_REMOVED,
    )


def _wait(hold: Hold, broker: Broker) -> Wait:
    words = f"{broker.name} is to be taken away and waits: {hold.message}"
    return Wait(hold.reason, words, LOOK_AGAIN_SECONDS, stalled=hold.stalled, broker=broker.index)
