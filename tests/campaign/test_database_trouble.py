"""A frozen and a read-only PostgreSQL under load: what is answered, what it costs, and that nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lab.postgres import Postgres
from tests.support.clusters import condition
from tests.support.database_scenes import (
    MAINTENANCE_OFF,
    hold,
    maintenance_is,
    memory_mib,
    pods_of,
    quarantined_at,
    requeue,
    rolled,
    spool_folder,
    wait_spools_empty,
)
from tests.support.databases import Database
from tests.support.loading import loading
from tests.support.node_clusters import Cluster, spec_for
from tests.support.objects import Objects
from tests.support.waiting import wait_until

FROZEN_SECONDS = 60
READ_ONLY_SECONDS = 10
# A keeper is asked every 3 s at rest. The limit leaves room for a busy machine; the figure is what counts.
QUARANTINE_TOLD_WITHIN_SECONDS = 10
# Many clients, each with a connection per push: those that hang must not keep the others from trying.
CROWD = {"rate": 40, "producers": 120, "connections": "new", "push_timeout": 20, "retries": 3}


@pytest.mark.parametrize("on_frozen", ["Report", "Spool"])
def test_a_minute_of_a_frozen_postgresql_is_over_when_it_is_over_and_the_operator_loses_nothing(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path, figures: Any, on_frozen: str
) -> None:
    spec = spec_for(database)
    spec["postgres"] |= {"onFrozen": on_frozen}
    cluster.apply(spec)
    cluster.wait_ready()
    uids = cluster.pod_uids()

    with loading(cluster, tmp_path, seconds=300, finish_seconds=90, **CROWD) as load:
        load.wait_started()
        before = memory_mib(cluster.node, pods_of(cluster))
        accepted = load.accepted_so_far()
        postgres.freeze()
        frozen = time.monotonic()
        wait_until("the state", lambda: cluster.status()["database"]["state"] == "Frozen")
        told_seconds = time.monotonic() - frozen
        hold(FROZEN_SECONDS - 5, frozen, lambda: cluster.restarts() == 0)
        during, at_the_end = cluster.status(), memory_mib(cluster.node, pods_of(cluster))
        hold(FROZEN_SECONDS, frozen, lambda: True)
        accepted_meanwhile = load.accepted_so_far() - accepted
        postgres.thaw()
        thawed = time.monotonic()
        wait_until("spooling to be over", lambda: "spooling" not in cluster.status(), 180)
        cluster.wait_ready()
        report = load.finish()
    wait_spools_empty(cluster)
    over_seconds = time.monotonic() - thawed

    assert set(before) == set(at_the_end) == {"0", "1", "2"}
    assert len(during.get("spooling", {}).get("pods", [])) == (3 if on_frozen == "Spool" else 0)
    assert maintenance_is(cluster, MAINTENANCE_OFF)()
    assert cluster.pod_uids() == uids
    assert cluster.restarts() == 0
    assert report["messages"]["foreign"] == 0
    if on_frozen == "Spool":
        assert accepted_meanwhile > 10 * FROZEN_SECONDS
    else:
        assert report["messages"]["lost"] == 0
    figures.note(
        f"database.frozen.{on_frozen}",
        {
            "frozen_seconds": FROZEN_SECONDS,
            "accepted_meanwhile": accepted_meanwhile,
            "accepted_per_second": round(accepted_meanwhile / FROZEN_SECONDS, 2),
            "rate_offered": CROWD["rate"],
            "state_told_after_seconds": round(told_seconds, 1),
            "memory_mib_before": before,
            "memory_mib_at_the_end": at_the_end,
            "seconds_from_thaw_to_the_end_of_the_consumers": round(over_seconds, 1),
            "pushed": report["pushed"],
            "messages": report["messages"],
        },
    )
    assert report["messages"]["lost"] == 0


def test_ten_seconds_of_a_read_only_postgresql_are_told_at_once_and_all_comes_back_by_requeue(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()
    objects = Objects(cluster.node.kubeconfig, cluster.kubectl.namespace)  # no kubectl in what is measured
    folders = [spool_folder(cluster, index) for index in uids]

    with loading(cluster, tmp_path, seconds=300, connections="half", finish_seconds=240, retries=3) as load:
        load.wait_started()
        postgres.set_read_only(True)
        began = time.monotonic()
        wait_until("a quarantined file", lambda: quarantined_at(folders), 30, pause_seconds=0.05)
        told = "Quarantined"
        wait_until("quarantine in the status", lambda: condition(objects, "SpoolEmpty")["reason"] == told, 60)
        told_seconds = time.time() - quarantined_at(folders)[0]
        hold(READ_ONLY_SECONDS, began, lambda: True)
        read_only_seconds = time.monotonic() - began
        postgres.set_read_only(False)
        # A roll that is asked for with files in quarantine goes its way: they wait on their volume for a person.
        cluster.apply(spec_for(database, broker={"logLevel": "debug"}))
        wait_until("the roll to go to its end", rolled(cluster, uids, "0", "1", "2"), 400)
        quarantined = len(quarantined_at(folders))
        moved = requeue(cluster)
        wait_spools_empty(cluster)
        report = load.finish()
    cluster.wait_ready()

    assert quarantined > 0
    assert moved == quarantined
    assert told_seconds < QUARANTINE_TOLD_WITHIN_SECONDS
    assert cluster.restarts() == 0
    assert report["messages"]["lost"] == report["messages"]["foreign"] == 0
    figures.note(
        "database.read_only",
        {
            "read_only_seconds": round(read_only_seconds, 1),
            "seconds_from_first_quarantined_file_to_condition": round(told_seconds, 2),
            "quarantined_files": quarantined,
            "pushed": report["pushed"],
            "messages": report["messages"],
        },
    )
