"""Thousands of foreign things, a broker that hangs, an API server that is away: none of it stops the operator."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.control_plane import ControlPlane
from queen_operator.api import names
from tests.support.clusters import condition, has, make_settled, not_ready_because, rests, secret, status
from tests.support.forwarders import Forwarder
from tests.support.objects import Object, Objects
from tests.support.operators import Account, OperatorProcess, Operators
from tests.support.waiting import wait_until

FOREIGN_SECRETS = 500
FOREIGN_BYTES = 50 * 1024
MOST_MIB = 8.0


def _peak_mib(process: OperatorProcess) -> float:
    """The most memory that a process ever had, in MiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def test_foreign_secrets_cost_the_operator_no_memory_and_hide_no_change_of_the_one_that_counts(
    objects: Objects, account: Account, operators: Operators
) -> None:
    first = operators.working(account)
    make_settled(objects)
    before = _peak_mib(first)

    for index in range(FOREIGN_SECRETS):
        objects.make(secret(f"sh.helm.release.v1.other.v{index}", release="x" * FOREIGN_BYTES))
    objects.patch("Secret", "pg", {"data": {"password": None}})
    wait_until("the change to be noticed", not_ready_because(objects, "SecretMissing", "password"), seconds=30)
    watched = _peak_mib(first)
    assert first.stop() == 0
    second = operators.working(account)
    objects.patch("Secret", "pg", secret())
    wait_until("the change to be noticed", lambda: not condition(objects, "Stalled"), seconds=30)
    listed = _peak_mib(second)

    assert watched - before < MOST_MIB, f"{watched:.1f} MiB after watching them, {before:.1f} before"
    assert listed - before < MOST_MIB, f"{listed:.1f} MiB after listing them, {before:.1f} before"


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


AWAY_SECONDS = 12


def test_an_api_server_that_is_away_for_a_while_ends_nothing_and_what_changed_meanwhile_is_seen(
    objects: Objects, plane: ControlPlane, account: Account, operators: Operators, tmp_path: Path
) -> None:
    config = json.loads(account.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    with Forwarder("127.0.0.1", int(cluster["server"].rpartition(":")[2])) as forwarder:
        cluster["server"] = f"https://127.0.0.1:{forwarder.port}"
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        process = operators.working(account, kubeconfig=kubeconfig)
        make_settled(objects)

        forwarder.refuse()
        objects.delete("Service", "orders")
        objects.patch("QueenCluster", "orders", {"spec": {"resources": {"requests": {"cpu": "300m"}}}})
        # Two renewals of the Lease fail meanwhile; its deadline is 20 s.
        time.sleep(AWAY_SECONDS)
        assert process.running
        forwarder.accept()

        wait_until("the Service to be back", has(objects, {("Service", "orders")}))
        wait_until("the change to be seen", lambda: condition(objects, "RestartPending")["reason"] == "ChangesWait")
        assert process.running
        assert process.log().count("leading as") == 1
        assert "Traceback" not in process.log()
        assert not rests(objects)
