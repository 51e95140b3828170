"""The operator's own beginning and end: restarts, SIGTERM, and what happened while it was away."""

from __future__ import annotations

import copy
import time

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.clusters import (
    ODD_SPEC,
    UNTOUCHED,
    all_collected,
    children,
    claims,
    condition,
    generations,
    has,
    make_settled,
)
from tests.support.objects import Object, Objects
from tests.support.operators import Account, Operators, written_on_children
from tests.support.waiting import wait_until


def test_an_operator_that_is_restarted_again_and_again_writes_nothing(
    objects: Objects, plane: ControlPlane, account: Account, operators: Operators
) -> None:
    first = operators.working(account)
    make_settled(objects, **copy.deepcopy(ODD_SPEC))
    assert first.stop() == 0
    before = audit.position(plane.audit_log)

    for _ in range(5):
        # A new process has a new order of sets and a new salt of hashes.
        process = operators.working(account)
        wait_until("a round", lambda process=process: process.rounds() > 0)  # type: ignore[misc]
        assert process.stop() == 0

    assert generations(objects) == UNTOUCHED
    assert written_on_children(plane, account.user, before, objects.namespace) == set()


def test_a_cluster_that_is_deleted_while_no_operator_runs_is_gone_and_stays_gone(
    objects: Objects, plane: ControlPlane, account: Account, operators: Operators
) -> None:
    first = operators.working(account)
    make_settled(objects)
    assert first.stop() == 0

    objects.delete("QueenCluster", "orders")
    assert objects.get("QueenCluster", "orders") is None
    wait_until("the children to be collected", lambda: all_collected(objects))
    before = audit.position(plane.audit_log)

    operators.working(account)
    make_settled(objects, "another")

    written = written_on_children(plane, account.user, before, objects.namespace)
    assert [what for what in written if "/another" not in what] == []
    assert set(objects.all("Deployment")) == {"another-0", "another-1", "another-2"}
    assert claims() | claims("another") == {
        ("PersistentVolumeClaim", name) for name in objects.all("PersistentVolumeClaim")
    }


def test_what_changes_while_no_operator_runs_is_seen_when_one_starts(
    objects: Objects, account: Account, operators: Operators
) -> None:
    first = operators.working(account)
    make_settled(objects)
    assert first.stop() == 0

    objects.delete("Service", "orders")
    objects.patch("Deployment", "orders-1", {"spec": {"replicas": 2}}, subresource="scale")
    objects.patch("QueenCluster", "orders", {"spec": {"resources": {"requests": {"cpu": "300m"}}}})
    operators.working(account)

    wait_until("the Service to be back", has(objects, children()))
    wait_until("one broker again", lambda: objects.there("Deployment", "orders-1")["spec"]["replicas"] == 1)
    wait_until("the spec to be seen", lambda: condition(objects, "RestartPending")["reason"] == "ChangesWait")


def test_sigterm_ends_the_operator_in_order_whether_it_leads_or_waits(
    objects: Objects, account: Account, operators: Operators
) -> None:
    leader = operators.working(account, "leader")
    make_settled(objects)
    waiting = operators.start(account, "waiting")
    wait_until("the second to be ready to take over", lambda: waiting.page("/readyz")[0] == 200)
    assert not waiting.leads()

    for process in (waiting, leader):
        began = time.monotonic()
        assert process.stop(seconds=10) == 0, process.explain()
        assert time.monotonic() - began < 10
        assert "Traceback" not in process.log()


def _lease(objects: Objects, account: Account) -> Object:
    return dict(objects.elsewhere(account.namespace).there("Lease", "queen-operator")["spec"])


def test_an_operator_that_is_told_to_end_gives_its_lease_up_and_the_next_one_leads_at_once(
    objects: Objects, plane: ControlPlane, account: Account, operators: Operators
) -> None:
    leader = operators.working(account, "leader")
    make_settled(objects)
    waiting = operators.start(account, "waiting")
    wait_until("the second to be ready to take over", lambda: waiting.page("/readyz")[0] == 200)
    before = audit.position(plane.audit_log)

    assert leader.stop() == 0, leader.explain()
    # A Lease that is not given up runs out 30 s after its last renewal: nobody could lead before.
    wait_until("the second to lead", waiting.leads, seconds=20)
    waiting.wait_until_it_works()

    assert _lease(objects, account)["holderIdentity"] == "waiting"
    assert generations(objects) == UNTOUCHED
    assert written_on_children(plane, account.user, before, objects.namespace) == set()


def test_an_operator_that_waits_leaves_the_lease_of_another_alone_when_it_ends(
    objects: Objects, plane: ControlPlane, account: Account, operators: Operators
) -> None:
    leader = operators.working(account, "leader")
    waiting = operators.start(account, "waiting")
    wait_until("the second to be ready to take over", lambda: waiting.page("/readyz")[0] == 200)

    assert waiting.stop() == 0, waiting.explain()

    assert _lease(objects, account)["holderIdentity"] == "leader"
    assert leader.leads()
