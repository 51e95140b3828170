"""The fixtures of a real node for the tests of this folder."""

from __future__ import annotations

from tests.support.node_fixtures import (
    database,
    kubectl,
    namespace,
    node,
    operator_deployed,
    postgres,
    pytest_runtest_makereport,
)

__all__ = [
    "database",
    "kubectl",
    "namespace",
    "node",
    "operator_deployed",
    "postgres",
    "pytest_runtest_makereport",
]
