"""How often who is asked: keepers often enough that quarantine is told at once, brokers as seldom as they may be."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from queen_operator.api.cluster import ParsedCluster, parse
from queen_operator.broker.polls import Polls
from queen_operator.cluster.client import Api
from queen_operator.cluster.kinds import POD
from queen_operator.cluster.store import Store
from queen_operator.control.memory import Memory
from queen_operator.control.poller import PAGES_REST, REST_SECONDS, Poller
from tests.unit.broker.http_servers import HttpServer, answer, serving
from tests.unit.broker.listeners import Handler
from tests.unit.broker.loops import run
from tests.unit.broker.test_keeper import said
from tests.unit.planning.scene import healthy_cluster

POD_ADDRESS = "127.0.0.1"
PAGE = answer("queen_file_buffer_pending 0\nqueen_maintenance_mode_enabled 0\nqueen_file_buffer_db_healthy 1\n")
WELL = {"files": 0, "bytes": 0, "events": 0, "quarantined_files": 0, "unfinished_files": 0, "oldest_age_seconds": None}


@dataclass
class Watched:
    """One broker's pod at rest, its poller, and the server that stands for keeper and broker."""

    poller: Poller
    memory: Memory
    cluster: ParsedCluster
    server: HttpServer
    routes: dict[str, Handler]

    async def look(self) -> tuple[bool, list[str]]:
        """Whether the look brought news, and the pages that it asked for."""
        before = len(self.server.requests)
        news = await self.poller.look(self.cluster)
        return news, sorted(request.path for request in self.server.requests[before:])

    def age_pages(self, by: timedelta) -> None:
        """As if the broker had been asked longer ago."""
        for uid, page in self.memory.pages.items():
            self.memory.pages[uid] = replace(page, asked_at=page.asked_at - by)


@asynccontextmanager
async def at_rest(api: Api) -> AsyncIterator[Watched]:
    """A cluster of one Ready broker that was asked once and has nothing to tell."""
    scene = healthy_cluster(replicas=1)
    resource = deepcopy(dict(scene.observed().resource))
    resource["spec"] = json.loads(json.dumps(scene.spec))
    memory = Memory(resource, busy=False)
    store = Store(api, (), lambda *_: None)
    pod: dict[str, Any] = deepcopy(scene.pods[0])
    pod["status"]["podIP"] = POD_ADDRESS
    pod["metadata"] |= {"namespace": resource["metadata"]["namespace"], "resourceVersion": "1"}
    store.put(POD, pod)
    routes = {"/spool": answer(said(**WELL)), "/metrics": answer("{}"), "/metrics/prometheus": PAGE}
    async with serving(routes) as server:
        polls = Polls(broker_port=server.port, keeper_port=server.port)
        try:
            watched = Watched(Poller(polls, store, memory), memory, parse(resource), server, routes)
            await watched.poller.look(watched.cluster)
            yield watched
        finally:
            await polls.close()


@pytest.fixture
def api() -> Api:
    """A client that no test here uses: what is looked at lies in the cache."""
    return Api.__new__(Api)


def test_at_rest_the_keeper_is_asked_alone_and_what_it_said_before_is_no_news(api: Api) -> None:
    async def twice() -> None:
        async with at_rest(api) as watched:
            assert await watched.look() == (False, ["/spool"])

    run(twice())


def test_a_quarantined_file_is_news_at_the_next_look_at_the_keeper(api: Api) -> None:
    async def quarantine() -> None:
        async with at_rest(api) as watched:
            watched.routes["/spool"] = answer(said(**WELL | {"quarantined_files": 1}))
            assert await watched.look() == (True, ["/spool"])

    run(quarantine())
    # One look after another, a read of the directory, a round and a write of the status lie between file and condition.
    assert REST_SECONDS <= 4


def test_a_broker_is_asked_for_its_pages_when_they_have_grown_old(api: Api) -> None:
    async def later() -> None:
        async with at_rest(api) as watched:
            watched.age_pages(PAGES_REST)
            news, asked = await watched.look()
            assert news
            assert {"/metrics", "/metrics/prometheus"} <= set(asked)

    run(later())


def test_while_something_moves_everybody_is_asked_at_each_look_and_each_may_decide_something(api: Api) -> None:
    async def busy() -> None:
        async with at_rest(api) as watched:
            watched.memory.busy = True
            news, asked = await watched.look()
            assert news
            assert {"/metrics", "/metrics/prometheus", "/spool"} <= set(asked)

    run(busy())


def test_free_space_that_moves_is_no_news_and_yet_the_answer_is_kept(api: Api) -> None:
    async def fuller() -> None:
        async with at_rest(api) as watched:
            watched.routes["/spool"] = answer(said(**WELL | {"free_bytes": 4_999_000_000}))
            assert await watched.look() == (False, ["/spool"])
            assert [spool.free_bytes for spool in watched.memory.spools.values()] == [4_999_000_000]

    run(fuller())


def test_files_that_wait_through_maintenance_mode_are_no_drain_that_stands_still(api: Api) -> None:
    async def maintained() -> None:
        async with at_rest(api) as watched:
            watched.memory.busy = True
            watched.routes["/spool"] = answer(said(**WELL | {"files": 3, "bytes": 600}))
            await watched.look()
            uid, before = next(iter(watched.memory.replays.items()))
            watched.memory.replays[uid] = replace(before, progress_at=before.progress_at - timedelta(hours=1))
            on = b"queen_file_buffer_pending 3\nqueen_maintenance_mode_enabled 1\nqueen_file_buffer_db_healthy 1\n"
            watched.routes["/metrics/prometheus"] = answer(on)
            await watched.look()
            assert watched.memory.replays[uid].progress_at >= before.progress_at

    run(maintained())
