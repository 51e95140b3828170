"""An operator that is killed in the middle of a rollout, again and again: each broker is replaced exactly once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.kubectl import Kubectl
from lab.node import Node
from queen_operator.planning.views import LEAVING_ANNOTATION
from tests.support.databases import Database
from tests.support.node_clusters import PODS, Cluster, spec_for
from tests.support.operator_kills import Moments, OperatorKiller
from tests.support.sampling import Sampler
from tests.support.status_log import lives_by_broker
from tests.support.waiting import wait_until
from tests.support.watched import watched_under_load

LOAD = {"rate": 30, "connections": "half", "retries": 5, "poll_seconds": 10}
LOAD_SECONDS = 2400
ROLL_SECONDS = 1500
# A Lease runs out after 30 s, then the next process asks for it within 5 s; its container has to start first.
TAKEOVER_SECONDS = 180
RANDOM_KILLS = 6
LONGEST_LIFE_SECONDS = 12  # about as long as the operator needs for one broker
SEED = 20_261_201

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture
def killer(node: Node, operator_deployed: Kubectl) -> OperatorKiller:
    killer = OperatorKiller(node)
    wait_until("an operator to lead", killer.is_leading, TAKEOVER_SECONDS)
    return killer


def rolled_once_and_nothing_lost(lives: dict[str, int], sampler: Sampler, report: dict[str, Any]) -> None:
    assert lives == {"0": 2, "1": 2, "2": 2}
    assert sampler.most_away == 1
    messages = {key: report["messages"][key] for key in ("lost", "duplicated", "foreign")}
    assert messages == {"lost": 0, "duplicated": 0, "foreign": 0}
    assert report["pushed"]["accepted"] == report["pushed"]["attempted"]


def figure(killer: OperatorKiller, roll_seconds: int, sampler: Sampler, report: dict[str, Any]) -> dict[str, Any]:
    kills = [{key: kill[key] for key in ("moment", "how")} for kill in killer.kills]
    last_away = max(end for times in sampler.away.values() for _, end in times)
    return {
        "kills": kills,
        "kills_before_the_last_broker_was_back": sum(kill["at"] < last_away for kill in killer.kills),
        "roll_seconds": roll_seconds,
        "away": sampler.as_json(),
        "messages": report["messages"],
        "pushed": report["pushed"],
    }


def is_of(item: dict[str, Any], broker: str) -> bool:
    return bool(item["metadata"].get("labels", {}).get(PODS) == broker)


def about_to_leave(broker: str) -> Callable[[dict[str, Any]], bool]:
    """The operator has just taken the pod out of the push Service, and has not changed its Deployment yet."""
    return lambda pod: is_of(pod, broker) and LEAVING_ANNOTATION in pod["metadata"].get("annotations", {})


def changed(broker: str) -> Callable[[dict[str, Any]], bool]:
    """The operator has just given the Deployment its new template."""
    return lambda deployment: is_of(deployment, broker) and deployment["metadata"]["generation"] > 1


def on_its_way(broker: str, before: dict[str, str]) -> Callable[[dict[str, Any]], bool]:
    """The new pod's broker runs and is not Ready yet."""

    def holds(pod: dict[str, Any]) -> bool:
        if not is_of(pod, broker) or pod["metadata"]["uid"] == before[broker]:
            return False
        containers = pod["status"].get("containerStatuses", [])
        return any("running" in c["state"] and not c["ready"] for c in containers)

    return holds


def test_an_operator_killed_at_every_step_of_a_roll_replaces_each_broker_once(
    cluster: Cluster, database: Database, killer: OperatorKiller, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    before = cluster.pod_uids()
    assert all(item["metadata"]["generation"] == 1 for item in cluster.kubectl.items("deployments"))
    namespace = cluster.kubectl.namespace
    pods = Moments(cluster.node, f"/api/v1/namespaces/{namespace}/pods")
    deployments = Moments(cluster.node, f"/apis/apps/v1/namespaces/{namespace}/deployments")
    steps = (
        ("orders-0 about to leave", pods, about_to_leave("0"), killer.kill_pod),
        ("the Deployment of orders-0 changed", deployments, changed("0"), killer.kill_container),
        ("orders-1 about to leave", pods, about_to_leave("1"), killer.kill_container),
        ("the Deployment of orders-1 changed", deployments, changed("1"), killer.kill_pod),
        ("orders-2 about to leave", pods, about_to_leave("2"), killer.kill_pod),
        ("the new orders-2 on its way", pods, on_its_way("2", before), killer.kill_pod),
    )

    with watched_under_load(cluster, tmp_path, seconds=LOAD_SECONDS, **LOAD) as (sampler, lives, load):
        began = time.monotonic()
        cluster.apply(spec_for(database, broker={"logLevel": "debug"}))
        for moment, watch, holds, kill in steps:
            watch.wait(moment, holds, seconds=300)
            kill(moment)
        cluster.wait_ready(seconds=ROLL_SECONDS)
        roll_seconds = round(time.monotonic() - began)
        report = load.finish()

    assert [kill["processes"] for kill in killer.kills] == [1] * len(steps)
    rolled_once_and_nothing_lost(lives_by_broker(lives.lives), sampler, report)
    assert cluster.restarts() == 0
    figures.note("killed.steps", figure(killer, roll_seconds, sampler, report))


def test_an_operator_killed_at_random_moments_of_a_roll_replaces_each_broker_once(
    cluster: Cluster, database: Database, killer: OperatorKiller, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    chance = random.Random(SEED)
    kinds = [killer.kill_container, killer.kill_pod] * (RANDOM_KILLS // 2)
    chance.shuffle(kinds)

    with watched_under_load(cluster, tmp_path, seconds=LOAD_SECONDS, **LOAD) as (sampler, lives, load):
        began = time.monotonic()
        cluster.apply(spec_for(database, broker={"logLevel": "debug"}))
        for number, kill in enumerate(kinds):
            wait_until("an operator to lead", killer.is_leading, TAKEOVER_SECONDS)
            time.sleep(chance.uniform(0, LONGEST_LIFE_SECONDS))  # this is the random moment
            kill(f"random {number}")
        cluster.wait_ready(seconds=ROLL_SECONDS)
        roll_seconds = round(time.monotonic() - began)
        report = load.finish()

    found = figure(killer, roll_seconds, sampler, report)
    assert len(killer.kills) == RANDOM_KILLS
    assert found["kills_before_the_last_broker_was_back"] >= RANDOM_KILLS // 2, "the roll was over too early"
    rolled_once_and_nothing_lost(lives_by_broker(lives.lives), sampler, report)
    assert cluster.restarts() == 0
    figures.note("killed.random", found)
