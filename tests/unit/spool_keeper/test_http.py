"""The keeper's HTTP part, asked over real sockets."""

import json
import os
import socket
import time
from pathlib import Path

import pytest

from tests.unit.spool_keeper.conftest import StartKeeper
from tests.unit.spool_keeper.keeper_process import GENEROUS_SECONDS, Keeper, wait_for
from tests.unit.spool_keeper.spool_files import add_file, records

NUMBERS = (
    "files",
    "bytes",
    "events",
    "oldest_age_seconds",
    "unfinished_files",
    "quarantined_files",
    "quarantined_bytes",
    "quarantined_events",
    "broken_records",
    "free_bytes",
    "total_bytes",
)


@pytest.fixture
def keeper(start_keeper: StartKeeper) -> Keeper:
    keeper = start_keeper()
    keeper.wait_until_held()
    return keeper


def talk(keeper: Keeper, request: bytes) -> bytes:
    """Send bytes and return all that comes back until the keeper closes."""
    with socket.create_connection(("127.0.0.1", keeper.port), timeout=GENEROUS_SECONDS) as connection:
        connection.sendall(request)
        received = b""
        while more := connection.recv(65536):
            received += more
        return received


def send_forever(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=GENEROUS_SECONDS) as connection:
        while True:
            connection.sendall(b"x" * 65536)


def metrics(keeper: Keeper) -> dict[str, float]:
    lines = keeper.ask("/metrics")[1].splitlines()
    return {name: float(value) for name, value in (line.split(" ") for line in lines if not line.startswith("#"))}


def test_the_spool_is_told_with_all_its_numbers(spool: Path, keeper: Keeper) -> None:
    add_file(spool, 1_700_000_000_000, records(3))
    add_file(spool, 1_700_000_009_000, records(2), ending="tmp")
    add_file(spool / "failed", 1_600_000_000_000, records(4) + b"tail")
    values = keeper.spool()
    assert values.pop("oldest_age_seconds") == pytest.approx(time.time() - 1_700_000_000, abs=60)
    assert 0 < values.pop("free_bytes") <= values.pop("total_bytes")
    assert values == {
        "held": True,
        "directory": str(spool),
        "writable": True,
        "files": 2,
        "bytes": len(records(3) + records(2)),
        "events": 5,
        "unfinished_files": 1,
        "quarantined_files": 1,
        "quarantined_bytes": len(records(4)) + 4,
        "quarantined_events": 4,
        "broken_records": 1,
        "error": None,
    }


def test_the_prometheus_page_says_the_same_and_explains_each_series(spool: Path, keeper: Keeper) -> None:
    add_file(spool, 1_700_000_000_000, records(3))
    page = keeper.ask("/metrics")[1]
    values = metrics(keeper)
    told = keeper.spool()
    for name in set(NUMBERS) - {"oldest_age_seconds", "free_bytes"}:
        assert values[f"queen_spool_{name}"] == told[name]
    assert values["queen_spool_oldest_age_seconds"] > 1_000_000
    assert values["queen_spool_free_bytes"] > 0
    assert (values["queen_spool_writable"], values["queen_spool_lock_held"]) == (1, 1)
    assert values["queen_spool_scrape_errors"] == 0
    for name in values:
        assert page.count(f"# HELP {name} ") == page.count(f"# TYPE {name} ") == 1
    assert len(values) == 14


def test_a_spool_that_cannot_be_read_has_no_numbers_and_is_an_error(spool: Path, start_keeper: StartKeeper) -> None:
    directory = spool / "inner"
    directory.mkdir()
    keeper = start_keeper(directory)
    keeper.wait_until_held()
    directory.rmdir()
    status, body = keeper.ask("/spool")
    values = json.loads(body)
    assert status == 503
    assert {values[name] for name in NUMBERS} == {None}
    assert values["error"] == f"cannot read {directory}: No such file or directory"
    assert values["held"] is True
    assert metrics(keeper) == {
        "queen_spool_writable": 0,
        "queen_spool_lock_held": 1,
        "queen_spool_scrape_errors": 2,
    }
    directory.mkdir()
    assert keeper.ask("/spool")[0] == 200


def test_a_directory_that_the_broker_cannot_write_keeps_the_probe_red_with_the_reason(
    spool: Path, start_keeper: StartKeeper
) -> None:
    spool.chmod(0o555)
    keeper = start_keeper(as_broker_uid=True)
    keeper.wait_until_serving()
    wait_for(lambda: keeper.spool()["held"], "the lock is held")
    status, body = keeper.ask("/held")
    assert status == 503
    assert body.startswith(f"{spool} (owner {os.getuid()}:{os.getgid()}, mode 0555) is not writable for uid ")
    assert body.count("\n") == 1
    values = keeper.spool()
    assert (values["writable"], values["error"], values["files"]) == (False, body.strip(), 0)
    assert metrics(keeper)["queen_spool_writable"] == 0
    assert f"not ready: {body}" in keeper.log

    spool.chmod(0o777)
    keeper.wait_until_held()
    assert keeper.spool()["error"] is None


def test_a_directory_that_may_not_even_be_opened_is_waited_for(spool: Path, start_keeper: StartKeeper) -> None:
    spool.chmod(0o000)
    keeper = start_keeper(as_broker_uid=True)
    keeper.wait_until_serving()
    red = (503, f"cannot lock {spool}: Permission denied\n")
    wait_for(lambda: keeper.ask("/held") == red, "the probe says why")
    assert keeper.ask("/spool")[0] == 503
    spool.chmod(0o777)
    keeper.wait_until_held()


def test_a_quarantine_that_the_broker_cannot_use_keeps_the_probe_red(spool: Path, start_keeper: StartKeeper) -> None:
    spool.chmod(0o777)
    (spool / "failed").write_text("in the way")
    keeper = start_keeper(as_broker_uid=True)
    keeper.wait_until_serving()
    wait_for(lambda: "is not a directory: the broker would delete" in keeper.ask("/held")[1], "the probe says why")
    (spool / "failed").unlink()
    (spool / "failed").mkdir(mode=0o555)
    if os.getuid() == 0:
        wait_for(lambda: f"{spool}/failed (owner 0:0, mode 0555) is not writable" in keeper.ask("/held")[1], "why")
    (spool / "failed").chmod(0o777)
    keeper.wait_until_held()


def test_every_page_is_a_whole_http_answer(keeper: Keeper) -> None:
    for path in ("/held", "/spool", "/metrics", "/healthz", "/nothing"):
        full = talk(keeper, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head, _, body = full.partition(b"\r\n\r\n")
        assert b"Connection: close" in head
        assert f"Content-Length: {len(body)}\r\n".encode() in head
        assert body
        without = talk(keeper, f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert without.split(b"\r\n")[0] == head.split(b"\r\n")[0]
        assert without.endswith(b"\r\n\r\n")
        assert b"Content-Length: " in without


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
        (b"\r\nGET /healthz?a=b HTTP/1.1\r\nhost: x\r\n\r\n", 200),
        (b"GET http://keeper:9632/healthz HTTP/1.1\r\nHost: keeper\r\n\r\n", 200),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET /healthz/ HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"POST /requeue HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 405),
        (b"DELETE /spool HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        (b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nCookie: " + b"c" * 9000 + b"\r\n\r\n", 431),
        (b"A" * 100_000, 431),
    ],
)
def test_a_request_gets_the_status_it_deserves(keeper: Keeper, request_bytes: bytes, status: int) -> None:
    answer = talk(keeper, request_bytes)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    body = answer.partition(b"\r\n\r\n")[2]
    if status >= 400:
        assert json.loads(body)["error"]
    assert (b"Allow: GET, HEAD" in answer) == (status == 405)
    assert keeper.ask("/healthz") == (200, "ok\n")


def test_nothing_over_http_moves_a_file(spool: Path, keeper: Keeper) -> None:
    path = add_file(spool / "failed", 1_700_000_000_000, records(1))
    for method in ("GET", "POST", "PUT", "DELETE"):
        for target in ("/requeue", "/spool", "/failed"):
            keeper.ask(target, method)
    assert path.exists()


def test_slow_and_silent_clients_hold_nobody_up_and_are_closed(keeper: Keeper) -> None:
    address = ("127.0.0.1", keeper.port)
    slow = [socket.create_connection(address, timeout=GENEROUS_SECONDS) for _ in range(40)]
    try:
        for connection in slow[::2]:
            connection.sendall(b"GET /spool HTTP/1.1\r\nHo")
        begun = time.monotonic()
        for _ in range(10):
            assert keeper.ask("/held")[0] == 200
        # In a queue behind those 40, the first would wait for 80 s.
        assert time.monotonic() - begun < GENEROUS_SECONDS
        assert all(connection.recv(1) == b"" for connection in slow)
    finally:
        for connection in slow:
            connection.close()


def test_more_clients_than_there_is_room_for_push_out_the_oldest(keeper: Keeper) -> None:
    address = ("127.0.0.1", keeper.port)
    crowd = [socket.create_connection(address, timeout=GENEROUS_SECONDS) for _ in range(200)]
    try:
        assert keeper.ask("/held")[0] == 200
    finally:
        for connection in crowd:
            connection.close()


def test_a_client_that_sends_forever_or_leaves_early_harms_nobody(keeper: Keeper) -> None:
    child = keeper.child_pid()
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", keeper.port), timeout=GENEROUS_SECONDS) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closing resets
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        send_forever(keeper.port)
    assert keeper.ask("/healthz")[0] == 200
    assert keeper.child_pid() == child


def test_a_request_that_comes_byte_by_byte_is_answered(keeper: Keeper) -> None:
    with socket.create_connection(("127.0.0.1", keeper.port), timeout=GENEROUS_SECONDS) as connection:
        for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
