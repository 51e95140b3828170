"""Fixtures of the spool keeper's tests: a directory that any user may enter, and real keeper processes."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.spool_keeper.keeper_process import Keeper

StartKeeper = Callable[..., Keeper]


@pytest.fixture
def spool() -> Iterator[Path]:
    """An empty spool directory. Not below pytest's own, which only its owner may enter."""
    directory = Path(tempfile.mkdtemp(prefix="spool-keeper-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def start_keeper(spool: Path, tmp_path: Path) -> Iterator[StartKeeper]:
    """Starts keepers on the spool (or another directory) and ends whatever is left of them."""
    keepers: list[Keeper] = []

    def start(directory: Path = spool, **how: Any) -> Keeper:
        keepers.append(Keeper(directory, tmp_path / f"keeper-{len(keepers)}.log", **how))
        return keepers[-1]

    yield start
    for keeper in keepers:
        keeper.clean_up()
