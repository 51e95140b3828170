"""What the operator does for brokers that a trouble of PostgreSQL, or a person's maintenance, has left standing."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from lab.postgres import Postgres, identifier
from tests.support.database_scenes import (
    MAINTENANCE_OFF,
    MAINTENANCE_ON,
    broker_container,
    events,
    get_page,
    hold,
    is_ready,
    maintenance_is,
    plan_says,
    pods_of,
    post_maintenance,
    spool_folder,
    wait_spools_empty,
)
from tests.support.databases import Database
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.waiting import wait_until

# Kubelet waits 10, 20, 40, 80 s and more between starts: at 80 s the help can be told from kubelet's own next try.
LONG_BACK_OFF_SECONDS = 80
_BACK_OFF = re.compile(r"back-off (?:(\d+)m)?(\d+)s restarting")


def next_try_by_kubelet(pod: dict[str, Any]) -> float:
    """When kubelet starts a crashed broker again, as a time of the clock; 0 while it does not wait long."""
    container = broker_container(pod)
    waiting = container.get("state", {}).get("waiting", {})
    found = _BACK_OFF.search(waiting.get("message", ""))
    ended = container.get("lastState", {}).get("terminated", {}).get("finishedAt")
    if found is None or ended is None:
        return 0.0
    seconds = 60 * int(found[1] or 0) + int(found[2])
    return datetime.fromisoformat(ended).timestamp() + seconds if seconds >= LONG_BACK_OFF_SECONDS else 0.0


def test_a_broker_that_restarted_in_an_outage_is_ready_long_before_kubelet_would_try_again(
    cluster: Cluster, database: Database, postgres: Postgres, figures: Any
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    first = cluster.pod_uids()

    postgres.stop()
    cluster.kubectl("delete", "pod", "-l", "queen-operator.dev/broker=0", "--wait=false")
    wait_until(
        "a fresh and long back-off of kubelet's",
        lambda: next_try_by_kubelet(pods_of(cluster)["0"]) - time.time() > LONG_BACK_OFF_SECONDS * 0.75,
        seconds=400,
    )
    next_try = next_try_by_kubelet(pods_of(cluster)["0"])
    postgres.start()
    accepting = time.time()
    wait_until("the broker to be Ready", lambda: is_ready(pods_of(cluster).get("0", first_pod())), seconds=120)
    ready = time.time()
    cluster.wait_ready()

    assert events(cluster, "BrokerFreed")
    assert ready < next_try
    assert {i: u for i, u in cluster.pod_uids().items() if i != "0"} == {i: u for i, u in first.items() if i != "0"}
    figures.note(
        "database.freed_from_back_off",
        {
            "seconds_from_accepting_to_ready": round(ready - accepting, 1),
            "seconds_from_accepting_to_kubelets_next_try": round(next_try - accepting, 1),
        },
    )


def first_pod() -> dict[str, Any]:
    """What stands for a broker between two pods."""
    return {"metadata": {}, "status": {}}


def test_a_roll_waits_for_a_persons_maintenance_mode_and_goes_on_by_itself_afterwards(
    cluster: Cluster, database: Database, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()

    post_maintenance(cluster, pods_of(cluster)["1"]["metadata"]["name"], enabled=True)
    wait_until("maintenance mode at every broker", maintenance_is(cluster, MAINTENANCE_ON), 90)
    pushed = cluster.push("--count", "30", "--record", tmp_path / "sent")
    cluster.apply(spec_for(database, broker={"logLevel": "debug"}))
    wait_until("the plan to say so", plan_says(cluster, "orders-0", "maintenance mode is on at"))
    waiting, stalled, during = cluster.condition("Ready"), cluster.condition("Stalled"), cluster.pod_uids()

    post_maintenance(cluster, pods_of(cluster)["2"]["metadata"]["name"], enabled=False)
    cluster.wait_ready()
    drained = cluster.drain(tmp_path / "sent")

    assert pushed["buffered"] == 30
    assert waiting["reason"] == "MaintenanceMode"
    assert stalled == {}
    assert during == uids
    assert not set(cluster.pod_uids().values()) & set(uids.values())
    assert all_came_once(drained, 30)
    assert cluster.restarts() == 0


def test_a_drain_that_a_look_at_the_mode_has_stopped_for_good_is_set_going_again(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    names = [pod["metadata"]["name"] for pod in pods_of(cluster).values()]

    post_maintenance(cluster, names[0], enabled=True)
    wait_until("maintenance mode at every broker", maintenance_is(cluster, MAINTENANCE_ON), 90)
    pushed = cluster.push("--count", "60", "--connections", "new", "--record", tmp_path / "sent")
    # The row is what a broker compares itself with once a minute; a GET takes it over and forgets to resume the drain.
    flag = """UPDATE queen.system_state SET value = '{"enabled": false}' WHERE key = 'maintenance_mode'"""
    postgres.sql(flag, database.name)
    for name in names:
        get_page(cluster, name, "api/v1/system/maintenance")
    wait_until("every broker to take the row over", maintenance_is(cluster, MAINTENANCE_OFF), 10)
    held = sum(len(files(spool_folder(cluster, index))) for index in ("0", "1", "2"))
    wait_spools_empty(cluster, 240)
    drained = cluster.drain(tmp_path / "sent")

    assert pushed["buffered"] == 60
    assert held > 0, "nothing stood still, so nothing is proved"
    assert events(cluster, "DrainStarted")
    assert all_came_once(drained, 60)
    assert cluster.restarts() == 0


def files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.suffix in (".buf", ".tmp")]


def test_a_role_without_connections_left_is_named_in_postgresqls_words_and_restarts_nothing(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()

    postgres.sql(f"ALTER ROLE {identifier(database.user)} CONNECTION LIMIT 3")
    postgres.end_connections(database.name)
    load = ("--seconds", "60", "--count", "0", "--rate", "30", "--clients", "16", "--connections", "half")
    with cluster.pushing(tmp_path / "sent", *load, "--retries", "3") as pushed:
        wait_until("the state", lambda: cluster.status()["database"]["state"] == "TooManyConnections", 90)
        named = cluster.condition("DatabaseReachable")
        # Beyond the time after which healthy brokers outweigh an operator that alone has no way to PostgreSQL.
        hold(35, time.monotonic(), lambda: cluster.status()["database"]["state"] == "TooManyConnections")
    during = cluster.pod_uids()
    postgres.sql(f"ALTER ROLE {identifier(database.user)} CONNECTION LIMIT -1")
    cluster.wait_ready()
    wait_spools_empty(cluster)
    drained = cluster.drain(tmp_path / "sent")

    assert "too many connections for role" in named["message"]
    assert "postgres.poolSize" in named["message"]
    assert pushed["accepted"] == pushed["attempted"]
    assert during == uids
    assert cluster.restarts() == 0
    assert all_came_once(drained, pushed["accepted"])
