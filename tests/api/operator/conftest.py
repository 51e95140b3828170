"""The real operator against a real API server with its controllers. There is no node: pods stay Pending.

A test that needs a pod in another state writes its status itself, in the kubelet's place, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from lab import cache
from lab.control_plane import ControlPlane
from lab.kubectl import Kubectl
from tests.support import diagnostics
from tests.support.namespaces import fresh_name, namespace_object
from tests.support.objects import Objects
from tests.support.operators import Account, OperatorProcess, Operators, install_account
from tests.support.ports import free_port

_CRDS = cache.CHECKOUT / "crds"


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with controllers, an audit log and the CRD."""
    state = tmp_path_factory.mktemp("plane")
    with ControlPlane.start(state, cache.bin_dir(), free_port(), controllers=True, audit=True) as started:
        kubectl = Kubectl(started.kubeconfig)
        for file in sorted(_CRDS.glob("*.yaml")):
            kubectl.run("apply", "--server-side", f"--filename={file}")
            kubectl.run("wait", "--for=condition=Established", f"--filename={file}", "--timeout=60s")
        yield started


@pytest.fixture
def new_namespace(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Callable[[], Objects]]:
    """Makes namespaces of this test's own, with the strictest pod security. Clusters in them are deleted at its end."""
    made: list[Objects] = []

    def make() -> Objects:
        name = fresh_name(request.node.originalname)
        objects = Objects(plane.kubeconfig, name)
        objects.make(namespace_object(name))
        made.append(objects)
        return objects

    yield make
    for objects in made:
        for name in objects.all("QueenCluster"):
            objects.delete("QueenCluster", name)


@pytest.fixture
def objects(new_namespace: Callable[[], Objects]) -> Objects:
    """A namespace of this test's own."""
    return new_namespace()


@pytest.fixture
def account(plane: ControlPlane, objects: Objects) -> Account:
    """The account of an operator for this test's namespace alone."""
    return install_account(plane, f"{objects.namespace}-ops", [objects.namespace])


@pytest.fixture(scope="session")
def cluster_wide_account(plane: ControlPlane) -> Account:
    """The account of an operator for all namespaces."""
    return install_account(plane, "queen-system")


@pytest.fixture(scope="module")
def operator(
    plane: ControlPlane, cluster_wide_account: Account, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """The operator for all namespaces. It runs only during modules that ask for it: others bring operators."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    # The same identity each time: the Lease of the module before is its own.
    process = OperatorProcess(cluster_wide_account, log, "operator")
    try:
        process.wait_until_it_works()
        yield process
        assert process.running, process.explain()
    finally:
        process.kill()


@pytest.fixture
def operators(tmp_path: Path) -> Iterator[Operators]:
    """Operators of this test's own."""
    made = Operators(tmp_path)
    yield made
    for process in made.started:
        process.kill()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure what the operators and the test's namespaces say, before they go."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, OperatorProcess):
                report.sections.append(("The operator", value.explain()))
            elif isinstance(value, Operators):
                report.sections.extend(("The operator", process.explain()) for process in value.started)
            elif isinstance(value, Objects):
                report.sections.append(("The namespace", diagnostics.explain(value.kubeconfig, value.namespace)))
    return report
