"""The status: who reads it knows what is going on, since when, and why the operator waits."""

from datetime import timedelta

from queen_operator.api.status import QueenClusterStatus
from queen_operator.planning.observed import DatabaseState, Replay
from queen_operator.planning.reasons import Reason
from queen_operator.planning.status import blocked_status, same_status, zulu
from tests.unit.planning.scene import LONG_AGO, NOW, Scene, healthy_cluster


def outage() -> Scene:
    scene = healthy_cluster()
    scene.database_is(DatabaseState.REFUSED, "pg:5432 refuses connections.")
    for index in range(3):
        scene.not_ready(index)
        scene.spool(index, files=2, bytes=100, events=10)
    return scene


def test_a_healthy_cluster_is_ready_and_neither_reconciling_nor_stalled() -> None:
    status = healthy_cluster().make_status()

    assert (status["phase"], status["ready"], status["observedGeneration"]) == ("Ready", "3/3", 7)
    assert {item["type"] for item in status["conditions"]} == {
        "Ready", "Available", "DatabaseReachable", "SpoolEmpty", "RestartPending", "Paused",
    }  # fmt: skip


def test_an_outage_says_the_state_and_what_the_spools_hold() -> None:
    scene = outage()

    database = scene.condition("DatabaseReachable")

    assert database is not None
    assert (database["status"], database["reason"]) == ("False", "ConnectionRefused")
    assert "pg:5432 refuses connections." in database["message"]
    assert "The spools hold 30 messages in 6 files (300 bytes)." in database["message"]


def test_an_outage_is_neither_stalled_nor_progress() -> None:
    scene = outage()

    assert scene.make_status()["phase"] == "Degraded"
    assert scene.condition("Stalled") is None
    assert scene.condition("Reconciling") is None
    ready = scene.condition("Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"]) == ("False", "DatabaseAway")


def test_an_outage_keeps_its_beginning() -> None:
    scene = outage()
    scene.status = scene.make_status()
    began = scene.status["database"]["since"]
    scene.now = NOW + timedelta(minutes=5)

    assert scene.make_status()["database"]["since"] == began


def test_brokers_that_still_take_pushes_are_named_while_none_serves_pops() -> None:
    available = outage().condition("Available")

    assert available is not None
    assert available["message"] == "No broker serves pops; orders-0, orders-1, orders-2 still take pushes."


def test_a_keeper_that_cannot_be_asked_makes_its_spool_unknown_and_not_empty() -> None:
    scene = healthy_cluster()
    scene.forget_spool(1)

    spools = scene.condition("SpoolEmpty")

    assert spools is not None
    assert spools["status"] == "Unknown"
    assert "What orders-1 holds is unknown." in spools["message"]
    assert scene.make_status()["brokers"][1]["spool"] == {"known": False}


def test_quarantined_files_are_said_although_nothing_waits_to_be_replayed() -> None:
    scene = healthy_cluster()
    scene.spool(2, quarantined_files=9)

    spools = scene.condition("SpoolEmpty")

    assert spools is not None
    assert spools["reason"] == "Quarantined"
    assert "orders-2 9" in spools["message"]


def test_a_replay_shows_its_progress_in_files_and_is_recovering() -> None:
    scene = healthy_cluster()
    scene.unstarted(1)
    scene.spool(1, files=12, bytes=1200, events=300)
    scene.more = {"replays": {"pod-1": Replay(30, NOW)}}

    status = scene.make_status()

    assert status["phase"] == "Recovering"
    assert status["brokers"][1]["spool"]["replayedFiles"] == 18
    assert "replays its spool before it listens: 12 files, 1200 bytes (300 messages) left" in status["message"]


def test_a_replay_that_moves_is_never_late_and_one_that_stands_still_is() -> None:
    scene = healthy_cluster()
    scene.unstarted(1)
    scene.not_ready(1, seconds=7200)
    scene.pod(1)["metadata"]["creationTimestamp"] = zulu(NOW - timedelta(hours=2))
    scene.spool(1, files=12, bytes=1200)

    scene.more = {"replays": {"pod-1": Replay(30, NOW - timedelta(seconds=30))}}
    assert scene.condition("Stalled") is None

    scene.more = {"replays": {"pod-1": Replay(30, NOW - timedelta(minutes=30))}}
    assert scene.condition("Stalled") is not None


def test_a_transition_time_moves_only_with_its_status() -> None:
    scene = healthy_cluster()
    scene.status = scene.make_status()
    scene.now = NOW + timedelta(hours=1)
    for uid, spool in scene.spools.items():
        scene.spools[uid] = type(spool)(scene.now, True, True, 0, 0, 0, None, 0, 0, 0, 9 * 2**30, 10 * 2**30)

    assert scene.make_status() == scene.status


def test_ages_alone_are_not_worth_a_write() -> None:
    scene = outage()
    scene.spool(0, oldest_age_seconds=5.0)
    before = scene.make_status()
    scene.spool(0, oldest_age_seconds=9.0)
    after = scene.make_status()

    assert before != after
    assert same_status(before, after)


def test_a_change_of_the_spec_is_never_ready_under_the_new_generation() -> None:
    scene = healthy_cluster()
    scene.status = scene.make_status()
    scene.change_spec(version="1.4.0")

    ready = scene.condition("Ready")

    assert ready is not None
    assert (ready["status"], ready["observedGeneration"]) == ("False", 7)
    assert scene.condition("Reconciling") is not None


def test_a_pod_that_cannot_be_made_is_blocked_in_the_words_of_the_server_without_the_pod_name() -> None:
    scene = healthy_cluster()
    scene.pods = [pod for pod in scene.pods if pod["metadata"]["uid"] != "pod-1"]
    words = 'pods "orders-1-77-sbtvd" is forbidden: exceeded quota: none'
    failure = {"type": "ReplicaFailure", "status": "True", "message": words}
    scene.deployments["orders-1"]["status"]["conditions"] = [failure]

    status = scene.make_status()

    assert status["phase"] == "Blocked"
    assert "orders-1: no pod can be made: the pod is forbidden: exceeded quota: none" in status["message"]


def test_the_last_words_of_a_crashing_broker_reach_the_user() -> None:
    scene = healthy_cluster()
    scene.crash(0, last='FATAL: PG_USE_SSL="ture" is not a boolean')

    assert 'FATAL: PG_USE_SSL="ture" is not a boolean' in scene.make_status()["message"]


def test_healthy_brokers_outweigh_an_operator_without_a_way_to_the_database() -> None:
    scene = healthy_cluster()
    scene.database_is(DatabaseState.UNKNOWN, "no answer")

    database = scene.condition("DatabaseReachable")

    assert database is not None
    assert database["status"] == "True"


def test_a_paused_cluster_says_so_and_its_status_goes_on() -> None:
    scene = healthy_cluster()
    scene.change_spec(paused=True)

    paused = scene.condition("Paused")

    assert scene.make_status()["phase"] == "Paused"
    assert paused is not None
    assert paused["message"] == "spec.paused is set (generation 7): nothing is changed."


def test_an_unreadable_spec_is_blocked_and_the_rest_of_the_status_is_kept() -> None:
    before = healthy_cluster().make_status()
    resource = {"metadata": {"generation": 8}, "status": before}

    after = blocked_status(resource, NOW, Reason.INVALID_SPEC, "spec.replicas: not a number")

    assert (after["phase"], after["observedGeneration"]) == ("Blocked", 8)
    assert after["brokers"] == before["brokers"]
    ready = next(item for item in after["conditions"] if item["type"] == "Ready")
    assert ready["message"] == "spec.replicas: not a number"


def test_every_status_is_a_valid_status() -> None:
    for scene in (healthy_cluster(), outage()):
        status = scene.make_status()

        assert (
            QueenClusterStatus.model_validate(status).model_dump(by_alias=True, exclude_none=True, mode="json")
            == status
        )


def test_a_broker_that_was_ready_long_ago_and_is_not_is_late_only_from_then_on() -> None:
    scene = healthy_cluster()
    scene.pod(1)["metadata"]["creationTimestamp"] = zulu(LONG_AGO)
    scene.not_ready(1, seconds=30)
    assert scene.condition("Stalled") is None

    scene.not_ready(1, seconds=700)
    assert scene.condition("Stalled") is not None


def test_a_pod_that_a_person_made_with_our_labels_stands_for_no_broker() -> None:
    scene = healthy_cluster()
    copied = {**scene.pod(1), "metadata": {**scene.pod(1)["metadata"], "name": "copy", "uid": "copy"}}
    copied["metadata"].pop("ownerReferences")
    scene.pods.append(copied)

    assert scene.make_status()["brokers"][1]["pod"] == "orders-1-abc"


def test_a_claim_that_is_not_bound_tells_of_storage_that_does_not_know_the_access_mode() -> None:
    scene = healthy_cluster()
    scene.claims["orders-spool-1"]["status"] = {"phase": "Pending"}
    pod = scene.pod(1)
    pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "m"}]}

    message = scene.make_status()["message"]

    assert "The claim orders-spool-1 is not bound" in message
    assert "make the cluster with accessMode ReadWriteOnce" in message


def test_more_brokers_than_the_mesh_is_made_for_are_warned_of_in_a_ready_cluster() -> None:
    scene = healthy_cluster()
    scene.more = {"warnings": ("The mesh between brokers is designed for up to 3 of them.",)}

    status = scene.make_status()

    assert status["phase"] == "Ready"
    assert status["message"] == "3 of 3 brokers are Ready. The mesh between brokers is designed for up to 3 of them."


def test_a_read_only_database_is_never_ready_although_its_brokers_are() -> None:
    scene = healthy_cluster()
    scene.database_is(DatabaseState.READ_ONLY, "pg:5432 is read-only")

    status = scene.make_status()

    assert (status["phase"], status["message"]) == ("Degraded", "PostgreSQL: pg:5432 is read-only")


def test_the_first_crashes_and_a_pod_that_waits_for_its_node_are_no_dead_end_yet() -> None:
    crashing, waiting = healthy_cluster(), healthy_cluster()
    crashing.crash(1)
    crashing.pod(1)["status"]["containerStatuses"][0]["restartCount"] = 1
    pod = waiting.pod(1)
    pod["metadata"]["creationTimestamp"] = zulu(NOW - timedelta(seconds=5))
    pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "m"}]}

    assert crashing.condition("Stalled") is None
    assert waiting.condition("Stalled") is None


def test_only_the_line_that_says_why_leaves_the_log_of_a_crashed_broker() -> None:
    scene = healthy_cluster()
    scene.crash(0, last="FATAL: cannot bind\nTRACE payload=secret")

    assert "secret" not in scene.make_status()["message"]
    assert "FATAL: cannot bind" in scene.make_status()["message"]


def test_the_words_of_a_json_log_line_are_shown_and_not_the_line() -> None:
    scene = healthy_cluster()
    scene.crash(0, last='{"level":"ERROR","message":"FATAL: schema apply failed: db error","target":"boot"}')

    assert scene.make_status()["message"].startswith("orders-0: the broker ended 4 times, last with: FATAL: schema")
