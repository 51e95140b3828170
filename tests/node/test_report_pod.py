"""The one-shot pod that reports what a volume holds, as the operator makes it, on real volumes."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab import cache, images
from lab.node import Node
from queen_operator.api import names
from queen_operator.api.spec import QueenClusterSpec
from queen_operator.manifests import render
from queen_operator.manifests.context import Context
from tests.support.namespaces import NamespacedKubectl
from tests.support.pods import pausing_pod
from tests.support.waiting import wait_until

SPEC = {"version": "1.3.0", "postgres": {"host": "pg", "passwordSecret": {"name": "pg"}}, "spool": {"size": "64Mi"}}
EMPTY, NOT_EMPTY, UNKNOWN = 0, 3, 4
Report = Callable[[], tuple[int, dict[str, Any]]]


@pytest.fixture
def context(node: Node, kubectl: NamespacedKubectl) -> Context:
    """A cluster that does not run, with its account and its first claim."""
    images.make_operator()
    node.load_image(cache.image("operator"))
    spec = QueenClusterSpec.model_validate(SPEC)
    made = Context("orders", kubectl.namespace, "no cluster", spec, images.OPERATOR_NAME, {})
    account = render.service_account(made)
    del account["metadata"]["ownerReferences"]
    kubectl.apply([account, render.broker_claim(made, 0)])
    return made


@pytest.fixture
def report(kubectl: NamespacedKubectl, context: Context) -> Report:
    """Have the volume reported once: the exit code, and what the pod's status says after its end."""
    name = names.report_pod_name(context.name, 0)

    def ended() -> dict[str, Any] | None:
        statuses = (kubectl.get("pod", name) or {}).get("status", {}).get("containerStatuses", [])
        return statuses[0]["state"].get("terminated") if statuses else None

    def look() -> tuple[int, dict[str, Any]]:
        kubectl.apply([render.report_pod(context, 0, "a claim's", owned=False)])
        end = wait_until("the report", ended, seconds=120)
        kubectl("delete", "pod", name)
        return int(end["exitCode"]), dict(json.loads(end["message"]))

    return look


@pytest.fixture
def spool(node: Node, kubectl: NamespacedKubectl, context: Context) -> Path:
    """The folder of the volume, once a pod has had it."""
    claim = names.claim_name(context.name, 0)
    kubectl.apply([pausing_pod("first", [claim])])
    wait_until("the volume", lambda: kubectl.is_true("pod", "first", "Ready"), seconds=120)
    kubectl("delete", "pod", "first", "--grace-period=1")
    volume = kubectl.get("pv", (kubectl.get("pvc", claim) or {})["spec"]["volumeName"])
    assert volume is not None
    return node.path(Path(volume["spec"]["local"]["path"]))


def test_a_volume_that_no_pod_ever_used_is_reported_empty(report: Report) -> None:
    code, values = report()

    assert (code, values["held"], values["error"]) == (EMPTY, True, None)
    assert (values["files"], values["unfinished_files"], values["quarantined_files"]) == (0, 0, 0)


def test_a_report_counts_what_is_there_and_leaves_it_as_it_was(report: Report, spool: Path) -> None:
    (spool / "failed").mkdir()
    (spool / "failed" / "queen-1700000000000-00000000.buf").write_bytes(b"\2\0\0\0{}")
    code, values = report()

    assert (code, values["files"], values["quarantined_files"]) == (NOT_EMPTY, 0, 1)
    assert values["quarantined_events"] == 1

    (spool / "queen-1700000000001-00000000.tmp").touch()
    before = {path: path.stat().st_mtime_ns for path in (spool, *spool.rglob("*"))}
    code, values = report()

    assert (code, values["files"], values["unfinished_files"], values["quarantined_files"]) == (NOT_EMPTY, 1, 1, 1)
    assert {path: path.stat().st_mtime_ns for path in (spool, *spool.rglob("*"))} == before

    for path in before:
        if path.is_file():
            path.unlink()
    assert report()[0] == EMPTY


def test_a_report_beside_somebody_who_holds_the_lock_proves_nothing(report: Report, spool: Path) -> None:
    fd = os.open(spool, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        code, values = report()
    finally:
        os.close(fd)

    assert (code, values["held"], values["files"]) == (UNKNOWN, False, 0)
    assert report()[0] == EMPTY
