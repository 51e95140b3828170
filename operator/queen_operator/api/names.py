"""Names, labels and annotations of everything the operator makes: one place, so that two rooms never disagree."""

from typing import Final

GROUP: Final = "queen-operator.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "QueenCluster"
PLURAL: Final = "queenclusters"
FIELD_MANAGER: Final = "queen-operator"

# The longest name we derive is <name>-spool-<i> for claims and <name>-<i>-<hash>-<hash> for pods, whose host name
# must stay below 64 characters: 40 leaves room for both.
MAX_CLUSTER_NAME_LENGTH: Final = 40

HTTP_PORT: Final = 6632
MESH_PORT: Final = 6633
KEEPER_PORT: Final = 9632
SPOOL_DIRECTORY: Final = "/var/lib/queen/spool"

MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
CLUSTER_LABEL: Final = f"{GROUP}/cluster"
BROKER_LABEL: Final = f"{GROUP}/broker"
# A pod without this label is in no client Service: taken off before a broker is drained for good.
SERVE_LABEL: Final = f"{GROUP}/serve"
# A pod with this label gets pushes, Ready or not: set once its broker runs, taken off before it stops.
PUSH_LABEL: Final = f"{GROUP}/push"
# Only on report pods, in place of the broker label: the index of the broker whose volume they look at.
PROOF_LABEL: Final = f"{GROUP}/proof"

REPORT_CONTAINER: Final = "report"

# On pod templates: which parts of what the user wrote they were made from (JSON, part -> hash).
CONFIG_ANNOTATION: Final = f"{GROUP}/config"
# On Deployments: the hash of the whole template as the operator rendered it.
RENDERED_ANNOTATION: Final = f"{GROUP}/rendered"
# On claims: which database the spool belongs to, so that it is never replayed into another one.
DATABASE_ANNOTATION: Final = f"{GROUP}/database"
# On claims: the UID of the QueenCluster that writes to the spool.
CLUSTER_UID_ANNOTATION: Final = f"{GROUP}/cluster-uid"
# On claims: the UID of the QueenCluster that takes this broker away.
REMOVING_ANNOTATION: Final = f"{GROUP}/removing"
# On claims: what a report found in the spool (JSON: files, bytes, events, quarantinedFiles).
HELD_ANNOTATION: Final = f"{GROUP}/held"
# On claims: the size in bytes that the file system had when the claim last grew.
GROWN_FROM_ANNOTATION: Final = f"{GROUP}/grown-from"
# On report pods: the UID of the claim that they look at, so that no report speaks of a later claim of the same name.
CLAIM_UID_ANNOTATION: Final = f"{GROUP}/claim-uid"
# On a QueenCluster, written by the user: a new value restarts all brokers one after the other.
RESTART_ANNOTATION: Final = f"{GROUP}/restart"
# On a QueenCluster whose claims go with it: it stays until their spools are proven empty.
DRAIN_FINALIZER: Final = f"{GROUP}/drain"


def broker_name(cluster: str, index: int) -> str:
    """Name of a broker's Deployment and headless Service, its server id and its host name in the mesh."""
    return f"{cluster}-{index}"


def claim_name(cluster: str, index: int) -> str:
    """Name of a broker's spool claim."""
    return f"{cluster}-spool-{index}"


def report_pod_name(cluster: str, index: int) -> str:
    """Name of the one-shot pod that reports what a claim holds.

    A cluster called ``<name>-proof`` has a Deployment of this name, but never a pod: those have a suffix.
    """
    return f"{cluster}-proof-{index}"


def push_service_name(cluster: str) -> str:
    """Name of the Service that pushes reach whether or not the broker is Ready."""
    return f"{cluster}-push"


def mesh_secret_name(cluster: str) -> str:
    """Name of the generated mesh Secret."""
    return f"{cluster}-mesh"


def cluster_labels(cluster: str) -> dict[str, str]:
    """Labels of every child of a cluster. Nothing is copied from the QueenCluster's own labels."""
    return {
        "app.kubernetes.io/name": "queen",
        INSTANCE_LABEL: cluster,
        MANAGED_BY_LABEL: FIELD_MANAGER,
        CLUSTER_LABEL: cluster,
    }


def broker_labels(cluster: str, index: int) -> dict[str, str]:
    """Labels of every child of one broker."""
    return cluster_labels(cluster) | {BROKER_LABEL: str(index)}
