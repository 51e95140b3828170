"""PostgreSQL goes away under load: every push is accepted, nothing restarts, and every message comes once."""

from __future__ import annotations

import time
from pathlib import Path

from lab.postgres import Postgres
from tests.support.databases import Database
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.waiting import wait_until

OUTAGE_SECONDS = 60


def test_a_minute_without_postgresql_costs_no_push_no_restart_and_no_message(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()
    seconds = ("--seconds", str(OUTAGE_SECONDS + 20), "--count", "0", "--rate", "30", "--clients", "6")

    with cluster.pushing(tmp_path / "sent", *seconds, "--connections", "half") as pushed:
        wait_until("pushes to arrive", lambda: (tmp_path / "sent").exists())
        postgres.stop()
        stopped = time.monotonic()
        wait_until("the outage in the status", lambda: cluster.condition("DatabaseReachable")["status"] == "False")
        wait_until("no broker to be Ready", lambda: cluster.status()["readyReplicas"] == 0)
        wait_until("the ordinary Service to refuse", lambda: refused_by_the_ordinary_service(cluster) == 5)
        wait_until("spools in the status", lambda: "messages in" in cluster.condition("DatabaseReachable")["message"])
        during, conditions = cluster.status(), {item["type"] for item in cluster.status()["conditions"]}
        database_condition = cluster.condition("DatabaseReachable")
        time.sleep(max(0.0, OUTAGE_SECONDS - (time.monotonic() - stopped)))  # the length of the outage
        postgres.start()
    cluster.wait_ready()
    wait_until("empty spools", lambda: cluster.condition("SpoolEmpty")["status"] == "True", seconds=120)
    drained = cluster.drain(tmp_path / "sent")

    assert pushed["accepted"] == pushed["attempted"]
    assert pushed["buffered"] > 0
    assert all_came_once(drained, pushed["accepted"])
    assert cluster.pod_uids() == uids
    assert cluster.restarts() == 0
    assert during["phase"] == "Degraded"
    assert during["database"]["state"] == "ConnectionRefused"
    assert during["database"]["since"] <= database_condition["lastTransitionTime"]
    assert "refuses connections" in database_condition["message"]
    assert "Stalled" not in conditions


def refused_by_the_ordinary_service(cluster: Cluster) -> int:
    """How many of five new connections find nobody: its endpoints are the Ready brokers, and there are none."""
    tried = cluster.push("--count", "5", "--connections", "new", "--timeout", "3", service="orders", queue="other")
    return int(tried["refused"])


def test_the_status_comes_back_by_itself_when_postgresql_does(
    cluster: Cluster, database: Database, postgres: Postgres
) -> None:
    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()

    postgres.stop()
    wait_until("the outage in the status", lambda: cluster.condition("DatabaseReachable")["status"] == "False")
    postgres.start()
    cluster.wait_ready()

    assert cluster.condition("DatabaseReachable")["status"] == "True"
    assert cluster.restarts() == 0
