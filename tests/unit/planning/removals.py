"""How a scale-down begins in the small world, and how to go on to a moment of it."""

from collections.abc import Callable
from typing import Any

from tests.unit.planning.world import World, living


def fewer(replicas: int = 2, **spec: Any) -> World:
    world = living(**spec)
    world.scene.change_spec(replicas=replicas)
    return world


def until(world: World, done: Callable[[World], bool], *, most: int = 100) -> None:
    for _ in range(most):
        if done(world):
            return
        world.step()
    raise AssertionError(f"not after {most} steps: {world.scene.make_status()['message']}")
