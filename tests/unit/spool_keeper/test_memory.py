"""The keeper runs beside every broker, so what it costs is a promise: 12 MiB for both processes together."""

from pathlib import Path

from tests.unit.spool_keeper.conftest import StartKeeper
from tests.unit.spool_keeper.keeper_process import Keeper, wait_for
from tests.unit.spool_keeper.spool_files import add_links, records

LIMIT_KIB = 12 * 1024


def proportional_kib(keeper: Keeper) -> int:
    """Memory of both processes, what they share counted once (PSS), in KiB."""
    total = 0
    for pid in (keeper.pid, keeper.child_pid()):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total


def test_both_processes_together_stay_small(spool: Path, start_keeper: StartKeeper) -> None:
    keeper = start_keeper()
    keeper.wait_until_held()
    idle = proportional_kib(keeper)
    for _ in range(50):
        keeper.ask("/spool")
        keeper.ask("/metrics")
    after_requests = proportional_kib(keeper)
    add_links(spool, 1_700_000_000_000, [records(2)], 10_000)
    wait_for(lambda: keeper.spool()["events"] == 20_000, "all messages are counted")
    with_files = proportional_kib(keeper)
    print(f"KiB: idle {idle}, after 100 requests {after_requests}, with 10,000 files {with_files}")  # noqa: T201
    assert max(idle, after_requests, with_files) < LIMIT_KIB
