"""A spool of 450,000 messages is replayed at boot, for longer than the usual five minutes of a startup probe."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pytest

from lab import cache
from lab.postgres import Postgres
from tests.support.database_scenes import plan_says, pods_of, restarts_of, wait_spools_empty
from tests.support.databases import Database
from tests.support.node_clusters import Cluster, spec_for
from tests.support.status_log import Status, StatusLog, lives_by_broker, lives_of, stalled
from tests.support.waiting import wait_until

MESSAGES = 450_000
# Replay is quadratic in the messages of a partition: with one it takes seven minutes on a free machine.
PARTITIONS = 1
# Shorter than the replay, so that the operator's own limit is tried too.
ROLLOUT = {"brokerDeadline": "1m"}
# What a startup probe on /health every 10 s with 30 tries allows.
USUAL_LIMIT_SECONDS = 300
# The broker itself listens after an hour of replay, whatever is left; the rest drains while it serves.
LONGEST_SECONDS = 4500
RUN = "replayed"

pytestmark = pytest.mark.timeout(12_000)


def bulk(cluster: Cluster, verb: str, service: str, *arguments: str) -> dict[str, Any]:
    to = ["--url", cluster.url(service), "--queue", "q", "--run", RUN, "--count", str(MESSAGES)]
    argv = [sys.executable, "-m", "tests.support.bulk", verb, *to, *arguments]
    done = cluster.node.run_inside(argv, cwd=cache.CHECKOUT)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def fill_the_spool_of_a_stopped_broker(cluster: Cluster, database: Database, postgres: Postgres) -> dict[str, Any]:
    """Push everything to orders-0 in an outage, and stop it before PostgreSQL is back, so that it boots with it."""
    postgres.stop()
    outcomes = bulk(cluster, "push", "orders-0", "--partitions", str(PARTITIONS))
    cluster.apply(spec_for(database, rollout=ROLLOUT, paused=True))
    wait_until("the operator to pause", lambda: cluster.condition("Paused")["status"] == "True")
    cluster.kubectl("scale", "deployment", "orders-0", "--replicas=0")
    wait_until("orders-0 to have ended", lambda: "0" not in cluster.pod_uids(), seconds=180)
    postgres.start()
    return outcomes


def replays(status: Status) -> bool:
    return "replays its spool" in status["brokers"][0].get("waitingFor", "")


def spool_of(status: Status) -> dict[str, Any]:
    return dict(status["brokers"][0]["spool"])


def test_a_replay_that_outlasts_every_deadline_is_left_alone_shown_and_waited_for(
    cluster: Cluster, database: Database, postgres: Postgres, figures: Any
) -> None:
    cluster.apply(spec_for(database, rollout=ROLLOUT))
    cluster.wait_ready()
    outcomes = fill_the_spool_of_a_stopped_broker(cluster, database, postgres)

    with StatusLog(cluster) as log, lives_of(cluster) as pods:
        cluster.apply(spec_for(database, rollout=ROLLOUT))
        wait_until("the replay in the status", lambda: replays(cluster.status()), seconds=120)
        began = time.monotonic()
        first = pods_of(cluster)["0"]["metadata"]["uid"]
        quiet = cluster.status()
        cluster.apply(spec_for(database, rollout=ROLLOUT, broker={"logLevel": "debug"}))
        words = ("orders-0", "replays its spool", "files left", "is restarted afterwards")
        wait_until("the roll to wait for the replay", plan_says(cluster, *words), seconds=60)
        listening = wait_until("the replay to end", lambda: listening_pod(cluster, first), LONGEST_SECONDS)
        seconds = time.monotonic() - began
        cluster.wait_ready(seconds=LONGEST_SECONDS)
    wait_spools_empty(cluster)
    taken = bulk(cluster, "take", "orders", "--seconds", "1200")

    replaying = log.where(replays)
    spools = [spool_of(status) for status in replaying]
    assert outcomes == {"buffered": MESSAGES}
    assert quiet["phase"] == "Recovering"
    assert seconds > USUAL_LIMIT_SECONDS, "the scenario was too short to prove anything"
    assert restarts_of(listening) == 0
    assert pods.killed() == []
    # The roll alone replaced pods, and it began with the one that had replayed.
    assert lives_by_broker(pods.lives) == {"0": 2, "1": 2, "2": 2}
    assert pods.departures()[0].broker == "0"
    assert cluster.restarts() == 0
    assert_falls_visibly(spools)
    assert not [status["message"] for status in replaying if stalled(status)]
    assert (taken["unique"], taken["missing"], taken["foreign"], taken["duplicates"]) == (MESSAGES, 0, 0, 0)
    figures.note(
        "replay",
        {
            "messages": MESSAGES,
            "partitions": PARTITIONS,
            "bytes": spools[0]["bytes"],
            "files": spools[0]["files"] + spools[0]["replayedFiles"],
            "replay_seconds": round(seconds),
            "statuses_with_another_number_of_files": len({spool["files"] for spool in spools}),
            "broker_deadline": ROLLOUT["brokerDeadline"],
            "container_restarts": 0,
            "lost": taken["missing"],
            "duplicated": taken["duplicates"],
        },
    )


def listening_pod(cluster: Cluster, uid: str) -> dict[str, Any]:
    """The pod once it has opened its port, by kubelet's word and not the operator's; empty before.

    The roll that waits for it may take it at once, so a pod that leaves counts too; one that has gone is a failure.
    """
    (pod,) = [pod for pod in cluster.pods() if pod["metadata"]["uid"] == uid]
    containers = pod["status"].get("containerStatuses", [])
    listens = any(container["name"] == "broker" and container["started"] for container in containers)
    return pod if listens else {}


def assert_falls_visibly(spools: list[dict[str, Any]]) -> None:
    """Files and bytes never rise, are told in many steps, and with the age of the oldest message."""
    files, sizes = [spool["files"] for spool in spools], [spool["bytes"] for spool in spools]
    assert files == sorted(files, reverse=True)
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(files)) >= 20
    assert files[-1] < files[0] / 2
    assert all(spool["oldestSeconds"] > 0 for spool in spools)
    assert spools[-1]["replayedFiles"] > spools[0]["replayedFiles"]
