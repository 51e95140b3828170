"""Pods that others take away in the middle of a rollout: each counts as a broker that is away, and the rest waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.kubelet import NODE_NAME
from lab.progress import LabError
from tests.support.database_scenes import pods_of, ready_brokers, rolled, stalled_with
from tests.support.databases import Database
from tests.support.evictions import evict
from tests.support.loading import loading
from tests.support.node_clusters import Cluster, spec_for
from tests.support.sampling import Sampler
from tests.support.status_log import Status, StatusLog, lives_by_broker, stalled
from tests.support.waiting import wait_until
from tests.support.watched import watched_under_load

# Between two restarts all brokers are Ready for this long: only then does the budget let one go.
ROLLOUT = {"minReadySeconds": 25}
# Polls keep a broker that leaves for up to this long, so that leaving takes a while.
LOAD = {"rate": 30, "connections": "half", "retries": 20, "poll_seconds": 20}
LOAD_SECONDS = 1500
ROLL_SECONDS = 900
ALL_PODS = "--pod-selector=queen-operator.dev/cluster=orders"
# A drain asks again every five seconds for as long as the budget refuses.
DRAIN_GIVES_UP_SECONDS = 60

pytestmark = pytest.mark.timeout(2400)


def assert_nothing_lost(report: dict[str, Any]) -> None:
    lost = {key: report["messages"][key] for key in ("lost", "duplicated", "foreign")}
    assert lost == {"lost": 0, "duplicated": 0, "foreign": 0}
    assert report["pushed"]["accepted"] == report["pushed"]["attempted"]


def by_eviction(cluster: Cluster, pod: dict[str, Any]) -> None:
    assert evict(cluster.kubectl, pod), "the budget refused although every broker was Ready"


def by_hand(cluster: Cluster, pod: dict[str, Any]) -> None:
    cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")


def is_told_to_leave(status: Status, pod: str) -> bool:
    return f"pod {pod} is ending its last requests" in status["brokers"][2].get("waitingFor", "")


@pytest.mark.parametrize("take", [by_eviction, by_hand])
def test_a_pod_that_others_take_in_the_middle_of_a_roll_counts_as_the_broker_that_is_away(
    cluster: Cluster, database: Database, tmp_path: Path, figures: Any, take: Callable[[Cluster, dict[str, Any]], None]
) -> None:
    cluster.apply(spec_for(database, rollout=ROLLOUT))
    cluster.wait_ready()
    before = cluster.pod_uids()

    with (
        StatusLog(cluster) as log,
        watched_under_load(cluster, tmp_path, seconds=LOAD_SECONDS, **LOAD) as (sampler, pods, load),
    ):
        cluster.apply(spec_for(database, rollout=ROLLOUT, broker={"logLevel": "debug"}))
        wait_until("the first broker to be new", rolled(cluster, before, "0"), seconds=300)
        taken = pods_of(cluster)["2"]
        assert taken["metadata"]["uid"] == before["2"]
        take(cluster, taken)
        cluster.wait_ready(seconds=ROLL_SECONDS)
        report = load.finish()

    departures = [life.broker for life in pods.departures()]
    others = sampler.away["0"] + sampler.away["1"]
    assert sampler.most_away == 1
    assert sampler.longest_gap_seconds < 5
    assert log.where(lambda status: is_told_to_leave(status, taken["metadata"]["name"]))
    assert departures[:2] == ["0", "2"]
    assert departures[-1] == "1"
    assert lives_by_broker(pods.lives)["0"] == lives_by_broker(pods.lives)["1"] == 2
    # Nothing was begun beside it: the times in which others were away do not touch the time in which it was.
    assert not [(a, b) for a, b in others for c, d in sampler.away["2"] if a < d and c < b]
    assert cluster.restarts() == 0
    assert_nothing_lost(report)
    figures.note(
        f"evictions.{take.__name__}",
        {
            "departures": departures,
            "away": sampler.as_json(),
            "messages": report["messages"],
            "pushed": report["pushed"],
        },
    )


def test_the_budget_refuses_an_eviction_while_the_roll_has_a_broker_away(cluster: Cluster, database: Database) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()

    with Sampler(cluster) as sampler:
        cluster.apply(spec_for(database, broker={"logLevel": "debug"}))
        wait_until("the budget to have nothing left", lambda: allowed_disruptions(cluster) == 0, pause_seconds=0.05)
        staying = [pod for index, pod in pods_of(cluster).items() if index in ready_brokers(cluster)]
        accepted = [evict(cluster.kubectl, pod) for pod in staying]
        cluster.wait_ready(seconds=ROLL_SECONDS)

    assert len(accepted) == 2
    assert not any(accepted)
    assert sampler.most_away == 1


def test_a_bad_change_takes_one_broker_although_every_pod_was_deleted_at_the_same_moment(
    cluster: Cluster, database: Database
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    before = cluster.pod_uids()

    cluster.kubectl("delete", "pods", "--all", "--wait=false")
    cluster.apply(spec_for(database, image="queen.invalid/queen:none", imagePullPolicy="Never"))
    wait_until("the rollout to stop", stalled_with(cluster, "ErrImageNeverPull"), seconds=300)
    wait_until("the other two to be back", lambda: len(ready_brokers(cluster)) == 2, seconds=120)
    serving = ready_brokers(cluster)
    uids = {index: pods_of(cluster)[index]["metadata"]["uid"] for index in serving}
    cluster.apply(spec_for(database))
    cluster.wait_ready()

    after = cluster.pod_uids()
    assert not set(after.values()) & set(before.values())
    assert {index: after[index] for index in serving} == uids
    assert cluster.restarts() == 0


def allowed_disruptions(cluster: Cluster) -> int:
    budget = cluster.kubectl.get("pdb", "orders")
    assert budget is not None
    return int(budget["status"]["disruptionsAllowed"])


@contextmanager
def uncordoned_at_the_end(cluster: Cluster) -> Iterator[None]:
    """The node takes pods again after the body, whatever became of it: other tests use it too."""
    try:
        yield
    finally:
        cluster.kubectl.everywhere.run("uncordon", NODE_NAME)


def drain_node(cluster: Cluster, seconds: int) -> bool:
    """Drain the node of this cluster's pods, as an administrator does; False when pods were left after that time."""
    options = ("--delete-emptydir-data", "--ignore-daemonsets", f"--timeout={seconds}s")
    try:
        cluster.kubectl.everywhere.run("drain", NODE_NAME, ALL_PODS, *options)
    except LabError as refusal:
        if "timeout reached" not in str(refusal):
            raise
        return False
    return True


def test_a_drain_of_the_node_in_the_middle_of_a_roll_gets_one_broker_and_the_roll_waits_for_it(
    cluster: Cluster, database: Database, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(spec_for(database, rollout=ROLLOUT))
    cluster.wait_ready()
    before = cluster.pod_uids()

    with (
        StatusLog(cluster) as log,
        watched_under_load(cluster, tmp_path, seconds=LOAD_SECONDS, **LOAD) as (sampler, pods, load),
        uncordoned_at_the_end(cluster),
    ):
        cluster.apply(spec_for(database, rollout=ROLLOUT, broker={"logLevel": "debug"}))
        wait_until("the first broker to be new", rolled(cluster, before, "0"), seconds=300)
        drained = drain_node(cluster, DRAIN_GIVES_UP_SECONDS)
        meanwhile = {life.broker for life in pods.departures()[1:]}
        (evicted,) = meanwhile
        waiting = cluster.status()["plan"]
        cluster.kubectl.everywhere.run("uncordon", NODE_NAME)
        cluster.wait_ready(seconds=ROLL_SECONDS)
        report = load.finish()

    assert not drained, "with one node there is no place for the other brokers, so the budget must have kept them"
    assert sampler.most_away == 1
    assert waiting["action"] == "Wait"
    assert f"orders-{evicted} is not Ready" in waiting["reason"] or f"orders-{evicted}: " in waiting["reason"]
    assert log.said(f"orders-{evicted}", "unschedulable")
    assert not log.where(stalled), "a drain shorter than brokerDeadline calls nobody"
    assert_nothing_lost(report)
    figures.note(
        "evictions.drain",
        {
            "departures": [life.broker for life in pods.departures()],
            "waited_with": waiting["reason"],
            "away": sampler.as_json(),
            "messages": report["messages"],
            "pushed": report["pushed"],
        },
    )


def test_the_only_broker_can_be_drained_and_a_client_that_tries_again_loses_nothing(
    cluster: Cluster, database: Database, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()
    before = cluster.pod_uids()
    patient = {"rate": 30, "connections": "half", "retries": 1500, "poll_seconds": 5}

    with (
        Sampler(cluster, brokers=1) as sampler,
        loading(cluster, tmp_path, seconds=LOAD_SECONDS, **patient) as load,
        uncordoned_at_the_end(cluster),
    ):
        load.wait_started()
        drained = drain_node(cluster, 120)
        wait_until("the next pod to find no node", lambda: "unschedulable" in cluster.status()["message"], seconds=60)
        cluster.kubectl.everywhere.run("uncordon", NODE_NAME)
        cluster.wait_ready()
        accepted = load.accepted_so_far()
        wait_until("pushes to go on", lambda: load.accepted_so_far() > accepted + 100)
        report = load.finish()

    assert drained
    assert cluster.kubectl.get("pdb", "orders") is None
    assert before["0"] not in cluster.pod_uids().values()
    assert cluster.restarts() == 0
    assert report["pushed"]["retried"] > 0
    assert_nothing_lost(report)
    figures.note(
        "evictions.only_broker",
        {"away": sampler.as_json(), "messages": report["messages"], "pushed": report["pushed"]},
    )
