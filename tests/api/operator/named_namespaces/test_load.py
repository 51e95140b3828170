"""Hundreds of foreign Secrets, and an API server that is away."""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.clusters import condition, has, make_settled, not_ready_because, secret
from tests.support.objects import Objects
from tests.support.operators import Account, OperatorProcess, Operators
from tests.support.scenes import forwarder_to, through
from tests.support.waiting import wait_until

FOREIGN_SECRETS = 500
FOREIGN_BYTES = 50 * 1024
MOST_MIB = 8.0
# A renewal of the Lease is due every 5 s: at least one fails meanwhile. Its deadline is 20 s.
AWAY_SECONDS = 7


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


def test_an_api_server_that_is_away_for_a_while_ends_nothing_and_what_changed_meanwhile_is_seen(
    objects: Objects, account: Account, operators: Operators, tmp_path: Path
) -> None:
    with forwarder_to(account.kubeconfig) as forwarder:
        process = operators.working(account, kubeconfig=through(forwarder, account.kubeconfig, tmp_path))
        make_settled(objects)

        forwarder.refuse()
        objects.delete("Service", "orders")
        objects.patch("QueenCluster", "orders", {"spec": {"resources": {"requests": {"cpu": "300m"}}}})
        time.sleep(AWAY_SECONDS)
        forwarder.accept()

        wait_until("the Service to be back", has(objects, {("Service", "orders")}))
        wait_until("the change to be seen", lambda: condition(objects, "RestartPending")["reason"] == "ChangesWait")
        assert process.leads()
        assert process.log().count("leading as") == 1
        assert "Traceback" not in process.log()
