"""Long scenarios under load on a real node, and the figures that they leave for the documentation."""

from __future__ import annotations

import pytest

from tests.support.figures import Figures
from tests.support.node_fixtures import *  # noqa: F403 - its list of names says what


@pytest.fixture(scope="session")
def figures() -> Figures:
    """Takes what a test has measured: `figures.note("roll.image", {"seconds": 41.2})`."""
    return Figures.of_environment()
