"""Two pods on one spool: only one broker ever runs, whatever the access mode of the claim allows."""

from __future__ import annotations

from typing import Any

from tests.support.databases import Database
from tests.support.node_clusters import Cluster, spec_for
from tests.support.waiting import wait_until


def copy_of(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as somebody would copy it by hand: same spec, same claim, no owner and no labels."""
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "copy"}, "spec": spec}


def keeper_runs(pod: dict[str, Any]) -> bool:
    statuses = pod["status"].get("initContainerStatuses", [])
    return any("running" in status["state"] for status in statuses)


def broker_ever_ran(pod: dict[str, Any]) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    return any("running" in s["state"] or s["restartCount"] or "terminated" in s["lastState"] for s in statuses)


def test_a_second_pod_on_a_shared_claim_waits_for_the_lock_until_the_first_is_gone(
    cluster: Cluster, database: Database
) -> None:
    spec = spec_for(database, replicas=1)
    spec["spool"] |= {"accessMode": "ReadWriteOnce"}
    cluster.apply(spec)
    cluster.wait_ready()
    first = cluster.pods()[0]
    kubectl = cluster.kubectl
    kubectl.apply([copy_of(first)])

    def copied() -> dict[str, Any]:
        found = kubectl.get("pod", "copy")
        assert found is not None
        return found

    wait_until("the keeper of the copy to run", lambda: keeper_runs(copied()), seconds=120)
    ip = copied()["status"]["podIP"]
    told = cluster.node.run_inside(["curl", "--silent", "--max-time", "5", f"http://{ip}:9632/held"]).stdout
    waiting = copied()

    assert "lock" in told
    assert not broker_ever_ran(waiting)
    assert cluster.is_ready()

    kubectl("delete", "pod", first["metadata"]["name"], "--wait=false")
    # Whoever of the two waiting pods comes first: one broker at a time, and it starts only when the first has ended.
    wait_until("the first pod to be gone", lambda: kubectl.get("pod", first["metadata"]["name"]) is None, seconds=180)
    kubectl("delete", "pod", "copy", "--wait=false")
    cluster.wait_ready()


def test_a_second_pod_on_a_claim_for_one_pod_is_not_even_started(cluster: Cluster, database: Database) -> None:
    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()
    cluster.kubectl.apply([copy_of(cluster.pods()[0])])

    def why_not_scheduled() -> str:
        pod = cluster.kubectl.get("pod", "copy") or {"status": {}}
        conditions = pod["status"].get("conditions", [])
        return "".join(item.get("message", "") for item in conditions if item["type"] == "PodScheduled")

    wait_until("the scheduler's refusal", lambda: "ReadWriteOncePod" in why_not_scheduled(), seconds=120)

    assert cluster.is_ready()
