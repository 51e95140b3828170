"""Brokers as people run them today: one hand-written StatefulSet manifest, without an operator.

It has what the usual manifest has and nothing more: a readiness and a startup probe that ask the database, a fixed
grace period, a fixed list of peers, one Service of Ready brokers. Only the requests are lowered, to fit a small node.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lab import images
from lab.node import Node
from tests.support.databases import Database
from tests.support.namespaces import NamespacedKubectl
from tests.support.pods import RESTRICTED_CONTAINER, RESTRICTED_POD
from tests.support.waiting import wait_until

NAME = "plain"
BROKERS = 3
GRACE_SECONDS = 60
HTTP, MESH = 6632, 6633
SPOOL = "/var/lib/queen/buffers"
LABELS = {"app": NAME}
INDEX = "apps.kubernetes.io/pod-index"


def manifests(database: Database) -> list[dict[str, Any]]:
    """The StatefulSet, its two Services and its disruption budget."""
    return [_headless_service(), _client_service(), _budget(), _stateful_set(database)]


def _metadata(name: str) -> dict[str, Any]:
    return {"name": name, "labels": LABELS}


def _headless_service() -> dict[str, Any]:
    ports = [{"name": "http", "port": HTTP}, {"name": "mesh", "port": MESH}]
    # The mesh finds its peers by DNS, also those that are not Ready yet.
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": LABELS, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(f"{NAME}-headless"), "spec": spec}


def _client_service() -> dict[str, Any]:
    spec = {"selector": LABELS, "ports": [{"name": "http", "port": HTTP}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(NAME), "spec": spec}


def _budget() -> dict[str, Any]:
    spec = {"minAvailable": 2, "selector": {"matchLabels": LABELS}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": _metadata(NAME), "spec": spec}


def _stateful_set(database: Database) -> dict[str, Any]:
    claim = {
        "metadata": {"name": "spool"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    pod = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": RESTRICTED_POD,
        "containers": [_container(database)],
    }
    spec = {
        "serviceName": f"{NAME}-headless",
        "replicas": BROKERS,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
        "volumeClaimTemplates": [claim],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": _metadata(NAME), "spec": spec}


def _container(database: Database) -> dict[str, Any]:
    health = {"httpGet": {"path": "/health", "port": "http"}}
    return {
        "name": "broker",
        "image": images.BROKER.name,
        "imagePullPolicy": "Never",
        "ports": [{"name": "http", "containerPort": HTTP}, {"name": "mesh", "containerPort": MESH}],
        "env": _environment(database),
        "startupProbe": {**health, "periodSeconds": 10, "failureThreshold": 30},
        "readinessProbe": health,
        "livenessProbe": {"tcpSocket": {"port": "http"}},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {**RESTRICTED_CONTAINER, "readOnlyRootFilesystem": True},
        "volumeMounts": [{"name": "spool", "mountPath": SPOOL}],
    }


def _environment(database: Database) -> list[dict[str, Any]]:
    peers = ",".join(f"{NAME}-{index}.{NAME}-headless:{MESH}" for index in range(BROKERS))
    values = {
        "PG_HOST": database.host,
        "PG_DATABASE": database.name,
        "PG_USER": database.user,
        "DB_POOL_SIZE": "20",
        "FILE_BUFFER_DIR": SPOOL,
        "QUEEN_MESH_PEERS": peers,
    }
    password = {"secretKeyRef": {"name": database.secret, "key": "password"}}
    return [*({"name": name, "value": value} for name, value in values.items()), _from("PG_PASSWORD", password)]


def _from(name: str, source: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "valueFrom": source}


@dataclass(frozen=True)
class PlainCluster:
    """The StatefulSet ``plain`` in the namespace of a test."""

    node: Node
    kubectl: NamespacedKubectl
    name: str = NAME

    def apply(self, database: Database) -> None:
        """Create it; what is there already stays as it is."""
        self.kubectl.apply(manifests(database))

    def url(self, service: str = NAME) -> str:
        return f"http://{service}.{self.kubectl.namespace}.svc.cluster.local:{HTTP}"

    def pods(self) -> list[dict[str, Any]]:
        """Broker pods, those that are leaving too."""
        return self.kubectl.items("pods", f"app={NAME}")

    def is_ready(self) -> bool:
        """Every broker Ready, and made from the template as it is now."""
        found = json.loads(self.kubectl("get", "statefulset", NAME, "--output=json"))
        status = found["status"]
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        updated = status.get("updateRevision") == status.get("currentRevision")
        return bool(seen and updated and status.get("readyReplicas") == BROKERS)

    def wait_ready(self, seconds: float = 300) -> None:
        wait_until(f"{NAME} to be Ready", self.is_ready, seconds)

    def set_environment(self, name: str, value: str) -> None:
        """Begin a rollout as a person does, with ``kubectl set env``."""
        self.kubectl("set", "env", f"statefulset/{NAME}", f"{name}={value}")

    def remove(self) -> None:
        """Delete everything of it and return when its pods are gone."""
        self.kubectl("delete", "statefulset,service,poddisruptionbudget", f"--selector=app={NAME}", "--wait=false")
        wait_until("the pods of the StatefulSet to end", lambda: not self.pods(), seconds=GRACE_SECONDS + 60)
        self.kubectl("delete", "persistentvolumeclaims", f"--selector=app={NAME}", "--wait=false")
