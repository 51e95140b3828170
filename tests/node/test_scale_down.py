"""Fewer brokers and more again: nothing goes before it is drained, no claim before its volume is proved empty."""

from __future__ import annotations

import json
from pathlib import Path

from lab.postgres import Postgres
from tests.support.databases import Database
from tests.support.history import History, removal_of
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.spools import brokers, claims, fill_spools, merged, messages_of_events
from tests.support.waiting import wait_until

SERVICES = ("orders-0", "orders-1", "orders-2")


def waits_for_postgresql(cluster: Cluster, broker: str) -> bool:
    """The status says of this broker that it is to go, and that it stays while PostgreSQL is away."""
    words = brokers(cluster)[broker].get("waitingFor", "")
    return "is to be taken away" in words and "PostgreSQL is away" in words


def test_three_to_one_to_three_loses_no_message_and_each_claim_goes_only_after_its_proof(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    history = History(cluster.node.kubeconfig, cluster.kubectl.namespace)
    before, uids = claims(cluster), cluster.pod_uids()

    postgres.stop()
    spooled = fill_spools(cluster, tmp_path, SERVICES)
    cluster.apply(spec_for(database, replicas=1))
    wait_until("why nothing goes", lambda: waits_for_postgresql(cluster, "orders-2"), seconds=90)
    during = cluster.status()

    assert cluster.pod_uids() == uids
    assert claims(cluster) == before
    assert during["phase"] == "Degraded"
    assert "PostgreSQL is away" in during["message"]

    postgres.start()
    wait_until("two claims to go", lambda: set(claims(cluster)) == {"orders-spool-0"}, seconds=200)
    cluster.wait_ready()
    removals = [removal_of(history, "orders", index) for index in (2, 1)]

    assert all(removal.in_order for removal in removals), removals
    assert [removal.report["exitCode"] for removal in removals] == [0, 0]
    assert [json.loads(removal.report["message"])["files"] for removal in removals] == [0, 0]
    assert removals[0].claim_deleted < removals[1].deployment_deleted
    assert len(messages_of_events(cluster, "SpoolClaimDeleted")) == 2

    cluster.apply(spec_for(database))
    cluster.wait_ready()
    served = cluster.push("--count", "20", "--record", tmp_path / "later", service="orders-2")
    drained = cluster.drain(merged(tmp_path / "all", spooled, tmp_path / "later"))

    assert served["queued"] == 20
    assert all_came_once(drained, 80)
    after = claims(cluster)
    assert set(after) == set(before)
    assert after["orders-spool-0"] == before["orders-spool-0"]
    assert not {after["orders-spool-1"], after["orders-spool-2"]} & set(before.values())
    assert cluster.pod_uids()["0"] == uids["0"]
    assert cluster.restarts() == 0
