"""Kubernetes does not take the new pod: one broker is away, its own words are told, and the cure begins with it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.database_scenes import pods_of, ready_brokers, rolled, stalled_with
from tests.support.databases import Database
from tests.support.loading import Load
from tests.support.node_clusters import Cluster, spec_for
from tests.support.sampling import Sampler
from tests.support.status_log import lives_by_broker, lives_of
from tests.support.waiting import wait_until
from tests.support.watched import watched_under_load

# A node may still come up for a pod that none takes, so a person is called only after the deadline.
ROLLOUT = {"brokerDeadline": "1m"}
TOLD_WITHIN_SECONDS = 240
# The ReplicaSet controller tries again after twice the time that it has been refused.
RETRIED_WITHIN_SECONDS = 600
LOAD = {"rate": 30, "retries": 3, "poll_seconds": 10}
LOAD_SECONDS = 1500

pytestmark = pytest.mark.timeout(2400)


def asking_for(database: Database, cpu: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
    return spec_for(database, rollout=ROLLOUT, resources=resources)


def assert_two_serve(cluster: Cluster, load: Load, before: dict[str, str]) -> None:
    """Brokers 1 and 2 are the ones of before and Ready, and pushes go on."""
    accepted = load.accepted_so_far()
    wait_until("pushes to go on meanwhile", lambda: load.accepted_so_far() > accepted + 100)
    now = pods_of(cluster)
    assert ready_brokers(cluster) == {"1", "2"}
    assert {index: now[index]["metadata"]["uid"] for index in ("1", "2")} == {i: before[i] for i in ("1", "2")}


def assert_nothing_lost(report: dict[str, Any]) -> None:
    lost = {key: report["messages"][key] for key in ("lost", "duplicated", "foreign")}
    assert lost == {"lost": 0, "duplicated": 0, "foreign": 0}
    assert report["pushed"]["accepted"] == report["pushed"]["attempted"]


def test_a_request_that_no_node_can_hold_stops_at_one_broker_and_the_old_one_touches_no_other(
    cluster: Cluster, database: Database, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(asking_for(database, "100m"))
    cluster.wait_ready()
    before = cluster.pod_uids()

    with watched_under_load(cluster, tmp_path, seconds=LOAD_SECONDS, **LOAD) as (sampler, pods, load):
        cluster.apply(asking_for(database, "64"))
        told = ("orders-0", "no node takes its pod", "Insufficient cpu")
        wait_until("the scheduler's words", stalled_with(cluster, *told), TOLD_WITHIN_SECONDS)
        stalled = cluster.status()
        assert pods_of(cluster)["0"]["status"]["phase"] == "Pending"
        assert_two_serve(cluster, load, before)

        cluster.apply(asking_for(database, "100m"))
        cluster.wait_ready()
        report = load.finish()

    assert stalled["phase"] == "Blocked"
    assert sampler.most_away == 1
    # Before, the one that no node took, and the one that mended it.
    assert lives_by_broker(pods.lives) == {"0": 3, "1": 1, "2": 1}
    assert cluster.condition("Stalled") == {}
    assert_nothing_lost(report)
    figures.note(
        "refusals.unschedulable",
        {"told": stalled["message"], "away": sampler.as_json(), "messages": report["messages"]},
    )


def test_another_request_instead_begins_with_the_broker_that_no_node_took(
    cluster: Cluster, database: Database, tmp_path: Path
) -> None:
    cluster.apply(asking_for(database, "100m"))
    cluster.wait_ready()
    before = cluster.pod_uids()

    with watched_under_load(cluster, tmp_path, seconds=LOAD_SECONDS, **LOAD) as (sampler, pods, load):
        cluster.apply(asking_for(database, "64"))
        unscheduled = "the pod to be refused by the scheduler"
        wait_until(unscheduled, lambda: "Insufficient cpu" in cluster.status()["message"], TOLD_WITHIN_SECONDS)
        cluster.apply(asking_for(database, "50m"))
        wait_until("broker 0 to have the new request", rolled(cluster, before, "0"), seconds=300)
        cluster.wait_ready(seconds=600)
        report = load.finish()

    asked = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in cluster.pods()]
    first_to_leave = pods.departures()[:2]
    assert asked == ["50m"] * 3
    assert sampler.most_away == 1
    assert [life.broker for life in first_to_leave] == ["0", "0"]
    assert lives_by_broker(pods.lives) == {"0": 3, "1": 2, "2": 2}
    assert_nothing_lost(report)


def test_a_quota_that_leaves_no_room_stops_at_one_broker_and_more_room_mends_it_without_a_hand(
    cluster: Cluster, database: Database, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(asking_for(database, "100m"))
    cluster.wait_ready()
    before = cluster.pod_uids()
    limit_cpu(cluster, used_cpu(cluster))

    with watched_under_load(cluster, tmp_path, seconds=LOAD_SECONDS, **LOAD) as (sampler, pods, load):
        cluster.apply(asking_for(database, "150m"))
        told = ("orders-0", "no pod can be made", "exceeded quota: room")
        wait_until("the quota's words", stalled_with(cluster, *told), TOLD_WITHIN_SECONDS)
        stalled = cluster.status()
        assert "0" not in pods_of(cluster)
        assert_two_serve(cluster, load, before)

        limit_cpu(cluster, "4")
        more_room = time.monotonic()
        wait_until("the pod to be made", lambda: "0" in pods_of(cluster), RETRIED_WITHIN_SECONDS)
        made_after_seconds = round(time.monotonic() - more_room)
        cluster.wait_ready(seconds=600)
        report = load.finish()

    assert stalled["phase"] == "Blocked"
    assert sampler.most_away == 1
    assert lives_by_broker(pods.lives) == {"0": 2, "1": 2, "2": 2}
    assert cluster.condition("Stalled") == {}
    assert_nothing_lost(report)
    figures.note(
        "refusals.quota",
        {
            "told": stalled["message"],
            "made_after_more_room_seconds": made_after_seconds,
            "away": sampler.as_json(),
            "messages": report["messages"],
        },
    )


def test_the_old_request_mends_a_broker_that_a_quota_refused_and_touches_no_other(
    cluster: Cluster, database: Database
) -> None:
    cluster.apply(asking_for(database, "100m"))
    cluster.wait_ready()
    limit_cpu(cluster, used_cpu(cluster))

    with Sampler(cluster) as sampler, lives_of(cluster) as pods:
        cluster.apply(asking_for(database, "150m"))
        wait_until("the quota's words", stalled_with(cluster, "orders-0", "exceeded quota: room"), TOLD_WITHIN_SECONDS)
        cluster.apply(asking_for(database, "100m"))
        cluster.wait_ready()

    assert sampler.most_away == 1
    assert lives_by_broker(pods.lives) == {"0": 2, "1": 1, "2": 1}
    assert cluster.condition("Stalled") == {}


def limit_cpu(cluster: Cluster, most: str) -> None:
    """Let pods of the namespace ask for this much processor together, and no more."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "room"}}
    cluster.kubectl.apply([{**quota, "spec": {"hard": {"requests.cpu": most}}}])
    wait_until("the quota to hold", lambda: quota_status(cluster).get("hard", {}).get("requests.cpu") == most)


def quota_status(cluster: Cluster) -> dict[str, Any]:
    found = cluster.kubectl.get("resourcequota", "room")
    return dict((found or {}).get("status", {}))


def used_cpu(cluster: Cluster) -> str:
    """What the pods of the namespace ask for now, as a quota counts it."""
    limit_cpu(cluster, "4")
    wait_until(
        "the quota to have counted", lambda: quota_status(cluster).get("used", {}).get("requests.cpu", "0") != "0"
    )
    return str(quota_status(cluster)["used"]["requests.cpu"])
