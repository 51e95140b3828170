"""Services, budget, claim, account, mesh Secret."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.manifests import render
from queen_operator.manifests.context import Context

MakeContext = Callable[..., Context]
COMPONENT = "app.kubernetes.io/component"


def _owned(context: Context) -> list[dict[str, Any]]:
    budget = render.disruption_budget(context)
    assert budget is not None
    return [
        render.broker_deployment(context, 0),
        render.broker_service(context, 0),
        *render.client_services(context),
        render.service_account(context),
        render.mesh_secret(context, "x"),
        budget,
    ]


def _pod_labels(context: Context, index: int) -> dict[str, str]:
    return dict(render.broker_deployment(context, index)["spec"]["template"]["metadata"]["labels"])


def _selects(service: dict[str, Any], labels: dict[str, str]) -> bool:
    return bool(service["spec"]["selector"].items() <= labels.items())


def test_every_child_but_the_claim_goes_away_with_its_cluster(make_context: MakeContext) -> None:
    context = make_context()
    for child in _owned(context):
        assert child["metadata"]["namespace"] == "shop"
        assert child["metadata"]["labels"].items() >= names.cluster_labels("orders").items()
        (owner,) = child["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "queen-operator.dev/v1alpha1",
            "kind": "QueenCluster",
            "name": "orders",
            "uid": context.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    assert "ownerReferences" not in render.broker_claim(context, 0)["metadata"]


def test_clients_reach_ready_brokers_and_pushes_reach_running_ones(make_context: MakeContext) -> None:
    context = make_context()
    everything, pushes = render.client_services(context)
    assert everything["metadata"]["name"] == "orders"
    assert pushes["metadata"]["name"] == "orders-push"
    assert everything["spec"]["publishNotReadyAddresses"] is False
    assert pushes["spec"]["publishNotReadyAddresses"] is True
    labels = _pod_labels(context, 0)
    assert _selects(everything, labels)
    assert not _selects(pushes, labels)
    assert _selects(pushes, labels | {names.PUSH_LABEL: "true"})


def test_a_pod_that_may_not_serve_is_in_neither_service(make_context: MakeContext) -> None:
    context = make_context()
    labels = {**_pod_labels(context, 0), names.PUSH_LABEL: "true"}
    del labels[names.SERVE_LABEL]
    assert not any(_selects(service, labels) for service in render.client_services(context))


def test_a_neighbor_with_a_longer_name_is_never_selected(make_context: MakeContext) -> None:
    neighbor = {**_pod_labels(make_context(name="orders-0"), 0), names.PUSH_LABEL: "true"}
    context = make_context()
    for service in (*render.client_services(context), render.broker_service(context, 0)):
        assert not _selects(service, neighbor)


def test_the_service_follows_the_spec(make_context: MakeContext) -> None:
    for service in render.client_services(make_context(base="full")):
        assert service["spec"]["type"] == "LoadBalancer"
        assert service["metadata"]["annotations"]["example.com/load-balancer"] == "internal"


def test_an_annotation_taken_out_of_the_spec_changes_the_services_hash(make_context: MakeContext) -> None:
    annotated = make_context({"service": {"annotations": {"a": "b"}}})
    hashes = [
        render.client_services(context)[0]["metadata"]["annotations"][names.RENDERED_ANNOTATION]
        for context in (make_context(), annotated, make_context())
    ]
    assert hashes[0] == hashes[2] != hashes[1]


def test_peers_find_a_broker_that_is_not_ready(make_context: MakeContext) -> None:
    service = render.broker_service(make_context(), 1)
    assert service["metadata"]["name"] == "orders-1"
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert [(port["name"], port["port"]) for port in service["spec"]["ports"]] == [
        ("http", 6632),
        ("mesh", 6633),
        ("keeper", 9632),
    ]
    assert _selects(service, _pod_labels(make_context(), 1))
    assert not _selects(service, _pod_labels(make_context(), 0))


def test_a_drain_takes_one_broker_at_a_time_and_none_that_holds_pushes(make_context: MakeContext) -> None:
    budget = render.disruption_budget(make_context())
    assert budget is not None
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "IfHealthyBudget"
    assert budget["spec"]["selector"]["matchLabels"] == {names.CLUSTER_LABEL: "orders", COMPONENT: "broker"}


@pytest.mark.parametrize(("replicas", "exists"), [(1, False), (2, True), (9, True)])
def test_a_single_broker_has_no_budget(replicas: int, exists: bool, make_context: MakeContext) -> None:
    assert (render.disruption_budget(make_context({"replicas": replicas})) is not None) == exists


def test_a_claim_is_what_the_spec_says(make_context: MakeContext) -> None:
    claim = render.broker_claim(make_context(base="full"), 4, database="pg:5432/queen")
    assert claim["metadata"] == {
        "name": "orders-spool-4",
        "namespace": "shop",
        "labels": names.broker_labels("orders", 4),
        "annotations": {
            names.CLUSTER_UID_ANNOTATION: "5c0f2a60-0000-4000-8000-000000000001",
            names.DATABASE_ANNOTATION: "pg:5432/queen",
        },
    }
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "20Gi"}},
    }


def test_a_claim_of_the_default_class_names_none(make_context: MakeContext) -> None:
    claim = render.broker_claim(make_context(), 0)
    assert claim["spec"] == {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "5Gi"}}}


def test_a_claim_for_a_database_that_is_not_known_says_none(make_context: MakeContext) -> None:
    annotations = render.broker_claim(make_context(), 0)["metadata"]["annotations"]
    assert annotations == {names.CLUSTER_UID_ANNOTATION: "5c0f2a60-0000-4000-8000-000000000001"}


def test_the_identity_of_a_database_is_where_it_is(make_context: MakeContext) -> None:
    assert render.database_identity(make_context()) == "pg.orders.svc:5432/queen"
    other = make_context({"postgres": {"user": "x", "passwordSecret": {"name": "y"}, "poolSize": 99}})
    assert render.database_identity(other) == "pg.orders.svc:5432/queen"


def test_a_database_that_a_secret_names_is_known_by_a_hash(make_context: MakeContext) -> None:
    def identity(**content: str) -> str:
        keys = {("orders-app", key): digest for key, digest in content.items()}
        found = render.database_identity(make_context(base="full", content=keys))
        assert found is not None
        return found

    assert identity().startswith("sha256:")
    assert identity(password="p", user="u") == identity()
    assert len({identity(), identity(host="h"), identity(port="p"), identity(dbname="d")}) == 4


def test_a_database_that_cannot_be_known_has_no_identity(make_context: MakeContext) -> None:
    assert render.database_identity(make_context(base="full", secret_digests={})) is None


def test_the_mesh_secret_holds_the_value_as_data(make_context: MakeContext) -> None:
    secret = render.mesh_secret(make_context(), "välue")
    assert secret["metadata"]["name"] == "orders-mesh"
    assert base64.b64decode(secret["data"]["secret"]).decode() == "välue"
    assert "stringData" not in secret
    assert "immutable" not in secret


def test_pods_have_an_account_without_a_token(make_context: MakeContext) -> None:
    context = make_context()
    account = render.service_account(context)
    pod = render.broker_deployment(context, 0)["spec"]["template"]["spec"]
    assert account["metadata"]["name"] == pod["serviceAccountName"]
    assert account["automountServiceAccountToken"] is False
