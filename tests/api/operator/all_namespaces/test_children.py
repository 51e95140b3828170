"""Children: made, put back, left alone where they are not ours to change."""

from __future__ import annotations

import pytest

from lab.control_plane import ControlPlane
from queen_operator.api import names
from tests.support import audit
from tests.support.clusters import (
    UNTOUCHED,
    children,
    condition,
    generations,
    has,
    make_settled,
    queen_cluster,
    rests,
    secret,
    status,
    versions,
)
from tests.support.objects import Object, Objects
from tests.support.operators import OperatorProcess, written_on_children
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("operator")


def test_a_minimal_cluster_gets_every_child_and_its_pods(objects: Objects) -> None:
    objects.make(secret(), queen_cluster())

    wait_until("all children", has(objects, children()))

    uid = objects.there("QueenCluster", "orders")["metadata"]["uid"]
    for kind, name in children():
        meta = objects.there(kind, name)["metadata"]
        assert meta["labels"].items() >= names.cluster_labels("orders").items(), (kind, name)
        owners = [(ref["kind"], ref["uid"], ref["controller"]) for ref in meta.get("ownerReferences", [])]
        assert owners == ([] if kind == "PersistentVolumeClaim" else [("QueenCluster", uid, True)]), (kind, name)
    # The controllers make them under Pod Security "restricted", or not at all.
    wait_until("three pods", lambda: len(objects.all("Pod")) == 3)
    pods = set(objects.all("Pod"))
    wait_until("the pods in the status", lambda: {broker.get("pod") for broker in status(objects)["brokers"]} == pods)
    wait_until("the database in the status", lambda: status(objects)["database"]["state"] == "ConnectionRefused")
    wait_until("the operator to rest", lambda: rests(objects))
    assert [broker["name"] for broker in status(objects)["brokers"]] == ["orders-0", "orders-1", "orders-2"]


def _made_again(objects: Objects, kind: str, name: str, uid: str) -> bool:
    found = objects.get(kind, name)
    return found is not None and found["metadata"]["uid"] != uid


def test_a_deleted_child_is_back_within_seconds(objects: Objects, subtests: pytest.Subtests) -> None:
    make_settled(objects)
    deleted = [
        ("Service", "orders"),
        ("Service", "orders-push"),
        ("Service", "orders-1"),
        ("PodDisruptionBudget", "orders"),
        ("ServiceAccount", "orders"),
        ("PersistentVolumeClaim", "orders-spool-1"),
        ("Deployment", "orders-1"),
        ("Secret", "orders-mesh"),
    ]
    for kind, name in deleted:
        with subtests.test(f"{kind} {name}"):
            uid = objects.there(kind, name)["metadata"]["uid"]
            if kind == "PersistentVolumeClaim":
                # No node uses it here, so that it can go; Kubernetes itself is slow to see that.
                objects.patch(kind, name, {"metadata": {"finalizers": None}})
            objects.delete(kind, name)
            wait_until(
                "it to be made again",
                lambda kind=kind, name=name, uid=uid: _made_again(objects, kind, name, uid),  # type: ignore[misc]
                seconds=20,
            )
    told = {event["reason"]: event["message"] for event in objects.all("Event").values()}
    assert "orders-spool-1" in told["SpoolClaimLost"]


EDITS: dict[str, tuple[str, str, str, Object]] = {
    "the port of a Service": (
        "Service", "orders", "", {"spec": {"ports": [{"name": "http", "port": 7000, "targetPort": "http"}]}}
    ),
    "the target of a Service": (
        "Service", "orders-push", "", {"spec": {"ports": [{"name": "http", "port": 6632, "targetPort": 80}]}}
    ),
    "what a Service selects": ("Service", "orders-0", "", {"spec": {"selector": {names.BROKER_LABEL: "1"}}}),
    "what a Service selects beside": ("Service", "orders-push", "", {"spec": {"selector": {"app": "other"}}}),
    "whether a Service shows brokers that are not Ready": (
        "Service", "orders-1", "", {"spec": {"publishNotReadyAddresses": False}}
    ),
    "the disruption budget": ("PodDisruptionBudget", "orders", "", {"spec": {"maxUnavailable": 3}}),
    "the other form of the budget": (
        "PodDisruptionBudget", "orders", "", {"spec": {"maxUnavailable": None, "minAvailable": 1}}
    ),
    "how often a broker runs": ("Deployment", "orders-0", "scale", {"spec": {"replicas": 2}}),
    "that a broker does not run": ("Deployment", "orders-1", "scale", {"spec": {"replicas": 0}}),
    "how a Deployment is rolled": (
        "Deployment", "orders-2", "", {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}}
    ),
    "the token of the account": ("ServiceAccount", "orders", "", {"automountServiceAccountToken": True}),
    "our label on a Service": ("Service", "orders", "", {"metadata": {"labels": {names.MANAGED_BY_LABEL: None}}}),
    "the cluster's label on a budget": (
        "PodDisruptionBudget", "orders", "", {"metadata": {"labels": {names.CLUSTER_LABEL: None}}}
    ),
    "our label on a Deployment": (
        "Deployment", "orders-2", "", {"metadata": {"labels": {names.MANAGED_BY_LABEL: "Helm"}}}
    ),
    "the cluster's label on the mesh Secret": (
        "Secret", "orders-mesh", "", {"metadata": {"labels": {names.CLUSTER_LABEL: None}}}
    ),
    "the label of a claim": (
        "PersistentVolumeClaim", "orders-spool-0", "", {"metadata": {"labels": {names.BROKER_LABEL: "7"}}}
    ),
}  # fmt: skip


def _without_bookkeeping(item: Object) -> Object:
    """What a person may edit: neither what the server counts nor what controllers write into the status."""
    counted = ("managedFields", "resourceVersion", "generation", "annotations")
    meta = {key: value for key, value in item["metadata"].items() if key not in counted}
    return {**{key: value for key, value in item.items() if key not in ("status", "metadata")}, "metadata": meta}


def test_what_a_person_edits_on_a_child_is_put_back_within_seconds(objects: Objects, subtests: pytest.Subtests) -> None:
    make_settled(objects)
    for what, (kind, name, subresource, changes) in EDITS.items():
        with subtests.test(what):
            before = _without_bookkeeping(objects.there(kind, name))

            objects.patch(kind, name, changes, subresource=subresource)

            def put_back(kind: str = kind, name: str = name, before: Object = before) -> bool:
                return _without_bookkeeping(objects.there(kind, name)) == before

            assert not put_back() or kind == "Service", "the edit changes nothing"
            wait_until("it to be as before", put_back, seconds=20)


def test_a_deployment_whose_label_was_taken_off_is_not_taken_for_gone_and_made_anew(objects: Objects) -> None:
    """A whole apply would change its template, past every guard, in the midst of an outage as well."""
    make_settled(objects)
    objects.patch("QueenCluster", "orders", {"spec": {"resources": {"requests": {"cpu": "300m"}}}})
    wait_until("the change to wait", lambda: condition(objects, "RestartPending").get("reason") == "ChangesWait")

    for index in range(3):
        objects.patch("Deployment", f"orders-{index}", {"metadata": {"labels": {names.MANAGED_BY_LABEL: "Helm"}}})

    def labeled_again() -> bool:
        found = objects.all("Deployment").values()
        return all(item["metadata"]["labels"][names.MANAGED_BY_LABEL] == names.FIELD_MANAGER for item in found)

    wait_until("the labels to be put back", labeled_again, seconds=20)
    assert generations(objects) == UNTOUCHED


def test_labels_and_annotations_of_others_stay_on_children_without_a_fight(
    objects: Objects, plane: ControlPlane, operator: OperatorProcess
) -> None:
    make_settled(objects)
    before = audit.position(plane.audit_log)
    foreign = {"labels": {"team": "payments"}, "annotations": {"example.com/seen": "yes"}}
    for kind, name in children():
        objects.patch(kind, name, {"metadata": foreign})

    # A change that must be put back shows that the operator has looked since.
    for most in (2, 3):
        objects.patch("PodDisruptionBudget", "orders", {"spec": {"maxUnavailable": most}})
        wait_until(
            "the budget to be put back",
            lambda: objects.there("PodDisruptionBudget", "orders")["spec"]["maxUnavailable"] == 1,
        )

    written = written_on_children(plane, operator.account.user, before, objects.namespace)
    assert written == {"patch poddisruptionbudgets/orders"}
    for kind, name in children():
        meta = objects.there(kind, name)["metadata"]
        assert meta["labels"].items() >= foreign["labels"].items(), (kind, name)
        assert meta["annotations"].items() >= foreign["annotations"].items(), (kind, name)


def _selected(item: Object, pods: dict[str, Object]) -> set[str]:
    selector = item["spec"]["selector"]
    wanted = selector.get("matchLabels", selector)
    return {pod["metadata"]["name"] for pod in pods.values() if pod["metadata"]["labels"].items() >= wanted.items()}


def test_clusters_whose_names_begin_alike_select_only_their_own_pods(objects: Objects) -> None:
    clusters = ("orders", "orders-eu")
    for name in clusters:
        make_settled(objects, name)
    wait_until("six pods", lambda: len(objects.all("Pod")) == 6)
    pods = objects.all("Pod")
    for pod in pods:  # the push label, which the operator sets once a broker runs, in its place
        objects.patch("Pod", pod, {"metadata": {"labels": {names.PUSH_LABEL: "true"}}})
    pods = objects.all("Pod")

    for name in clusters:
        own = {pod for pod, item in pods.items() if item["metadata"]["labels"]["app.kubernetes.io/instance"] == name}
        assert len(own) == 3
        assert _selected(objects.there("Service", name), pods) == own
        assert _selected(objects.there("Service", f"{name}-push"), pods) == own
        assert _selected(objects.there("PodDisruptionBudget", name), pods) == own
        of_one = [_selected(objects.there("Service", f"{name}-{index}"), pods) for index in range(3)]
        assert [len(found) for found in of_one] == [1, 1, 1]
        assert set.union(*of_one) == own
        assert [_selected(objects.there("Deployment", f"{name}-{index}"), pods) for index in range(3)] == of_one
    budgets = objects.all("PodDisruptionBudget").values()
    wait_until(
        "each budget to count its own three",
        lambda: all(objects.there("PodDisruptionBudget", name)["status"]["expectedPods"] == 3 for name in clusters),
    )
    assert len(budgets) == 2


def test_deleting_a_cluster_leaves_its_neighbor_with_the_longer_name_alone(objects: Objects) -> None:
    make_settled(objects, "orders")
    make_settled(objects, "orders-eu")
    before = {kind: objects.there(kind, name)["metadata"]["uid"] for kind, name in children("orders-eu")}

    objects.delete("QueenCluster", "orders")

    owned = {child for child in children("orders") if child[0] != "PersistentVolumeClaim"}
    wait_until("its children to go", lambda: not any(objects.get(*child) for child in owned))
    assert {kind: objects.there(kind, name)["metadata"]["uid"] for kind, name in children("orders-eu")} == before


def test_a_name_of_the_greatest_length_gets_every_child_and_its_pods(objects: Objects) -> None:
    name = "q" * names.MAX_CLUSTER_NAME_LENGTH

    make_settled(objects, name, replicas=9)

    wait_until("nine pods", lambda: len(objects.all("Pod")) == 9)


def test_nothing_gets_a_finalizer_or_an_annotation_of_the_framework(objects: Objects) -> None:
    make_settled(objects)
    kinds_own = {"PersistentVolumeClaim": ["kubernetes.io/pvc-protection"]}
    for kind in ("QueenCluster", "Secret", "Service", "Deployment", "PersistentVolumeClaim", "PodDisruptionBudget"):
        for name, item in objects.all(kind).items():
            assert item["metadata"].get("finalizers", []) == kinds_own.get(kind, []), (kind, name)
            assert "kopf" not in str(item["metadata"].get("annotations")), (kind, name)
    assert objects.there("Secret", "pg")["metadata"].get("annotations") is None
    assert objects.there("QueenCluster", "orders")["metadata"].get("annotations") is None


def surplus_waits_for(objects: Objects) -> str:
    """What the status says of the broker with the highest index."""
    return str(status(objects)["brokers"][-1].get("waitingFor", ""))


def test_a_smaller_cluster_is_not_made_by_deleting_while_postgresql_is_away(objects: Objects) -> None:
    make_settled(objects)
    before = {kind: versions(objects, kind).keys() for kind, _ in children()}

    objects.patch("QueenCluster", "orders", {"spec": {"replicas": 2}})

    wait_until("why nothing goes", lambda: "is to be taken away and waits" in surplus_waits_for(objects))
    assert [broker["name"] for broker in status(objects)["brokers"]] == ["orders-0", "orders-1", "orders-2"]
    assert {kind: versions(objects, kind).keys() for kind, _ in children()} == before
    assert generations(objects) == UNTOUCHED
