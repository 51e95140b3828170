"""The states of PostgreSQL that do not look like an outage to a broker, and what is done about each."""

from __future__ import annotations

import json
from pathlib import Path

from lab.postgres import Postgres
from tests.support.database_scenes import events
from tests.support.databases import Database
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.waiting import wait_until


def test_pushes_on_a_frozen_database_are_spooled_when_the_user_wants_it_and_none_is_lost(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    spec = spec_for(database)
    spec["postgres"] |= {"onFrozen": "Spool"}
    cluster.apply(spec)
    cluster.wait_ready()
    uids = cluster.pod_uids()

    postgres.freeze()
    wait_until("the operator to turn spooling on", lambda: cluster.status().get("spooling"), seconds=120)
    told = cluster.status()["spooling"]["pods"]
    spooled = cluster.push("--count", "60", "--clients", "6", "--timeout", "20", "--record", tmp_path / "sent")
    state = cluster.status()["database"]["state"]
    postgres.thaw()
    wait_until("maintenance mode to be off again", lambda: "spooling" not in cluster.status(), seconds=180)
    cluster.wait_ready()
    wait_until("empty spools", lambda: cluster.condition("SpoolEmpty")["status"] == "True", seconds=180)
    drained = cluster.drain(tmp_path / "sent")

    assert state == "Frozen"
    assert len(told) == 3
    assert spooled["accepted"] == 60
    assert spooled["buffered"] == 60
    assert all_came_once(drained, 60)
    assert cluster.pod_uids() == uids
    assert cluster.restarts() == 0
    assert events(cluster, "SpoolingStarted")
    assert events(cluster, "SpoolingEnded")


def test_what_a_read_only_database_put_into_quarantine_is_said_and_comes_back_by_requeue(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()

    postgres.set_read_only(True)
    pushed = cluster.push("--count", "30", "--clients", "3", "--record", tmp_path / "sent")
    wait_until(
        "quarantined files in the status", lambda: cluster.condition("SpoolEmpty")["reason"] == "Quarantined", 60
    )
    wait_until("the state of the database", lambda: cluster.status()["database"]["state"] == "ReadOnly", 60)
    meanwhile = cluster.status()
    postgres.set_read_only(False)
    wait_until("PostgreSQL to be well again", lambda: cluster.condition("DatabaseReachable")["status"] == "True", 90)
    requeue = ("-c", "keeper", "--", "/usr/local/bin/spool-keeper", "requeue", "--spool-dir", "/var/lib/queen/spool")
    for pod in cluster.pods():
        cluster.kubectl("exec", pod["metadata"]["name"], *requeue)
    wait_until("empty spools", lambda: cluster.condition("SpoolEmpty")["status"] == "True", seconds=120)
    drained = cluster.drain(tmp_path / "sent")

    assert pushed["accepted"] == 30
    assert meanwhile["phase"] == "Degraded"
    assert "read-only" in json.dumps(meanwhile["conditions"])
    assert all_came_once(drained, 30)
    assert events(cluster, "Quarantined")


def test_a_broker_that_could_not_start_in_an_outage_is_not_left_to_the_back_off(
    cluster: Cluster, database: Database, postgres: Postgres
) -> None:
    cluster.apply(spec_for(database, replicas=2))
    cluster.wait_ready()
    first = cluster.pod_uids()["0"]

    postgres.stop()
    cluster.kubectl("delete", "pod", "-l", "queen-operator.dev/broker=0", "--wait=false")

    def waits_out_a_long_back_off() -> bool:
        pods = [pod for pod in cluster.pods() if pod["metadata"]["labels"]["queen-operator.dev/broker"] == "0"]
        statuses = [s for pod in pods for s in pod["status"].get("containerStatuses", [])]
        return any(s["restartCount"] >= 3 and "waiting" in s["state"] for s in statuses)

    wait_until("kubelet's back-off to have grown", waits_out_a_long_back_off, seconds=300)
    waiting = cluster.pod_uids()["0"]
    postgres.start()
    wait_until("the pod to be replaced", lambda: events(cluster, "BrokerFreed"), seconds=60)
    cluster.wait_ready()

    assert waiting != first
    assert cluster.pod_uids()["0"] != waiting
