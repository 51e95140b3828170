"""Kills the operator on a node in the middle of its work: SIGKILL to its process, so that no last word is possible."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from lab.api_client import ApiClient, ApiError
from lab.demo_cluster import OPERATOR_NAMESPACE
from lab.node import Node
from lab.processes import ProcessId, every_pid

Object = dict[str, Any]
Seen = dict[str, Object]  # by UID
_PODS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods"
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases/queen-operator"
_WATCH_SECONDS = 3600
_COMMAND = b"queen-operator"
_AT_ONCE = {"gracePeriodSeconds": 0}


@dataclass
class OperatorKiller:
    """Kills whatever operator runs; ``kills`` tells when, how and at which moment, for the figures."""

    node: Node
    kills: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._client = ApiClient.from_kubeconfig(self.node.kubeconfig)

    def kill_container(self, moment: str) -> None:
        """Kill the process; kubelet starts the container again in the same pod, which still holds the Lease."""
        self._kill(moment, "container")

    def kill_pod(self, moment: str) -> None:
        """Kill the process and the pod, as when its node dies: the next pod waits until the Lease has run out."""
        pods = self._pods()
        self._kill(moment, "pod")
        for pod in pods:
            with contextlib.suppress(ApiError):  # gone already
                self._client.send("DELETE", f"{_PODS}/{pod['metadata']['name']}", _AT_ONCE)

    def is_leading(self) -> bool:
        """Whether a Ready pod of the operator holds the Lease; kubelet notices the end of a process a little late."""
        lease = self._client.get(_LEASE) or {"spec": {}}
        holder = lease["spec"].get("holderIdentity")
        ready = any(pod["metadata"]["name"] == holder and _is_ready(pod) for pod in self._pods())
        return ready and bool(self.processes())

    def _kill(self, moment: str, how: str) -> None:
        victims = self.processes()
        for victim in victims:
            victim.send(signal.SIGKILL)
        self.kills.append({"moment": moment, "how": how, "processes": len(victims), "at": time.time()})

    def processes(self) -> list[ProcessId]:
        """The operator's processes, by their cgroup: other nodes on this machine run operators too."""
        uids = [pod["metadata"]["uid"] for pod in self._pods()]
        found = []
        for pid in every_pid():
            with contextlib.suppress(OSError, LookupError):
                if _COMMAND not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    continue
                cgroup = Path(f"/proc/{pid}/cgroup").read_text().replace("_", "-")
                if any(uid in cgroup for uid in uids):
                    found.append(ProcessId.of(pid))
        return found

    def _pods(self) -> list[Object]:
        listed = self._client.get(_PODS)
        assert listed is not None
        return list(listed["items"])


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


class Moments:
    """A kept watch of one kind of objects; returns from a wait within milliseconds of the event that ends it."""

    def __init__(self, node: Node, path: str) -> None:
        self._client = ApiClient.from_kubeconfig(node.kubeconfig)
        self._path = path
        self._seen: Seen = {}
        self._changed = Event()
        self._broken: Exception | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, what: str, holds: Callable[[Object], bool], seconds: float) -> None:
        """Return as soon as the condition holds for one of the objects, as they are now; AssertionError otherwise."""
        deadline = time.monotonic() + seconds
        while True:
            self._changed.clear()
            if any(holds(item) for item in list(self._seen.values())):
                return
            assert self._broken is None, f"the watch of {self._path} broke: {self._broken!r}"
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}"
            self._changed.wait(1)

    def _run(self) -> None:
        try:
            for event in self._events():
                uid = event["object"]["metadata"]["uid"]
                if event["type"] == "DELETED":
                    self._seen.pop(uid, None)
                else:
                    self._seen[uid] = event["object"]
                self._changed.set()
        except Exception as error:  # told by the next wait
            self._broken = error

    def _events(self) -> Iterator[Object]:
        return self._client.watch(self._path, _WATCH_SECONDS)
