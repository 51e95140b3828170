"""One worker per cluster: rounds of observe, plan, act, status; woken by changes, never two rounds at once."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from queen_operator.api import names
from queen_operator.api.cluster import InvalidSpec, ParsedCluster, parse
from queen_operator.cluster.cache import version_of
from queen_operator.cluster.client import ApiError, Conflict, NotFound, Refused
from queen_operator.cluster.kinds import POD
from queen_operator.control import metrics
from queen_operator.control.act import Hands, act, act_on_pods
from queen_operator.control.memory import Memory
from queen_operator.control.observe import observe, wanted_children
from queen_operator.control.poller import Poller
from queen_operator.planning.actions import Rest, Wait
from queen_operator.planning.findings import find
from queen_operator.planning.plan import decide, pods_to_close
from queen_operator.planning.reasons import EventReason, Reason
from queen_operator.planning.status import blocked_status, make_status, same_status

logger = logging.getLogger(__name__)

LONGEST_BACKOFF_SECONDS: Final = 30.0
# Every round is level-triggered; this bounds what a lost event can cost.
LONGEST_SLEEP_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 1.0


OnGone = Callable[[str, str, str], None]  # namespace, name, UID


@dataclass(frozen=True, slots=True)
class Tools:
    """What all workers share."""

    hands: Hands
    keeper_image: str
    slots: asyncio.Semaphore  # bounds the rounds that run at once


class Worker:
    """Reconciles one QueenCluster until it is stopped."""

    def __init__(self, tools: Tools, resource: dict[str, Any], *, on_gone: OnGone) -> None:
        self._tools = tools
        self._on_gone = on_gone
        self.memory = Memory(resource)
        self._poller = Poller(tools.hands.polls, tools.hands.store, self.memory)
        self._wake = asyncio.Event()
        self._wake.set()
        self._poller.kick()
        self._backoff_seconds = 1.0
        self.finished_at = asyncio.get_running_loop().time()

    def take(self, resource: dict[str, Any]) -> None:
        """Take the latest resource and look at it soon; an event from before our own write brings nothing new."""
        known = self.memory.resource
        if known["metadata"]["uid"] == resource["metadata"]["uid"] and version_of(resource) < version_of(known):
            return
        self.memory.resource = resource
        self._wake.set()

    def wake(self) -> None:
        """Look soon: something of this cluster changed."""
        self._wake.set()
        self._poller.kick()

    async def run(self) -> None:
        """Run rounds and polls side by side until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._rounds())
            group.create_task(self._polls())

    async def _rounds(self) -> None:
        while True:
            self._wake.clear()
            pause = await self._guarded_round()
            self.finished_at = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _polls(self) -> None:
        while True:
            await self._poller.wait()
            try:
                cluster = parse(self.memory.resource)
                news = await self._poller.look(cluster)
            except InvalidSpec:
                continue
            except Exception:
                logger.exception("asking the brokers failed")
                await asyncio.sleep(self._backoff_seconds)
                news = True
            if news:
                self._wake.set()

    async def _guarded_round(self) -> float:
        """One round; whatever goes wrong in it stays in this cluster. Returns the seconds until the next one."""
        meta = self.memory.resource["metadata"]
        try:
            async with self._tools.slots:
                with metrics.round_timer():
                    pause = await self._round()
        except ApiError as error:
            metrics.ROUNDS.labels("error").inc()
            logger.warning("%s/%s: the round ended early: %s", meta["namespace"], meta["name"], error.message)
            return self._back_off()
        except Exception as fault:
            metrics.ROUNDS.labels("error").inc()
            if isinstance(fault, ExceptionGroup) and fault.split(ApiError)[1] is None:
                # Children are applied side by side; the first trouble tells as much as all of them.
                first = fault.exceptions[0]
                logger.warning("%s/%s: the round ended early: %s", meta["namespace"], meta["name"], first)
                return self._back_off()
            logger.exception("%s/%s: the round failed", meta["namespace"], meta["name"])
            await self._report_fault()
            return self._back_off()
        metrics.ROUNDS.labels("success").inc()
        self._backoff_seconds = 1.0
        return pause

    async def _report_fault(self) -> None:
        message = "The operator failed at this cluster and tries again; its log has the details."
        try:
            await self._write(blocked_status(self.memory.resource, datetime.now(UTC), Reason.INTERNAL_ERROR, message))
        except ApiError:
            logger.debug("the fault could not be written into the status")

    def _back_off(self) -> float:
        seconds = self._backoff_seconds
        self._backoff_seconds = min(seconds * 2, LONGEST_BACKOFF_SECONDS)
        return seconds

    async def _round(self) -> float:
        now = datetime.now(UTC)
        try:
            cluster = parse(self.memory.resource)
        except InvalidSpec as error:
            await self._write(blocked_status(self.memory.resource, now, Reason.INVALID_SPEC, str(error)))
            return LONGEST_SLEEP_SECONDS
        if cluster.deleting and names.DRAIN_FINALIZER not in (self.memory.resource["metadata"].get("finalizers") or ()):
            return LONGEST_SLEEP_SECONDS
        return await self._step(cluster, now)

    async def _step(self, cluster: ParsedCluster, now: datetime) -> float:
        tools = self._tools
        await self._close_leaving_pods(cluster, now)
        try:
            observed = await observe(tools.hands.api, tools.hands.store, self.memory, cluster, now)
        except Refused as error:
            # A Secret that may not be read: nothing can be decided, and that must be said and not only logged.
            message = f"The operator may not read what the spec names: {error.message}"
            await self._write(blocked_status(self.memory.resource, now, Reason.SECRET_MISSING, message))
            return LONGEST_BACKOFF_SECONDS
        wanted = wanted_children(self.memory, cluster, observed.references, tools.keeper_image)
        action = decide(observed, wanted)
        status = make_status(find(observed, wanted, action))
        draining = any(not spool.empty for spool in observed.spools.values())
        moves = draining or status["phase"] != "Ready" or not isinstance(action, Rest)
        self.memory.busy = moves and not cluster.spec.paused
        # The status first: who reads it knows what is about to be done, and why, before it is done.
        if not await self._write(status):
            return AGAIN_SECONDS
        acted = await act(tools.hands, self.memory, cluster, wanted, action, now)
        match action:
            case Rest():
                return LONGEST_SLEEP_SECONDS
            case Wait(again_seconds=seconds):
                return seconds
            case _:
                return 0.0 if acted else AGAIN_SECONDS

    async def _close_leaving_pods(self, cluster: ParsedCluster, now: datetime) -> None:
        """A terminating pod gets pushes until its label is off, and it has five seconds: before Secrets and status."""
        if cluster.spec.paused:
            return
        hands = self._tools.hands
        refused = self.memory.standing(self.memory.refused, now)
        for action in pods_to_close(hands.store.of_cluster(POD, cluster.namespace, cluster.name).values()):
            if ("Pod", action.pod) not in refused:
                await act_on_pods(hands, self.memory, cluster, action, now)

    async def _write(self, status: dict[str, Any]) -> bool:
        """Write what differs; False when the resource is not any more what this round looked at."""
        resource = self.memory.resource
        before = resource.get("status") or {}
        if same_status(before, status):
            return True
        meta = resource["metadata"]
        try:
            answer = await self._tools.hands.api.write_status(
                meta["namespace"], meta["name"], {**resource, "status": status}
            )
        except NotFound:
            # Deleted, and the watch may have missed it: a worker without a resource would ask its brokers for ever.
            self._on_gone(meta["namespace"], meta["name"], meta["uid"])
            return False
        except Conflict:
            # The user changed it meanwhile; kopf brings that and wakes us. To act now would be to restart a broker
            # for a spec that is past.
            return False
        except Refused as error:
            # An older CRD or a missing right: what protects messages goes on without its words.
            logger.warning("%s/%s: the status is refused: %s", meta["namespace"], meta["name"], error.message)
            return True
        answer["metadata"].pop("managedFields", None)
        if self.memory.resource is resource:
            self.memory.resource = answer
        await self._tell_transitions(before, status)
        return True

    async def _tell_transitions(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """An Event when a dead end or the database's state begins or ends."""
        events = self._tools.hands.events
        was, now = (before.get("database") or {}).get("state"), (after.get("database") or {}).get("state")
        if was != now and was is not None and now is not None:
            message = (after.get("database") or {}).get("message") or "PostgreSQL answers."
            text = f"PostgreSQL: {was} before, {now} now. {message}"
            await events.tell(self.memory.resource, EventReason.DATABASE, text, warning=now != "Reachable")
        spools, were = _condition(after, "SpoolEmpty") or {}, _condition(before, "SpoolEmpty") or {}
        if spools.get("reason") == Reason.QUARANTINED and were.get("reason") != Reason.QUARANTINED:
            await events.tell(self.memory.resource, EventReason.QUARANTINED, spools["message"], warning=True)
        stalled = _condition(after, "Stalled")
        if stalled is not None and _condition(before, "Stalled") is None:
            await events.tell(self.memory.resource, EventReason.STALLED, stalled["message"], warning=True)


def _condition(status: dict[str, Any], kind: str) -> dict[str, Any] | None:
    return next((item for item in status.get("conditions") or () if item["type"] == kind), None)
