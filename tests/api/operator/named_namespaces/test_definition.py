"""The CRD comes late, or has let something in that it would not let in now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lab import cache
from lab.control_plane import ControlPlane
from lab.kubectl import Kubectl
from tests.support.clusters import condition, queen_cluster, secret, status
from tests.support.namespaces import fresh_name, namespace_object
from tests.support.objects import Object, Objects
from tests.support.operators import Account, Operators, install_account
from tests.support.ports import free_port
from tests.support.waiting import wait_until

_FILE = cache.CHECKOUT / "crds" / "queenclusters.yaml"


@pytest.fixture
def bare_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of this test's own, without the CRD and without controllers: nothing here needs a pod."""
    state = tmp_path_factory.mktemp("bare-plane")
    with ControlPlane.start(state, cache.bin_dir(), free_port()) as started:
        yield started


@pytest.fixture
def bare(bare_plane: ControlPlane) -> Objects:
    """A namespace of it."""
    objects = Objects(bare_plane.kubeconfig, fresh_name("bare"))
    objects.make(namespace_object(objects.namespace))
    return objects


@pytest.fixture
def bare_account(bare_plane: ControlPlane) -> Account:
    """The account of an operator for all its namespaces."""
    return install_account(bare_plane, "queen-system")


def _install(plane: ControlPlane, definition: Object) -> None:
    kubectl = Kubectl(plane.kubeconfig)
    kubectl.apply([definition])
    kubectl.run("wait", "--for=condition=Established", "crd/queenclusters.queen-operator.dev", "--timeout=60s")


def _definition() -> Object:
    definition: Object = yaml.safe_load(_FILE.read_text())
    return definition


def _loosen(version: Object) -> None:
    """Take every check of the spec away, as an early version of a definition might have had none."""
    schema = version["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema.pop("x-kubernetes-validations", None)
    # The scale subresource alone asks for a number of replicas.
    version["subresources"].pop("scale")


def _has_brokers(objects: Objects, name: str) -> bool:
    return objects.get("Deployment", f"{name}-2") is not None


def test_an_operator_that_starts_before_the_definition_says_so_ends_when_told_and_begins_when_it_is_there(
    bare_plane: ControlPlane, bare: Objects, bare_account: Account, operators: Operators
) -> None:
    told_to_end = operators.start(bare_account, "told-to-end")
    process = operators.start(bare_account)
    wait_until("the operator's own page", lambda: process.page("/readyz")[0] == 503)
    missing = "the CustomResourceDefinition queenclusters.queen-operator.dev is not installed"
    assert process.page("/readyz")[1] == missing
    assert process.page("/healthz") == (200, "ok")
    assert not process.leads()
    wait_until("the other one's page", lambda: told_to_end.page("/readyz")[0] == 503)
    assert told_to_end.stop(seconds=10) == 0

    _install(bare_plane, _definition())

    process.wait_until_it_works()
    bare.make(secret(), queen_cluster())
    wait_until("the brokers", lambda: _has_brokers(bare, "orders"))
    assert process.log().count(missing) == 1


def test_a_resource_that_cannot_be_read_blocks_itself_alone_until_it_is_corrected(
    bare_plane: ControlPlane, bare: Objects, bare_account: Account, operators: Operators
) -> None:
    loose = _definition()
    _loosen(loose["spec"]["versions"][0])
    _install(bare_plane, loose)
    bad: dict[str, Any] = queen_cluster("bad")
    bad["spec"] |= {"replicas": "three", "spool": {"size": ""}}
    wait_until("the loose definition to be served", lambda: _takes(bare, bad))
    bare.make(secret(), queen_cluster("good"))
    _install(bare_plane, _definition())
    process = operators.working(bare_account)

    wait_until("the good one to be served", lambda: _has_brokers(bare, "good"))
    wait_until("the bad one to be blocked", lambda: condition(bare, "Ready", "bad").get("reason") == "InvalidSpec")
    told = status(bare, "bad")
    assert told["phase"] == "Blocked"
    assert "spec.replicas: must be a whole number" in told["message"]
    assert "spec.spool.size" in told["message"]
    assert condition(bare, "Stalled", "bad")["status"] == "True"
    # A change of the good one is carried out beside it, also by an operator that starts with both.
    bare.delete("Service", "good")
    wait_until("the Service to be back", lambda: bare.get("Service", "good") is not None)
    assert not _has_brokers(bare, "bad")
    assert process.page("/healthz") == (200, "ok")

    bare.patch("QueenCluster", "bad", {"spec": {"replicas": 3, "spool": {"size": "5Gi"}}})

    wait_until("the corrected one to be served", lambda: _has_brokers(bare, "bad"))
    wait_until("the block to go", lambda: not condition(bare, "Stalled", "bad"))


def _takes(objects: Objects, resource: Object) -> bool:
    """Whether the API server stores it as it is: a changed definition takes a moment until it is used."""
    try:
        objects.make(resource)
    except OSError:
        return False
    return True
