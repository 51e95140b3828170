"""Rollouts that PostgreSQL interrupts, under load: an outage in the middle, and a password that is rotated for good."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

from lab.postgres import Postgres
from tests.support.database_scenes import (
    UnableToTakePushes,
    events,
    hold,
    plan_says,
    pods_of,
    restarts_of,
    rolled,
    set_secret,
    wait_spools_empty,
)
from tests.support.databases import Database
from tests.support.loading import loading
from tests.support.node_clusters import Cluster, spec_for
from tests.support.sampling import Sampler
from tests.support.waiting import wait_until

OUTAGE_SECONDS = 60
ROLL_SECONDS = 400
LOAD_SECONDS = 540


def test_an_outage_in_the_middle_of_a_roll_holds_it_and_it_ends_by_itself(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path, figures: Any
) -> None:
    patient = {"minReadySeconds": 20}
    cluster.apply(spec_for(database, rollout=patient))
    cluster.wait_ready()
    uids = cluster.pod_uids()

    with loading(cluster, tmp_path, seconds=LOAD_SECONDS, retries=3) as load:
        load.wait_started()
        began = time.monotonic()
        cluster.apply(spec_for(database, rollout=patient, broker={"logLevel": "debug"}))
        wait_until("the first broker to be replaced", rolled(cluster, uids, "0"), 180)
        postgres.stop()
        stopped = time.monotonic()
        halfway = cluster.pod_uids()
        wait_until("the plan to say so", plan_says(cluster, "to be restarted and waits", "PostgreSQL is away"))
        reached, pending = cluster.condition("DatabaseReachable"), cluster.condition("RestartPending")
        plan, during = cluster.status()["plan"], cluster.status()
        hold(OUTAGE_SECONDS, stopped, lambda: cluster.pod_uids() == halfway)
        postgres.start()
        started = time.monotonic()
        cluster.wait_ready(ROLL_SECONDS)
        ended = time.monotonic()
        report = load.finish()
    wait_spools_empty(cluster)

    assert (halfway["1"], halfway["2"]) == (uids["1"], uids["2"])
    assert "orders-1" in plan["reason"] or "orders-2" in plan["reason"]
    assert "refuses connections" in plan["reason"]
    assert during["phase"] == "Degraded"
    assert reached["reason"] == "ConnectionRefused"
    assert pending["status"] == "True"
    assert cluster.pod_uids()["0"] == halfway["0"]
    assert not set(cluster.pod_uids().values()) & set(uids.values())
    assert cluster.restarts() == 0
    assert not events(cluster, "DrainStarted"), "a minute without PostgreSQL is no drain that stands still"
    assert report["pushed"]["buffered"] > 0
    assert report["messages"]["lost"] == report["messages"]["foreign"] == 0
    figures.note(
        "database.outage_in_a_roll",
        {
            "outage_seconds": round(started - stopped, 1),
            "seconds_from_return_to_end_of_roll": round(ended - started, 1),
            "roll_seconds": round(ended - began, 1),
            "pushed": report["pushed"],
            "messages": report["messages"],
        },
    )


def test_a_rotated_password_and_the_end_of_all_sessions_after_it_never_take_two_brokers_away(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()
    fresh = secrets.token_hex(12)

    with Sampler(cluster) as sampler, loading(cluster, tmp_path, seconds=LOAD_SECONDS, retries=3) as load:
        load.wait_started()
        began = time.monotonic()
        postgres.set_password(database.user, fresh)
        set_secret(cluster, database.secret, password=fresh)
        wait_until("all three to be replaced", rolled(cluster, uids, "0", "1", "2"), ROLL_SECONDS)
        cluster.wait_ready()
        rotated = time.monotonic()
        ended = postgres.end_connections(database.name)
        after = cluster.pod_uids()
        hold(30, time.monotonic(), lambda: cluster.pod_uids() == after)
        cluster.wait_ready()
        report = load.finish()
    wait_spools_empty(cluster)

    assert ended > 0
    assert sampler.most_away == 1
    assert all(restarts_of(pod) == 0 for pod in pods_of(cluster).values())
    assert report["messages"]["lost"] == report["messages"]["foreign"] == 0
    figures.note(
        "database.rotation",
        {
            "roll_seconds": round(rotated - began, 1),
            "most_away": sampler.most_away,
            "sessions_ended": ended,
            "pushed": report["pushed"],
            "messages": report["messages"],
        },
    )


def test_a_password_rotated_while_all_sessions_end_at_once_stops_one_broker_at_a_time_and_needs_nobody(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path, figures: Any
) -> None:
    """No broker can be Ready with the old password then; what is kept is that two of three always take pushes."""
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()
    fresh = secrets.token_hex(12)

    with (
        UnableToTakePushes(cluster) as unable,
        loading(cluster, tmp_path, seconds=LOAD_SECONDS, retries=3) as load,
    ):
        load.wait_started()
        began = time.monotonic()
        postgres.set_password(database.user, fresh)
        postgres.end_connections(database.name)
        set_secret(cluster, database.secret, password=fresh)
        wait_until("all three to be replaced", rolled(cluster, uids, "0", "1", "2"), ROLL_SECONDS)
        cluster.wait_ready()
        rotated = time.monotonic()
        report = load.finish()
    wait_spools_empty(cluster)

    assert unable.most == 1
    assert unable.samples > 20
    assert cluster.condition("Stalled") == {}
    assert report["pushed"]["buffered"] > 0
    assert report["messages"]["lost"] == report["messages"]["foreign"] == 0
    figures.note(
        "database.rotation_with_sessions_ended",
        {
            "roll_seconds": round(rotated - began, 1),
            "most_unable_to_take_pushes": unable.most,
            "pushed": report["pushed"],
            "messages": report["messages"],
        },
    )
