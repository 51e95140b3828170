"""A minute without PostgreSQL for clients that try once, with the operator and with the plain StatefulSet."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lab.kubectl import Kubectl
from lab.node import Node
from lab.postgres import Postgres
from tests.support.databases import Database
from tests.support.namespaces import NamespacedKubectl
from tests.support.node_clusters import Cluster, spec_for
from tests.support.plain import PlainCluster
from tests.support.two_columns import Column, measured, not_accepted, of_operator, of_plain
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(2400)

OUTAGE_SECONDS = 60


def test_a_minute_without_postgresql_refuses_no_push_where_a_second_service_leads_to_the_spools(
    node: Node,
    operator_deployed: Kubectl,
    kubectl: NamespacedKubectl,
    database: Database,
    postgres: Postgres,
    tmp_path: Path,
    figures: Any,
) -> None:
    orders, plain = Cluster(node, kubectl), PlainCluster(node, kubectl)

    def outage(column: Column) -> None:
        postgres.stop()
        time.sleep(OUTAGE_SECONDS)  # the length of the outage
        postgres.start()
        column.cluster.wait_ready()

    orders.apply(spec_for(database))
    orders.wait_ready()
    ours = measured(of_operator(orders), lambda: outage(of_operator(orders)), tmp_path / "operator", poll_seconds=20)
    kubectl("delete", "queencluster", orders.name, "--wait=false")
    wait_until("the brokers of the operator to end", lambda: not orders.pods(), seconds=120)
    plain.apply(database)
    plain.wait_ready()
    theirs = measured(of_plain(plain), lambda: outage(of_plain(plain)), tmp_path / "plain", poll_seconds=20)
    figures.note("one_try.outage", {"operator": ours, "plain": theirs})

    assert not_accepted(ours) == 0, ours["troubles"]
    assert ours["departures"] == []
    assert (ours["killed"], ours["restarts"]) == ([], 0)
    assert (ours["messages"]["lost"], ours["messages"]["duplicated"]) == (0, 0)
