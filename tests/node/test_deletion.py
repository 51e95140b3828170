"""The end of a QueenCluster: at once and with its claims kept, or after a drain and a proof, as the user wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.postgres import Postgres
from tests.support.databases import Database
from tests.support.history import History, removal_of
from tests.support.node_clusters import PODS, Cluster, all_came_once, spec_for
from tests.support.spools import (
    OPERATOR_NAMESPACE,
    claims,
    exists,
    fill_spools,
    messages_of_events,
    operator_away,
)
from tests.support.waiting import wait_until

CHILDREN = "deployments,services,secrets,poddisruptionbudgets,serviceaccounts"
OURS = "app.kubernetes.io/managed-by=queen-operator"
METRICS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/queen-operator-metrics:metrics/proxy/metrics"


def delete(cluster: Cluster, *options: str) -> None:
    cluster.kubectl("delete", "queencluster", cluster.name, *options)


def draining_spec(database: Database, **changes: Any) -> dict[str, Any]:
    """A cluster whose claims go with it."""
    spec = spec_for(database, **changes)
    spec["spool"] |= {"onDelete": "DeleteWhenEmpty"}
    return spec


def all_collected(cluster: Cluster) -> bool:
    return not cluster.kubectl.items(CHILDREN, OURS) and not cluster.kubectl.items("pods", OURS)


def unproved_releases(cluster: Cluster) -> float:
    """How often the operator let a deleted cluster go without a proof, as it counts."""
    lines = cluster.kubectl.everywhere.run("get", "--raw", METRICS).splitlines()
    return sum(float(line.split()[-1]) for line in lines if 'outcome="unproved"' in line and "_total{" in line)


def test_a_deletion_without_an_operator_is_done_at_once_and_the_claims_come_back_with_their_messages(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    spec = spec_for(database, replicas=2)
    cluster.apply(spec)
    cluster.wait_ready()
    before = claims(cluster)

    with operator_away(cluster.kubectl.everywhere):
        postgres.stop()
        spooled = fill_spools(cluster, tmp_path, ["orders-1"])
        delete(cluster, "--timeout=20s")

        assert not exists(cluster)

        wait_until("the children to be collected", lambda: all_collected(cluster), seconds=90)

        assert claims(cluster) == before

    cluster.apply(spec_for(database, replicas=2, postgres={**spec["postgres"], "database": "another"}))
    wait_until("the refusal", lambda: cluster.status().get("phase") == "Blocked", seconds=60)
    refusal = cluster.status()["message"]
    started = cluster.kubectl.items("pods", PODS)
    delete(cluster, "--cascade=foreground", "--timeout=20s")

    assert "is not started: its claim orders-spool-0 holds the spool of another database" in refusal
    assert started == []
    assert claims(cluster) == before

    postgres.start()
    cluster.apply(spec)
    cluster.wait_ready()
    drained = cluster.drain(spooled)
    told = sorted(messages_of_events(cluster, "SpoolClaimAdopted"))

    assert claims(cluster) == before
    assert [words.split(";")[0] for words in told] == [
        "The claim orders-spool-0 was there before this cluster and holds"
        " 0 files with 0 messages (0 bytes) and 0 quarantined files",
        told[1].split(";")[0],
    ]
    assert "orders-spool-1" in told[1]
    assert "with 20 messages" in told[1]
    assert all_came_once(drained, 20)


def test_a_deletion_that_waits_for_empty_spools_says_so_and_ends_when_they_are(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(draining_spec(database, replicas=2))
    cluster.wait_ready()
    history = History(cluster.node.kubeconfig, cluster.kubectl.namespace)
    before, uids, unproved = claims(cluster), cluster.pod_uids(), unproved_releases(cluster)

    postgres.stop()
    spooled = fill_spools(cluster, tmp_path, ["orders-0", "orders-1"])
    delete(cluster, "--wait=false")
    wait_until("why it waits", lambda: "PostgreSQL is away" in cluster.status()["message"], seconds=60)
    waiting = cluster.status()

    assert waiting["phase"] == "Degraded"
    assert claims(cluster) == before
    assert cluster.pod_uids() == uids

    postgres.start()
    wait_until("the cluster to go", lambda: not exists(cluster), seconds=200)
    removals = [removal_of(history, "orders", index) for index in (1, 0)]

    assert claims(cluster) == {}
    assert unproved_releases(cluster) == unproved
    assert all(removal.in_order for removal in removals), removals
    wait_until("the children to be collected", lambda: all_collected(cluster), seconds=60)

    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()

    assert all_came_once(cluster.drain(spooled), 40)


def test_a_deletion_in_the_foreground_takes_the_brokers_and_drains_what_they_left_before_it_ends(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(draining_spec(database, replicas=1))
    cluster.wait_ready()
    history = History(cluster.node.kubeconfig, cluster.kubectl.namespace)
    before = claims(cluster)

    postgres.stop()
    spooled = fill_spools(cluster, tmp_path, ["orders-0"])
    delete(cluster, "--cascade=foreground", "--wait=false")
    wait_until("why it waits", lambda: "PostgreSQL, which is away" in cluster.status()["message"], seconds=120)
    waiting = cluster.status()

    assert cluster.pods() == []
    assert claims(cluster) == before
    assert "20 messages" in waiting["message"]

    postgres.start()
    wait_until("the cluster to go", lambda: not exists(cluster), seconds=200)
    removal = removal_of(history, "orders", 0)

    assert claims(cluster) == {}
    assert removal.in_order, removal
    assert removal.report["exitCode"] == 0
    wait_until("the children to be collected", lambda: all_collected(cluster), seconds=60)

    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()

    assert all_came_once(cluster.drain(spooled), 20)


def test_a_namespace_goes_although_its_cluster_wants_a_drain_and_that_nothing_was_proved_is_counted(
    cluster: Cluster, database: Database
) -> None:
    cluster.apply(draining_spec(database, replicas=1))
    cluster.wait_ready()
    everywhere, name = cluster.kubectl.everywhere, cluster.kubectl.namespace
    counted = unproved_releases(cluster)

    everywhere.run("delete", "namespace", name, "--wait=false")
    wait_until("the namespace to go", lambda: everywhere.get("namespace", name, name) is None, seconds=150)
    log = everywhere.run(f"--namespace={OPERATOR_NAMESPACE}", "logs", "deployment/queen-operator")

    assert unproved_releases(cluster) == counted + 1
    assert [line for line in log.splitlines() if name in line and "unproved" in line]

    # The end of the test deletes it.
    everywhere.run("create", "namespace", name)
