"""Three brokers to one and back while clients push and poll, with spools that hold messages when it begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.postgres import Postgres
from tests.support.databases import Database
from tests.support.history import History, removal_of
from tests.support.loading import loading
from tests.support.node_clusters import Cluster, spec_for
from tests.support.spools import claims
from tests.support.waiting import wait_until

LOAD_SECONDS = 600


def spools_hold_messages(cluster: Cluster) -> bool:
    spools = [broker.get("spool") or {} for broker in cluster.status()["brokers"]]
    return len(spools) == 3 and all(spool.get("files") for spool in spools)


def test_three_to_one_to_three_under_load_loses_nothing_and_proves_each_claim_empty(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    history = History(cluster.node.kubeconfig, cluster.kubectl.namespace)
    before = claims(cluster)

    with loading(cluster, tmp_path, seconds=LOAD_SECONDS, retries=5, connections="half", poll_seconds=15) as load:
        load.wait_started()
        postgres.stop()
        wait_until("messages in each spool", lambda: spools_hold_messages(cluster), seconds=120)
        cluster.apply(spec_for(database, replicas=1))
        wait_until("why nothing goes", lambda: "PostgreSQL is away" in cluster.status()["message"], seconds=90)
        waiting = claims(cluster)
        postgres.start()
        wait_until("two claims to go", lambda: set(claims(cluster)) == {"orders-spool-0"}, seconds=400)
        cluster.wait_ready()
        cluster.apply(spec_for(database))
        cluster.wait_ready()
        report = load.finish()
    removals = [removal_of(history, "orders", index) for index in (2, 1)]
    after = claims(cluster)
    figures.note("scale.three_one_three", {"pushed": report["pushed"], "messages": report["messages"]})

    assert waiting == before
    assert all(removal.in_order for removal in removals), removals
    assert [json.loads(removal.report["message"])["files"] for removal in removals] == [0, 0]
    assert report["pushed"]["accepted"] == report["pushed"]["attempted"]
    assert (report["messages"]["lost"], report["messages"]["duplicated"], report["messages"]["foreign"]) == (0, 0, 0)
    assert set(after) == set(before)
    assert after["orders-spool-0"] == before["orders-spool-0"]
    assert cluster.restarts() == 0
