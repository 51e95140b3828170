"""What the pods that mount a spool have in common, and the one-shot pod that reports what a spool holds."""

from typing import Any, Final

from queen_operator.api import names
from queen_operator.manifests import metadata
from queen_operator.manifests.canonical import in_one_order
from queen_operator.manifests.context import Context
from queen_operator.manifests.templating import rendered

Manifest = dict[str, Any]

TERMINATION_LOG: Final = "/dev/termination-log"

_CONTAINER_SECURITY_CONTEXT: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def report_pod(context: Context, index: int, claim_uid: str, *, owned: bool) -> Manifest:
    """Return the one-shot pod that mounts the claim of broker ``index`` and reports what its spool holds.

    Its only container ends with the keeper's exit code (0 empty and nobody else there, 3 not empty, 4 unknown) and
    with the keeper's JSON as its termination message. ``claim_uid`` is the UID of the claim as it was seen: a claim
    made anew under the same name has another one. Without an owner (``owned`` false) the pod outlives its QueenCluster.
    """
    make = metadata.child_metadata if owned else metadata.unowned_metadata
    return rendered(
        "report-pod",
        metadata=make(
            context,
            names.report_pod_name(context.name, index),
            metadata.report_labels(context, index),
            metadata.users_own(context.spec.pod_annotations) | {names.CLAIM_UID_ANNOTATION: claim_uid},
        ),
        report_args=["report", "--spool-dir", names.SPOOL_DIRECTORY, "--termination-log", TERMINATION_LOG],
        termination_log=TERMINATION_LOG,
        **pod_values(context, index),
    )


def pod_values(context: Context, index: int) -> dict[str, Any]:
    """Return what a template needs for a pod that mounts the spool of broker ``index`` with the broker's own rights."""
    spec = context.spec
    return {
        "service_account": context.name,
        "claim": names.claim_name(context.name, index),
        "spool_directory": names.SPOOL_DIRECTORY,
        "keeper_image": context.keeper_image,
        "image_pull_secrets": [{"name": name} for name in sorted({secret.name for secret in spec.image_pull_secrets})],
        "run_as_user": spec.security_context.run_as_user,
        "run_as_group": spec.security_context.run_as_group,
        "fs_group": spec.security_context.fs_group,
        "container_security_context": _CONTAINER_SECURITY_CONTEXT,
        "node_selector": spec.scheduling.node_selector,
        "tolerations": in_one_order(spec.scheduling.tolerations),
        "priority_class_name": spec.scheduling.priority_class_name,
    }


def placement(context: Context) -> dict[str, Any]:
    """Return how brokers keep apart from each other; a pod that only looks at a volume has to go where that is."""
    scheduling = context.spec.scheduling
    return {"affinity": scheduling.affinity, "topology_spread_constraints": _spread(context)}


def _spread(context: Context) -> list[dict[str, Any]]:
    constraints = context.spec.scheduling.topology_spread_constraints
    if constraints is not None:
        return in_one_order(constraints)
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": metadata.brokers_selector(context)},
        }
    ]
