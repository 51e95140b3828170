"""The end of a leader, inside one process: what has stopped by the time another one may lead."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from queen_operator.cluster.client import connect
from queen_operator.control.process import Operator, Options
from queen_operator.control.workers import Workers
from tests.support.clusters import children, has, queen_cluster, secret
from tests.support.objects import Objects
from tests.support.operators import KEEPER_IMAGE, Account
from tests.support.ports import free_port
from tests.support.waiting import wait_until

# Longer than it takes to give a Lease up, so that the wrong order would show.
LAST_ROUND_SECONDS = 1.0


def holder(objects: Objects, account: Account) -> str:
    """Who holds the Lease; empty when nobody does."""
    lease = objects.elsewhere(account.namespace).get("Lease", "queen-operator")
    return str((lease or {"spec": {}})["spec"].get("holderIdentity", ""))


class SlowWorkers(Workers):
    """Workers whose last round takes a while; remembers who held the Lease when it had ended."""

    def __init__(self, objects: Objects, account: Account) -> None:
        super().__init__()
        self.at_the_end: list[str] = []
        self._objects, self._account = objects, account

    async def stop(self) -> None:
        await super().stop()
        await asyncio.sleep(LAST_ROUND_SECONDS)
        self.at_the_end.append(holder(self._objects, self._account))


def test_the_rounds_have_ended_before_the_lease_is_given_up(
    objects: Objects, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another operator acts from that moment on, and two would each stop one broker at a time."""
    monkeypatch.setenv("KUBECONFIG", str(account.kubeconfig))
    objects.make(secret(), queen_cluster())
    workers = SlowWorkers(objects, account)

    async def lead_and_end() -> None:
        api = await connect(str(account.kubeconfig))
        options = Options(account.watched, account.namespace, "first", KEEPER_IMAGE, None, free_port())
        operator = Operator(options, api, lambda: None)
        operator.workers = workers
        running = asyncio.create_task(operator.run())
        await asyncio.to_thread(wait_until, "the children to be made", has(objects, children()))
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await api.close()

    asyncio.run(lead_and_end())

    assert workers.at_the_end == ["first"]
    assert holder(objects, account) == ""
