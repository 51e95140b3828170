"""What a real broker does with a spool that holds a message which is stored already: a retry, or a commit unheard of.

Each replay batch becomes one segment per partition, and PostgreSQL refuses a segment as a whole when it knows one of
its messages within the dedup window. The broker takes that for "stored before" and removes the file. These tests pin
what was found in 1.3.0; when the first one fails, the broker has been mended and what is said about it can go.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import cache
from lab.broker_http import BrokerConnection
from lab.consuming import DrainPlan, DrainReport, drain
from tests.support.waiting import wait_until
from tests.unit.broker.loops import LONG_SECONDS
from tests.unit.broker.postgres_server import ADMIN, ADMIN_PASSWORD, PostgresServer, free_port

HERE = "127.0.0.1"
BROKER = cache.bin_dir() / "queen"
NEIGHBORS = ["neighbor-1", "neighbor-2", "neighbor-3"]

pytestmark = pytest.mark.skipif(not BROKER.exists(), reason="the broker has not been built here")
Start = Callable[[str], BrokerConnection]


@pytest.fixture
def start(own_postgres: PostgresServer, tmp_path: Path) -> Iterator[Start]:
    """Starts the broker with so many messages a replay batch, and returns once it is well."""
    own_postgres.start()
    port = free_port()
    settings = {
        "PG_HOST": HERE,
        "PG_PORT": str(own_postgres.port),
        "PG_DB": "postgres",
        "PG_USER": ADMIN,
        "PG_PASSWORD": ADMIN_PASSWORD,
        "PORT": str(port),
        "DB_POOL_SIZE": "28",
        "FILE_BUFFER_DIR": str(tmp_path / "spool"),
        "QUEEN_SYNC_ENABLED": "false",
        "QUEEN_HOTLIST_RESEED_MS": "1000",
    }
    started: list[subprocess.Popen[bytes]] = []
    opened: list[BrokerConnection] = []

    def started_with(messages_per_batch: str) -> BrokerConnection:
        environment = settings | {"FILE_BUFFER_MAX_BATCH": messages_per_batch}
        with (tmp_path / "log").open("wb") as log:
            started.append(subprocess.Popen([BROKER], env=environment, stdout=log, stderr=log))
        broker = BrokerConnection(f"http://{HERE}:{port}")
        opened.append(broker)
        wait_until("the broker to be well", lambda: is_well(broker), LONG_SECONDS)
        return broker

    try:
        yield started_with
    finally:
        for connection in opened:
            connection.close()
        for process in started:
            process.kill()
            process.wait()


def is_well(broker: BrokerConnection) -> bool:
    try:
        return broker.request("GET", "/health")[0] == 200
    except OSError:
        return False


def push(broker: BrokerConnection, transaction: str) -> str:
    item = {"queue": "q", "partition": "0", "payload": {}, "transactionId": transaction}
    status, answer = broker.request("POST", "/api/v1/push", {"items": [item]})
    assert status == 201
    return str(answer[0]["status"])


def spool_a_repeated_message(broker: BrokerConnection, spool: Path) -> DrainReport:
    """Store one message, spool it again between others of its partition, let all drain, and consume."""
    assert push(broker, "repeated") == "queued"
    broker.request("POST", "/api/v1/system/maintenance", {"enabled": True})
    spooled = [push(broker, name) for name in (NEIGHBORS[0], "repeated", *NEIGHBORS[1:])]
    assert spooled == ["buffered"] * 4
    broker.request("POST", "/api/v1/system/maintenance", {"enabled": False})
    wait_until("the drain", lambda: not [f for f in spool.rglob("*") if f.suffix in (".buf", ".tmp")], LONG_SECONDS)
    plan = DrainPlan(broker.url, "q", "g", seconds=5)  # five times what the broker takes to find replayed messages
    return drain(plan, ["repeated", *NEIGHBORS])


def test_a_message_that_is_stored_already_takes_the_rest_of_its_replay_batch_with_it(
    start: Start, tmp_path: Path
) -> None:
    drained = spool_a_repeated_message(start("100"), tmp_path / "spool")

    assert drained.missing_ids == NEIGHBORS
    assert drained.duplicates == 0


def test_in_batches_of_one_message_a_repeated_one_takes_no_other_with_it(start: Start, tmp_path: Path) -> None:
    drained = spool_a_repeated_message(start("1"), tmp_path / "spool")

    assert (drained.missing, drained.duplicates, drained.unique) == (0, 0, 4)
