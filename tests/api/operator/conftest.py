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
from tests.support.definition import install_definition
from tests.support.namespaces import fresh_name, namespace_object
from tests.support.objects import Objects
from tests.support.operators import Account, OperatorProcess, Operators, install_account
from tests.support.ports import free_port
from tests.support.scenes import Scene


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with controllers, an audit log and the CRD."""
    state = tmp_path_factory.mktemp("plane")
    with ControlPlane.start(state, cache.bin_dir(), free_port(), controllers=True, audit=True) as started:
        install_definition(Kubectl(started.kubeconfig))
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
            report.sections.extend(_explanations(value))
    return report


def _explanations(value: object) -> list[tuple[str, str]]:
    match value:
        case OperatorProcess():
            return [("The operator", value.explain())]
        case Operators(started=started):
            return [("The operator", process.explain()) for process in started]
        case Objects():
            return [("The namespace", diagnostics.explain(value.kubeconfig, value.namespace))]
        case Scene():
            return [found for part in (value.objects, *value.operators) for found in _explanations(part)]
        case _:
            return []
