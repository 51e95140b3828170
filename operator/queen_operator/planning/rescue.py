"""What is done for brokers while and after PostgreSQL is away, without restarting any that runs.

A frozen PostgreSQL makes pushes hang, and maintenance mode at a broker makes it spool them at once. That the operator
turned it on is kept in the status, since a person may also turn it on, and what a person turned on stays on.
"""

from datetime import datetime, timedelta
from typing import Final

from queen_operator.api.spec import OnFrozen
from queen_operator.manifests.environment import REPLAY_BATCH
from queen_operator.planning.actions import Action, FreeFromBackoff, SwitchMaintenance
from queen_operator.planning.observed import DatabaseState, JsonObject, Observed
from queen_operator.planning.reasons import EventReason
from queen_operator.planning.views import Broker, Pod, parse_time, standing_since
from queen_operator.planning.wanted import Wanted

# One look that gets no answer may be a slow moment; by the second one, clients wait.
FROZEN_FOR: Final = timedelta(seconds=5)
# After an outage a drain pauses for 5 s by itself; a file that replays may take ten times the one before it.
STUCK_AFTER_SECONDS: Final = 60.0
STUCK_AFTER_STEPS: Final = 10
# What a booting broker says last when it could not reach or use PostgreSQL.
BOOT_WITHOUT_DATABASE: Final = "schema apply failed"


def plan_rescue(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> Action | None:
    """Return the help that is due now, or None."""
    return (
        _spool_while_frozen(observed, wanted, brokers)
        or _end_spooling(observed, brokers)
        or _set_drain_going(observed, brokers)
        or _free_from_backoff(observed, brokers)
    )


def spooling(observed: Observed) -> JsonObject | None:
    """What the status says of maintenance mode that the operator itself turned on."""
    found: JsonObject | None = (observed.resource.get("status") or {}).get("spooling")
    return found


def still_spooling(observed: Observed, brokers: tuple[Broker, ...]) -> bool:
    """Tell whether maintenance mode of ours may still be on somewhere; a broker that cannot say so may have it on.

    The flag is cluster-wide and survives restarts: a broker that is away now would boot into it.
    """
    there = (broker for broker in brokers if broker.exists or broker.removed_by is None)
    off = all(broker.running and broker.page is not None and broker.page.maintenance is False for broker in there)
    return not _reachable(observed) or not off


def _reachable(observed: Observed) -> bool:
    return observed.database is not None and observed.database.state is DatabaseState.REACHABLE


def _listening(brokers: tuple[Broker, ...], *, not_known_off: bool = False) -> list[Pod]:
    found = []
    for broker in brokers:
        pod, page = broker.pod, broker.page
        off = page is not None and page.maintenance is False
        if pod is not None and pod.broker_started and pod.ip is not None and not (not_known_off and off):
            found.append(pod)
    return found


def _since(observed: Observed) -> datetime | None:
    """Since when the database is in its present state, as the status keeps it."""
    database = (observed.resource.get("status") or {}).get("database") or {}
    if observed.database is None or database.get("state") != observed.database.state:
        return None
    return parse_time(database.get("since"))


def _spool_while_frozen(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> SwitchMaintenance | None:
    if observed.database is None or observed.database.state is not DatabaseState.FROZEN or observed.token_missing:
        return None
    since = _since(observed)
    wished = wanted.context.spec.postgres.on_frozen is OnFrozen.SPOOL
    if not wished or since is None or observed.now - since < FROZEN_FOR:
        return None
    # Told again every half minute while it lasts: the first time may not have reached a broker.
    pods = [pod for pod in _listening(brokers) if pod.uid not in observed.nudged and _replays_safely(pod)]
    if not pods or not any(_feels_it(broker) for broker in brokers):
        return None
    listed = ", ".join(pod.name for pod in pods)
    message = f"PostgreSQL is frozen: maintenance mode is turned on at {listed}, so that pushes are spooled."
    return SwitchMaintenance(True, _targets(pods), EventReason.SPOOLING_STARTED, message)


def _replays_safely(pod: Pod) -> bool:
    """It was made with the setting that keeps repeated pushes in its spool from taking others with them."""
    containers: list[JsonObject] = pod.item["spec"]["containers"]
    broker: JsonObject = next((item for item in containers if item["name"] == "broker"), {})
    return any(entry["name"] == REPLAY_BATCH for entry in broker.get("env") or ())


def _feels_it(broker: Broker) -> bool:
    """A broker shows that PostgreSQL does not answer it: the operator alone may have no way there."""
    page = broker.page
    silent = page is not None and page.alive and not page.answering
    return broker.running and (silent or broker.pod is None or not broker.pod.ready)


def _end_spooling(observed: Observed, brokers: tuple[Broker, ...]) -> SwitchMaintenance | None:
    if spooling(observed) is None or not _reachable(observed):
        return None
    pods = [pod for pod in _listening(brokers, not_known_off=True) if pod.uid not in observed.nudged]
    if not pods:
        return None
    message = f"PostgreSQL answers again: maintenance mode is turned off at {', '.join(pod.name for pod in pods)}."
    return SwitchMaintenance(False, _targets(pods), EventReason.SPOOLING_ENDED, message)


def _set_drain_going(observed: Observed, brokers: tuple[Broker, ...]) -> SwitchMaintenance | None:
    """A drain can stop for good although the flag is off; switching it off once more starts it."""
    if not _reachable(observed) or observed.token_missing:
        return None
    for broker in brokers:
        pod = broker.pod
        if pod is not None and pod.uid not in observed.nudged and _stands_still(broker, observed):
            message = f"{broker.name}: no spool file went away for a minute; its drain is set going again."
            return SwitchMaintenance(False, _targets([pod]), EventReason.DRAIN_STARTED, message)
    return None


def _stands_still(broker: Broker, observed: Observed) -> bool:
    page, spool, replay = broker.page, broker.spool, broker.replay
    if not broker.running or page is None or page.maintenance is not False or spool is None or replay is None:
        return False
    limit = max(STUCK_AFTER_SECONDS, STUCK_AFTER_STEPS * replay.last_step_seconds)
    return not spool.empty and (observed.now - standing_since(broker, observed)).total_seconds() > limit


def _free_from_backoff(observed: Observed, brokers: tuple[Broker, ...]) -> FreeFromBackoff | None:
    """A broker that crashed for want of PostgreSQL waits up to five minutes beyond its return: end the wait.

    Only when its last crash was before PostgreSQL came back: whatever it crashes of afterwards is its own.
    """
    since = _since(observed)
    if not _reachable(observed) or since is None:
        return None
    for broker in brokers:
        pod = broker.pod
        container = pod.broker if pod is not None else None
        if pod is None or container is None or container.reason != "CrashLoopBackOff" or container.ended is None:
            continue
        if broker.is_lost_with_its_pod:
            continue  # a claim that somebody deleted stays only as long as this pod: the wait costs no message
        if BOOT_WITHOUT_DATABASE in container.last_message and container.ended <= since:
            message = f"{broker.name}: PostgreSQL is back; the pod {pod.name} is replaced instead of waiting it out."
            return FreeFromBackoff(pod.name, pod.uid, message)
    return None


def _targets(pods: list[Pod]) -> tuple[tuple[str, str], ...]:
    return tuple((pod.name, pod.ip) for pod in pods if pod.ip is not None)
