"""Every state of a small world: no decision breaks an invariant, and no state is without a way out or a sentence."""

import os
from dataclasses import dataclass
from itertools import islice, product
from typing import Final

import pytest

from queen_operator.planning.actions import Action, AnnotateClaim, CloseToPushes, DeleteChild, Rest, RestartBroker, Wait
from queen_operator.planning.observed import DatabaseState
from tests.unit.planning.scene import NOW, Scene, healthy_cluster

PODS: Final = ("ready", "not ready", "starting", "crashing", "leaving", "none")
SPOOLS: Final = ("empty", "files", "unknown")
DATABASES: Final = (DatabaseState.REACHABLE, DatabaseState.REFUSED, DatabaseState.UNKNOWN)
MODES: Final = ("ordinary", "paused", "deleting", "fewer")


@dataclass(frozen=True)
class State:
    """One broker: its pod, its spool, and whether its template is what is wanted."""

    pod: str
    spool: str
    late: bool

    @property
    def serves(self) -> bool:
        return self.pod == "ready"

    @property
    def running(self) -> bool:
        return self.pod in ("ready", "not ready")


# The whole walk takes minutes; what a commit runs is every so-manieth state of it, in a fixed order.
STRIDE: Final = 1 if os.environ.get("WALK") == "full" else 17
BROKERS: Final = tuple(State(*parts) for parts in product(PODS, SPOOLS, (False, True)))
# All pairs of brokers are walked; a third one stands for the rest of the cluster.
THIRD: Final = (State("ready", "empty", False), State("ready", "files", False), State("not ready", "empty", True))


def arrange(states: tuple[State, ...], database: DatabaseState, mode: str) -> Scene:
    scene = healthy_cluster(replicas=len(states))
    scene.change_spec(broker={"logLevel": "debug"})
    for index, state in enumerate(states):
        if not state.late:
            scene.roll_on(index)
        _set_spool(scene, index, state.spool)
        _set_pod(scene, index, state.pod)
    scene.database_is(database)
    if mode == "paused":
        scene.change_spec(paused=True)
    scene.deleting = mode == "deleting"
    if mode == "fewer" and len(states) > 1:
        scene.change_spec(replicas=len(states) - 1)
    return scene


def _set_spool(scene: Scene, index: int, spool: str) -> None:
    if spool == "files":
        scene.spool(index, files=2, bytes=20, oldest_age_seconds=3.0)
    elif spool == "unknown":
        scene.forget_spool(index)


def _set_pod(scene: Scene, index: int, pod: str) -> None:
    match pod:
        case "not ready":
            scene.not_ready(index)
        case "starting":
            scene.unstarted(index)
        case "crashing":
            scene.crash(index)
        case "leaving":
            scene.leave(index)
            scene.pod(index)["metadata"]["labels"].pop("queen-operator.dev/push")
        case "none":
            name = scene.pod(index)["metadata"]["name"]
            scene.pods = [item for item in scene.pods if item["metadata"]["name"] != name]


def stopped(scene: Scene) -> int | None:
    """The broker that this round stops, or begins to stop."""
    action = scene.action()
    if isinstance(action, RestartBroker):
        return action.index
    if isinstance(action, AnnotateClaim | DeleteChild) and action.name.startswith("orders"):
        return int(action.name.rsplit("-", 1)[1])
    if isinstance(action, CloseToPushes) and action.leaving_since is not None:
        return int(action.pod.split("-")[1])
    return None


def check(states: tuple[State, ...], database: DatabaseState, mode: str) -> None:
    scene = arrange(states, database, mode)
    index = stopped(scene)
    if index is None:
        _check_that_it_is_said(scene, states, mode)
        return
    if mode == "fewer" and index == len(states) - 1 and len(states) > 1:
        _check_removal(scene.action(), states, database)
        return
    mine, others = states[index], [state for i, state in enumerate(states) if i != index]

    assert mode in ("ordinary", "fewer"), "nothing is stopped while paused or deleting"
    assert mine.late, "only a broker that is out of date is restarted"
    assert database is not DatabaseState.REFUSED, "I5: no restart in an outage"
    if mine.running:
        surplus = others.pop() if mode == "fewer" and len(states) > 1 else None
        if surplus is not None:
            assert surplus.pod != "leaving", "one that is taken away and still ends counts as away"
            assert not surplus.running or surplus.spool == "empty", "what still drains is waited for"
        assert all(other.serves for other in others), "I1: never a second broker away"
        assert all(other.spool == "empty" for other in others), "I4 and I9: no other one holds a spool, or may"
        assert mine.spool == "empty", "its own spool drains first"


def _check_removal(action: Action, states: tuple[State, ...], database: DatabaseState) -> None:
    """The last one is surplus, and this round takes it out of the Services or begins to take it away for good."""
    mine, others = states[-1], states[:-1]
    assert database is not DatabaseState.REFUSED, "I5: no broker is taken away in an outage"
    assert all(other.pod != "leaving" for other in others), "never a second broker away"
    if mine.running:
        assert all(other.serves for other in others), "I1: the others carry the cluster alone"
        assert all(other.spool == "empty" for other in others), "I4 and I9: no other one holds a spool, or may"
    elif isinstance(action, RestartBroker):
        assert mine.late, "only what the user wrote since may cure it"
    else:
        assert mine.spool != "files", "one that cannot run and holds messages stays"
        assert mine.pod in ("crashing", "starting", "none")


def _check_that_it_is_said(scene: Scene, states: tuple[State, ...], mode: str) -> None:
    """Whatever is not as written is in the status, with a sentence; nothing that waits is called Ready."""
    if mode == "deleting":
        return
    status = scene.make_status()
    ready = next(item for item in status["conditions"] if item["type"] == "Ready")
    assert scene.database is not None
    away = scene.database.state is DatabaseState.REFUSED
    fewer = mode == "fewer" and len(states) > 1
    wrong = away or fewer or any(state.late or not state.serves for state in states)

    assert (ready["status"] == "False") == wrong
    assert ready["message"]
    action = scene.action()
    if isinstance(action, Wait):
        assert action.message
        assert 0 < action.again_seconds <= 60
    else:
        assert isinstance(action, Rest) or mode in ("ordinary", "fewer")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("database", DATABASES)
def test_one_broker_in_every_state_breaks_no_invariant(database: DatabaseState, mode: str) -> None:
    for state in BROKERS:
        check((state,), database, mode)


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("first", PODS)
def test_two_brokers_in_every_pair_of_states_break_no_invariant(first: str, database: DatabaseState) -> None:
    for one, other in islice(product((state for state in BROKERS if state.pod == first), BROKERS), None, None, STRIDE):
        check((one, other), database, "ordinary")


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("first", PODS)
def test_a_member_and_a_surplus_broker_in_every_pair_of_states(first: str, database: DatabaseState) -> None:
    for one, other in islice(product((state for state in BROKERS if state.pod == first), BROKERS), None, None, STRIDE):
        check((one, other), database, "fewer")


@pytest.mark.parametrize("third", THIRD)
@pytest.mark.parametrize("first", PODS)
def test_three_brokers_break_no_invariant(first: str, third: State) -> None:
    # Spools of the second one do not matter where the first one's do: half of the pairs tell all.
    pairs = product((s for s in BROKERS if s.pod == first), (s for s in BROKERS if s.spool != "unknown"))
    for one, other in islice(pairs, None, None, STRIDE):
        check((one, other, third), DatabaseState.REACHABLE, "ordinary")
        check((one, third, other), DatabaseState.REACHABLE, "fewer")


def test_time_in_this_world_stands_still() -> None:
    assert arrange((BROKERS[0],), DatabaseState.REACHABLE, "ordinary").now == NOW
