"""Why a broker is not Ready, in the order in which Kubernetes stops a pod from starting."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from queen_operator.api.spec import AccessMode
from queen_operator.planning.observed import Database, DatabaseState
from queen_operator.planning.reasons import Reason
from queen_operator.planning.views import Broker, Container, condition, stable_words

_ENDED: Final = frozenset({"CrashLoopBackOff", "Error", "Completed", "OOMKilled", "ContainerStatusUnknown"})
# Waiting reasons that are ordinary steps of a start and no trouble.
_ORDINARY_WAITS = frozenset({"", "PodInitializing", "ContainerCreating"})
# The first two may be a database that is just coming up, or an image that is being replaced.
CRASHES_TO_CALL_A_PERSON: Final = 2
LONGEST_WORDS: Final = 500
_DATABASE_DOWN = frozenset(set(DatabaseState) - {DatabaseState.REACHABLE, DatabaseState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a broker is not Ready. ``needs_person``: waiting will not cure it."""

    reason: Reason
    message: str
    needs_person: bool = False


def database_down(database: Database | None) -> bool:
    """Tell whether the operator's own look says that PostgreSQL cannot serve; unknown is not down."""
    return database is not None and database.state in _DATABASE_DOWN


def trouble_of(broker: Broker, database: Database | None, now: datetime, deadline_seconds: float) -> Trouble | None:
    """Return why this broker is not Ready, or None when it is.

    ``deadline_seconds`` is how long a start may take beyond its replay before it needs a person.
    """
    if broker.ready:
        return None
    refused = _pod_refused(broker)
    if refused is not None:
        return refused
    if broker.pod is None or broker.leaving or broker.deployment is None:
        return _pod_changes(broker)
    return (
        _unschedulable(broker, now, deadline_seconds)
        or _cannot_start(broker, broker.pod.keeper, "spool keeper")
        or _crashing(broker, database)
        or _cannot_start(broker, broker.pod.broker, "broker")
        or _not_listening(broker, now, deadline_seconds)
        or _listening(broker, database, now, deadline_seconds)
    )


def _pod_refused(broker: Broker) -> Trouble | None:
    failure = condition(broker.deployment, "ReplicaFailure") if broker.deployment else None
    if failure is None or failure.get("status") != "True" or broker.pod is not None:
        return None
    words = stable_words(str(failure.get("message", "")))
    return Trouble(Reason.POD_REFUSED, f"{broker.name}: no pod can be made: {words}", needs_person=True)


def _pod_changes(broker: Broker) -> Trouble:
    if broker.leaving:
        pods = ", ".join(pod.name for pod in broker.leaving)
        return Trouble(Reason.BROKER_LEAVING, f"{broker.name}: pod {pods} is ending its last requests.")
    if broker.pod is not None:
        owners = broker.pod.item["metadata"].get("ownerReferences") or ()
        replica_set = next((str(owner["name"]) for owner in owners if owner.get("kind") == "ReplicaSet"), "")
        words = (
            f"{broker.name}: its Deployment is gone while its pod runs. It is made again within seconds if the pod is"
            f" as wanted; if not, delete the ReplicaSet {replica_set}, which restarts the broker."
        )
        return Trouble(Reason.BROKER_AWAY, words)
    return Trouble(Reason.STARTING, f"{broker.name}: its pod is being made.")


def _unschedulable(broker: Broker, now: datetime, deadline_seconds: float) -> Trouble | None:
    """Binding a volume and scaling a node group take a while: a person is asked for only after the deadline."""
    scheduled = condition(broker.pod.item, "PodScheduled") if broker.pod else None
    if scheduled is None or scheduled.get("status") != "False":
        return None
    words = f"{broker.name}: no node takes its pod: {scheduled.get('message', '')}"
    late = _late(broker, now, deadline_seconds)
    return Trouble(Reason.POD_UNSCHEDULABLE, words + _unbound(broker), needs_person=late)


def _unbound(broker: Broker) -> str:
    """What to know when the volume is what is missing: not every storage knows ReadWriteOncePod."""
    claim = broker.claim
    if claim is None or (claim.get("status") or {}).get("phase") != "Pending":
        return ""
    name = claim["metadata"]["name"]
    words = f" The claim {name} is not bound"
    if AccessMode.READ_WRITE_ONCE_POD in (claim["spec"].get("accessModes") or ()):
        words += "; where the storage does not know ReadWriteOncePod, make the cluster with accessMode ReadWriteOnce"
    return words + "."


def _cannot_start(broker: Broker, container: Container | None, what: str) -> Trouble | None:
    if container is None or container.running or container.reason in _ORDINARY_WAITS:
        return None
    words = container.message or container.last_message
    return Trouble(
        Reason.POD_CANNOT_START,
        f"{broker.name}: the {what} cannot start: {container.reason}{': ' + words if words else ''}",
        needs_person=True,
    )


def _crashing(broker: Broker, database: Database | None) -> Trouble | None:
    container = broker.pod.broker if broker.pod else None
    if container is None or container.running or container.reason not in _ENDED:
        return None
    if database_down(database):
        # A booting broker needs the schema and exits at once while PostgreSQL is away: not its own fault.
        return Trouble(
            Reason.DATABASE_AWAY,
            f"{broker.name}: the broker cannot start while PostgreSQL is away ({container.restarts} restarts).",
        )
    return Trouble(
        Reason.BROKER_CRASHES,
        f"{broker.name}: the broker ended {container.restarts + 1} times, last with: {_last_words(container)}",
        needs_person=container.restarts >= CRASHES_TO_CALL_A_PERSON,
    )


def _last_words(container: Container) -> str:
    """The line that says why, and no other: at a low log level other lines may hold what clients sent."""
    lines = (container.last_message or container.message).splitlines()
    telling = [line for line in lines if any(mark in line for mark in ("FATAL", '"ERROR"', "panic"))]
    return _message_of(telling[-1])[:LONGEST_WORDS] if telling else container.reason


def _message_of(line: str) -> str:
    """The words of a log line: brokers log one JSON object a line unless they are told not to."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    return str(entry.get("message", line)) if isinstance(entry, dict) else line


def _late(broker: Broker, now: datetime, deadline_seconds: float) -> bool:
    """Longer on its way than brokerDeadline; a file that its replay has done counts as progress."""
    if broker.pod is None:
        return False
    marks = [broker.pod.created, broker.pod.not_ready_since, broker.replay.progress_at if broker.replay else None]
    return (now - max(mark for mark in marks if mark is not None)).total_seconds() > deadline_seconds


def _not_listening(broker: Broker, now: datetime, deadline_seconds: float) -> Trouble | None:
    pod = broker.pod
    if pod is None or (pod.broker is not None and pod.broker.started):
        return None
    late = _late(broker, now, deadline_seconds)
    if broker.replaying and broker.spool is not None:
        events = "" if broker.spool.events is None else f" ({broker.spool.events} messages)"
        return Trouble(
            Reason.REPLAYING,
            f"{broker.name}: replays its spool before it listens: {broker.spool.files} files, "
            f"{broker.spool.bytes} bytes{events} left.",
            needs_person=late,
        )
    keeper = pod.keeper
    if keeper is not None and keeper.running and not keeper.started:
        held = "" if broker.spool is None or broker.spool.writable else " or for a writable volume"
        return Trouble(
            Reason.STARTING,
            f"{broker.name}: its spool keeper waits for the lock of the volume{held}.",
            needs_person=late,
        )
    return Trouble(Reason.BROKER_LATE if late else Reason.STARTING, f"{broker.name}: is starting.", needs_person=late)


_PUSHES: Final = {
    DatabaseState.FROZEN: "pushes hang unless it was told to spool",
    DatabaseState.READ_ONLY: "what it spools is quarantined",
}


def _listening(broker: Broker, database: Database | None, now: datetime, deadline_seconds: float) -> Trouble:
    if database is not None and database_down(database):
        what = _PUSHES.get(database.state, "it spools the pushes it gets")
        return Trouble(Reason.DATABASE_AWAY, f"{broker.name}: PostgreSQL is away; {what}.")
    page = broker.page
    if page is not None and page.alive and not page.answering:
        return Trouble(Reason.DATABASE_AWAY, f"{broker.name}: PostgreSQL does not answer it.")
    pod = broker.pod
    if pod is not None and pod.keeper is not None and not pod.keeper.ready:
        return Trouble(Reason.BROKER_AWAY, f"{broker.name}: its spool keeper is being restarted.")
    late = _late(broker, now, deadline_seconds)
    return Trouble(
        Reason.BROKER_LATE if late else Reason.BROKER_AWAY,
        f"{broker.name}: listens, and its health check fails.",
        needs_person=late,
    )
