"""A change reaches the brokers one at a time, and a change that cannot work stops at the first one."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

from tests.support.databases import Database
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.waiting import wait_until


class Watcher:
    """Looks at the pods all the time and remembers the most brokers that were away at once."""

    def __init__(self, cluster: Cluster, brokers: int) -> None:
        self.most_away = 0
        self._cluster, self._brokers = cluster, brokers
        self._done = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=30)

    def _look(self) -> None:
        while not self._done.wait(0.3):
            serving = {
                pod["metadata"]["labels"]["queen-operator.dev/broker"]
                for pod in self._cluster.pods()
                if "deletionTimestamp" not in pod["metadata"]
                and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
            }
            self.most_away = max(self.most_away, self._brokers - len(serving))


def test_a_change_restarts_one_broker_at_a_time_under_load_and_no_accepted_message_is_lost(
    cluster: Cluster, database: Database, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()

    load = ("--seconds", "100", "--count", "0", "--rate", "30", "--clients", "6", "--connections", "half")
    with Watcher(cluster, 3) as watcher, cluster.pushing(tmp_path / "sent", *load, "--retries", "3") as pushed:
        wait_until("pushes to arrive", lambda: (tmp_path / "sent").exists())
        cluster.apply(spec_for(database, broker={"logLevel": "debug"}))
        cluster.wait_ready(seconds=400)
    drained = cluster.drain(tmp_path / "sent")

    assert watcher.most_away == 1
    assert not set(cluster.pod_uids().values()) & set(uids.values())
    assert pushed["accepted"] == pushed["attempted"]
    assert all_came_once(drained, pushed["accepted"])
    assert cluster.restarts() == 0


def test_an_image_that_cannot_be_pulled_costs_one_broker_and_the_old_spec_mends_it(
    cluster: Cluster, database: Database
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()

    bad = spec_for(database, image="queen.invalid/queen:none", imagePullPolicy="Never")
    cluster.apply(bad)
    wait_until("the rollout to stop", lambda: cluster.condition("Stalled").get("status") == "True", seconds=180)
    stalled = cluster.condition("Stalled")["message"]
    after = cluster.pod_uids()

    assert "orders-0" in stalled
    assert "ErrImageNeverPull" in stalled
    assert (after["1"], after["2"]) == (uids["1"], uids["2"])

    cluster.apply(spec_for(database))
    cluster.wait_ready()

    mended = cluster.pod_uids()
    assert (mended["1"], mended["2"]) == (uids["1"], uids["2"])
    assert cluster.condition("Stalled") == {}


def test_an_operator_that_is_killed_and_comes_back_restarts_no_broker(cluster: Cluster, database: Database) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()
    everywhere = cluster.kubectl.everywhere

    everywhere.run(
        *("--namespace=queen-system", "delete", "pods", "--selector=app.kubernetes.io/name=queen-operator"),
        *("--grace-period=0", "--force", "--wait=false"),
    )
    everywhere.run("--namespace=queen-system", "rollout", "status", "deployment/queen-operator", "--timeout=180s")
    cluster.apply(spec_for(database, rollout={"minReadySeconds": 6}))
    cluster.wait_ready()

    assert cluster.pod_uids() == uids
    assert cluster.restarts() == 0
