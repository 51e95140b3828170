"""A real node with a real PostgreSQL, for conftest files to import, and what explains a failure on it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Generator, Iterator

import pytest

from lab import cache, demo_cluster, images
from lab.kubectl import Kubectl
from lab.node import Node
from lab.postgres import Postgres
from lab.progress import LabError
from tests.support import diagnostics, node_folders
from tests.support.databases import Database, make_well
from tests.support.namespaces import NamespacedKubectl, fresh_name, namespace_object
from tests.support.node_clusters import Cluster
from tests.support.ports import free_port
from tests.support.waiting import wait_until

__all__ = [
    "cluster",
    "database",
    "kubectl",
    "namespace",
    "node",
    "operator_deployed",
    "postgres",
    "pytest_runtest_makereport",
]


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """One node for the whole run, with the images of pause and broker, and with an audit log."""
    node_folders.remove_abandoned()
    state = node_folders.own_folder("node")
    loaded = [cache.image("pause"), cache.image("broker")]
    started = Node.start(state, cache.bin_dir(), loaded, free_port(), audit=True)
    try:
        yield started
    finally:
        started.stop()
        node_folders.remove(state)


@pytest.fixture
def postgres(node: Node) -> Iterator[Postgres]:
    """The node's PostgreSQL, running; whatever a test does to it, the next one finds it well again."""
    server = node.postgres
    make_well(server)
    yield server
    make_well(server)


@pytest.fixture
def database(node: Node, postgres: Postgres, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database of this test's own; dropped at the end, whatever still uses it."""
    name = fresh_name(request.node.originalname).replace("-", "_")
    made = Database(name, name, secrets.token_hex(12))
    postgres.create_database(made.name, made.user, made.password)
    yield made
    make_well(postgres)
    postgres.drop_database(made.name, made.user)


@pytest.fixture
def namespace(node: Node, postgres: Postgres, database: Database) -> Iterator[str]:
    """A namespace of this test's own with the Service `postgres` and the Secret of the database; removed at the end."""
    name = database.name.replace("_", "-")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": database.secret}}
    secret["stringData"] = database.credentials()
    cluster = Kubectl(node.kubeconfig)
    cluster.apply([namespace_object(name)])
    cluster.apply([secret, *postgres.service_manifests(name, database.host)], name)
    wait_until(
        "the ServiceAccount of a new namespace",
        lambda: cluster.get("serviceaccount", "default", name),
    )
    yield name
    remove_namespace(NamespacedKubectl(node.kubeconfig, name))


def remove_namespace(kubectl: NamespacedKubectl) -> None:
    """Delete it and end its pods now; Kubernetes removes the rest by itself while the next tests run."""
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    # A test without an operator has nobody who would take the finalizers away. No such kind: nothing to do.
    with contextlib.suppress(LabError):
        for found in kubectl.items("queenclusters"):
            kubectl("patch", "queencluster", found["metadata"]["name"], "--type=merge", FINALIZERS_OFF)
    kubectl("delete", "pods", "--all", "--grace-period=1", "--wait=false")
    wait_until("the pods of the test to end", lambda: not kubectl.items("pods"), seconds=90)


FINALIZERS_OFF = '--patch={"metadata":{"finalizers":null}}'


@pytest.fixture
def kubectl(node: Node, namespace: str) -> NamespacedKubectl:
    """kubectl as administrator in this test's namespace."""
    return NamespacedKubectl(node.kubeconfig, namespace)


@pytest.fixture(scope="session")
def operator_deployed(node: Node) -> Kubectl:
    """The operator of this checkout, installed with its chart in the namespace queen-system, and available."""
    images.make_operator()
    node.load_image(cache.image("operator"))
    cluster = Kubectl(node.kubeconfig)
    demo_cluster.install_operator(cluster, images.operator_part(cache.CHECKOUT).key)
    return cluster


@pytest.fixture
def cluster(node: Node, operator_deployed: Kubectl, kubectl: NamespacedKubectl) -> Cluster:
    """The QueenCluster of this test, which an operator looks after once it is applied."""
    return Cluster(node, kubectl)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure what the cluster says about the test's namespace, before the namespace goes."""
    report = yield
    arguments = getattr(item, "funcargs", {})
    if report.failed and "namespace" in arguments and "node" in arguments:
        node: Node = arguments["node"]
        explanation = diagnostics.explain(node.kubeconfig, arguments["namespace"]) if node.is_running() else ""
        report.sections.append(("The cluster", explanation or f"the node is gone: {node.last_words()}"))
    return report
