"""What takes its time. The scenes are in conftest.py; their clocks have run since the first test of this folder."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from tests.support import audit
from tests.support.clusters import UNTOUCHED, children, condition, generations, has, rests, versions
from tests.support.objects import Object
from tests.support.operators import written_on_children
from tests.support.scenes import Scene
from tests.support.waiting import wait_until

REST_SECONDS = 30
TAKEOVER_SECONDS = 90
SILENCE_SECONDS = 120


def _seconds_since(scene: Scene, text: str) -> float:
    """How long after the scene began; the API server writes whole seconds."""
    return datetime.fromisoformat(text).astimezone(UTC).timestamp() - scene.since_utc


def _describe(entry: Object) -> str:
    about = entry.get("objectRef", {})
    return f"{entry['verb']} {about.get('resource')}/{about.get('name', '')}"


def test_at_rest_the_operator_asks_for_nothing_but_its_lease_although_its_rounds_go_on(resting: Scene) -> None:
    (process,) = resting.operators
    rounds = process.rounds()
    cluster = versions(resting.objects, "QueenCluster")

    time.sleep(resting.seconds_left(REST_SECONDS))

    log = resting.plane.audit_log
    requests = [_describe(entry) for entry in audit.requests_of(log, resting.user, resting.audit_position)]
    allowed = {"get leases/queen-operator", "update leases/queen-operator"}
    assert [request for request in requests if not request.startswith("watch ") and request not in allowed] == []
    assert "update leases/queen-operator" in requests
    # A field of the status that the server drops would be missed, and written again, in each of these rounds.
    wait_until("rounds to go on", lambda: process.rounds() >= rounds + 3)
    assert versions(resting.objects, "QueenCluster") == cluster


def test_a_second_operator_takes_over_from_one_that_was_killed_and_writes_nothing_twice(orphaned: Scene) -> None:
    objects, (second,) = orphaned.objects, orphaned.operators

    wait_until("the second to lead", second.leads, orphaned.seconds_left(TAKEOVER_SECONDS))
    wait_until("a round of it", lambda: second.rounds() > 0)

    assert generations(objects) == UNTOUCHED
    assert written_on_children(orphaned.plane, orphaned.user, orphaned.audit_position, objects.namespace) == set()
    lease = objects.elsewhere(second.account.namespace).there("Lease", "queen-operator")["spec"]
    assert lease["holderIdentity"] == "second"
    assert _seconds_since(orphaned, lease["acquireTime"]) <= TAKEOVER_SECONDS
    objects.delete("Service", "orders")
    wait_until("a Service to be put back by it", has(objects, children()))


def test_a_right_that_is_given_back_is_used_without_a_restart(forbidden: Scene) -> None:
    objects, (process,) = forbidden.objects, forbidden.operators

    wait_until("the budget to be made", has(objects, children()), forbidden.seconds_left(60))
    wait_until("the refusal to be forgotten", lambda: rests(objects) and not condition(objects, "Stalled"))

    made = objects.there("PodDisruptionBudget", "orders")["metadata"]["creationTimestamp"]
    assert _seconds_since(forbidden, made) <= 60
    assert process.running


def test_what_changes_while_every_open_connection_is_silent_is_acted_on_within_two_minutes(silenced: Scene) -> None:
    objects, (process,) = silenced.objects, silenced.operators

    wait_until("the Service to be back", has(objects, children()), silenced.seconds_left(SILENCE_SECONDS))
    wait_until(
        "the change of the spec to be seen",
        lambda: condition(objects, "RestartPending")["reason"] == "ChangesWait",
        silenced.seconds_left(SILENCE_SECONDS),
    )

    made = objects.there("Service", "orders")["metadata"]["creationTimestamp"]
    assert _seconds_since(silenced, made) <= SILENCE_SECONDS
    assert _seconds_since(silenced, condition(objects, "RestartPending")["lastTransitionTime"]) <= SILENCE_SECONDS
    assert process.leads()


def test_a_silent_connection_does_not_cost_a_leader_its_lease(silenced: Scene) -> None:
    """Otherwise a second operator would begin beside the first, which still believes that it leads."""
    (process,) = silenced.operators
    renewed = [
        _seconds_since(silenced, entry["requestReceivedTimestamp"])
        for entry in audit.requests_of(silenced.plane.audit_log, silenced.user, silenced.audit_position)
        if _describe(entry) == "update leases/queen-operator" and entry["responseStatus"]["code"] == 200
    ]
    assert len(renewed) >= 3, "the Lease was not renewed"
    longest = max(later - earlier for earlier, later in zip([0.0, *renewed], renewed, strict=False))
    assert longest < 30, "the Lease was free for another in between"
    assert process.log().count("leading as") == 1
