"""A volume that ran full: its broker is restarted before space is added, and what was accepted comes once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lab.postgres import Postgres
from lab.volumes import SIZED, quantity_bytes
from queen_operator.api import names
from tests.support.databases import Database
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.pods import claim
from tests.support.spools import messages_of_events
from tests.support.waiting import wait_until

CLAIM = "orders-spool-0"
SMALL, LARGE = "8Mi", "16Mi"


def make_with_a_small_volume(cluster: Cluster, database: Database, **spool: Any) -> None:
    """One broker whose volume is full at its size: the claim is there before the operator would make a plain one."""
    spec = spec_for(database, replicas=1, spool={"size": SMALL, **spool})
    cluster.apply({**spec, "paused": True})
    sized = claim(CLAIM, "ReadWriteOncePod", SMALL, **{SIZED: "true"})
    sized["metadata"]["labels"] = names.broker_labels(cluster.name, 0)
    sized["metadata"]["annotations"][names.CLUSTER_UID_ANNOTATION] = cluster.resource()["metadata"]["uid"]
    cluster.kubectl.apply([sized])
    cluster.apply(spec)
    cluster.wait_ready()


def asked(cluster: Cluster) -> str:
    """The size that the claim asks for."""
    found = cluster.kubectl.get("pvc", CLAIM)
    assert found is not None
    return str(found["spec"]["resources"]["requests"]["storage"])


def room(cluster: Cluster) -> int:
    """The size in bytes of the volume's file system."""
    bound = cluster.kubectl.get("pvc", CLAIM)
    assert bound is not None
    volume = cluster.kubectl.get("pv", bound["spec"]["volumeName"])
    assert volume is not None
    found = os.statvfs(cluster.node.path(Path(volume["spec"]["local"]["path"])))
    return found.f_blocks * found.f_frsize


def seen(cluster: Cluster) -> bool:
    """Whether a round has looked at the spec as it is now."""
    resource = cluster.resource()
    return bool(resource["status"]["observedGeneration"] == resource["metadata"]["generation"])


def test_a_full_volume_grows_after_its_broker_was_restarted_and_no_accepted_message_is_lost(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    make_with_a_small_volume(cluster, database)
    uid = cluster.pod_uids()["0"]
    postgres.stop()
    wait_until("the outage in the status", lambda: cluster.condition("DatabaseReachable")["status"] == "False")

    pushed = cluster.push("--count", "600", "--payload-bytes", "20000", "--record", tmp_path / "sent")
    wait_until("the full volume in the status", lambda: cluster.condition("Ready")["reason"] == "SpoolFull")
    full = cluster.condition("Ready")["message"]
    cluster.apply(spec_for(database, replicas=1, spool={"size": LARGE}))
    wait_until("a look at the larger size", lambda: seen(cluster))
    while_away = asked(cluster)
    postgres.start()
    wait_until("the claim to grow", lambda: asked(cluster) == LARGE, seconds=180)
    pods_at_growth = {pod["metadata"]["uid"] for pod in cluster.pods()}
    cluster.wait_ready()
    drained = cluster.drain(tmp_path / "sent")

    assert pushed["buffered"] > 100
    assert pushed["failed"] > 0
    assert "PostgreSQL is away: orders-0's volume is full" in full
    assert "messages were refused with status failed" in full
    assert while_away == SMALL
    assert uid not in pods_at_growth
    assert all_came_once(drained, pushed["accepted"])
    assert messages_of_events(cluster, "BrokerRestarted") == [
        "orders-0 is restarted with a new pod: its volume was full."
    ]
    assert messages_of_events(cluster, "VolumeGrown") == [
        f"orders-0: its claim grows from {SMALL} to {LARGE}, the size in the spec."
    ]
    wait_until("the volume to grow", lambda: room(cluster) == quantity_bytes(LARGE))
    assert cluster.restarts() == 0


def test_a_volume_grows_by_itself_in_an_outage_before_a_push_is_refused(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    make_with_a_small_volume(cluster, database, autoGrow={"below": "50%", "step": SMALL, "max": LARGE})
    uids = cluster.pod_uids()
    postgres.stop()
    wait_until("the outage in the status", lambda: cluster.condition("DatabaseReachable")["status"] == "False")

    push = ("--count", "300", "--payload-bytes", "20000", "--record")
    before = cluster.push(*push, tmp_path / "before")
    wait_until("the volume to grow", lambda: room(cluster) == quantity_bytes(LARGE))
    after = cluster.push(*push, tmp_path / "after", queue="after")
    postgres.start()
    cluster.wait_ready()

    assert (before["buffered"], after["buffered"]) == (300, 300)
    assert all_came_once(cluster.drain(tmp_path / "before"), 300)
    assert all_came_once(cluster.drain(tmp_path / "after", queue="after"), 300)
    assert asked(cluster) == LARGE
    assert cluster.pod_uids() == uids
    assert len(messages_of_events(cluster, "VolumeGrown")) == 1
