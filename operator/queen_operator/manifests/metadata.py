"""Labels, owners and selectors of the children."""

from typing import Any, Final

from queen_operator.api import names
from queen_operator.manifests.context import Context

COMPONENT_LABEL: Final = "app.kubernetes.io/component"
VERSION_LABEL: Final = "app.kubernetes.io/version"
BROKER_COMPONENT: Final = "broker"
PROOF_COMPONENT: Final = "proof"

Labels = dict[str, str]


def child_metadata(context: Context, name: str, labels: Labels, annotations: Labels | None = None) -> dict[str, Any]:
    """Return the metadata of a child that goes away with its QueenCluster."""
    metadata = unowned_metadata(context, name, labels, annotations)
    metadata["ownerReferences"] = [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "name": context.name,
            "uid": context.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return metadata


def unowned_metadata(context: Context, name: str, labels: Labels, annotations: Labels | None = None) -> dict[str, Any]:
    """Return the metadata of a child that outlives its QueenCluster: a claim may hold the only copy of messages."""
    metadata: dict[str, Any] = {"name": name, "namespace": context.namespace, "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


def pod_labels(context: Context, index: int) -> Labels:
    """Return the labels of a broker pod; the user's never displace ours, nor take a place in our own group.

    The label of the push Service is not among them: the operator sets it on pods that run.
    """
    ours = names.broker_labels(context.name, index) | {
        COMPONENT_LABEL: BROKER_COMPONENT,
        VERSION_LABEL: _label_value(context.spec.version),
        names.SERVE_LABEL: "true",
    }
    return users_own(context.spec.pod_labels) | ours


def report_labels(context: Context, index: int) -> Labels:
    """Return the labels of a report pod: the user's and the cluster's, and none that a broker is selected by.

    With the user's, because policies that want a label on every pod, or keep a sidecar out by one, do so here too.
    """
    ours = names.cluster_labels(context.name) | {COMPONENT_LABEL: PROOF_COMPONENT, names.PROOF_LABEL: str(index)}
    return users_own(context.spec.pod_labels) | ours


def pod_annotations(context: Context, config: str) -> Labels:
    """Return the annotations of a broker pod, ``config`` saying what it was made from."""
    return users_own(context.spec.pod_annotations) | {names.CONFIG_ANNOTATION: config}


def deployment_selector(context: Context, index: int) -> Labels:
    """Return the selector of a broker's Deployment. It can never be changed, so nothing may ever be added to it."""
    return {names.CLUSTER_LABEL: context.name, names.BROKER_LABEL: str(index)}


def brokers_selector(context: Context) -> Labels:
    """Return the selector of all broker pods of the cluster; pods that only look at a volume are no brokers."""
    return {names.CLUSTER_LABEL: context.name, COMPONENT_LABEL: BROKER_COMPONENT}


def broker_selector(context: Context, index: int) -> Labels:
    """Return the selector of one broker's pods."""
    return brokers_selector(context) | {names.BROKER_LABEL: str(index)}


def serving_selector(context: Context) -> Labels:
    """Return the selector of the brokers that clients may reach."""
    return brokers_selector(context) | {names.SERVE_LABEL: "true"}


def push_selector(context: Context) -> Labels:
    """Return the selector of the brokers that take pushes, Ready or not."""
    return serving_selector(context) | {names.PUSH_LABEL: "true"}


def users_own(values: dict[str, str]) -> Labels:
    """Return the user's labels or annotations without those in our own group: they steer the operator."""
    return {key: value for key, value in values.items() if not key.startswith(f"{names.GROUP}/")}


def _label_value(text: str) -> str:
    """Cut a version to what a label may be; only a pre-release of an odd name is ever changed."""
    return text[:63].rstrip("-._")
