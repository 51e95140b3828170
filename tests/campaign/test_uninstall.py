"""The operator is uninstalled, or its definition deleted: what that ends, and that no claim is among it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import demo_cluster
from lab.kubectl import Kubectl
from lab.postgres import Postgres
from tests.support.databases import Database
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.spools import OPERATOR_NAMESPACE, claims, fill_spools
from tests.support.waiting import wait_until

DEFINITION = "queenclusters.queen-operator.dev"


@pytest.fixture
def installed_again(operator_deployed: Kubectl) -> Iterator[str]:
    """The key of the installed operator; whatever a test does to it, it is installed afterwards."""
    key = demo_cluster.installed_image(operator_deployed)
    yield key
    demo_cluster.install_operator(operator_deployed, key)


def test_an_uninstalled_operator_takes_nothing_with_it_and_goes_on_where_it_was(
    cluster: Cluster, database: Database, installed_again: str
) -> None:
    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()
    before, uids, everywhere = claims(cluster), cluster.pod_uids(), cluster.kubectl.everywhere

    uninstall = ("uninstall", "queen-operator", f"--namespace={OPERATOR_NAMESPACE}", "--wait", "--timeout=60s")
    everywhere.run(*uninstall, program="helm")
    pushed = cluster.push("--count", "10")

    assert everywhere.get("crd", DEFINITION, OPERATOR_NAMESPACE) is not None
    assert pushed["queued"] == 10
    assert claims(cluster) == before

    demo_cluster.install_operator(everywhere, installed_again)
    cluster.apply(spec_for(database, replicas=1, rollout={"minReadySeconds": 6}))
    cluster.wait_ready()

    assert cluster.pod_uids() == uids
    assert claims(cluster) == before


def test_a_deleted_definition_ends_every_cluster_and_no_claim(
    cluster: Cluster, database: Database, postgres: Postgres, installed_again: str, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()
    before, everywhere = claims(cluster), cluster.kubectl.everywhere

    postgres.stop()
    spooled = fill_spools(cluster, tmp_path, ["orders-0"])
    everywhere.run("delete", "crd", DEFINITION, "--timeout=60s")
    wait_until("the pods to end", lambda: not cluster.kubectl.items("pods"), seconds=90)

    assert claims(cluster) == before

    postgres.start()
    demo_cluster.install_operator(everywhere, installed_again)
    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()

    assert all_came_once(cluster.drain(spooled), 20)
    assert claims(cluster) == before
