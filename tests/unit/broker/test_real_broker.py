"""One real broker on one real PostgreSQL, through an outage, a freeze and maintenance mode."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest

from lab import cache
from queen_operator.broker.database import Connection, look
from queen_operator.broker.polls import Polls
from queen_operator.planning.observed import BrokerPage, DatabaseState
from tests.unit.broker.loops import LONG_SECONDS, NOW, run
from tests.unit.broker.postgres_server import ADMIN, ADMIN_PASSWORD, PostgresServer, free_port

HERE = "127.0.0.1"
BROKER = cache.bin_dir() / "queen"
WELL = BrokerPage(NOW, True, True, False, 0, 0, True, True)

pytestmark = pytest.mark.skipif(not BROKER.exists(), reason="the broker has not been built here")
Seen = TypeVar("Seen")


@dataclass
class Broker:
    port: int
    database: PostgresServer

    @property
    def connection(self) -> Connection:
        return Connection(HERE, self.database.port, "postgres", ADMIN, ADMIN_PASSWORD, False, True, None)


@pytest.fixture
def broker(own_postgres: PostgresServer, tmp_path: Path) -> Iterator[Broker]:
    own_postgres.start()
    made = Broker(free_port(), own_postgres)
    settings = {
        "PG_HOST": HERE,
        "PG_PORT": str(own_postgres.port),
        "PG_DB": "postgres",
        "PG_USER": ADMIN,
        "PG_PASSWORD": ADMIN_PASSWORD,
        "PORT": str(made.port),
        "DB_POOL_SIZE": "28",
        "FILE_BUFFER_DIR": str(tmp_path / "spool"),
        "QUEEN_SYNC_ENABLED": "false",
    }
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([BROKER], env=settings, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield made
    finally:
        process.kill()
        process.wait()


async def eventually(ask: Callable[[], Awaitable[Seen]], good: Callable[[Seen], bool]) -> Seen:
    """Ask until the answer is good."""
    last = None
    try:
        async with asyncio.timeout(LONG_SECONDS):
            while True:
                last = await ask()
                if good(last):
                    return last
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"still {last}")


def test_a_real_broker_is_seen_through_an_outage_a_freeze_and_maintenance(broker: Broker) -> None:
    async def ask(polls: Polls) -> None:
        async def page() -> BrokerPage:
            return await polls.page(HERE, NOW)

        await eventually(page, lambda seen: seen == WELL)

        await eventually(lambda: polls.set_maintenance(HERE, True, None), bool)
        assert await page() == replace(WELL, maintenance=True)
        await eventually(lambda: polls.set_maintenance(HERE, False, None), bool)
        assert await page() == WELL

        with broker.database.frozen(backends=True):
            assert await page() == BrokerPage(NOW, alive=True, answering=False)
            assert (await look(broker.connection, NOW, timeout_seconds=0.5)).state is DatabaseState.FROZEN
            assert await polls.set_maintenance(HERE, True, None) is None
        await eventually(page, lambda seen: seen == replace(WELL, maintenance=True))
        assert (await look(broker.connection, NOW)).state is DatabaseState.REACHABLE
        await eventually(lambda: polls.set_maintenance(HERE, False, None), bool)

        broker.database.stop()
        away = await page()
        assert (away.alive, away.answering, away.cluster_series, away.maintenance) == (True, True, False, False)
        assert (await look(broker.connection, NOW)).state is DatabaseState.REFUSED

    async def work() -> None:
        polls = Polls(broker_port=broker.port)
        try:
            await ask(polls)
        finally:
            await polls.close()

    run(work())
