"""A deleted cluster is drained with what its broker needs for that, and says whether its claims were proved empty."""

from copy import deepcopy
from dataclasses import replace

from queen_operator.api import names
from queen_operator.planning.actions import Action, ApplyChildren, DeleteChild, GenerateMeshSecret, SetFinalizer, Wait
from queen_operator.planning.deletion import plan_deletion
from queen_operator.planning.findings import find
from queen_operator.planning.observed import Observed
from queen_operator.planning.plan import decide
from queen_operator.planning.reasons import Reason
from queen_operator.planning.reports import Held
from queen_operator.planning.status import make_status
from queen_operator.planning.views import read_brokers
from tests.unit.planning.scene import UID, Scene, healthy_cluster


def with_messages_and_no_broker(**spec: object) -> tuple[Scene, Observed]:
    scene = healthy_cluster(replicas=1, spool={"onDelete": "DeleteWhenEmpty"}, **spec)
    scene.deleting = True
    scene.deployments, scene.pods = {}, []
    claim = scene.claims["orders-spool-0"]
    held = Held(files=3, bytes=900, events=20, quarantined_files=0).as_annotation()
    claim["metadata"]["annotations"] |= {names.REMOVING_ANNOTATION: UID, names.HELD_ANNOTATION: held}
    claim["spec"]["volumeName"] = "volume"
    observed = scene.observed()
    metadata = {**observed.resource["metadata"], "finalizers": [names.DRAIN_FINALIZER]}
    return scene, replace(observed, resource={**observed.resource, "metadata": metadata})


def without_digest(observed: Observed, purpose: str, problem: str | None) -> Observed:
    unread = tuple(
        replace(ref, digest=None, problem=problem) if ref.purpose == purpose else ref for ref in observed.references
    )
    return replace(observed, references=unread)


def deletion_of(scene: Scene, observed: Observed) -> Action:
    return plan_deletion(observed, scene.wanted, read_brokers(observed, "orders", scene.wanted.replicas))


def test_its_broker_is_started_again() -> None:
    scene, observed = with_messages_and_no_broker()

    action = deletion_of(scene, observed)

    assert isinstance(action, ApplyChildren)
    assert "20 messages" in action.message


def test_a_mesh_secret_that_is_gone_is_made_before_its_broker_is_started() -> None:
    scene, observed = with_messages_and_no_broker()

    action = deletion_of(scene, without_digest(observed, "mesh secret", None))

    assert action == GenerateMeshSecret("orders-mesh")


def test_a_missing_password_is_named_and_waited_for() -> None:
    scene, observed = with_messages_and_no_broker()
    missing = without_digest(observed, "PostgreSQL password", "The Secret pg does not exist.")

    action = deletion_of(scene, without_digest(missing, "mesh secret", None))

    assert isinstance(action, Wait)
    assert action.reason is Reason.SECRET_MISSING
    assert "The Secret pg does not exist." in action.message


def released(scene: Scene, observed: Observed) -> SetFinalizer:
    """What is done once nothing is left, by a round that reads the status of this one."""
    status = make_status(find(observed, scene.wanted, decide(observed, scene.wanted)))
    gone = replace(observed, claims={}, resource={**observed.resource, "status": status})
    action = deletion_of(scene, gone)
    assert isinstance(action, SetFinalizer)
    return action


def test_a_claim_that_never_had_a_volume_is_no_loss() -> None:
    scene, observed = with_messages_and_no_broker()
    claim = deepcopy(scene.claims["orders-spool-0"])
    del claim["metadata"]["annotations"][names.HELD_ANNOTATION], claim["spec"]["volumeName"]
    claim["status"] = {"phase": "Pending"}
    observed = replace(observed, claims={"orders-spool-0": claim})

    assert isinstance(decide(observed, scene.wanted), DeleteChild)
    assert not released(scene, observed).unproved


def test_a_claim_that_others_deleted_before_its_proof_is_told_as_unproved() -> None:
    scene, observed = with_messages_and_no_broker()

    action = released(scene, observed)

    assert action.unproved
    assert "orders-0" in action.message
