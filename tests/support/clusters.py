"""A small QueenCluster on an API server without a node, and what its status says."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from tests.support import specs
from tests.support.objects import Object, Objects
from tests.support.waiting import wait_until

PASSWORD = "correct-horse"
SECRET = "pg"
# Nobody listens there, so the operator's own look at the database is answered at once: refused.
DATABASE = {"host": "127.0.0.1", "port": 1, "passwordSecret": {"name": SECRET}}

# Values that YAML, JSON or a template could turn into others, and quantities in uncommon units.
ODD_SPEC: Object = {
    "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"memory": "2G"}},
    "spool": {"size": "5120Mi"},
    "broker": {
        "env": [
            {"name": name, "value": value}
            for name, value in (("A", "on"), ("B", "0123"), ("C", "1e3"), ("D", ""), ("E", "ñ✓"), ("F", "{{ x }}"))
        ]
    },
}
UNTOUCHED = {"orders-0": 1, "orders-1": 1, "orders-2": 1}


def queen_cluster(name: str = "orders", **spec: Any) -> Object:
    """The smallest cluster, with parts of the spec replaced or added."""
    return specs.resource(specs.minimal(**{"postgres": DATABASE, **spec}), name)


def claims(name: str = "orders", brokers: int = 3) -> set[tuple[str, str]]:
    """Kind and name of what outlives a cluster."""
    return {child for child in children(name, brokers) if child[0] == "PersistentVolumeClaim"}


def secret(name: str = SECRET, **values: str) -> Object:
    """A Secret of the user's; by default the password of the database."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in (values or {"password": PASSWORD}).items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def children(name: str = "orders", brokers: int = 3) -> set[tuple[str, str]]:
    """Kind and name of everything that the operator makes for a cluster."""
    indexes = range(brokers)
    return {
        ("Service", name),
        ("Service", f"{name}-push"),
        *(("Service", f"{name}-{index}") for index in indexes),
        *(("PersistentVolumeClaim", f"{name}-spool-{index}") for index in indexes),
        *(("Deployment", f"{name}-{index}") for index in indexes),
        ("ServiceAccount", name),
        ("Secret", f"{name}-mesh"),
        *([("PodDisruptionBudget", name)] if brokers > 1 else []),
    }


def has(objects: Objects, wanted: set[tuple[str, str]]) -> Callable[[], bool]:
    """A condition: every one of these objects exists."""

    def all_there() -> bool:
        found = {kind: objects.all(kind) for kind in {kind for kind, _ in wanted}}
        return all(name in found[kind] for kind, name in wanted)

    return all_there


def all_collected(objects: Objects, name: str = "orders") -> bool:
    """Whether nothing of a cluster is left but its claims, in a namespace that has no other."""
    owned = children(name) - claims(name)
    return not any(objects.get(*child) for child in owned) and not objects.all("Pod") and not objects.all("ReplicaSet")


def make_settled(objects: Objects, name: str = "orders", **spec: Any) -> None:
    """Make a cluster with its Secret and return when every child is there and the status has nothing more to tell."""
    if objects.get("Secret", SECRET) is None:
        objects.make(secret())
    objects.make(queen_cluster(name, **spec))
    wait_until(f"the children of {name}", has(objects, children(name, spec.get("replicas", 3))))
    wait_until(f"a look at the database of {name}", lambda: _database_state(objects, name) == "ConnectionRefused")
    wait_until(f"the operator to rest at {name}", lambda: rests(objects, name))


def status(objects: Objects, name: str = "orders") -> Object:
    """Status of a cluster."""
    return dict(objects.there("QueenCluster", name).get("status") or {})


def condition(objects: Objects, kind: str, name: str = "orders") -> Object:
    """One condition of a cluster; an empty one when it has none of this type."""
    return next((item for item in status(objects, name).get("conditions", ()) if item["type"] == kind), {})


def _database_state(objects: Objects, name: str) -> str:
    return str(status(objects, name).get("database", {}).get("state", ""))


def rests(objects: Objects, name: str = "orders") -> bool:
    """Whether the operator has seen the latest spec and has nothing to do."""
    found = objects.there("QueenCluster", name)
    seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
    return bool(seen and found["status"].get("plan", {}).get("action") == "Rest")


def not_ready_because(objects: Objects, reason: str, *words: str, name: str = "orders") -> Callable[[], bool]:
    """A condition: Ready is False for this reason, with all of these words in its message."""

    def told() -> bool:
        ready = condition(objects, "Ready", name)
        named = ready.get("status") == "False" and ready.get("reason") == reason
        return named and all(word in ready["message"] for word in words)

    return told


def generations(objects: Objects, kind: str = "Deployment") -> dict[str, int]:
    """Generation of every object of a kind: it moves with each change of a spec."""
    return {name: item["metadata"]["generation"] for name, item in objects.all(kind).items()}


def versions(objects: Objects, kind: str) -> dict[str, str]:
    """resourceVersion of every object of a kind: it moves with each write that changes anything."""
    return {name: item["metadata"]["resourceVersion"] for name, item in objects.all(kind).items()}
