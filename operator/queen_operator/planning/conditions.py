"""One pure function per condition. Each reads the findings of the round and gives status, reason and sentence."""

from collections.abc import Callable
from typing import Final, Literal

from queen_operator.api.status import ConditionType
from queen_operator.manifests.config import of_the_volume
from queen_operator.planning.actions import ApplyChildren, ReplacePod, RestartBroker, Wait
from queen_operator.planning.claims import why_not_mounted
from queen_operator.planning.findings import Findings
from queen_operator.planning.guards import CLAIM_GOES_WITH_ITS_POD, KEEP_THE_POD
from queen_operator.planning.observed import DatabaseState
from queen_operator.planning.reasons import Reason
from queen_operator.planning.trouble import database_down
from queen_operator.planning.views import Broker
from queen_operator.planning.volumes import space_notes, volume_problem

Verdict = tuple[Literal["True", "False", "Unknown"], Reason | DatabaseState, str]


def first_problem(findings: Findings) -> tuple[Reason, str, bool] | None:
    """The one thing to tell first, whether only a person can end it, or None when all is as written."""
    sources = (
        _refused,
        _secrets,
        _claims,
        _volumes,
        _removal_blocked,
        _waiting,
        _adoption,
        _brokers,
        _removal,
        _database,
    )
    for source in sources:
        problem = source(findings)
        if problem is not None:
            return problem
    return None


def _refused(findings: Findings) -> tuple[Reason, str, bool] | None:
    for (kind, name), owner in sorted(findings.observed.foreign.items()):
        passing = owner.endswith("about to be collected")
        remedy = "" if passing else " Free the name, without losing what may be in it; it is taken up by itself."
        return Reason.NAME_TAKEN, f"{kind} {name} exists and is not ours ({owner}).{remedy}", not passing
    for (kind, name), words in sorted((*findings.observed.refused.items(), *_tried_again(findings))):
        reason = Reason.CLAIM_REFUSED if kind == "PersistentVolumeClaim" else Reason.POD_REFUSED
        return reason, f"The API server refuses {kind} {name}: {words}", True
    return None


def _tried_again(findings: Findings) -> list[tuple[tuple[str, str], str]]:
    """What was refused before and is sent again by this very round: told until it is taken."""
    if not isinstance(findings.action, ApplyChildren):
        return []
    sent = {(item["kind"], item["metadata"]["name"]) for item in findings.action.manifests}
    return [(key, words) for key, words in findings.observed.refused_before.items() if key in sent]


def _volumes(findings: Findings) -> tuple[Reason, str, bool] | None:
    return volume_problem(findings.observed, findings.brokers)


def _claims(findings: Findings) -> tuple[Reason, str, bool] | None:
    for broker in findings.brokers:
        if broker.claim_is_leaving and broker.pod is not None:
            words = f"{broker.name}: {CLAIM_GOES_WITH_ITS_POD}"
            files = "an unknown number of" if broker.spool is None else str(broker.spool.files)
            return Reason.CLAIM_DELETED, f"{words} It holds {files} files. {KEEP_THE_POD}", True
    for broker in findings.members:
        if broker.deployment is None:
            refusal = why_not_mounted(findings.observed, findings.wanted, broker.index)
            if refusal is not None:
                return Reason.CLAIM_OF_OTHERS, refusal, True
    return None


def _database(findings: Findings) -> tuple[Reason, str, bool] | None:
    """Brokers stay Ready on a database that takes no writes, and lose what is pushed into quarantine."""
    if database_down(findings.database):
        return Reason.DATABASE_AWAY, f"PostgreSQL: {findings.database.message}", False
    return None


def _secrets(findings: Findings) -> tuple[Reason, str, bool] | None:
    for reference in findings.observed.references:
        if reference.problem:
            reason = Reason.SECRET_INVALID if reference.digest else Reason.SECRET_MISSING
            return reason, reference.problem, True
    return None


def _waiting(findings: Findings) -> tuple[Reason, str, bool] | None:
    match findings.action:
        case Wait(reason=reason, message=message, stalled=stalled):
            return reason, message, stalled
        case RestartBroker(message=message) | ReplacePod(message=message):
            return Reason.RESTARTING, message, False
        case _:
            return None


def _brokers(findings: Findings) -> tuple[Reason, str, bool] | None:
    troubles = [findings.troubles[b.index] for b in findings.members if b.index in findings.troubles]
    if not troubles:
        return None
    worst = next((trouble for trouble in troubles if trouble.needs_person), troubles[0])
    more = f" ({len(troubles)} brokers are not Ready.)" if len(troubles) > 1 else ""
    return worst.reason, worst.message + more, worst.needs_person


def _removal_blocked(findings: Findings) -> tuple[Reason, str, bool] | None:
    match findings.removal:
        case Wait(reason=reason, message=message, stalled=True):
            return reason, message, True
        case _:
            return None


def _adoption(findings: Findings) -> tuple[Reason, str, bool] | None:
    match findings.adoption:
        case Wait(reason=reason, message=message, stalled=stalled):
            return reason, message, stalled
        case None:
            return None
        case action:
            return Reason.CLAIM_LOOKED_AT, getattr(action, "message", "") or "A claim from before is taken up.", False


def _removal(findings: Findings) -> tuple[Reason, str, bool] | None:
    """What is being taken away, with the step that is due; the rest of the cluster goes on meanwhile."""
    if findings.removal is None:
        return (Reason.DELETING, "The cluster is deleted.", False) if findings.deleted else None
    match findings.removal:
        case Wait(reason=reason, message=message):
            return reason, message, False
        case action:
            listed = ", ".join(broker.name for broker in findings.surplus)
            words = f"{listed} {'is' if len(findings.surplus) == 1 else 'are'} taken away." if listed else ""
            step = getattr(action, "message", "")
            return (
                Reason.REMOVING,
                " ".join(part for part in (words, step) if part) or "A volume is proved empty.",
                False,
            )


def ready(findings: Findings) -> Verdict:
    """True when every wanted broker is Ready and made from what the user wrote."""
    problem = first_problem(findings)
    if problem is not None:
        return "False", problem[0], problem[1]
    if findings.late:
        return "False", Reason.CHANGES_WAIT, f"{findings.late[0].broker.name} is to be restarted."
    if findings.ready_count < findings.staying:
        return "False", Reason.STARTING, "Brokers are being made."
    words = f"{findings.ready_count} of {findings.staying} brokers are Ready."
    quarantined = sum(b.spool.quarantined_files for b in findings.brokers if b.spool is not None)
    notes = (f"{quarantined} spool files are quarantined.",) if quarantined else ()
    space = space_notes(findings.wanted, findings.brokers)
    return "True", Reason.AS_WRITTEN, " ".join((words, *notes, *space, *findings.observed.warnings))


def available(findings: Findings) -> Verdict:
    """True while at least one broker serves pops and acks."""
    serving = [broker.name for broker in findings.brokers if broker.pod is not None and broker.pod.ready]
    if serving:
        return "True", Reason.AS_WRITTEN, f"{', '.join(serving)} serve pops, acks and pushes."
    if findings.young:
        return "False", Reason.STARTING, "No broker has come up yet."
    spooling = [broker.name for broker in findings.brokers if broker.running]
    if spooling:
        return "False", Reason.DATABASE_AWAY, f"No broker serves pops; {', '.join(spooling)} still take pushes."
    return "False", Reason.BROKER_AWAY, "No broker serves pops or takes pushes."


def database_reachable(findings: Findings) -> Verdict:
    """The operator's own look at PostgreSQL, or the brokers' word where it has none."""
    database = findings.database
    held = held_by_spools(findings.brokers)
    if database.state is DatabaseState.REACHABLE:
        return "True", Reason.REACHABLE, database.message or "PostgreSQL answers."
    if database.state is DatabaseState.UNKNOWN:
        return "Unknown", Reason.DATABASE_UNKNOWN, database.message
    words = (f"{database.message.rstrip('.')}.", REMEDIES.get(database.state, ""), held)
    return "False", database.state, " ".join(word for word in words if word)


REMEDIES: Final = {
    DatabaseState.REFUSED: "Pushes through the push Service are spooled; the brokers need nothing.",
    DatabaseState.FROZEN: "Pushes hang until it answers or refuses; with postgres.onFrozen: Spool they are spooled.",
    DatabaseState.READ_ONLY: "Spool files are quarantined meanwhile: point postgres.host at the primary, then requeue.",
    DatabaseState.REJECTED: "Correct credentials, database or TLS; one broker tries the change first.",
    DatabaseState.TOO_MANY_CONNECTIONS: "Raise max_connections or lower postgres.poolSize.",
    DatabaseState.UNSUPPORTED_VERSION: "Brokers need PostgreSQL 14 or later.",
}


def held_by_spools(brokers: tuple[Broker, ...]) -> str:
    """One sentence: what the spools hold together, and whose content is unknown."""
    known = [broker.spool for broker in brokers if broker.spool is not None]
    unknown = [broker.name for broker in brokers if broker.spool is None and broker.deployment is not None]
    files = sum(spool.files for spool in known)
    size = sum(spool.bytes for spool in known)
    events = [spool.events for spool in known if spool.events is not None]
    counted = f"{sum(events)} messages in " if len(events) == len(known) and known else ""
    sentence = f"The spools hold {counted}{files} files ({size} bytes)." if known else ""
    if unknown:
        sentence += f" What {', '.join(unknown)} hold{'s' if len(unknown) == 1 else ''} is unknown."
    return sentence.strip()


def spool_empty(findings: Findings) -> Verdict:
    """True only when every keeper was asked and every volume holds nothing, quarantine included."""
    brokers = tuple(broker for broker in findings.brokers if broker.deployment is not None)
    known = [broker for broker in brokers if broker.spool is not None]
    space = space_notes(findings.wanted, brokers)
    quarantined = [(b.name, b.spool.quarantined_files) for b in known if b.spool and b.spool.quarantined_files]
    if quarantined:
        listed = ", ".join(f"{name} {count}" for name, count in quarantined)
        words = f"Quarantined files, which no broker replays by itself: {listed}."
        return "False", Reason.QUARANTINED, " ".join((words, *space))
    if any(broker.spool is not None and not broker.spool.empty for broker in known):
        return "False", Reason.SPOOL_NOT_EMPTY, " ".join((held_by_spools(brokers), *space))
    if len(known) < len(brokers) or not brokers:
        return "Unknown", Reason.SPOOL_UNKNOWN, held_by_spools(brokers) or "No spool keeper could be asked yet."
    return "True", Reason.EMPTY, f"{len(known)} spools were asked and hold nothing."


def restart_pending(findings: Findings) -> Verdict:
    """True while the operator renders running brokers differently, which never restarts them by itself."""
    if findings.late:
        return "True", Reason.CHANGES_WAIT, _waiting_to_be_restarted(findings)
    if findings.rendering:
        listed = ", ".join(findings.rendering)
        return "True", Reason.RENDERING_CHANGED, f"{listed} take up the operator's rendering at their next restart."
    return "False", Reason.NOTHING_PENDING, "Every broker runs what is wanted."


def _waiting_to_be_restarted(findings: Findings) -> str:
    volumes = [item for item in findings.late if of_the_volume(item.causes)]
    written = ", ".join(item.broker.name for item in findings.late if item not in volumes)
    sentences = [f"{written} wait to be restarted with what was written."] if written else []
    for item in volumes:
        causes = ", ".join(cause.sentence for cause in item.causes)
        sentences.append(f"{item.broker.name} waits to be restarted: {causes}.")
    return " ".join(sentences)


def paused(findings: Findings) -> Verdict:
    """True while spec.paused keeps the operator from acting."""
    if findings.wanted.context.spec.paused:
        generation = findings.observed.resource["metadata"].get("generation", 0)
        waits = " The cluster is deleted, and that waits too." if findings.deleted else ""
        return "True", Reason.PAUSED, f"spec.paused is set (generation {generation}): nothing is changed.{waits}"
    return "False", Reason.NOT_PAUSED, "The operator acts."


ALWAYS: tuple[tuple[ConditionType, Callable[[Findings], Verdict]], ...] = (
    (ConditionType.READY, ready),
    (ConditionType.AVAILABLE, available),
    (ConditionType.DATABASE_REACHABLE, database_reachable),
    (ConditionType.SPOOL_EMPTY, spool_empty),
    (ConditionType.RESTART_PENDING, restart_pending),
    (ConditionType.PAUSED, paused),
)
