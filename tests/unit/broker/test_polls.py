import asyncio
import gzip
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import queen_operator.spool_keeper.main as keeper_program
from queen_operator.broker.polls import CONNECTIONS, LARGEST_BODY_BYTES, Polls
from queen_operator.planning.observed import BrokerPage, Spool
from tests.unit.broker.http_servers import HttpServer, answer, serving
from tests.unit.broker.listeners import Handler, hang, raw
from tests.unit.broker.loops import LONG_SECONDS, NOW, run
from tests.unit.broker.postgres_server import free_port
from tests.unit.broker.test_keeper import said

HERE = "127.0.0.1"
PAGES = Path(__file__).parent / "pages"
HEALTHY = (PAGES / "healthy.txt").read_bytes()
AWAY = (PAGES / "database_away.txt").read_bytes()
METRICS = answer('{"uptime":12}')
SILENT = BrokerPage(asked_at=NOW, alive=False, answering=False)
FROZEN = BrokerPage(asked_at=NOW, alive=True, answering=False)
WELL = BrokerPage(NOW, True, True, False, 0, 0, True, True)
MAINTENANCE = "/api/v1/system/maintenance"


@asynccontextmanager
async def polls_of(server: HttpServer, timeout_seconds: float = 10.0) -> AsyncIterator[Polls]:
    polls = Polls(timeout_seconds=timeout_seconds, broker_port=server.port, keeper_port=server.port)
    try:
        yield polls
    finally:
        await polls.close()


async def page_of(routes: dict[str, Handler], timeout_seconds: float = 10.0) -> BrokerPage:
    async with serving(routes) as server, polls_of(server, timeout_seconds) as polls:
        return await polls.page(HERE, NOW)


async def spool_of(handler: Handler, timeout_seconds: float = 10.0) -> Spool | None:
    async with serving({"/spool": handler}) as server, polls_of(server, timeout_seconds) as polls:
        return await polls.spool(HERE, NOW)


# The keeper.


def test_a_spool_is_what_the_keeper_says() -> None:
    spool = run(spool_of(answer(said(files=4))))
    assert spool is not None
    assert (spool.files, spool.asked_at) == (4, NOW)


def test_the_real_keeper_is_understood(tmp_path: Path) -> None:
    (tmp_path / "queen-1700000000000-00000000.buf").write_bytes(b"\x02\x00\x00\x00{}")
    (tmp_path / "failed").mkdir()
    port = free_port()
    arguments = ("hold", "--spool-dir", str(tmp_path), "--port", str(port), "--termination-log", str(tmp_path / "end"))

    async def ask() -> Spool | None:
        keeper = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(Path(keeper_program.__file__)), *arguments, stderr=asyncio.subprocess.PIPE
        )
        polls = Polls(keeper_port=port)
        try:
            async with asyncio.timeout(LONG_SECONDS):
                while True:
                    spool = await polls.spool(HERE, NOW)
                    if spool is not None and spool.held:
                        return spool
                    await asyncio.sleep(0.05)
        finally:
            await polls.close()
            keeper.terminate()
            await keeper.communicate()

    spool = run(ask())
    assert spool is not None
    assert (spool.files, spool.bytes, spool.events, spool.quarantined_files, spool.empty) == (1, 6, 1, 0, False)


@pytest.mark.parametrize(
    "handler",
    [
        answer(said(), status=503),
        answer(said(), status=500),
        answer(said(), status=404),
        answer(said(), status=302, headers={"Location": "/spool"}),
        answer(gzip.compress(said()), headers={"Content-Encoding": "gzip"}),
        answer(""),
        answer("<html></html>"),
        answer(b" " * (LARGEST_BODY_BYTES - 10) + said()),
        answer(said() + b" " * LARGEST_BODY_BYTES),
        raw(b""),
        raw(b"held\n"),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + said()),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + said()),
        raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000),
        raw(b"\x16\x03\x01\x02\x00\x01" * 50),
    ],
)
def test_a_keeper_that_does_not_answer_properly_leaves_the_spool_unknown(handler: Handler) -> None:
    assert run(spool_of(handler)) is None


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"])
def test_a_keeper_that_hangs_leaves_the_spool_unknown(sent: bytes) -> None:
    assert run(spool_of(hang(sent), timeout_seconds=0.3)) is None


def test_a_redirect_is_not_followed() -> None:
    async def ask() -> list[tuple[str, str]]:
        routes = {"/spool": answer("", 302, {"Location": "/elsewhere"}), "/elsewhere": answer(said())}
        async with serving(routes) as server, polls_of(server) as polls:
            assert await polls.spool(HERE, NOW) is None
            return server.asked

    assert run(ask()) == [("GET", "/spool")]


def test_a_body_without_an_end_is_left_at_its_limit() -> None:
    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" " * 65536)
            await writer.drain()

    assert run(spool_of(endless)) is None


@pytest.mark.parametrize("pod_ip", ["", "no host", "127.0.0.1/24", "::"])
def test_an_address_that_is_none_is_unknown(pod_ip: str) -> None:
    async def ask() -> tuple[Spool | None, BrokerPage, bool | None]:
        polls = Polls(broker_port=free_port(), keeper_port=free_port())
        try:
            return (
                await polls.spool(pod_ip, NOW),
                await polls.page(pod_ip, NOW),
                await polls.set_maintenance(pod_ip, True, None),
            )
        finally:
            await polls.close()

    assert run(ask()) == (None, SILENT, False)


def test_an_ipv6_pod_is_asked() -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")

    async def ask() -> tuple[BrokerPage, str]:
        routes = {"/metrics": METRICS, "/metrics/prometheus": answer(HEALTHY)}
        async with serving(routes, host="::1") as server, polls_of(server) as polls:
            return await polls.page("::1", NOW), server.requests[0].headers["host"].split("]")[0]

    assert run(ask()) == (WELL, "[::1")


# The broker's pages.


def test_a_healthy_broker_is_asked_two_pages_and_nothing_else() -> None:
    async def ask() -> tuple[BrokerPage, HttpServer]:
        routes = {"/metrics": METRICS, "/metrics/prometheus": answer(HEALTHY)}
        async with serving(routes) as server, polls_of(server) as polls:
            return await polls.page(HERE, NOW), server

    page, server = run(ask())
    assert page == WELL
    assert server.asked == [("GET", "/metrics"), ("GET", "/metrics/prometheus")]
    assert all("authorization" not in request.headers for request in server.requests)


def test_a_broker_without_its_database_answers_and_says_so() -> None:
    page = run(page_of({"/metrics": METRICS, "/metrics/prometheus": answer(AWAY)}))
    assert page == BrokerPage(NOW, True, True, False, 1, 0, True, False)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + HEALTHY])
def test_a_broker_on_a_frozen_database_is_alive_and_not_answering(sent: bytes) -> None:
    page = run(page_of({"/metrics": METRICS, "/metrics/prometheus": hang(sent)}, timeout_seconds=0.5))
    assert page == FROZEN


def test_a_broker_that_answers_nothing_is_not_alive() -> None:
    page = run(page_of({"/metrics": hang(), "/metrics/prometheus": hang()}, timeout_seconds=0.3))
    assert page == SILENT


def test_a_port_without_a_broker_is_not_alive() -> None:
    async def ask() -> BrokerPage:
        polls = Polls(broker_port=free_port())
        try:
            return await polls.page(HERE, NOW)
        finally:
            await polls.close()

    assert run(ask()) == SILENT


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + HEALTHY, b"SSH-2.0-x\r\n"])
def test_a_broker_that_hangs_up_is_on_its_way_out_and_not_frozen(sent: bytes) -> None:
    page = run(page_of({"/metrics": METRICS, "/metrics/prometheus": raw(sent)}))
    assert page == SILENT


@pytest.mark.parametrize(
    "handler", [answer("oops", 500), answer("<html></html>"), answer("", 204), answer(HEALTHY, 503)]
)
def test_a_page_that_is_none_is_an_answer_that_says_nothing(handler: Handler) -> None:
    page = run(page_of({"/metrics": METRICS, "/metrics/prometheus": handler}))
    assert page == BrokerPage(asked_at=NOW, alive=True, answering=True)


@pytest.mark.parametrize("handler", [answer("", 404), answer("", 302, {"Location": "/metrics"}), raw(b""), raw(b"x")])
def test_a_metrics_route_that_fails_is_not_alive(handler: Handler) -> None:
    page = run(page_of({"/metrics": handler, "/metrics/prometheus": answer(HEALTHY)}))
    assert page == BrokerPage(NOW, False, True, False, 0, 0, True, True)


def test_a_page_of_very_many_queues_counts_for_its_beginning() -> None:
    queues = b"".join(b'queen_queue_parked_consumers{queue="q%06d"} 0\n' % number for number in range(40_000))
    assert len(queues) > LARGEST_BODY_BYTES
    page = run(page_of({"/metrics": METRICS, "/metrics/prometheus": answer(HEALTHY + queues)}))
    assert page == WELL
    page = run(page_of({"/metrics": METRICS, "/metrics/prometheus": answer(AWAY + queues)}))
    assert page == BrokerPage(NOW, True, True, False, 1, 0, True, None)


def test_a_broker_on_a_frozen_database_can_be_asked_without_touching_the_database() -> None:
    async def ask() -> tuple[BrokerPage, list[tuple[str, str]]]:
        async with serving({"/metrics": METRICS}) as server, polls_of(server) as polls:
            return await polls.page(HERE, NOW, ask_database=False), server.asked

    assert run(ask()) == (FROZEN, [("GET", "/metrics")])


def test_many_hanging_brokers_make_no_healthy_one_look_dead() -> None:
    async def ask() -> tuple[list[BrokerPage], BrokerPage, int]:
        frozen = {"/metrics": hang(), "/metrics/prometheus": hang()}
        well = {"/metrics": METRICS, "/metrics/prometheus": answer(HEALTHY)}
        async with (
            serving(frozen, host="127.0.0.2") as bad,
            serving(well, port=bad.port),
            polls_of(bad, timeout_seconds=1.0) as polls,
        ):
            hanging = [polls.page("127.0.0.2", NOW) for _ in range(CONNECTIONS)]
            *pages, last = await asyncio.gather(*hanging, polls.page(HERE, NOW))
            return pages, last, bad.most_at_once

    pages, last, most_at_once = run(ask())
    assert set(pages) == {SILENT}
    assert last == WELL
    assert most_at_once == CONNECTIONS


def test_no_cookie_and_no_connection_is_kept() -> None:
    async def ask() -> HttpServer:
        cookie = answer(said(), headers={"Set-Cookie": "a=b", "Connection": "keep-alive"})
        async with serving({"/spool": cookie}) as server, polls_of(server) as polls:
            for _ in range(3):
                assert await polls.spool(HERE, NOW) is not None
            return server

    server = run(ask())
    assert [request.headers.get("cookie") for request in server.requests] == [None] * 3
    assert [request.headers.get("connection") for request in server.requests] == ["close"] * 3


# Maintenance.


async def switch(handler: Handler, enabled: bool = True, token: str | None = None) -> tuple[bool | None, HttpServer]:
    async with serving({MAINTENANCE: handler}) as server, polls_of(server) as polls:
        return await polls.set_maintenance(HERE, enabled, token), server


@pytest.mark.parametrize("enabled", [True, False])
def test_a_switch_is_posted_and_confirmed(enabled: bool) -> None:
    done, server = run(switch(answer(json.dumps({"maintenanceMode": enabled})), enabled))
    assert done is True
    assert server.asked == [("POST", MAINTENANCE)]
    assert json.loads(server.requests[0].body) == {"enabled": enabled}
    assert server.requests[0].headers["content-type"] == "application/json"
    assert "authorization" not in server.requests[0].headers


def test_the_token_goes_with_the_switch_without_its_line_end() -> None:
    done, server = run(switch(answer('{"maintenanceMode":true}'), token="abc.def\n"))
    assert done is True
    assert server.requests[0].headers["authorization"] == "Bearer abc.def"


def test_a_token_that_cannot_be_sent_is_not_sent_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    done, server = run(switch(answer('{"maintenanceMode":true}'), token="very\r\nsecret: 1"))
    assert done is False
    assert server.requests == []
    assert "secret" not in caplog.text


def test_a_switch_without_an_answer_is_probably_done() -> None:
    done, server = run(switch(hang()))
    assert done is None
    assert server.asked == [("POST", MAINTENANCE)]


@pytest.mark.parametrize(
    "handler",
    [
        answer('{"error":"forbidden"}', 403),
        answer('{"error":"no token"}', 401),
        answer('{"maintenanceMode":true}', 500),
        answer('{"maintenanceMode":false}'),
        answer('{"maintenanceMode":"true"}'),
        answer("[true]"),
        answer("[" * 100_000),
        answer("<html></html>"),
        raw(b""),
    ],
)
def test_a_switch_that_is_not_confirmed_is_not_done(handler: Handler) -> None:
    assert run(switch(handler))[0] is False


def test_a_switch_that_reached_nobody_is_not_done() -> None:
    async def ask(port: int) -> bool | None:
        polls = Polls(broker_port=port)
        try:
            return await polls.set_maintenance(HERE, True, None)
        finally:
            await polls.close()

    assert run(ask(free_port())) is False


def test_a_switch_that_nobody_accepts_is_not_done(full_port: int) -> None:
    async def ask() -> bool | None:
        polls = Polls(broker_port=full_port)
        try:
            return await polls.set_maintenance(HERE, True, None)
        finally:
            await polls.close()

    assert run(ask()) is False


# The end.


def test_closing_twice_or_unused_is_harmless_and_later_calls_are_unknown() -> None:
    async def ask() -> tuple[Spool | None, BrokerPage, bool | None]:
        async with serving({"/spool": answer(said()), "/metrics": METRICS}) as server:
            unused = Polls()
            await unused.close()
            polls = Polls(broker_port=server.port, keeper_port=server.port)
            assert await polls.spool(HERE, NOW) is not None
            await polls.close()
            await polls.close()
            return (
                await polls.spool(HERE, NOW),
                await polls.page(HERE, NOW),
                await polls.set_maintenance(HERE, True, None),
            )

    assert run(ask()) == (None, SILENT, False)


def test_a_call_that_is_cancelled_ends_at_once() -> None:
    async def ask() -> None:
        routes = {"/metrics": hang(), "/metrics/prometheus": hang()}
        async with serving(routes) as server, polls_of(server, timeout_seconds=1000.0) as polls:
            call = asyncio.create_task(polls.page(HERE, NOW))
            await server.arrived(2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    run(ask())


def test_closing_ends_the_calls_in_flight_as_unknown() -> None:
    async def ask() -> tuple[BrokerPage, Spool | None, bool | None]:
        routes = {path: hang() for path in ("/metrics", "/metrics/prometheus", "/spool", MAINTENANCE)}
        async with serving(routes) as server, polls_of(server, timeout_seconds=1000.0) as polls:
            calls = asyncio.gather(
                polls.page(HERE, NOW), polls.spool(HERE, NOW), polls.set_maintenance(HERE, True, None)
            )
            await server.arrived(4)
            await polls.close()
            return await calls

    page, spool, switched = run(ask())
    assert (page, spool) == (SILENT, None)
    assert switched is not True
