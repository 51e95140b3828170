"""A changed connection that cannot work: one broker tries it, two serve, and the sentence says what is wrong."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from lab.postgres import Postgres
from tests.support.database_scenes import (
    pods_of,
    ready_brokers,
    restarts_of,
    rolled,
    set_secret,
    stalled_with,
    wait_spools_empty,
)
from tests.support.databases import Database
from tests.support.loading import loading
from tests.support.node_clusters import Cluster, all_came_once, spec_for
from tests.support.sampling import Sampler
from tests.support.waiting import wait_until

# A crash of the new broker, the operator's second look and two restarts by kubelet lie before the sentence.
TOLD_WITHIN_SECONDS = 180


def assert_two_untouched(cluster: Cluster, before: dict[str, str]) -> None:
    now = pods_of(cluster)
    assert {index: now[index]["metadata"]["uid"] for index in ("1", "2")} == {i: before[i] for i in ("1", "2")}
    assert restarts_of(now["1"]) == restarts_of(now["2"]) == 0


def test_a_wrong_password_in_the_secret_costs_one_broker_and_the_right_one_mends_it_without_a_hand(
    cluster: Cluster, database: Database, tmp_path: Path, figures: Any
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()

    with Sampler(cluster) as sampler, loading(cluster, tmp_path, seconds=400, retries=3) as load:
        load.wait_started()
        set_secret(cluster, database.secret, password="not-the-password")
        wait_until(
            "a sentence with the broker and the password",
            stalled_with(cluster, "orders-0", "password authentication failed", database.user),
            TOLD_WITHIN_SECONDS,
        )
        stalled = cluster.status()
        serving, accepted = ready_brokers(cluster), load.accepted_so_far()
        wait_until("pushes to go on meanwhile", lambda: load.accepted_so_far() > accepted + 100)
        assert_two_untouched(cluster, uids)

        set_secret(cluster, database.secret, password=database.password)
        cluster.wait_ready()
        report = load.finish()
    wait_spools_empty(cluster)

    assert serving == {"1", "2"}
    assert stalled["phase"] == "Blocked"
    assert "not-the-password" not in str(stalled)
    assert sampler.most_away == 1
    assert report["messages"]["lost"] == report["messages"]["foreign"] == 0
    assert_two_untouched(cluster, uids)
    assert cluster.condition("Stalled") == {}
    figures.note(
        "database.wrong_password",
        {"away_most": sampler.most_away, "messages": report["messages"], "stalled": stalled["message"]},
    )


def test_a_secret_that_changes_before_the_role_does_costs_one_broker_until_then_and_the_roll_ends_by_itself(
    cluster: Cluster, database: Database, postgres: Postgres, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()
    fresh = secrets.token_hex(12)

    with Sampler(cluster) as sampler, loading(cluster, tmp_path, seconds=540, retries=3) as load:
        load.wait_started()
        set_secret(cluster, database.secret, password=fresh)
        told = stalled_with(cluster, "orders-0", "password authentication failed")
        wait_until("a sentence with the broker and the password", told, TOLD_WITHIN_SECONDS)
        serving = ready_brokers(cluster)
        assert_two_untouched(cluster, uids)
        postgres.set_password(database.user, fresh)
        wait_until("all three to be replaced", rolled(cluster, uids, "0", "1", "2"), 400)
        cluster.wait_ready()
        report = load.finish()
    wait_spools_empty(cluster)

    assert serving == {"1", "2"}
    assert sampler.most_away == 1
    assert cluster.condition("Stalled") == {}
    assert report["messages"]["lost"] == report["messages"]["foreign"] == 0


WRONG_POSTGRES = {
    "host": ({"host": "postgres-of-nobody"}, ("orders-0", "postgres-of-nobody")),
    "database": ({"database": "of_nobody"}, ("orders-0", 'database "of_nobody" does not exist')),
    "user": ({"user": "nobody_at_all"}, ("orders-0", 'password authentication failed for user "nobody_at_all"')),
}


@pytest.mark.parametrize("field", WRONG_POSTGRES)
def test_a_wrong_connection_costs_one_broker_and_the_old_one_mends_it(
    cluster: Cluster, database: Database, tmp_path: Path, field: str
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()
    change, words = WRONG_POSTGRES[field]

    with Sampler(cluster) as sampler:
        wrong = spec_for(database)
        wrong["postgres"] |= change
        cluster.apply(wrong)
        wait_until("a sentence with the broker and the cause", stalled_with(cluster, *words), TOLD_WITHIN_SECONDS)
        serving = ready_brokers(cluster)
        pushed = cluster.push("--count", "30", "--record", tmp_path / "sent")
        assert_two_untouched(cluster, uids)

        cluster.apply(spec_for(database))
        cluster.wait_ready()
    drained = cluster.drain(tmp_path / "sent")

    assert serving == {"1", "2"}
    assert sampler.most_away == 1
    assert all_came_once(drained, pushed["accepted"])
    assert pushed["queued"] == 30
    assert_two_untouched(cluster, uids)
    assert cluster.condition("Stalled") == {}


@pytest.mark.parametrize("part", ["Secret", "key"])
def test_a_secret_that_is_not_there_costs_no_broker_and_is_taken_up_when_it_appears(
    cluster: Cluster, database: Database, part: str
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()
    wanted = {"name": database.secret, "key": "other"} if part == "key" else {"name": "other", "key": "password"}

    with Sampler(cluster) as sampler:
        changed = spec_for(database)
        changed["postgres"]["passwordSecret"] = wanted
        cluster.apply(changed)
        wait_until("both names in a sentence", stalled_with(cluster, wanted["name"], wanted["key"]), 60)
        waiting = cluster.pod_uids()
        if part == "key":
            set_secret(cluster, database.secret, other=database.password)
        else:
            cluster.kubectl("create", "secret", "generic", "other", f"--from-literal=password={database.password}")
        cluster.wait_ready()

    assert waiting == uids
    assert sampler.most_away == 1
    assert not set(cluster.pod_uids().values()) & set(uids.values())
    assert cluster.restarts() == 0
