"""A real API server for the tests of this folder; no controllers, so that tests themselves write every status."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab import cache
from lab.control_plane import ControlPlane
from lab.kubectl import Kubectl
from tests.support.definition import install_definition
from tests.support.namespaces import NamespacedKubectl, fresh_name, namespace_object
from tests.support.ports import free_port


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One API server for the whole run, with the CRD and with an audit log."""
    state = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(state, cache.bin_dir(), free_port(), audit=True) as plane:
        install_definition(Kubectl(plane.kubeconfig))
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> str:
    """A namespace of this test's own, with the ServiceAccount `default`; it goes with the API server."""
    name = fresh_name(request.node.originalname)
    kubectl = Kubectl(control_plane.kubeconfig)
    # Without it no pod is admitted, and the controller that makes it does not run here.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    kubectl.apply([namespace_object(name)])
    kubectl.apply([account], name)
    return name


@pytest.fixture
def kubectl(control_plane: ControlPlane, namespace: str) -> NamespacedKubectl:
    """kubectl as administrator in this test's namespace."""
    return NamespacedKubectl(control_plane.kubeconfig, namespace)
