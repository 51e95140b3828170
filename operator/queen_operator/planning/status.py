"""The status of a QueenCluster from the findings of a round and the status before it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from queen_operator.api import names
from queen_operator.api.status import (
    BrokerStatus,
    Condition,
    ConditionType,
    DatabaseStatus,
    Phase,
    PlanStatus,
    QueenClusterStatus,
    RetainedClaim,
    SpoolingStatus,
    SpoolStatus,
)
from queen_operator.planning import conditions
from queen_operator.planning.actions import (
    Action,
    ReplacePod,
    Rest,
    RestartBroker,
    SetFinalizer,
    SwitchMaintenance,
    Wait,
)
from queen_operator.planning.findings import Findings
from queen_operator.planning.observed import DatabaseState, JsonObject, Observed
from queen_operator.planning.reasons import Reason
from queen_operator.planning.reports import Held
from queen_operator.planning.rescue import spooling, still_spooling
from queen_operator.planning.trouble import database_down
from queen_operator.planning.views import Broker

Truth = Literal["True", "False", "Unknown"]


def zulu(moment: datetime) -> str:
    """A time as Kubernetes writes it: UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class _Conditions:
    """Collects conditions; a transition time moves only when the status of its condition does."""

    def __init__(self, observed: Observed) -> None:
        before = (observed.resource.get("status") or {}).get("conditions") or ()
        self._before: dict[str, JsonObject] = {item["type"]: item for item in before}
        self._now = zulu(observed.now)
        self._generation = int(observed.resource["metadata"].get("generation", 0))
        self.made: list[Condition] = []

    def add(self, kind: ConditionType, truth: Truth, reason: str, message: str) -> None:
        before = self._before.get(kind)
        same = before is not None and before.get("status") == truth
        self.made.append(
            Condition(
                type=kind,
                status=truth,
                reason=reason,
                message=message[:4096],
                last_transition_time=before["lastTransitionTime"] if before is not None and same else self._now,
                observed_generation=self._generation,
            )
        )


def make_status(findings: Findings) -> dict[str, Any]:
    """Return the whole status as it is written, camelCase, without empty fields."""
    observed = findings.observed
    problem = conditions.first_problem(findings)
    phase = _phase(findings, problem)
    verdict = conditions.ready(findings)
    collected = _Conditions(observed)
    for kind, judge in conditions.ALWAYS:
        truth, reason, message = judge(findings)
        collected.add(kind, truth, reason, message)
    _add_kstatus(collected, findings, problem)
    name = findings.wanted.context.name
    status = QueenClusterStatus(
        observed_generation=int(observed.resource["metadata"].get("generation", 0)),
        phase=phase,
        message=verdict[2],
        replicas=sum(broker.deployment is not None for broker in findings.brokers),
        ready_replicas=findings.ready_count,
        ready=f"{findings.ready_count}/{findings.staying}",
        selector=f"{names.CLUSTER_LABEL}={name},app.kubernetes.io/component=broker",
        version=_version(findings),
        brokers=tuple(_broker(broker, findings) for broker in (*findings.members, *findings.surplus)),
        retained_claims=tuple(_retained(name, held) for name, held in findings.retained) or None,
        database=_database(findings),
        spooling=_spooling(findings),
        plan=_plan(findings.action),
        conditions=tuple(collected.made),
    )
    made = status.model_dump(by_alias=True, exclude_none=True, mode="json")
    if isinstance(findings.action, SetFinalizer) and findings.action.unproved:
        # That they were not proved empty is known from here alone, and the release may have to be tried again.
        made["brokers"] = (observed.resource.get("status") or {}).get("brokers") or made["brokers"]
    return made


def blocked_status(resource: JsonObject, now: datetime, reason: Reason, message: str) -> dict[str, Any]:
    """Return the status of a resource with which no round is possible: blocked, and why; the rest is kept."""
    observed = Observed(now=now, resource=resource)
    collected = _Conditions(observed)
    collected.add(ConditionType.READY, "False", reason, message)
    collected.add(ConditionType.STALLED, "True", reason, message)
    before = dict(resource.get("status") or {})
    made = {condition.type for condition in collected.made} | {ConditionType.RECONCILING.value}
    kept = [item for item in before.get("conditions") or () if item["type"] not in made]
    fresh = [condition.model_dump(by_alias=True, mode="json") for condition in collected.made]
    return before | {
        "observedGeneration": int(resource["metadata"].get("generation", 0)),
        "phase": Phase.BLOCKED.value,
        "message": message,
        "conditions": [*fresh, *kept],
    }


def same_status(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Tell whether nothing worth a write differs: ages that only grow with the clock are left aside."""
    return _without_ages(before) == _without_ages(after)


def _without_ages(status: Mapping[str, Any]) -> dict[str, Any]:
    brokers = []
    for broker in status.get("brokers") or ():
        spool = {key: value for key, value in (broker.get("spool") or {}).items() if key != "oldestSeconds"}
        brokers.append({**broker, "spool": spool})
    return {**status, "brokers": brokers}


def _phase(findings: Findings, problem: tuple[Reason, str, bool] | None) -> Phase:
    if findings.wanted.context.spec.paused:
        return Phase.PAUSED
    if problem is None:
        if findings.late:
            return Phase.ROLLING
        return Phase.READY if findings.ready_count == findings.staying else Phase.PENDING
    reason, _, needs_person = problem
    if needs_person:
        return Phase.BLOCKED
    if reason is Reason.DATABASE_AWAY or (reason is Reason.SPOOL_FULL and database_down(findings.database)):
        return Phase.DEGRADED
    if findings.deleted:
        return Phase.DELETING
    if findings.late or isinstance(findings.action, RestartBroker | ReplacePod):
        return Phase.ROLLING
    if reason is Reason.REPLAYING:
        return Phase.RECOVERING
    if findings.removal is not None and not findings.troubles.keys() & {b.index for b in findings.members}:
        return Phase.SCALING_DOWN
    return Phase.PENDING if findings.young else Phase.RECOVERING


def _add_kstatus(collected: _Conditions, findings: Findings, problem: tuple[Reason, str, bool] | None) -> None:
    """Reconciling and Stalled exist only while true; an outage of the database is neither progress nor a dead end."""
    if findings.wanted.context.spec.paused:
        return
    if problem is not None and problem[2]:
        collected.add(ConditionType.STALLED, "True", problem[0], problem[1])
    elif findings.late or (problem is not None and problem[0] is not Reason.DATABASE_AWAY):
        reason = problem[0] if problem is not None else Reason.CHANGES_WAIT
        message = problem[1] if problem is not None else f"{findings.late[0].broker.name} is to be restarted."
        collected.add(ConditionType.RECONCILING, "True", reason, message)
    elif not isinstance(findings.action, Wait | Rest):
        collected.add(ConditionType.RECONCILING, "True", Reason.STARTING, _plan(findings.action).reason)


def _version(findings: Findings) -> str | None:
    found = {version for broker in findings.brokers if (version := _pod_version(broker)) is not None}
    return " and ".join(sorted(found)) or None


def _pod_version(broker: Broker) -> str | None:
    """The tag of the image that its pod runs; an image named by digest has none."""
    if broker.pod is None:
        return None
    containers = broker.pod.item["spec"]["containers"]
    image = next((str(c["image"]) for c in containers if c["name"] == "broker"), "")
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return tag or None


def _broker(broker: Broker, findings: Findings) -> BrokerStatus:
    if broker.index >= findings.staying:
        return _leaving_broker(broker, findings)
    trouble = findings.troubles.get(broker.index)
    waiting = trouble.message if trouble is not None else None
    if waiting is None and any(item.broker.index == broker.index for item in findings.late):
        causes = next(item.causes for item in findings.late if item.broker.index == broker.index)
        waiting = "Waits to be restarted: " + ", ".join(cause.sentence for cause in causes) + "."
    return _as_it_is(broker, waiting)


def _leaving_broker(broker: Broker, findings: Findings) -> BrokerStatus:
    """One that is being taken away, with why it is still there when the step that is due concerns it."""
    step = findings.removal
    concerns = isinstance(step, Wait) and step.broker in (None, broker.index)
    return _as_it_is(broker, getattr(step, "message", "") if concerns else "Is to be taken away.")


def _as_it_is(broker: Broker, waiting: str | None) -> BrokerStatus:
    container = broker.pod.broker if broker.pod is not None else None
    return BrokerStatus(
        name=broker.name,
        pod=broker.pod.name if broker.pod is not None else None,
        ready=broker.ready,
        version=_pod_version(broker),
        restarts=container.restarts if container is not None else 0,
        spool=_spool(broker) if broker.deployment is not None else None,
        waiting_for=waiting,
    )


def _retained(name: str, held: Held | None) -> RetainedClaim:
    if held is None:
        return RetainedClaim(name=name, known=False)
    return RetainedClaim(
        name=name,
        known=True,
        files=held.files,
        bytes=held.bytes,
        events=held.events,
        quarantined_files=held.quarantined_files,
    )


def _spool(broker: Broker) -> SpoolStatus:
    spool = broker.spool
    if spool is None:
        return SpoolStatus(known=False)
    replayed = broker.replay.first_files - spool.files if broker.replay is not None and broker.replaying else None
    return SpoolStatus(
        known=True,
        files=spool.files,
        bytes=spool.bytes,
        events=spool.events,
        oldest_seconds=None if spool.oldest_age_seconds is None else int(spool.oldest_age_seconds),
        quarantined_files=spool.quarantined_files,
        replayed_files=replayed,
    )


def _database(findings: Findings) -> DatabaseStatus:
    """State and since when it is so; the time stands as long as the state does."""
    database = findings.database
    before = (findings.observed.resource.get("status") or {}).get("database") or {}
    same = before.get("state") == database.state and before.get("since")
    return DatabaseStatus(
        state=database.state,
        message="" if database.state is DatabaseState.REACHABLE else database.message,
        since=before["since"] if same else zulu(findings.observed.now),
        version=database.version or before.get("version"),
        max_connections=database.max_connections or before.get("maxConnections"),
    )


def _spooling(findings: Findings) -> SpoolingStatus | None:
    """What is remembered of maintenance mode that the operator turned on, until every broker has it off again."""
    before = spooling(findings.observed)
    told = tuple((before or {}).get("pods") or ())
    action = findings.action
    if isinstance(action, SwitchMaintenance) and action.enabled:
        since = before["since"] if before is not None else zulu(findings.observed.now)
        pods = dict.fromkeys((*told, *(name for name, _ in action.pods)))
        return SpoolingStatus(since=since, pods=tuple(pods))
    if before is None or not still_spooling(findings.observed, findings.brokers):
        return None
    return SpoolingStatus(since=before["since"], pods=told)


def _plan(action: Action) -> PlanStatus:
    match action:
        case Rest():
            return PlanStatus(action="Rest")
        case Wait(message=message):
            return PlanStatus(action="Wait", reason=message)
        case RestartBroker(message=message):
            return PlanStatus(action="RestartBroker", reason=message)
        case _:
            return PlanStatus(action=type(action).__name__, reason=getattr(action, "message", ""))
