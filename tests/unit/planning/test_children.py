"""Children: made when missing, put back when changed, and never at the price of a running broker."""

import pytest

from queen_operator.api import names
from queen_operator.manifests.config import RestartCause
from queen_operator.planning.actions import (
    ApplyChildren,
    CloseToPushes,
    DeleteChild,
    GenerateMeshSecret,
    MakeReportPods,
    OpenToPushes,
    Rest,
    RestartBroker,
)
from queen_operator.planning.reasons import EventReason
from tests.unit.planning.scene import NOW, Scene, healthy_cluster


def applied(scene: Scene) -> ApplyChildren:
    action = scene.action()
    assert isinstance(action, ApplyChildren), action
    return action


def kinds_and_names(action: ApplyChildren) -> set[tuple[str, str]]:
    return {(item["kind"], item["metadata"]["name"]) for item in action.manifests}


def test_a_new_cluster_first_gets_its_mesh_secret() -> None:
    scene = healthy_cluster()
    del scene.others["Secret", "orders-mesh"]

    assert scene.action() == GenerateMeshSecret("orders-mesh")


def test_everything_that_is_missing_is_made_at_once_and_brokers_once_their_claims_are_there() -> None:
    scene = healthy_cluster()
    claims = scene.claims
    scene.deployments, scene.claims, scene.pods = {}, {}, []
    scene.others = {("Secret", "orders-mesh"): scene.others["Secret", "orders-mesh"]}

    action = applied(scene)

    assert action.event is EventReason.CHILDREN_CREATED
    assert {("Service", "orders"), ("Service", "orders-push"), ("ServiceAccount", "orders")} <= kinds_and_names(action)
    assert {("PodDisruptionBudget", "orders"), ("PersistentVolumeClaim", "orders-spool-2")} <= kinds_and_names(action)
    assert "Deployment" not in {kind for kind, _ in kinds_and_names(action)}

    scene.claims = claims
    assert {("Deployment", f"orders-{index}") for index in range(3)} <= kinds_and_names(applied(scene))


def test_no_broker_is_made_on_a_claim_that_is_not_ours_or_about_to_go() -> None:
    scene = healthy_cluster()
    scene.deployments, scene.pods = {}, []
    del scene.claims["orders-spool-0"]
    scene.claims["orders-spool-1"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    made = {name for kind, name in kinds_and_names(applied(scene)) if kind == "Deployment"}

    assert made == {"orders-2"}


def test_no_broker_is_made_before_its_secrets_can_be_read() -> None:
    scene = healthy_cluster()
    scene.deployments, scene.pods, scene.claims = {}, [], {}
    ref = scene.references[0]
    scene.references = (type(ref)(ref.secret, ref.key, ref.purpose, None, "The Secret is missing."),)

    assert {kind for kind, _ in kinds_and_names(applied(scene))} == {"PersistentVolumeClaim"}


@pytest.mark.parametrize("kind", ["Service", "PodDisruptionBudget", "ServiceAccount"])
def test_a_deleted_child_is_made_again(kind: str) -> None:
    scene = healthy_cluster()
    del scene.others[kind, "orders"]

    assert kinds_and_names(applied(scene)) == {(kind, "orders")}


def test_a_service_that_was_edited_is_put_back() -> None:
    scene = healthy_cluster()
    scene.others["Service", "orders"]["spec"]["ports"][0]["port"] = 80

    action = applied(scene)

    assert action.event is EventReason.CHILDREN_CORRECTED
    assert kinds_and_names(action) == {("Service", "orders")}


def test_a_scaled_deployment_is_put_back_without_touching_its_template() -> None:
    scene = healthy_cluster()
    live = scene.deployments["orders-1"]
    live["spec"]["replicas"] = 2
    live["metadata"]["annotations"][names.RENDERED_ANNOTATION] = "by another operator version"
    live["spec"]["template"]["spec"]["initContainers"][0]["image"] = "keeper:0"

    manifest = applied(scene).manifests[0]

    assert manifest["spec"]["replicas"] == 1
    assert manifest["spec"]["template"] == live["spec"]["template"]
    assert manifest["metadata"]["annotations"][names.RENDERED_ANNOTATION] == "by another operator version"


def test_a_template_edited_by_hand_is_put_back_as_a_restart_behind_the_guards() -> None:
    scene = healthy_cluster()
    scene.deployments["orders-1"]["spec"]["template"]["spec"]["containers"][0]["image"] = "queen:mine"

    action = scene.action()
    assert isinstance(action, CloseToPushes)
    assert action.pod == "orders-1-abc"

    scene.crash(1)
    cure = scene.action()
    assert isinstance(cure, RestartBroker)
    assert cure.causes == (RestartCause.EDITED,)


def test_a_deployment_is_not_made_again_before_the_old_pod_is_gone() -> None:
    scene = healthy_cluster()
    del scene.deployments["orders-1"]
    scene.leave(1)
    scene.pod(1)["metadata"]["labels"].pop(names.PUSH_LABEL)
    assert scene.action() == Rest()

    scene.pods = [pod for pod in scene.pods if pod["metadata"]["name"] != "orders-1-abc"]
    assert kinds_and_names(applied(scene)) == {("Deployment", "orders-1")}


def test_a_deployment_is_not_made_beside_a_pod_that_still_runs() -> None:
    scene = healthy_cluster()
    scene.deployments.clear()

    assert scene.action() == Rest()
    assert "its Deployment is gone while its pod runs" in scene.make_status()["message"]
    assert "the ReplicaSet orders-0-67fd" in scene.make_status()["message"]


def test_a_pod_that_its_deployment_left_behind_is_taken_over_when_it_is_as_wanted() -> None:
    scene = healthy_cluster()
    scene.deployments.clear()
    scene.pod(1)["spec"]["containers"][0]["image"] = "queen:mine"
    scene.more = {"long_missing": frozenset({"orders-0", "orders-1", "orders-2"})}

    made = kinds_and_names(applied(scene))

    assert made == {("Deployment", "orders-0"), ("Deployment", "orders-2")}


def test_a_correction_names_the_object_that_was_seen() -> None:
    scene = healthy_cluster()
    live = scene.deployments["orders-1"]
    live["spec"]["replicas"] = 2
    live["metadata"]["resourceVersion"] = "77"

    meta = applied(scene).manifests[0]["metadata"]

    assert (meta["uid"], meta["resourceVersion"]) == ("deployment-orders-1", "77")


def test_a_claim_that_a_person_made_larger_is_left_large() -> None:
    scene = healthy_cluster()
    scene.claims["orders-spool-0"]["spec"]["resources"]["requests"]["storage"] = "20Gi"

    assert scene.action() == Rest()


def test_a_claim_that_was_deleted_under_a_running_broker_is_said_at_once() -> None:
    scene = healthy_cluster()
    scene.claims["orders-spool-2"]["metadata"]["deletionTimestamp"] = "2026-12-01T11:59:00Z"

    status = scene.make_status()

    assert status["phase"] == "Blocked"
    assert "Keep the pod until its spool is empty" in status["message"]


def test_brokers_that_still_run_beyond_replicas_keep_their_budget() -> None:
    scene = healthy_cluster()
    scene.change_spec(replicas=1)

    assert isinstance(scene.action(), CloseToPushes)

    scene.deployments = {"orders-0": scene.deployments["orders-0"]}
    scene.pods = [scene.pod(0)]
    action = scene.action()
    assert isinstance(action, DeleteChild)
    assert action.kind == "PodDisruptionBudget"


def test_a_claim_with_the_messages_of_another_database_is_not_mounted() -> None:
    scene = healthy_cluster()
    scene.claims["orders-spool-1"]["metadata"]["annotations"] = {names.DATABASE_ANNOTATION: "old:5432/x"}
    del scene.deployments["orders-1"]
    scene.pods = [pod for pod in scene.pods if pod["metadata"]["uid"] != "pod-1"]

    assert scene.action() == Rest()
    status = scene.make_status()
    assert status["phase"] == "Blocked"
    assert "holds the spool of another database (old:5432/x)" in status["message"]

    scene.claims["orders-spool-1"]["metadata"]["annotations"] = {}
    assert kinds_and_names(applied(scene)) == {("PersistentVolumeClaim", "orders-spool-1")}


def test_a_claim_from_before_is_looked_at_before_its_broker_is_made_and_our_own_is_not() -> None:
    scene = healthy_cluster()
    del scene.deployments["orders-1"]
    scene.pods = [pod for pod in scene.pods if pod["metadata"]["uid"] != "pod-1"]
    claim = scene.claims["orders-spool-1"]["metadata"]
    assert kinds_and_names(applied(scene)) == {("Deployment", "orders-1")}

    claim["annotations"] = {**claim["annotations"], names.CLUSTER_UID_ANNOTATION: "an-earlier-cluster"}
    action = scene.action()
    assert isinstance(action, MakeReportPods)
    assert [pod["metadata"]["name"] for pod in action.manifests] == ["orders-proof-1"]


def test_a_claim_follows_to_another_database_once_a_ready_broker_has_emptied_it() -> None:
    scene = healthy_cluster()
    scene.change_spec(postgres={"host": "other"})
    for index in range(3):
        scene.roll_on(index)
    scene.spool(2, files=1)

    action = applied(scene)

    assert kinds_and_names(action) == {
        ("PersistentVolumeClaim", "orders-spool-0"),
        ("PersistentVolumeClaim", "orders-spool-1"),
    }
    marked = {item["metadata"]["annotations"][names.DATABASE_ANNOTATION] for item in action.manifests}
    assert marked == {"other:5432/queen"}


def test_a_claim_that_vanished_is_made_again_and_the_loss_is_said() -> None:
    scene = healthy_cluster()
    del scene.claims["orders-spool-2"]

    action = applied(scene)

    assert action.event is EventReason.CLAIM_LOST
    assert "orders-spool-2 had vanished with whatever its spool held" in action.message


def test_a_claim_grows_and_keeps_what_it_was_made_with() -> None:
    scene = healthy_cluster()
    scene.change_spec(spool={"size": "10Gi"})
    scene.claims["orders-spool-0"]["spec"]["storageClassName"] = "fast"

    manifest = applied(scene).manifests[0]

    assert manifest["spec"]["resources"]["requests"]["storage"] == "10Gi"
    assert manifest["spec"]["storageClassName"] == "fast"
    assert manifest["metadata"]["annotations"][names.DATABASE_ANNOTATION] == "pg:5432/queen"


def test_a_claim_that_is_not_bound_yet_is_left_alone() -> None:
    scene = healthy_cluster()
    for claim in scene.claims.values():
        claim["status"] = {"phase": "Pending"}
    scene.change_spec(spool={"size": "10Gi"})

    assert scene.action() == Rest()


def test_one_broker_has_no_budget_that_could_hold_a_drain() -> None:
    scene = healthy_cluster()
    budget = scene.others["PodDisruptionBudget", "orders"]
    scene = healthy_cluster(replicas=1)
    scene.others["PodDisruptionBudget", "orders"] = budget

    action = scene.action()

    assert isinstance(action, DeleteChild)
    assert (action.kind, action.name, action.uid) == ("PodDisruptionBudget", "orders", "PodDisruptionBudget-orders")


def test_what_is_not_ours_or_was_refused_is_left_out_and_the_rest_goes_on() -> None:
    scene = healthy_cluster()
    del scene.others["Service", "orders"]
    del scene.others["ServiceAccount", "orders"]
    scene.more = {"foreign": {("Service", "orders"): "managed by Helm"}}

    assert kinds_and_names(applied(scene)) == {("ServiceAccount", "orders")}
    condition = scene.condition("Ready")
    assert condition is not None
    assert "Service orders exists and is not ours (managed by Helm)" in condition["message"]


def test_a_paused_cluster_is_not_touched_whatever_happens_to_it() -> None:
    scene = healthy_cluster()
    scene.others.clear()
    scene.leave(1)
    scene.change_spec(paused=True, version="1.4.0")

    assert scene.action() == Rest()


def test_a_cluster_that_is_being_deleted_gets_nothing_back() -> None:
    scene = healthy_cluster()
    scene.others.clear()
    scene.deleting = True

    assert scene.action() == Rest()


def test_a_pod_that_leaves_stops_getting_pushes_before_anything_else() -> None:
    scene = healthy_cluster()
    scene.others.clear()
    scene.leave(2)

    assert scene.action() == CloseToPushes("orders-2-abc", "pod-2")


def test_a_broker_that_listens_takes_pushes_although_it_is_not_ready() -> None:
    scene = healthy_cluster()
    scene.not_ready(1)
    scene.pod(1)["metadata"]["labels"].pop(names.PUSH_LABEL)

    assert scene.action() == OpenToPushes("orders-1-abc", "pod-1")


def test_a_broker_that_does_not_listen_yet_takes_no_pushes() -> None:
    scene = healthy_cluster()
    scene.unstarted(1)
    scene.pod(1)["metadata"]["labels"].pop(names.PUSH_LABEL)

    assert scene.action() == Rest()


def test_a_broker_beyond_replicas_is_taken_away_and_named_while_it_runs() -> None:
    scene = healthy_cluster()
    scene.change_spec(replicas=2)

    assert scene.action() == CloseToPushes("orders-2-abc", "pod-2", leaving_since=NOW.isoformat(), cordon=True)
    condition = scene.condition("Ready")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "RemovingBroker")
    assert "orders-2 is taken away" in condition["message"]
    assert [broker["name"] for broker in scene.make_status()["brokers"]] == ["orders-0", "orders-1", "orders-2"]
