"""Clients that try once while each broker leaves in turn: with the operator, and with the plain StatefulSet.

Half of the pushing clients keep their connection, half make a new one for each push; consumers wait in polls of 90 s.
The plain column is measured in the same run and only noted: it is what the other is compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.kubectl import Kubectl
from lab.node import Node
from tests.support.databases import Database
from tests.support.namespaces import NamespacedKubectl
from tests.support.node_clusters import Cluster
from tests.support.plain import PlainCluster
from tests.support.two_columns import Column, drain, long_polls, measured, of_operator, of_plain
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(3000)

VARIABLE, VALUE = "METRICS_RETENTION_DAYS", "60"


@pytest.fixture
def orders(node: Node, operator_deployed: Kubectl, kubectl: NamespacedKubectl) -> Cluster:
    return Cluster(node, kubectl)


@pytest.fixture
def plain(node: Node, kubectl: NamespacedKubectl) -> PlainCluster:
    return PlainCluster(node, kubectl)


def in_turn(
    orders: Cluster,
    plain: PlainCluster,
    database: Database,
    disturb: Callable[[Column], object],
    folder: Path,
) -> dict[str, dict[str, Any]]:
    """The same disturbance of both, one after the other: on a small node they would starve each other."""
    orders.apply(long_polls(database))
    orders.wait_ready()
    ours = measured(of_operator(orders), lambda: disturb(of_operator(orders)), folder / "operator")
    orders.kubectl("delete", "queencluster", orders.name, "--wait=false")
    wait_until("the brokers of the operator to end", lambda: not orders.pods(), seconds=300)
    plain.apply(database)
    plain.wait_ready()
    theirs = measured(of_plain(plain), lambda: disturb(of_plain(plain)), folder / "plain")
    return {"operator": ours, "plain": theirs}


def assert_hardly_seen(summary: dict[str, Any]) -> None:
    """At most one push that tried once per broker, every poll to its end, no container killed, every message once."""
    assert sorted(summary["departures"]) == ["0", "1", "2"]
    assert max(summary["drain_seconds"]) > 60, "no poll was waiting at a broker that left: nothing was shown"
    assert summary["most_troubles_at_one_departure"] <= 1, summary["troubles"]
    assert summary["troubles"]["apart"] == []
    assert summary["polls"]["cut"] == 0
    assert (summary["killed"], summary["restarts"]) == ([], 0)
    assert (summary["messages"]["lost"], summary["messages"]["duplicated"]) == (0, 0)


def test_a_rollout_costs_at_most_one_push_per_broker_and_no_poll(
    orders: Cluster, plain: PlainCluster, database: Database, tmp_path: Path, figures: Any
) -> None:
    def roll(column: Column) -> None:
        if isinstance(column.cluster, PlainCluster):
            column.cluster.set_environment(VARIABLE, VALUE)
        else:
            column.cluster.apply(long_polls(database, env=[{"name": VARIABLE, "value": VALUE}]))
        column.cluster.wait_ready(seconds=900)

    columns = in_turn(orders, plain, database, roll, tmp_path)
    figures.note("one_try.roll", columns)

    assert_hardly_seen(columns["operator"])


def test_a_drain_by_eviction_costs_at_most_one_push_per_broker_and_no_poll(
    orders: Cluster, plain: PlainCluster, database: Database, tmp_path: Path, figures: Any
) -> None:
    columns = in_turn(orders, plain, database, drain, tmp_path)
    figures.note("one_try.eviction", columns)

    assert_hardly_seen(columns["operator"])
