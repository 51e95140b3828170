"""How the volumes of the spools grow, and when growth waits: behind a half-written record space costs messages.

When a write fails for want of space, half a record stays in the file that the broker writes to. Pushes that follow in
the same file are answered ``buffered`` and lost at the replay without a word. So a broker whose volume was full is
restarted, which closes its file, before its volume grows. A full spool has to be drained for that, which PostgreSQL
must be there for. What says that the restart is done is the new process itself: its counter of failed writes is 0.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from queen_operator.api import names
from queen_operator.api.spec import SpoolSpec
from queen_operator.api.units import quantity
from queen_operator.manifests.config import RestartCause
from queen_operator.planning.actions import ApplyChildren
from queen_operator.planning.adoption import is_taken_up
from queen_operator.planning.claims import exactly, kept_claim
from queen_operator.planning.guards import FRESH
from queen_operator.planning.observed import BrokerPage, JsonObject, Observed, Spool
from queen_operator.planning.reasons import EventReason, Reason
from queen_operator.planning.trouble import database_down
from queen_operator.planning.views import Broker, Pod, annotations, condition, parse_time
from queen_operator.planning.wanted import Wanted

# Below both, the next write may be the one that fails between our look and the growth: 1 % of the default size is room
# for one more request of the largest size, 64 MiB, and about as much as the fastest clients send between two looks.
FULL_BELOW_BYTES: Final = 2**20
FULL_BELOW_SHARE: Final = 0.01
TELL_BELOW_PERCENT: Final = 20
# The node's part of a resize takes about a minute on a mounted volume; later it will not come without a new pod.
RESIZE_BY_NODE_WITHIN: Final = timedelta(minutes=2)

_NODE_PENDING: Final = "FileSystemResizePending"
_RESIZING: Final = ("Resizing", _NODE_PENDING)
_UNITS: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


@dataclass(frozen=True, slots=True)
class Growth:
    """A claim that is to ask for more: ``size`` as a quantity, ``why`` as a sentence with both sizes."""

    broker: Broker
    claim: JsonObject
    size: str
    why: str


def plan_growth(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> ApplyChildren | None:
    """Return the claims that grow now, all in one action, or None. No guard of a rollout holds growth back."""
    growing = [
        growth
        for broker in brokers
        if (growth := wanted_growth(observed, wanted, broker)) is not None and why_not_yet(observed, broker) is None
    ]
    if not growing:
        return None
    manifests = tuple(_grown(wanted, growth) for growth in growing)
    return ApplyChildren(manifests, EventReason.VOLUME_GROWN, " ".join(growth.why for growth in growing))


def wanted_growth(observed: Observed, wanted: Wanted, broker: Broker) -> Growth | None:
    """Return how much more this broker's claim should ask for: the spec's size, or a step before it is full.

    None for a claim that is not bound, is going, or whose last change the server refused.
    """
    claim = broker.claim
    if claim is None or broker.index >= wanted.replicas or broker.claim_is_leaving or not _bound(claim):
        return None
    if ("PersistentVolumeClaim", claim["metadata"]["name"]) in observed.refused or _is_to_be_taken_up(
        observed, wanted, broker
    ):
        return None
    spool, asked = wanted.context.spec.spool, _asked(claim)
    if quantity(spool.size) > quantity(asked):
        words = f"{broker.name}: its claim grows from {asked} to {spool.size}, the size in the spec."
        return Growth(broker, claim, str(spool.size), words)
    size = _next_size(spool, broker)
    if size is None or broker.spool is None:
        return None
    words = f"{broker.name}: its claim grows from {asked} to {size}, since {_room(broker.spool)} is left."
    return Growth(broker, claim, size, words)


def _is_to_be_taken_up(observed: Observed, wanted: Wanted, broker: Broker) -> bool:
    """A growth that is refused again and again would keep the marks from being written that its broker waits for."""
    return broker.removed_by is not None or not (broker.exists or is_taken_up(observed, wanted, broker))


def why_not_yet(observed: Observed, broker: Broker) -> str | None:
    """Return why space must not come now, or None: a running process may have left half a record in its file.

    A process that does not listen yet has written nothing, and one that nobody can ask, neither itself nor its
    keeper, is taken for well: else a volume behind a closed network could never grow.
    """
    pods = (broker.pod, *broker.leaving) if broker.pod is not None else broker.leaving
    for pod in pods:
        if pod.broker_started:
            why = _why_torn(observed, pod)
            if why is not None:
                return why
    return None


def _why_torn(observed: Observed, pod: Pod) -> str | None:
    page, spool = observed.pages.get(pod.uid), observed.spools.get(pod.uid)
    if page is None or observed.now - page.asked_at > FRESH:
        return "its broker has not been asked lately."
    if _writes_failed(page, spool):
        return "it was full, and its broker has not been restarted since."
    if spool is None or spool.empty:
        return None
    if page.failed_writes is None and spool.broken_records:
        return "its spool holds a half-written record."
    return "it is full, and its spool is drained first." if is_full(spool) else None


def _writes_failed(page: BrokerPage | None, spool: Spool | None) -> bool:
    """Writes of this process failed, and not for another reason than space.

    On a volume that something else fills, with nothing in the spool, no file can hold half a record, and a restart
    would free nothing: writes would fail again, and so would each restart.
    """
    if page is None or not page.failed_writes:
        return False
    return spool is None or (spool.writable and not (spool.empty and is_full(spool)))


def is_full(spool: Spool) -> bool:
    """So little space is left that a write may fail at any time; never of a volume that does not tell its size."""
    return spool.total_bytes > 0 and spool.free_bytes < max(FULL_BELOW_BYTES, spool.total_bytes * FULL_BELOW_SHARE)


def restart_causes(observed: Observed, broker: Broker) -> tuple[RestartCause, ...]:
    """Return why the volume of this broker needs a new process or a new pod, beside what its template says."""
    causes = []
    if broker.running and _writes_failed(broker.page, broker.spool):
        causes.append(RestartCause.VOLUME_FULL)
    if _only_a_new_pod_resizes(broker, observed.now):
        causes.append(RestartCause.VOLUME_RESIZE)
    return tuple(causes)


def _only_a_new_pod_resizes(broker: Broker, now: datetime) -> bool:
    """The file system has not grown with its volume for long, and this pod has mounted it since before.

    A pod that was made afterwards had its chance: another one would change nothing.
    """
    pending = condition(broker.claim, _NODE_PENDING) if broker.claim is not None else None
    since = parse_time(pending.get("lastTransitionTime")) if pending is not None else None
    pod = broker.pod
    if pending is None or pending.get("status") != "True" or since is None or pod is None or pod.broker is None:
        return False
    boots = pod.broker.running and not pod.broker.started
    return not boots and pod.created < since and now - since > RESIZE_BY_NODE_WITHIN


def volume_problem(observed: Observed, brokers: tuple[Broker, ...]) -> tuple[Reason, str, bool] | None:
    """Return reason and sentence about a full volume, and that no person is needed; None while pushes find room.

    After its space is back the wait for the restart says the rest, unless PostgreSQL is away: then nothing moves.
    """
    for broker in brokers:
        spool = broker.spool
        if spool is None or not broker.running:
            continue
        full, failed = is_full(spool) and not spool.empty, _writes_failed(broker.page, spool)
        if not full and not (failed and database_down(observed.database)):
            continue
        refused = broker.page.failed_writes if broker.page is not None else None
        lost = f", and {refused} messages were refused with status failed" if refused else ""
        words = f"{broker.name}'s volume {'is' if full else 'was'} full ({_room(spool)} is left{lost})"
        if database_down(observed.database):
            return Reason.SPOOL_FULL, f"PostgreSQL is away: {words}; it is restarted before space is added.", False
        then = " and is restarted" if failed else ""
        stuck = broker.page is not None and broker.page.maintenance
        ending = "maintenance mode keeps it from draining." if stuck else f"it drains its spool{then}."
        return Reason.SPOOL_FULL, f"{words}; {ending}", False
    return None


def space_notes(wanted: Wanted, brokers: tuple[Broker, ...]) -> tuple[str, ...]:
    """Return one sentence for each volume that has little space, with what keeps it from growing by itself."""
    notes = []
    for broker in brokers:
        spool = broker.spool
        if spool is not None and spool.total_bytes > 0 and _free_percent(spool) < TELL_BELOW_PERCENT:
            notes.append(f"{broker.name}'s volume has {_room(spool)} left{_why_stays(wanted, broker, spool)}.")
    return tuple(notes)


def _why_stays(wanted: Wanted, broker: Broker, spool: Spool) -> str:
    auto, claim = wanted.context.spec.spool.auto_grow, broker.claim
    if auto is None or claim is None or broker.index >= wanted.replicas:
        return ""
    if quantity(_asked(claim)) >= quantity(auto.max):
        return f", and its claim has reached spool.autoGrow.max, {auto.max}"
    return "" if _shows_last_growth(claim, spool) else ", and its last growth has not reached the file system"


def _next_size(spec: SpoolSpec, broker: Broker) -> str | None:
    """One step more, when space is short and the step before has arrived at the file system."""
    auto, claim, spool = spec.auto_grow, broker.claim, broker.spool
    if auto is None or claim is None or spool is None or spool.total_bytes == 0:
        return None
    asked, most = quantity(_asked(claim)), quantity(auto.max)
    if asked >= most or 100 * spool.free_bytes >= int(auto.below.rstrip("%")) * spool.total_bytes:
        return None
    if not _capacity_reached(claim) or not _shows_last_growth(claim, spool):
        return None
    return str(auto.max) if asked + quantity(auto.step) >= most else _written(asked + quantity(auto.step))


def _capacity_reached(claim: JsonObject) -> bool:
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
    moving = [found for kind in _RESIZING if (found := condition(claim, kind)) is not None]
    under_way = any(found.get("status") == "True" for found in moving)
    return capacity is not None and quantity(capacity) >= quantity(_asked(claim)) and not under_way


def _shows_last_growth(claim: JsonObject, spool: Spool) -> bool:
    """The file system is larger than it was when its claim last grew; one that never does would grow for ever."""
    before = annotations(claim).get(names.GROWN_FROM_ANNOTATION, "")
    return not before.isdigit() or spool.total_bytes > int(before)


def _grown(wanted: Wanted, growth: Growth) -> dict[str, Any]:
    kept = kept_claim(wanted.claims[growth.broker.index], growth.claim, moved=False)
    metadata = dict(kept["metadata"])
    if growth.broker.spool is not None:
        seen = {names.GROWN_FROM_ANNOTATION: str(growth.broker.spool.total_bytes)}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **seen}
    spec = {**kept["spec"], "resources": {"requests": {"storage": growth.size}}}
    return dict(exactly({**kept, "metadata": metadata, "spec": spec}, growth.claim))


def _bound(claim: JsonObject) -> bool:
    return bool((claim.get("status") or {}).get("phase") == "Bound")


def _asked(claim: JsonObject) -> str:
    return str(claim["spec"]["resources"]["requests"]["storage"])


def _free_percent(spool: Spool) -> int:
    return 100 * spool.free_bytes // spool.total_bytes


def _room(spool: Spool) -> str:
    share = f", {_free_percent(spool)} %" if spool.total_bytes else ""
    return f"{_shown(spool.free_bytes)} of {_shown(spool.total_bytes)}{share}"


def _shown(count: int) -> str:
    unit, factor = next(((unit, factor) for unit, factor in _UNITS if count >= factor), ("", 1))
    number = f"{count / factor:.1f}".removesuffix(".0")
    return f"{number} {unit}B" if unit else f"{number} bytes"


def _written(size: Decimal) -> str:
    """A quantity in the largest unit that keeps it exact."""
    count = int(size)
    return next((f"{count // factor}{unit}" for unit, factor in _UNITS if count % factor == 0), str(count))
