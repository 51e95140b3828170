"""What happens in the small world by itself: controllers, nodes, brokers, keepers and PostgreSQL."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from queen_operator.api import names
from queen_operator.planning.observed import BrokerPage
from queen_operator.planning.views import parse_time
from tests.unit.planning.scene import live_pod, set_condition, zulu
from tests.unit.planning.volumes_of_world import Volume, keeper_says, report_ended

if TYPE_CHECKING:
    from tests.unit.planning.world import World

Json = dict[str, Any]

PODS_END_AFTER = timedelta(seconds=2)
BOOT_TAKES = timedelta(seconds=2)
LOOK_TAKES = timedelta(seconds=1)
DRAINED_AT_A_TIME = 2


def pass_time(world: World, duration: timedelta) -> None:
    """Let time pass, in the order in which things depend on each other."""
    world.scene.now += duration
    _collect_garbage(world)
    _end_pods(world)
    _end_claims(world)
    _make_pods(world)
    _bind_claims(world)
    for pod in world.scene.pods:
        if names.PROOF_LABEL in pod["metadata"]["labels"]:
            _look(world, pod)
        elif "deletionTimestamp" not in pod["metadata"]:
            _live(world, pod)
    _ask(world)
    _note_who_is_back(world)


def _index(pod: Json) -> int:
    labels = pod["metadata"]["labels"]
    return int(labels.get(names.BROKER_LABEL) or labels[names.PROOF_LABEL])


def _collect_garbage(world: World) -> None:
    """A pod is told to end a moment after its Deployment is gone: a round may come in between."""
    brokers = [pod for pod in world.scene.pods if names.PROOF_LABEL not in pod["metadata"]["labels"]]
    orphans = [pod for pod in brokers if f"orders-{_index(pod)}" not in _deployments(world)]
    for pod in orphans:
        if _index(pod) in world.without_deployment:
            pod["metadata"].setdefault("deletionTimestamp", zulu(world.scene.now))
    world.without_deployment = {_index(pod) for pod in orphans}


def _deployments(world: World) -> set[str]:
    return set(world.scene.deployments)


def _end_pods(world: World) -> None:
    def ended(pod: Json) -> bool:
        at = parse_time(pod["metadata"].get("deletionTimestamp"))
        return at is not None and world.scene.now - at >= PODS_END_AFTER

    world.scene.pods = [pod for pod in world.scene.pods if not ended(pod)]


def _end_claims(world: World) -> None:
    """A claim stays while a pod that has not ended uses it."""
    using = {_index(pod) for pod in world.scene.pods if pod["status"].get("phase") not in ("Succeeded", "Failed")}
    for name, claim in list(world.scene.claims.items()):
        if "deletionTimestamp" in claim["metadata"] and int(name.rsplit("-", 1)[1]) not in using:
            del world.scene.claims[name]
            world.volumes.pop(claim["metadata"]["uid"], None)


def _bind_claims(world: World) -> None:
    """A volume is bound when a pod first uses the claim."""
    using = {f"orders-spool-{_index(pod)}" for pod in world.scene.pods}
    for name in using & set(world.scene.claims):
        claim = world.scene.claims[name]
        if claim["metadata"]["uid"] not in world.volumes:
            claim["spec"]["volumeName"] = f"volume-of-{claim['metadata']['uid']}"
            claim["status"] = {"phase": "Bound"}
            world.volumes[claim["metadata"]["uid"]] = Volume()


def _make_pods(world: World) -> None:
    """A Recreate Deployment makes its pod once the old one is gone."""
    there = {_index(pod) for pod in world.scene.pods if names.PROOF_LABEL not in pod["metadata"]["labels"]}
    for name, deployment in world.scene.deployments.items():
        index = int(name.rsplit("-", 1)[1])
        if index in there:
            continue
        pod = live_pod(deployment, index, uid=world.new_uid(f"pod-{index}"))
        pod["metadata"]["labels"].pop(names.PUSH_LABEL)
        pod["metadata"]["annotations"] = deepcopy(pod["metadata"]["annotations"])
        pod["metadata"]["creationTimestamp"] = zulu(world.scene.now)
        set_condition(pod["status"], "Ready", "False", world.scene.now)
        for key in ("initContainerStatuses", "containerStatuses"):
            waiting = {"waiting": {"reason": "ContainerCreating"}}
            pod["status"][key][0] |= {"state": waiting, "started": False, "ready": False}
        world.scene.pods.append(pod)


def _look(world: World, pod: Json) -> None:
    """A report pod looks once; beside somebody else at the directory it knows nothing."""
    created = parse_time(pod["metadata"]["creationTimestamp"])
    claim = world.scene.claims.get(f"orders-spool-{_index(pod)}")
    assert created is not None
    if not world.reports_start:
        refusal = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
        pod["status"] = {"phase": "Pending", "conditions": [refusal]}
    elif world.scene.now - created >= LOOK_TAKES and pod["status"]["phase"] == "Pending" and claim is not None:
        alone = not any(_index(p) == _index(pod) for p in world.scene.pods if p is not pod)
        state = report_ended(world.volumes[claim["metadata"]["uid"]], lock_is_free=alone)
        phase = "Succeeded" if state["terminated"]["exitCode"] == 0 else "Failed"
        pod["status"] = {"phase": phase, "containerStatuses": [{"name": "report", "state": state}]}


def _live(world: World, pod: Json) -> None:
    """A broker boots, replays, drains, and is Ready while it can use PostgreSQL."""
    status, volume = pod["status"], world.volumes[_claim_uid(world, pod)]
    keeper, broker = status["initContainerStatuses"][0], status["containerStatuses"][0]
    created = parse_time(pod["metadata"]["creationTimestamp"])
    assert created is not None
    running = {"running": {"startedAt": zulu(world.scene.now)}}
    if "running" not in keeper["state"]:
        keeper |= {"state": running, "started": True, "ready": True}
        return
    reaches = world.database_up and not (world.locked_out and _is_old(world, pod))
    if not broker["started"]:
        if not reaches:
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": ""}}
            last = {"terminated": {"exitCode": 1, "message": "FATAL: schema apply failed: db error"}}
            broker |= {"state": waiting, "lastState": last}
        elif "running" not in broker["state"]:
            broker |= {"state": running}
        elif volume.files:
            volume.drain(DRAINED_AT_A_TIME)
        elif world.scene.now - created >= BOOT_TAKES:
            broker |= {"started": True}
    if broker["started"]:
        if reaches:
            volume.drain(DRAINED_AT_A_TIME)
        _set_ready(pod, reaches, world.scene.now)


def is_coming_up(pod: Json) -> bool:
    """Its broker's container is made or boots, and has not crashed."""
    broker = pod["status"].get("containerStatuses", [{}])[0]
    waits = (broker.get("state") or {}).get("waiting") or {}
    return "started" in broker and not broker["started"] and waits.get("reason") in (None, "ContainerCreating")


def _set_ready(pod: Json, ready: bool, now: datetime) -> None:
    status = pod["status"]
    status["containerStatuses"][0]["ready"] = ready
    before = next(item for item in status["conditions"] if item["type"] == "Ready")
    if (before["status"] == "True") != ready:
        set_condition(status, "Ready", "True" if ready else "False", now)


def _is_old(world: World, pod: Json) -> bool:
    wanted: Any = world.scene.wanted.deployments[0]["spec"]["template"]["metadata"]["annotations"]
    return bool(pod["metadata"]["annotations"][names.CONFIG_ANNOTATION] != wanted[names.CONFIG_ANNOTATION])


def _claim_uid(world: World, pod: Json) -> str:
    return str(world.scene.claims[f"orders-spool-{_index(pod)}"]["metadata"]["uid"])


def _ask(world: World) -> None:
    """The operator asks keepers, brokers and PostgreSQL; a keeper that is silent leaves its last answer to grow old."""
    scene, now = world.scene, world.scene.now
    asked = [pod for pod in scene.pods if names.PROOF_LABEL not in pod["metadata"]["labels"]]
    world.memory.forget_pods({pod["metadata"]["uid"] for pod in asked})
    for pod in asked:
        uid = pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"]:
            continue
        if "running" in pod["status"]["initContainerStatuses"][0]["state"] and _index(pod) not in world.silent_keepers:
            world.memory.take_spool(uid, keeper_says(world.volumes[_claim_uid(world, pod)], now))
        broker = pod["status"]["containerStatuses"][0]
        if broker["started"]:
            reaches = bool(broker["ready"])
            world.memory.pages[uid] = BrokerPage(now, True, True, False, 0, 0, reaches, reaches)
    scene.spools, scene.pages = world.memory.fresh_spools(now), world.memory.fresh_pages(now)
    scene.more = {
        **scene.more, "replays": dict(world.memory.replays), "nudged": world.memory.lately_nudged(now)
    }  # fmt: skip
    if scene.database is not None:
        scene.database = replace(scene.database, asked_at=now)


def _note_who_is_back(world: World) -> None:
    """A broker that stays is back when it is Ready; one that is taken away, when its pod is gone."""
    staying = 0 if world.scene.deleting else world.scene.wanted.replicas
    for index in set(world.ours_away):
        mine = [pod for pod in world.scene.pods if _is_of(pod, index)]
        ends = any("deletionTimestamp" in pod["metadata"] for pod in mine)
        ready = any(pod["status"]["containerStatuses"][0]["ready"] for pod in mine)
        back = not ends and (ready or (index >= staying and f"orders-{index}" in _deployments(world)))
        gone = not mine and f"orders-{index}" not in _deployments(world)
        ends |= index in world.without_deployment
        if back or (gone and index >= staying):
            world.ours_away.discard(index)


def _is_of(pod: Json, index: int) -> bool:
    return pod["metadata"]["labels"].get(names.BROKER_LABEL) == str(index)
