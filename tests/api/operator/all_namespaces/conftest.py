"""One operator for all namespaces, which serves every cluster of this folder's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.control_plane import ControlPlane
from tests.support.operators import OperatorProcess, install_account


@pytest.fixture(scope="package")
def operator(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """The operator. It ends with this folder's tests: those of other folders bring operators of their own."""
    account = install_account(plane, "queen-system")
    process = OperatorProcess(account, tmp_path_factory.mktemp("operator") / "operator.log", "operator")
    try:
        process.wait_until_it_works()
        yield process
        assert process.running, process.explain()
    finally:
        process.kill()
