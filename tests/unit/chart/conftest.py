"""Tests of the chart need the real helm; without it they are skipped, and the skip says so."""

import pytest

from tests.unit.chart import helm


@pytest.fixture(scope="session")
def needs_helm() -> None:
    """Skip when there is no helm: the laboratory has not been set up."""
    if helm.program() is None:
        pytest.skip("no helm here: make setup brings it")
