"""Users, outages and operators at random: no message is ever deleted, and all is well once everything is back.

The world itself fails a walk that deletes a claim with messages, stops a broker in an outage, or stops a second one.
"""

import random
from collections.abc import Callable
from typing import Any, Final

import pytest

from queen_operator.api import names
from queen_operator.planning.observed import DatabaseState
from tests.unit.planning.volumes_of_world import Volume
from tests.unit.planning.world import World, living, pods_of

SEEDS: Final = range(8)
STEPS: Final = 60
ACTS_AT_A_STEP: Final = 0.25  # how likely a user or the world does something

Deed = Callable[[World, random.Random], None]


def scale(world: World, dice: random.Random) -> None:
    world.scene.change_spec(replicas=dice.randint(1, 4))


def change_policy(world: World, dice: random.Random) -> None:
    world.scene.change_spec(spool={"onScaleDown": dice.choice(["Delete", "Retain"])})


def change_version(world: World, dice: random.Random) -> None:
    world.scene.change_spec(version=dice.choice(["1.3.0", "1.3.1"]))


def end_or_begin_outage(world: World, dice: random.Random) -> None:
    world.scene.database_is(DatabaseState.REFUSED if world.database_up else DatabaseState.REACHABLE)


def silence_a_keeper(world: World, dice: random.Random) -> None:
    world.silent_keepers = {dice.randrange(4)} - world.silent_keepers


def replace_the_operator(world: World, dice: random.Random) -> None:
    world.lose_memory()


def push(world: World, dice: random.Random) -> None:
    """A push is spooled where a client reaches a broker that cannot store it, now and then in its last moment."""
    for pod in world.scene.pods:
        if pod["metadata"]["labels"].get(names.PUSH_LABEL) == "true" and dice.random() < 0.5:
            _volume_of(world, pod).files += dice.randint(1, 4)


def quarantine(world: World, dice: random.Random) -> None:
    held = [volume for volume in world.volumes.values() if volume.files]
    if held:
        volume = dice.choice(held)
        volume.files, volume.quarantined = 0, volume.quarantined + volume.files


def requeue(world: World, dice: random.Random) -> None:
    for volume in world.volumes.values():
        volume.files, volume.quarantined = volume.files + volume.quarantined, 0


def _volume_of(world: World, pod: dict[str, Any]) -> Volume:
    index = next(i for i in range(5) if pod in pods_of(world, i))
    return world.volume(index)


DEEDS: Final[tuple[Deed, ...]] = (
    scale,
    scale,
    scale,
    change_policy,
    change_version,
    end_or_begin_outage,
    end_or_begin_outage,
    silence_a_keeper,
    replace_the_operator,
    push,
    push,
    quarantine,
    requeue,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_users_do_no_message_is_deleted_and_the_cluster_ends_as_it_is_wanted(seed: int) -> None:
    dice = random.Random(seed)
    world = living()
    for _ in range(STEPS):
        if dice.random() < ACTS_AT_A_STEP:
            dice.choice(DEEDS)(world, dice)
        world.step()
    _all_is_back(world)
    world.run(most=300)
    for _ in range(100):  # what was pushed last is drained
        if any(volume.files for volume in _used(world)):
            world.step()

    status = world.scene.make_status()
    assert status["phase"] == "Ready", status["message"]
    assert world.indexes() == set(range(world.scene.wanted.replicas))
    assert not any(volume.files or volume.quarantined for volume in _used(world))
    assert not any(names.REMOVING_ANNOTATION in c["metadata"]["annotations"] for c in world.scene.claims.values())
    assert not any(names.PROOF_LABEL in pod["metadata"]["labels"] for pod in world.scene.pods)


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_deletion_at_any_moment_ends_with_every_message_in_postgresql(seed: int) -> None:
    dice = random.Random(1000 + seed)
    world = living(spool={"onDelete": "DeleteWhenEmpty"})
    deletion = dice.randrange(5, 40)
    for step in range(STEPS):
        if dice.random() < ACTS_AT_A_STEP:
            dice.choice(DEEDS)(world, dice)
        world.scene.deleting = step >= deletion
        world.step()
        if world.gone:
            break
    _all_is_back(world)
    if not world.gone:
        world.run(most=300)

    assert world.gone
    assert world.scene.claims == {}
    assert world.volumes == {}


def _all_is_back(world: World) -> None:
    requeue(world, random.Random(0))
    world.silent_keepers = set()
    world.scene.database_is(DatabaseState.REACHABLE, "")


def _used(world: World) -> list[Volume]:
    return [world.volume(index) for index in world.indexes()]
