"""What a volume holds that no broker uses: a one-shot pod looks before its claim is deleted, kept or adopted."""

from datetime import timedelta
from typing import Final

from queen_operator.api import names
from queen_operator.api.spool_spec import OnScaleDown
from queen_operator.api.units import duration_seconds
from queen_operator.manifests import render
from queen_operator.planning.actions import (
    Action,
    AnnotateClaim,
    ApplyChildren,
    CloseToPushes,
    DeleteChild,
    GenerateMeshSecret,
    MakeReportPods,
    Wait,
)
from queen_operator.planning.claims import database_of_others
from queen_operator.planning.observed import JsonObject, Observed
from queen_operator.planning.reasons import EventReason, Reason
from queen_operator.planning.reports import Held, Report, Verdict, held_of_claim, read_report
from queen_operator.planning.trouble import database_down
from queen_operator.planning.views import Broker
from queen_operator.planning.wanted import Wanted

LOOK_AGAIN_SECONDS: Final = 2.0
FOREGROUND_FINALIZER: Final = "foregroundDeletion"


def unless_refused(observed: Observed, step: Action, broker: Broker) -> Action:
    """Return the step, or the wait for a person while the API server refuses exactly this write.

    A refused write changes nothing: tried each round it would keep everything else from being done.
    """
    match step:
        case DeleteChild(kind=kind, name=name):
            key = (kind, name)
        case AnnotateClaim(name=name):
            key = ("PersistentVolumeClaim", name)
        case CloseToPushes(pod=name):
            key = ("Pod", name)
        case _:
            return step
    refusal = observed.refused.get(key)
    if refusal is None:
        return step
    words = f"{broker.name} waits: the API server refuses a change of {key[0]} {key[1]}: {refusal}"
    return Wait(Reason.REMOVAL_BLOCKED, words, LOOK_AGAIN_SECONDS, stalled=True, broker=broker.index)


def put_away(report: Report, message: str) -> Action:
    """Delete a report pod whose word is not needed any more; it keeps its claim from going, and a broker from it."""
    if report.leaving:
        return Wait(Reason.PROVING_EMPTY, f"Pod {report.pod} ends. {message}", LOOK_AGAIN_SECONDS)
    return DeleteChild("Pod", report.pod, report.uid, message, None)


def next_step(observed: Observed, wanted: Wanted, broker: Broker) -> Action:
    """Return the next step for the volume of a broker that is gone for good: Deployment and pods are not there.

    Its claim is deleted only when a report pod that was made for exactly this claim, after the broker's last pod was
    gone, says that the volume is empty, quarantine included.
    """
    claim, report = broker.claim, read_report(observed, broker.index)
    if claim is None or broker.claim_is_leaving:
        assert report is not None  # noqa: S101 - else nothing of this broker would be left
        return put_away(report, f"The claim of {broker.name} is gone.")
    name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
    if broker.removed_by != wanted.context.uid:
        if report is not None:
            return put_away(report, f"The claim {name} stays.")
        return AnnotateClaim(name, uid, {names.REMOVING_ANNOTATION: wanted.context.uid})
    if never_bound(claim):
        words = f"The claim {name} is deleted: it never had a volume."
        version = claim["metadata"].get("resourceVersion")
        return DeleteChild("PersistentVolumeClaim", name, uid, words, EventReason.CLAIM_DELETED, version)
    if report is None:
        return _look_or_drain(observed, wanted, broker, claim)
    if report.leaving:
        return put_away(report, f"The claim {name} is looked at again.")
    if report.claim_uid != uid:
        return put_away(report, f"It was made for another claim than the {name} of now.")
    return _judge(observed, wanted, broker, claim, report)


def never_bound(claim: JsonObject) -> bool:
    """No volume has ever been bound to the claim, so it holds nothing."""
    return not claim["spec"].get("volumeName") and (claim.get("status") or {}).get("phase") == "Pending"


def _judge(observed: Observed, wanted: Wanted, broker: Broker, claim: JsonObject, report: Report) -> Action:
    name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
    match report.verdict:
        case Verdict.LOOKING:
            return still_looking(observed, wanted, report, f"The volume of {broker.name} is looked at by {report.pod}")
        case Verdict.UNKNOWN:
            words = f"{report.pod} could not tell what the claim {name} holds: {report.why_not}. Unknown is not empty:"
            words += " the claim stays. Delete the pod to have it looked at again."
            return Wait(Reason.PROOF_FAILED, words, LOOK_AGAIN_SECONDS, stalled=True, broker=broker.index)
        case Verdict.NOT_EMPTY:
            if held_of_claim(claim) != report.held and report.held is not None:
                return AnnotateClaim(name, uid, {names.HELD_ANNOTATION: report.held.as_annotation()})
            return put_away(report, f"The claim {name} is not empty: {broker.name} is started again to drain it.")
        case Verdict.EMPTY:
            return _let_go(observed, wanted, broker, claim, report)


def _let_go(observed: Observed, wanted: Wanted, broker: Broker, claim: JsonObject, report: Report) -> Action:
    name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
    if not observed.deleted and wanted.context.spec.spool.on_scale_down is OnScaleDown.RETAIN:
        held = (report.held or Held(0, 0, 0, 0)).as_annotation()
        words = f"The claim {name} is kept, proved empty by {report.pod}."
        marks = {names.REMOVING_ANNOTATION: None, names.HELD_ANNOTATION: held}
        return AnnotateClaim(name, uid, marks, EventReason.CLAIM_RETAINED, words)
    words = f"The claim {name} is deleted: {report.pod} proved its volume empty after the last pod of {broker.name}."
    # As it was seen: taking the broker back writes the claim, and a delete that comes late then does nothing.
    version = claim["metadata"].get("resourceVersion")
    return DeleteChild("PersistentVolumeClaim", name, uid, words, EventReason.CLAIM_DELETED, version)


def _look_or_drain(observed: Observed, wanted: Wanted, broker: Broker, claim: JsonObject) -> Action:
    """Look at the volume; one that is known to hold messages gets its broker back instead, to drain."""
    needed = _needed_by_pods(observed, wanted, broker)
    if needed is not None:
        return needed
    held = held_of_claim(claim)
    if held is None or held.empty:
        return look(observed, wanted, (broker,))
    words = f"{broker.name} is to be taken away and its volume holds {held.sentence}"
    other = database_of_others(observed, wanted, broker.index)
    if other is not None:
        words += f", which belong to another database ({other}). Its claim stays. Take the annotation"
        words += f" {names.DATABASE_ANNOTATION} off the claim to have them replayed into this one."
        return Wait(Reason.CLAIM_OF_OTHERS, words, LOOK_AGAIN_SECONDS, True, broker.index)
    if observed.database is not None and database_down(observed.database):
        words += f"; it is started again when PostgreSQL, which is away ({observed.database.state}), is back."
        return Wait(Reason.DATABASE_AWAY, words, LOOK_AGAIN_SECONDS, broker=broker.index)
    unread = [ref for ref in observed.references if ref.digest is None]
    problem = next((ref.problem for ref in unread if ref.problem), None)
    if problem is not None:
        return Wait(Reason.SECRET_MISSING, f"{words}; {problem}", LOOK_AGAIN_SECONDS, True, broker.index)
    if unread:
        # Children of a deleted cluster are not put back, but without its mesh Secret the broker cannot start.
        return GenerateMeshSecret(names.mesh_secret_name(wanted.context.name))
    refusal = observed.refused.get(("Deployment", broker.name))
    if refusal is not None:
        return Wait(Reason.POD_REFUSED, f"{words}; {refusal}", LOOK_AGAIN_SECONDS, True, broker.index)
    manifest = render.broker_deployment(wanted.context, broker.index)
    return ApplyChildren((manifest,), EventReason.DRAIN_STARTED, f"{words}: it is started again, to drain them.")


def _needed_by_pods(observed: Observed, wanted: Wanted, broker: Broker) -> Action | None:
    """A deletion in the foreground takes all that the cluster owns first; its claims outlive that, and are not owned.

    What is made before its end is taken too. Then a pod can only be made with the ServiceAccount made again.
    """
    metadata = observed.resource["metadata"]
    if not observed.deleted:
        return None
    if FOREGROUND_FINALIZER in (metadata.get("finalizers") or ()):
        words = f"Kubernetes deletes what {wanted.context.name} consists of, in the foreground;"
        words += f" what the volume of {broker.name} holds is looked at afterwards."
        return Wait(Reason.DELETING, words, LOOK_AGAIN_SECONDS, broker=broker.index)
    kind, name = wanted.service_account["kind"], wanted.service_account["metadata"]["name"]
    refusal = observed.foreign.get((kind, name)) or observed.refused.get((kind, name))
    if refusal is not None:
        words = f"The claim of {broker.name} cannot be looked at: {kind} {name} cannot be made: {refusal}"
        return Wait(Reason.PROOF_FAILED, words, LOOK_AGAIN_SECONDS, stalled=True, broker=broker.index)
    if (kind, name) in observed.others:
        return None
    words = f"{kind} {name} is made again: the pods that look at volumes and drain them need it."
    return ApplyChildren((wanted.service_account,), EventReason.CHILDREN_CREATED, words)


def look(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> Action:
    """Make a report pod for the claim of each of these brokers."""
    manifests, listed = [], []
    for broker in brokers:
        assert broker.claim is not None  # noqa: S101 - asked before
        pod = names.report_pod_name(wanted.context.name, broker.index)
        refusal = observed.refused.get(("Pod", pod))
        if refusal is not None:
            words = f"The claim {broker.claim['metadata']['name']} cannot be looked at: pod {pod} is refused: {refusal}"
            return Wait(Reason.PROOF_FAILED, words, LOOK_AGAIN_SECONDS, stalled=True, broker=broker.index)
        uid = broker.claim["metadata"]["uid"]
        manifests.append(render.report_pod(wanted.context, broker.index, uid, owned=not observed.deleted))
        listed.append(str(broker.claim["metadata"]["name"]))
    words = f"What {', '.join(listed)} hold{'s' if len(listed) == 1 else ''} is looked at."
    return MakeReportPods(tuple(manifests), words)


def still_looking(observed: Observed, wanted: Wanted, report: Report, what: str) -> Wait:
    """Wait for a report pod; a person is asked for after brokerDeadline."""
    deadline = timedelta(seconds=duration_seconds(wanted.context.spec.rollout.broker_deadline))
    late = observed.now - report.created > deadline
    return Wait(Reason.PROVING_EMPTY, f"{what}: {report.why_not}.", LOOK_AGAIN_SECONDS, stalled=late)
