"""A small world that does what actions say, so that whole scale-downs and deletions run without a cluster.

It has what the planner relies on and no more: Deployments make pods, pods end after a while, keepers and report pods
tell what lies on volumes, PostgreSQL takes files in. What no action may ever do is checked where it would be done.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from queen_operator.api import names
from queen_operator.control.memory import Memory
from queen_operator.planning import actions
from queen_operator.planning.actions import Action
from queen_operator.planning.findings import find
from queen_operator.planning.observed import DatabaseState
from queen_operator.planning.plan import decide
from queen_operator.planning.reports import Verdict, read_report
from queen_operator.planning.status import make_status
from queen_operator.planning.views import LEAVING_ANNOTATION, annotations
from tests.unit.planning.scene import Scene, healthy_cluster, live_deployment, zulu
from tests.unit.planning.volumes_of_world import Volume
from tests.unit.planning.world_time import is_coming_up, pass_time

Json = dict[str, Any]


@dataclass
class World:
    """A cluster that lives. ``done`` is what the operator did, ``stopped`` the brokers that it stopped, in order."""

    scene: Scene
    volumes: dict[str, Volume] = field(default_factory=dict)  # by the UID of their claim
    memory: Memory = field(default_factory=lambda: Memory({}))
    done: list[Action] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)
    ours_away: set[int] = field(default_factory=set)  # stopped by us, and not back or gone yet
    silent_keepers: set[int] = field(default_factory=set)
    locked_out: bool = False  # brokers with another configuration than the wanted one cannot use PostgreSQL
    reports_start: bool = True  # False: no node takes a report pod
    without_deployment: set[int] = field(default_factory=set)  # their pods are told to end a moment later
    made: int = 0
    seconds: float = 1.0
    gone: bool = False  # the resource

    @property
    def database_up(self) -> bool:
        return self.scene.database is not None and self.scene.database.state is DatabaseState.REACHABLE

    def volume(self, index: int) -> Volume:
        return self.volumes[self.scene.claims[f"orders-spool-{index}"]["metadata"]["uid"]]

    def indexes(self) -> set[int]:
        """Brokers that have a Deployment."""
        return {int(name.rsplit("-", 1)[1]) for name in self.scene.deployments}

    def new_uid(self, what: str) -> str:
        self.made += 1
        return f"{what}-{self.made}"

    def lose_memory(self) -> None:
        """Another operator takes over: what was only remembered is gone until the brokers are asked again."""
        self.memory = Memory({})
        self.scene.spools, self.scene.pages = {}, {}

    def step(self) -> Action:
        """One round of the operator, then time passes."""
        observed = self.scene.observed(copied=False)
        action = decide(observed, self.scene.wanted)
        self.scene.status = make_status(find(observed, self.scene.wanted, action))
        self.done.append(action)
        carry_out(self, action)
        if not self.gone:
            pass_time(self, timedelta(seconds=self.seconds))
        return action

    def run(self, *, most: int = 200) -> int:
        """Let it live until nothing moves or is done any more, or the resource is gone; returns the rounds."""
        quiet = 0
        for number in range(most):
            self.step()
            quiet = quiet + 1 if self.still else 0
            if self.gone or quiet == 3:  # what changed last is seen by the next round, and told by the one after it
                return number + 1
        raise AssertionError(f"not at rest after {most} rounds: {self.done[-3:]} {self.scene.make_status()['message']}")

    @property
    def still(self) -> bool:
        """Nothing ends, starts or drains any more, and no wait is one that time alone ends."""
        last = self.done[-1]
        if not (isinstance(last, actions.Rest) or (isinstance(last, actions.Wait) and last.stalled)):
            return False
        if any("deletionTimestamp" in item["metadata"] for item in (*self.scene.pods, *self.scene.claims.values())):
            return False
        there = {name for name in self.scene.deployments if pods_of(self, int(name.rsplit("-", 1)[1]))}
        return there == set(self.scene.deployments) and not any(map(is_coming_up, self.scene.pods))

    def did(self, what: type, **fields: object) -> list[Any]:
        """Actions of this kind with these values, in order."""
        found = (action for action in self.done if isinstance(action, what))
        return [action for action in found if all(getattr(action, key) == value for key, value in fields.items())]


def living(**spec: Any) -> World:
    """A healthy cluster that lives, its volumes empty."""
    scene = healthy_cluster(**spec)
    world = World(scene)
    for claim in scene.claims.values():
        claim["spec"]["volumeName"] = f"volume-of-{claim['metadata']['uid']}"
        world.volumes[claim["metadata"]["uid"]] = Volume()
    pass_time(world, timedelta(0))
    return world


def carry_out(world: World, action: Action) -> None:
    """Do what the action says."""
    match action:
        case actions.ApplyChildren(manifests=manifests):
            for manifest in manifests:
                _apply(world, manifest)
        case actions.GenerateMeshSecret(name=name):
            world.scene.others["Secret", name] = {"metadata": {"name": name, "uid": world.new_uid("secret")}}
        case actions.DeleteChild():
            _delete(world, action)
        case actions.MakeReportPods(manifests=manifests):
            for manifest in manifests:
                _make_report_pod(world, manifest)
        case actions.AnnotateClaim(name=name, uid=uid, annotations=marks):
            claim = world.scene.claims[name]
            assert claim["metadata"]["uid"] == uid
            _merge(claim["metadata"].setdefault("annotations", {}), marks)
        case actions.SetFinalizer(present=present):
            world.scene.finalizers = [names.DRAIN_FINALIZER] if present else []
            world.gone = world.scene.deleting and not present
        case _:
            _act_on_a_broker(world, action)


def _act_on_a_broker(world: World, action: Action) -> None:
    match action:
        case actions.OpenToPushes(uid=uid):
            labels = {names.PUSH_LABEL: "true", names.SERVE_LABEL: "true"}
            _label(world, uid, labels, {LEAVING_ANNOTATION: None})
        case actions.CloseToPushes(uid=uid, leaving_since=since, cordon=cordon):
            out = {names.PUSH_LABEL: None} | ({names.SERVE_LABEL: None} if cordon else {})
            _label(world, uid, out, {LEAVING_ANNOTATION: since} if since else {})
        case actions.RestartBroker(index=index, manifest=manifest):
            _note_stop(world, index)
            _apply(world, manifest)
        case actions.ReplacePod(uid=uid, index=index):
            _note_stop(world, index)
            _end_pod(world, uid)
        case actions.SwitchMaintenance(pods=told):
            for name, _ in told:
                uid = next(pod["metadata"]["uid"] for pod in world.scene.pods if pod["metadata"]["name"] == name)
                world.memory.nudged[uid] = world.scene.now
        case actions.FreeFromBackoff(uid=uid):
            _end_pod(world, uid)


def _merge(target: Json, changes: Any) -> None:
    for key, value in changes.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def _label(world: World, uid: str, labels: Any, marks: Any) -> None:
    meta = next(pod["metadata"] for pod in world.scene.pods if pod["metadata"]["uid"] == uid)
    _merge(meta["labels"], labels)
    meta["annotations"] = dict(meta["annotations"])
    _merge(meta["annotations"], marks)


def _end_pod(world: World, uid: str) -> None:
    meta = next(pod["metadata"] for pod in world.scene.pods if pod["metadata"]["uid"] == uid)
    meta.setdefault("deletionTimestamp", zulu(world.scene.now))


def pods_of(world: World, index: int) -> list[Json]:
    """Pods of this broker, leaving ones too; never a report pod."""
    return [pod for pod in world.scene.pods if pod["metadata"]["labels"].get(names.BROKER_LABEL) == str(index)]


def _runs(world: World, index: int) -> bool:
    return any(pod["status"]["containerStatuses"][0]["started"] for pod in pods_of(world, index))


def _note_stop(world: World, index: int) -> None:
    """What may never be done: a broker stopped beside another one that we stopped, or in an outage."""
    if _runs(world, index):
        assert world.database_up, f"orders-{index} is stopped while PostgreSQL is away"
        assert world.ours_away <= {index}, f"orders-{index} is stopped while {world.ours_away} are away through us"
        world.ours_away.add(index)
    world.stopped.append(index)


def _apply(world: World, manifest: Any) -> None:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    if kind == "Deployment":
        _apply_deployment(world, manifest)
    elif kind == "PersistentVolumeClaim":
        _apply_claim(world, manifest)
    else:
        live = deepcopy(dict(manifest))
        live["metadata"].setdefault("uid", world.new_uid(kind))
        world.scene.others[kind, name] = live


def _apply_deployment(world: World, manifest: Any) -> None:
    name = manifest["metadata"]["name"]
    before = world.scene.deployments.get(name)
    generation = before["metadata"]["generation"] + 1 if before is not None else 1
    live = live_deployment(manifest, generation=generation)
    live["metadata"]["uid"] = before["metadata"]["uid"] if before is not None else world.new_uid(name)
    world.scene.deployments[name] = live
    if before is not None and before["spec"]["template"] != live["spec"]["template"]:
        for pod in pods_of(world, int(name.rsplit("-", 1)[1])):
            _end_pod(world, pod["metadata"]["uid"])


def _apply_claim(world: World, manifest: Any) -> None:
    name = manifest["metadata"]["name"]
    live = world.scene.claims.get(name)
    if live is not None:
        live["metadata"]["annotations"] |= annotations(manifest)
        live["metadata"]["labels"] |= manifest["metadata"]["labels"]
        live["spec"]["resources"] = deepcopy(manifest["spec"]["resources"])
        return
    made = deepcopy(dict(manifest))
    made["metadata"]["uid"] = world.new_uid("claim")
    made["status"] = {"phase": "Pending"}
    world.scene.claims[name] = made


def _delete(world: World, action: actions.DeleteChild) -> None:
    scene = world.scene
    if action.kind == "Pod":
        _end_pod(world, action.uid)
    elif action.kind == "Deployment":
        index = int(action.name.rsplit("-", 1)[1])
        assert scene.deployments[action.name]["metadata"]["uid"] == action.uid
        _note_stop(world, index)
        del scene.deployments[action.name]  # its pods end when the garbage collector has seen it
    elif action.kind == "PersistentVolumeClaim":
        _delete_claim(world, action)
    else:
        del scene.others[action.kind, action.name]


def _delete_claim(world: World, action: actions.DeleteChild) -> None:
    """The one thing that cannot be taken back."""
    claim, index = world.scene.claims[action.name], int(action.name.rsplit("-", 1)[1])
    uid = claim["metadata"]["uid"]
    assert uid == action.uid
    assert not pods_of(world, index), f"{action.name} is deleted while a pod of its broker is there"
    volume = world.volumes.get(uid)
    if volume is not None:
        report = read_report(world.scene.observed(), index)
        assert volume.empty, f"{action.name} is deleted and holds {volume}"
        assert report is not None
        assert (report.claim_uid, report.verdict) == (uid, Verdict.EMPTY)
    claim["metadata"].setdefault("deletionTimestamp", zulu(world.scene.now))


def _make_report_pod(world: World, manifest: Any) -> None:
    made = deepcopy(dict(manifest))
    assert not any(pod["metadata"]["name"] == made["metadata"]["name"] for pod in world.scene.pods)
    made["metadata"] |= {"uid": world.new_uid("report"), "creationTimestamp": zulu(world.scene.now)}
    made["status"] = {"phase": "Pending"}
    world.scene.pods.append(made)
