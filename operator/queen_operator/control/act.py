"""Carries out the one action of a round and tells about it in an Event and a log line."""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, assert_never

from queen_operator.api import names
from queen_operator.api.cluster import ParsedCluster
from queen_operator.broker.polls import Polls
from queen_operator.cluster.cache import version_of
from queen_operator.cluster.client import Api, Conflict, NotFound, Refused
from queen_operator.cluster.events import Events
from queen_operator.cluster.kinds import BY_NAME, POD, SECRET
from queen_operator.cluster.store import Store
from queen_operator.cluster.writes import ForeignObject, apply_child, patch_pod, whose
from queen_operator.control import secrets as cluster_secrets
from queen_operator.control.act_on_claims import annotate_claim, delete_child, make_report_pods, set_finalizer
from queen_operator.control.memory import Memory, Refusal
from queen_operator.manifests.render import mesh_secret
from queen_operator.planning.actions import (
    Action,
    AnnotateClaim,
    ApplyChildren,
    CloseToPushes,
    DeleteChild,
    FreeFromBackoff,
    GenerateMeshSecret,
    MakeReportPods,
    OpenToPushes,
    ReplacePod,
    Rest,
    RestartBroker,
    SetFinalizer,
    SwitchMaintenance,
    Wait,
)
from queen_operator.planning.reasons import EventReason
from queen_operator.planning.views import LEAVING_ANNOTATION
from queen_operator.planning.wanted import Wanted

logger = logging.getLogger(__name__)

UNCHANGED_AGAIN_AFTER: Final = timedelta(minutes=5)
FOREIGN_AGAIN_AFTER: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Hands:
    """What an action is carried out with."""

    api: Api
    store: Store
    events: Events
    polls: Polls


async def act(
    hands: Hands, memory: Memory, cluster: ParsedCluster, wanted: Wanted, action: Action, now: datetime
) -> bool:
    """Carry out the action; False when nothing came of it, so that the next look can wait a moment.

    Raises ApiError (Unavailable) when the server does not answer; what it refuses is remembered with its words.
    """
    match action:
        case ApplyChildren() | GenerateMeshSecret() | DeleteChild():
            return await _act_on_children(hands, memory, cluster, wanted, action, now)
        case OpenToPushes() | CloseToPushes() | SwitchMaintenance() | FreeFromBackoff() | ReplacePod():
            return await act_on_pods(hands, memory, cluster, action, now)
        case RestartBroker(manifest=manifest, message=message):
            done = await _apply_one(hands, memory, cluster, manifest, now)
            if done:
                await _tell(hands, memory, EventReason.BROKER_RESTARTED, message)
            return done
        case MakeReportPods() | AnnotateClaim() | SetFinalizer():
            return await _act_on_claims(hands, memory, cluster, action, now)
        case Wait() | Rest():
            return False
        case _:
            assert_never(action)


async def _act_on_children(
    hands: Hands,
    memory: Memory,
    cluster: ParsedCluster,
    wanted: Wanted,
    action: ApplyChildren | GenerateMeshSecret | DeleteChild,
    now: datetime,
) -> bool:
    match action:
        case ApplyChildren(manifests=manifests, event=event, message=message):
            undone = await _apply_all(hands, memory, cluster, manifests, now)
            if len(undone) == len(manifests):
                return False
            words = f"{message} Not done: {', '.join(undone)}." if undone else message
            await _tell(hands, memory, event, words, warning=event is EventReason.CLAIM_LOST)
            return True
        case GenerateMeshSecret():
            return await _generate_mesh_secret(hands, memory, cluster, wanted, now)
        case DeleteChild(event=event, message=message):
            if await delete_child(hands.api, memory, cluster, action, now) and event is not None:
                await _tell(hands, memory, event, message)
            return False  # the watch brings its end


async def _act_on_claims(
    hands: Hands,
    memory: Memory,
    cluster: ParsedCluster,
    action: MakeReportPods | AnnotateClaim | SetFinalizer,
    now: datetime,
) -> bool:
    match action:
        case MakeReportPods():
            return await make_report_pods(hands.api, hands.store, memory, cluster, action, now)
        case AnnotateClaim(event=event, message=message):
            done = await annotate_claim(hands.api, hands.store, memory, cluster, action, now)
            if done and event is not None:
                await _tell(hands, memory, event, message)
            return done
        case SetFinalizer():
            return await set_finalizer(hands.api, memory, cluster, action, now)


async def act_on_pods(
    hands: Hands,
    memory: Memory,
    cluster: ParsedCluster,
    action: OpenToPushes | CloseToPushes | SwitchMaintenance | FreeFromBackoff | ReplacePod,
    now: datetime,
) -> bool:
    """Carry out an action on running pods; as ``act``, which also the first step of a round needs, before its plan."""
    match action:
        case OpenToPushes(pod=pod, uid=uid):
            into = {names.PUSH_LABEL: "true", names.SERVE_LABEL: "true"}
            opening = {"labels": into, "annotations": {LEAVING_ANNOTATION: None}}
            return await _patch_pod(hands, memory, cluster, pod, uid, opening, now)
        case CloseToPushes(pod=pod, uid=uid, leaving_since=since, cordon=cordon):
            out = {names.PUSH_LABEL: None} | ({names.SERVE_LABEL: None} if cordon else {})
            closing = {"labels": out, "annotations": {LEAVING_ANNOTATION: since} if since else {}}
            return await _patch_pod(hands, memory, cluster, pod, uid, closing, now)
        case SwitchMaintenance():
            return await _switch_maintenance(hands, memory, cluster, action, now)
        case ReplacePod(pod=pod, uid=uid, message=message):
            if await _delete_pod(hands, memory, cluster, pod, uid, now):
                await _tell(hands, memory, EventReason.BROKER_RESTARTED, message)
            return False  # the watch brings its end
        case FreeFromBackoff(pod=pod, uid=uid, message=message):
            seen = hands.store.find(POD, cluster.namespace, pod)
            version = seen["metadata"]["resourceVersion"] if seen is not None else None
            try:
                await hands.api.delete(POD, cluster.namespace, pod, uid, version=version)
            except Conflict:
                return False  # kubelet was faster: the container runs again, and nothing is told
            await _tell(hands, memory, EventReason.BROKER_FREED, message)
            return False  # the watch brings its end


async def _switch_maintenance(
    hands: Hands, memory: Memory, cluster: ParsedCluster, action: SwitchMaintenance, now: datetime
) -> bool:
    """Tell every pod at once; an answer is not waited for, since on a frozen database it comes at the thaw."""
    await _tell(hands, memory, action.event, action.message, warning=action.enabled)
    token = cluster_secrets.admin_token(memory, cluster.spec)
    async with asyncio.TaskGroup() as group:
        for name, ip in action.pods:
            group.create_task(hands.polls.set_maintenance(ip, action.enabled, token))
            pod = hands.store.find(POD, cluster.namespace, name)
            if pod is not None:
                memory.nudged[pod["metadata"]["uid"]] = now
    return False


async def _tell(hands: Hands, memory: Memory, reason: EventReason, message: str, *, warning: bool = False) -> None:
    meta = memory.resource["metadata"]
    logger.info("%s/%s: %s: %s", meta["namespace"], meta["name"], reason, message)
    await hands.events.tell(memory.resource, reason, message, warning=warning)


async def _apply_all(
    hands: Hands, memory: Memory, cluster: ParsedCluster, manifests: tuple[Mapping[str, Any], ...], now: datetime
) -> list[str]:
    """Apply side by side, Deployments last: a pod finds its claim, its account and its Services.

    Returns what could not be applied.
    """
    tasks: list[tuple[str, asyncio.Task[bool]]] = []
    for wave in (False, True):
        members = [manifest for manifest in manifests if (manifest["kind"] == "Deployment") is wave]
        async with asyncio.TaskGroup() as group:
            for manifest in members:
                name = f"{manifest['kind']} {manifest['metadata']['name']}"
                tasks.append((name, group.create_task(_apply_one(hands, memory, cluster, manifest, now))))
    return [name for name, task in tasks if not task.result()]


async def _apply_one(
    hands: Hands, memory: Memory, cluster: ParsedCluster, manifest: Mapping[str, Any], now: datetime
) -> bool:
    """Apply one child; what stands in the way is remembered with its words, and does not stop the others."""
    key = (manifest["kind"], manifest["metadata"]["name"])
    before = hands.store.find(BY_NAME[key[0]], cluster.namespace, key[1])
    seen = version_of(before) if before is not None else None
    try:
        answer = await apply_child(hands.api, hands.store, manifest, cluster.uid)
    except ForeignObject as finding:
        memory.foreign[key] = Refusal(finding.owner, now + FOREIGN_AGAIN_AFTER)
        return False
    except Refused as error:
        logger.warning("%s/%s: %s %s is refused: %s", cluster.namespace, cluster.name, *key, error.message)
        memory.refuse(key, error.message, now)
        return False
    except Conflict:
        return False  # it changed or went between our look and our write: the next round sees what it is now
    memory.refused.pop(key, None)
    memory.foreign.pop(key, None)
    if seen is not None and version_of(answer) == seen:
        # The server took the apply and changed nothing: without this note the same apply would be sent for ever.
        words = "it differs from what is wanted, and an apply does not change it"
        memory.refused[key] = Refusal(words, now + UNCHANGED_AGAIN_AFTER)
        return False
    return True


async def _generate_mesh_secret(
    hands: Hands, memory: Memory, cluster: ParsedCluster, wanted: Wanted, now: datetime
) -> bool:
    name = names.mesh_secret_name(cluster.name)
    try:
        # One that exists is never overwritten: brokers with different mesh secrets do not hear each other.
        existing = await hands.api.get(SECRET, cluster.namespace, name, metadata_only=True)
    except NotFound:
        manifest = mesh_secret(wanted.context, secrets.token_hex(32))
        done = await _apply_one(hands, memory, cluster, manifest, now)
        if done:
            hands.store.mark_stale(cluster.namespace, cluster.name, [name])
        return done
    if (existing["metadata"].get("labels") or {}).get(names.CLUSTER_LABEL) == cluster.name:
        hands.store.put(SECRET, existing)
        return True
    if whose(SECRET, existing, cluster.name, cluster.uid) is None:
        # Ours, and only its label was taken off: the value stays, since brokers run with it.
        meta = {"uid": existing["metadata"]["uid"], "labels": names.cluster_labels(cluster.name)}
        hands.store.put(SECRET, await hands.api.merge(SECRET, cluster.namespace, name, {"metadata": meta}))
        return True
    words = "it is not labeled as this cluster's; name it in spec.mesh.secret to use it"
    memory.foreign["Secret", name] = Refusal(words, now + FOREIGN_AGAIN_AFTER)
    return False


async def _delete_pod(hands: Hands, memory: Memory, cluster: ParsedCluster, name: str, uid: str, now: datetime) -> bool:
    try:
        await hands.api.delete(POD, cluster.namespace, name, uid)
    except Conflict:
        return False  # another pod has this name now
    except Refused as error:
        logger.warning("%s/%s: pod %s cannot be deleted: %s", cluster.namespace, cluster.name, name, error.message)
        memory.refuse(("Pod", name), error.message, now)
        return False
    return True


async def _patch_pod(
    hands: Hands, memory: Memory, cluster: ParsedCluster, name: str, uid: str, meta: Mapping[str, Any], now: datetime
) -> bool:
    try:
        return await patch_pod(hands.api, hands.store, cluster.namespace, name, uid, meta)
    except Conflict:
        return False  # another pod has this name now
    except Refused as error:
        logger.warning("%s/%s: pod %s cannot be labeled: %s", cluster.namespace, cluster.name, name, error.message)
        memory.refuse(("Pod", name), error.message, now)
        return False
