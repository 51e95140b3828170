"""What tests with PostgreSQL in trouble look at: pods by broker, pages of brokers, volumes, memory, plans."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import quote

from lab.api_client import ApiClient
from lab.node import Node
from lab.processes import every_pid
from tests.support.node_clusters import PODS, PUSH_LABEL, Cluster
from tests.support.waiting import wait_until

Pod = dict[str, Any]
MAINTENANCE_ON: Final = b"queen_maintenance_mode_enabled 1"
MAINTENANCE_OFF: Final = b"queen_maintenance_mode_enabled 0"
_PORT: Final = 6632
_REQUEUE: Final = ("/usr/local/bin/spool-keeper", "requeue", "--spool-dir", "/var/lib/queen/spool")


def pods_of(cluster: Cluster) -> dict[str, Pod]:
    """The pods that stay, by broker index."""
    staying = (pod for pod in cluster.pods() if "deletionTimestamp" not in pod["metadata"])
    return {pod["metadata"]["labels"][PODS]: pod for pod in staying}


def is_ready(pod: Pod) -> bool:
    """Whether a pod is Ready and stays."""
    conditions = pod["status"].get("conditions", [])
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def ready_brokers(cluster: Cluster) -> set[str]:
    """Indexes of the brokers that have a Ready pod."""
    return {pod["metadata"]["labels"][PODS] for pod in cluster.pods() if is_ready(pod)}


def broker_container(pod: Pod) -> dict[str, Any]:
    """The status of the broker's container, empty before there is one."""
    found: Iterator[dict[str, Any]] = (s for s in pod["status"].get("containerStatuses", []) if s["name"] == "broker")
    return next(found, {})


def restarts_of(pod: Pod) -> int:
    """How often the broker's container of this pod was started again."""
    return int(broker_container(pod).get("restartCount", 0))


class UnableToTakePushes:
    """Looks at the pods five times a second and remembers the most brokers at once that could not take pushes.

    A broker takes pushes while its process listens and its pod is in the push Service, Ready or not.
    """

    def __init__(self, cluster: Cluster, brokers: int = 3) -> None:
        self.most = 0
        self.samples = 0
        self.longest_gap_seconds = 0.0
        self._reader = ApiClient.from_kubeconfig(cluster.node.kubeconfig).kept()
        self._path = f"/api/v1/namespaces/{cluster.kubectl.namespace}/pods?labelSelector={quote(PODS)}"
        self._brokers = brokers
        self._done = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> UnableToTakePushes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=30)
        self._reader.close()

    def _look(self) -> None:
        last = time.monotonic()
        while not self._done.wait(0.2):
            try:
                pods = self._reader.get(self._path)["items"]
            except OSError:
                continue  # the longest gap tells how long nothing was seen
            able = {pod["metadata"]["labels"].get(PODS) for pod in pods if takes_pushes(pod)}
            self.most = max(self.most, self._brokers - len(able))
            self.samples += 1
            last, before = time.monotonic(), last
            self.longest_gap_seconds = max(self.longest_gap_seconds, round(last - before, 2))


def takes_pushes(pod: Pod) -> bool:
    """Whether a pod stays, is in the push Service, and its broker listens."""
    metadata, container = pod["metadata"], broker_container(pod)
    listens = bool(container.get("started")) and "running" in container.get("state", {})
    return "deletionTimestamp" not in metadata and metadata["labels"].get(PUSH_LABEL) == "true" and listens


def rolled(cluster: Cluster, before: dict[str, str], *indexes: str) -> Callable[[], bool]:
    """A condition: these brokers have a Ready pod that is not the one of before."""

    def done() -> bool:
        now = pods_of(cluster)
        return all(i in now and now[i]["metadata"]["uid"] != before[i] and is_ready(now[i]) for i in indexes)

    return done


def plan_says(cluster: Cluster, *words: str) -> Callable[[], bool]:
    """A condition: the plan is to wait, and its sentence has all of these words."""

    def said() -> bool:
        plan = cluster.status().get("plan", {})
        return plan.get("action") == "Wait" and all(word in plan.get("reason", "") for word in words)

    return said


def stalled_with(cluster: Cluster, *words: str) -> Callable[[], bool]:
    """A condition: Stalled is True, and its sentence has all of these words."""

    def said() -> bool:
        stalled = cluster.condition("Stalled")
        return stalled.get("status") == "True" and all(word in stalled["message"] for word in words)

    return said


def set_secret(cluster: Cluster, name: str, **values: str) -> None:
    """Replace keys of a Secret, and leave its other keys alone."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    cluster.kubectl("patch", "secret", name, "--type=merge", f"--patch={json.dumps({'data': data})}")


def events(cluster: Cluster, reason: str) -> list[dict[str, Any]]:
    """The Events with this reason."""
    return [event for event in cluster.kubectl.items("events") if event["reason"] == reason]


def get_page(cluster: Cluster, pod: str, path: str) -> bytes:
    """GET a page of a broker through the API server's proxy."""
    return cluster.kubectl.everywhere.run("get", "--raw", _proxied(cluster, pod, path)).encode()


def post_maintenance(cluster: Cluster, pod: str, *, enabled: bool) -> dict[str, Any]:
    """What a person does: POST the wanted mode to one broker; the mesh tells the others."""
    path = _proxied(cluster, pod, "api/v1/system/maintenance")
    answer = cluster.kubectl.everywhere.run("create", "--raw", path, "-f", "-", stdin=json.dumps({"enabled": enabled}))
    return dict(json.loads(answer))


def maintenance_is(cluster: Cluster, line: bytes) -> Callable[[], bool]:
    """A condition: every broker's page has this line."""
    return lambda: all(
        line in get_page(cluster, pod["metadata"]["name"], "metrics/prometheus") for pod in pods_of(cluster).values()
    )


def _proxied(cluster: Cluster, pod: str, path: str) -> str:
    return f"/api/v1/namespaces/{cluster.kubectl.namespace}/pods/{pod}:{_PORT}/proxy/{path}"


def spool_folder(cluster: Cluster, index: str) -> Path:
    """The folder of a broker's volume, as this machine sees it."""
    claim = cluster.kubectl.get("persistentvolumeclaim", f"{cluster.name}-spool-{index}")
    assert claim is not None
    volume = cluster.kubectl.get("persistentvolume", claim["spec"]["volumeName"])
    assert volume is not None
    return cluster.node.path(Path(volume["spec"]["local"]["path"]))


def quarantined_at(folders: list[Path]) -> list[float]:
    """When each quarantined file got there: a rename moves the change time of a file, and nothing else here does."""
    found = []
    for folder in folders:
        for file in folder.rglob("failed/*.buf"):
            try:
                found.append(file.stat().st_ctime)
            except FileNotFoundError:
                continue  # it was moved back meanwhile
    return sorted(found)


def requeue(cluster: Cluster) -> int:
    """Move quarantined files back on every broker, as the documentation says; returns how many."""
    moved = 0
    for pod in pods_of(cluster).values():
        said = cluster.kubectl("exec", pod["metadata"]["name"], "-c", "keeper", "--", *_REQUEUE)
        moved += json.loads(said.splitlines()[-1])["moved"]
    return moved


def memory_mib(node: Node, pods: dict[str, Pod]) -> dict[str, float]:
    """Resident memory of each broker process in MiB by broker index; a broker without a process is left out."""
    uids = {pod["metadata"]["uid"]: index for index, pod in pods.items()}
    found: dict[str, float] = {}
    for pid in every_pid():
        try:
            if not Path(f"/proc/{pid}/comm").read_text().startswith("queen"):
                continue
            cgroup = Path(f"/proc/{pid}/cgroup").read_text().replace("_", "-")
            status = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        index = next((index for uid, index in uids.items() if uid in cgroup), None)
        resident = next((line for line in status if line.startswith("VmRSS")), None)
        if index is not None and resident is not None:
            found[index] = round(int(resident.split()[1]) / 1024, 1)
    return found


def hold(seconds: float, since: float, check: Callable[[], bool]) -> None:
    """Let a trouble last this long since that monotonic time, and see that the check holds all the while."""
    while time.monotonic() - since < seconds:
        assert check()
        time.sleep(1)


def wait_spools_empty(cluster: Cluster, seconds: float = 180) -> None:
    """Return when every keeper says that its spool is empty, quarantine included."""
    wait_until("empty spools", lambda: cluster.condition("SpoolEmpty")["status"] == "True", seconds)
