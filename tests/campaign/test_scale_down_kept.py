"""Claims that stay at a scale-down: as the user wrote, since their broker is wanted again, or since it cannot drain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.postgres import Postgres
from tests.support.databases import Database
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.spools import brokers, claims, fill_spools, held_files, merged, messages_of_events
from tests.support.waiting import wait_until


def retained(cluster: Cluster) -> list[dict[str, Any]]:
    return list(cluster.status().get("retainedClaims", []))


def test_a_retained_claim_is_listed_with_what_it_holds_and_taken_up_when_its_broker_comes_back(
    cluster: Cluster, database: Database, tmp_path: Path
) -> None:
    spec = spec_for(database, replicas=2)
    spec["spool"] |= {"onScaleDown": "Retain"}
    cluster.apply(spec)
    cluster.wait_ready()
    before, uids = claims(cluster), cluster.pod_uids()

    cluster.apply({**spec, "replicas": 1})
    wait_until("the claim in the status", lambda: [c["name"] for c in retained(cluster)], seconds=120)
    cluster.wait_ready()
    kept = retained(cluster)

    assert kept == [
        {"name": "orders-spool-1", "known": True, "files": 0, "bytes": 0, "events": 0, "quarantinedFiles": 0}
    ]
    assert claims(cluster) == before
    assert set(cluster.pod_uids()) == {"0"}
    assert messages_of_events(cluster, "SpoolClaimRetained")

    cluster.apply(spec)
    cluster.wait_ready()
    pushed = cluster.push("--count", "10", "--record", tmp_path / "sent", service="orders-1")
    drained = cluster.drain(tmp_path / "sent")

    assert pushed["queued"] == 10
    assert all_came_once(drained, 10)
    assert claims(cluster) == before
    assert retained(cluster) == []
    assert cluster.pod_uids()["0"] == uids["0"]


def test_a_broker_that_is_wanted_again_while_it_leaves_comes_back_with_its_volume(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database, replicas=2))
    cluster.wait_ready()
    before, uids = claims(cluster), cluster.pod_uids()

    postgres.stop()
    spooled = fill_spools(cluster, tmp_path, ["orders-1"])
    cluster.apply(spec_for(database, replicas=1))
    postgres.start()
    wait_until("its Deployment to go", lambda: cluster.kubectl.get("deployment", "orders-1") is None, seconds=120)
    cluster.apply(spec_for(database, replicas=2))
    cluster.wait_ready()
    wait_until("empty spools", lambda: held_files(cluster, "orders-1") == 0)
    drained = cluster.drain(spooled)

    assert claims(cluster) == before
    assert cluster.pod_uids()["0"] == uids["0"]
    assert cluster.pod_uids()["1"] != uids["1"]
    assert messages_of_events(cluster, "BrokerTakenBack")
    assert all_came_once(drained, 20)


def set_by_hand(cluster: Cluster, variable: str) -> None:
    """What somebody does who tries a variable on one broker, past the operator."""
    cluster.kubectl("set", "env", "deployment/orders-1", "--containers=broker", variable)


def waits(cluster: Cluster, broker: str) -> str:
    return str(brokers(cluster).get(broker, {}).get("waitingFor", ""))


def test_a_surplus_broker_that_cannot_run_keeps_its_claim_and_holds_up_nobody(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database, replicas=2))
    cluster.wait_ready()
    before, uids = claims(cluster), cluster.pod_uids()

    postgres.stop()
    spooled = fill_spools(cluster, tmp_path, ["orders-1"])
    cluster.apply(spec_for(database, replicas=1))
    set_by_hand(cluster, "QUEEN_SWEEPER=perhaps")
    wait_until("a broken pod", lambda: cluster.pod_uids().get("1", uids["1"]) != uids["1"], seconds=120)
    postgres.start()
    wait_until("the block", lambda: cluster.status()["phase"] == "Blocked", seconds=200)
    blocked, words = cluster.status(), waits(cluster, "orders-1")

    assert "orders-1 is to be taken away" in blocked["message"]
    assert "its volume holds" in words
    assert f"{held_files(cluster, 'orders-1')} files" in words
    assert held_files(cluster, "orders-1") > 0
    assert "QUEEN_SWEEPER" in words
    assert cluster.condition("Stalled")["reason"] == "RemovalBlocked"

    changed = spec_for(database, replicas=1, broker={"logLevel": "debug"})
    cluster.apply(changed)
    wait_until("the staying broker to be changed", lambda: cluster.pod_uids().get("0") != uids["0"], seconds=150)
    wait_until("it to be Ready", lambda: cluster.status()["readyReplicas"] == 1, seconds=120)
    served = cluster.push("--count", "10", "--record", tmp_path / "later", service="orders-0")

    assert served["queued"] == 10
    assert claims(cluster) == before
    assert held_files(cluster, "orders-1") > 0

    set_by_hand(cluster, "QUEEN_SWEEPER-")
    wait_until("the claim to go", lambda: set(claims(cluster)) == {"orders-spool-0"}, seconds=200)
    cluster.wait_ready()
    drained = cluster.drain(merged(tmp_path / "all", spooled, tmp_path / "later"))

    assert all_came_once(drained, 30)
