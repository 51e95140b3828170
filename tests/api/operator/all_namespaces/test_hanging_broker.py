"""A broker that hangs, beside one that does not."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from queen_operator.api import names
from tests.support.clusters import condition, has, make_settled, status
from tests.support.objects import Object, Objects
from tests.support.operators import OperatorProcess
from tests.support.waiting import wait_until


@pytest.fixture
def hanging_address() -> Iterator[str]:
    """An address whose broker and spool keeper accept every connection and never say a word."""
    address = "127.0.0.77"
    with contextlib.ExitStack() as stack:
        for port in (names.HTTP_PORT, names.KEEPER_PORT):
            # The kernel accepts for a listener that never looks.
            stack.enter_context(socket.create_server((address, port), backlog=4096))
        yield address


def _started(name: str) -> Object:
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    common = {"image": "x", "imageID": "x", "restartCount": 0, "ready": True, "started": True, "state": running}
    return {"name": name, **common}


def test_a_broker_that_accepts_and_never_answers_holds_up_nothing_but_itself(
    hanging_address: str,
    new_namespace: Callable[[], Objects],
    operator: OperatorProcess,
) -> None:
    hanging, healthy = new_namespace(), new_namespace()
    make_settled(hanging)
    make_settled(healthy)
    (pod,) = (name for name in hanging.all("Pod") if name.startswith("orders-0-"))
    # In the kubelet's place: the pod runs, at an address where nobody answers.
    hanging.patch(
        "Pod",
        pod,
        {
            "status": {
                "phase": "Running",
                "podIP": hanging_address,
                "podIPs": [{"ip": hanging_address}],
                "initContainerStatuses": [_started("keeper")],
                "containerStatuses": [_started("broker")],
            }
        },
        subresource="status",
    )
    wait_until("the pod to be seen running", lambda: _labels(hanging, pod).get(names.PUSH_LABEL) == "true")

    slowest = 0.0
    for objects in (healthy, hanging):
        objects.delete("Service", "orders")
        began = time.monotonic()
        while not has(objects, {("Service", "orders")})():
            asked = time.monotonic()
            assert operator.page("/healthz") == (200, "ok")
            slowest = max(slowest, time.monotonic() - asked)
            assert time.monotonic() - began < 10, f"the Service of {objects.namespace} is not back"
    assert slowest < 1.0, "the operator's own page stood still"
    (broker,) = (item for item in status(hanging)["brokers"] if item["name"] == "orders-0")
    assert broker["spool"] == {"known": False}
    assert "orders-0" in condition(hanging, "SpoolEmpty")["message"]
    assert condition(hanging, "SpoolEmpty")["status"] == "Unknown"


def _labels(objects: Objects, pod: str) -> dict[str, str]:
    return dict(objects.there("Pod", pod)["metadata"]["labels"])
