"""Takes up claims that are there before their broker: kept ones, and those of a deleted cluster of the same name.

What a former cluster left is looked at and told before a broker replays it; nothing of it is ever deleted here.
"""

from datetime import timedelta
from typing import Final

from queen_operator.api import names
from queen_operator.planning import proof
from queen_operator.planning.actions import Action, AnnotateClaim, Wait
from queen_operator.planning.claims import database_of_others
from queen_operator.planning.observed import JsonObject, Observed
from queen_operator.planning.reasons import EventReason, Reason
from queen_operator.planning.reports import Held, Report, Verdict, read_report
from queen_operator.planning.views import Broker, annotations
from queen_operator.planning.wanted import Wanted

# A look is for people to read; where no pod can look, a broker is not kept from its messages for longer than this.
LOOK_FOR: Final = timedelta(seconds=60)


def plan_adoption(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> Action | None:
    """Return the next step for claims of wanted brokers that are not theirs yet, or None."""
    unseen: list[Broker] = []
    waiting: Wait | None = None
    for broker in brokers:
        if broker.index >= wanted.replicas or broker.claim is None or broker.claim_is_leaving:
            continue
        step = _next_step(observed, wanted, broker)
        step = proof.unless_refused(observed, step, broker) if step is not None else None
        if isinstance(step, Wait):
            waiting = waiting or step
        elif step is not None:
            return step
        elif _is_unseen(observed, wanted, broker):
            unseen.append(broker)
    return proof.look(observed, wanted, tuple(unseen)) if unseen else waiting


def is_taken_up(observed: Observed, wanted: Wanted, broker: Broker) -> bool:
    """This cluster writes to the claim, nobody looks at its volume any more, and it is not on its way out."""
    claim = broker.claim
    if claim is None or broker.removed_by is not None or read_report(observed, broker.index) is not None:
        return False
    return annotations(claim).get(names.CLUSTER_UID_ANNOTATION) == wanted.context.uid


def _is_unseen(observed: Observed, wanted: Wanted, broker: Broker) -> bool:
    if broker.exists or is_taken_up(observed, wanted, broker):
        return False
    claim = ("PersistentVolumeClaim", names.claim_name(wanted.context.name, broker.index))
    return claim not in observed.foreign and database_of_others(observed, wanted, broker.index) is None


def _next_step(observed: Observed, wanted: Wanted, broker: Broker) -> Action | None:
    claim = broker.claim
    assert claim is not None  # noqa: S101 - asked before
    name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
    report = read_report(observed, broker.index)
    if broker.removed_by is not None:
        words = f"{broker.name} is wanted again: its claim {name} stays, with what it holds."
        return AnnotateClaim(name, uid, {names.REMOVING_ANNOTATION: None}, EventReason.BROKER_TAKEN_BACK, words)
    ours = annotations(claim).get(names.CLUSTER_UID_ANNOTATION) == wanted.context.uid
    if (broker.exists or ours) and report is not None:
        return proof.put_away(report, f"{broker.name} is wanted.")
    if _is_drained(broker) and names.HELD_ANNOTATION in annotations(claim):
        # What was found once is not so any more, and would be believed when nobody can be asked.
        return AnnotateClaim(name, uid, {names.HELD_ANNOTATION: None})
    if broker.exists or ours:
        return None
    if not _is_unseen(observed, wanted, broker):
        return None
    if proof.never_bound(claim):
        return AnnotateClaim(name, uid, {names.CLUSTER_UID_ANNOTATION: wanted.context.uid})
    if report is not None:
        return _take_up(observed, wanted, broker, claim, report)
    refusal = observed.refused.get(("Pod", names.report_pod_name(wanted.context.name, broker.index)))
    return _taken_up(wanted, broker, claim, None, f"no pod may look: {refusal}") if refusal is not None else None


def _is_drained(broker: Broker) -> bool:
    return broker.ready and broker.spool is not None and broker.spool.holds_nothing


def _take_up(observed: Observed, wanted: Wanted, broker: Broker, claim: JsonObject, report: Report) -> Action:
    name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
    if report.leaving:
        return proof.put_away(report, f"The claim {name} is looked at again.")
    if report.claim_uid != uid:
        return proof.put_away(report, f"It was made for another claim than the {name} of now.")
    if report.verdict is Verdict.LOOKING and observed.now - report.created < LOOK_FOR:
        words = f"The claim {name} was there before this cluster, and {report.pod} looks at what it holds:"
        words += f" {report.why_not}."
        return Wait(Reason.CLAIM_LOOKED_AT, words, proof.LOOK_AGAIN_SECONDS, broker=broker.index)
    return _taken_up(wanted, broker, claim, report.held, report.why_not)


def _taken_up(wanted: Wanted, broker: Broker, claim: JsonObject, held: Held | None, why_not: str) -> AnnotateClaim:
    name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
    what = held.sentence if held is not None else f"nobody knows what ({why_not})"
    marks: dict[str, str | None] = {names.CLUSTER_UID_ANNOTATION: wanted.context.uid}
    if held is not None:
        marks[names.HELD_ANNOTATION] = held.as_annotation()
    words = f"The claim {name} was there before this cluster and holds {what}; {broker.name} takes it up."
    return AnnotateClaim(name, uid, marks, EventReason.CLAIM_ADOPTED, words)
