"""A cluster comes back from a backup, in whatever order it is restored: no claim lost, nothing there twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.postgres import Postgres
from tests.support.databases import Database
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.spools import claims, exists, fill_spools, messages_of_events
from tests.support.waiting import wait_until

OURS = "app.kubernetes.io/managed-by=queen-operator"
CHILDREN = "deployments,services,secrets,poddisruptionbudgets,serviceaccounts"
# What an API server gives an object, and no backup brings back.
GIVEN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "finalizers")
# Marks of a binding that is past: with them a claim is lost instead of bound again.
BINDING = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/")

Object = dict[str, Any]


def backed_up(item: Object) -> Object:
    """The object as a backup keeps it: owner references too, although their owner will be another one."""
    meta = {key: value for key, value in item["metadata"].items() if key not in GIVEN}
    marks = meta.get("annotations", {})
    meta["annotations"] = {key: value for key, value in marks.items() if not key.startswith(BINDING)}
    return {key: value for key, value in item.items() if key != "status"} | {"metadata": meta}


class Backup:
    """The objects of a cluster, and its end, with the volume kept and messages on it."""

    def __init__(self, cluster: Cluster, database: Database, postgres: Postgres, folder: Path) -> None:
        spec = spec_for(database, replicas=1)
        spec["spool"] |= {"storageClassName": "lab-retain"}
        cluster.apply(spec)
        cluster.wait_ready()
        kubectl = cluster.kubectl
        self.resource = backed_up(cluster.resource())
        self.claims = [backed_up(item) for item in kubectl.items("pvc", OURS)]
        self.children = [backed_up(item) for item in kubectl.items(CHILDREN, OURS)]
        postgres.stop()
        self.messages = fill_spools(cluster, folder, ["orders-0"])
        kubectl("delete", "queencluster", cluster.name, "--timeout=30s")
        wait_until("the pods to end", lambda: not kubectl.items("pods"), seconds=90)
        wait_until("the children to be collected", lambda: not kubectl.items(CHILDREN, OURS), seconds=60)
        postgres.start()


def has_come_back(cluster: Cluster, backup: Backup) -> None:
    """Ready, every message is there, and there is one of everything."""
    cluster.wait_ready()
    kubectl = cluster.kubectl

    assert all_came_once(cluster.drain(backup.messages), 20)
    assert [item["metadata"]["name"] for item in kubectl.items("deployments")] == ["orders-0"]
    assert len(cluster.pods()) == 1
    owners = {owner["uid"] for item in kubectl.items(CHILDREN, OURS) for owner in item["metadata"]["ownerReferences"]}
    assert owners == {cluster.resource()["metadata"]["uid"]}


def test_claims_that_are_restored_first_are_taken_up_with_their_messages(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    backup = Backup(cluster, database, postgres, tmp_path)
    kubectl = cluster.kubectl
    volume = backup.claims[0]["spec"]["volumeName"]
    kubectl("delete", "pvc", "--all", "--timeout=30s")
    # What whoever restores a retained volume does: it is for whichever claim has the name now.
    kubectl.everywhere.run("patch", "pv", volume, '--patch={"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}')

    kubectl.apply(backup.claims)
    restored = claims(cluster)
    kubectl.apply([backup.resource])
    has_come_back(cluster, backup)

    assert claims(cluster) == restored
    assert "with 20 messages" in messages_of_events(cluster, "SpoolClaimAdopted")[0]


def test_a_resource_that_is_restored_first_keeps_the_claims_and_what_is_restored_over_them(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    backup = Backup(cluster, database, postgres, tmp_path)
    before = claims(cluster)

    cluster.kubectl.apply([backup.resource])
    wait_until("its Deployment", lambda: cluster.kubectl.get("deployment", "orders-0"), seconds=60)
    cluster.kubectl.apply(backup.claims)
    has_come_back(cluster, backup)

    assert claims(cluster) == before


def test_everything_restored_at_once_ends_with_one_of_each(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    backup = Backup(cluster, database, postgres, tmp_path)
    before = claims(cluster)
    assert not exists(cluster)

    cluster.kubectl.apply([*backup.children, *backup.claims, backup.resource])
    has_come_back(cluster, backup)

    assert claims(cluster) == before
