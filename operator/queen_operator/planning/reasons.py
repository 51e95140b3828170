"""The closed list of reasons the operator gives: in conditions, in events and for each wait.

Nobody composes a reason elsewhere; a message is a sentence with names and numbers that is built beside its reason.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Reasons in conditions and waits."""

    AS_WRITTEN = "AsWritten"  # everything is as the user wrote it
    STARTING = "Starting"  # brokers come up for the first time
    RESTARTING = "Restarting"  # a broker was restarted and does not count yet
    REPLAYING = "Replaying"  # a broker replays its spool before it listens
    BROKER_AWAY = "BrokerAway"  # a broker is not Ready, and not through us
    BROKER_LEAVING = "BrokerLeaving"  # a pod is terminating
    SPOOL_NOT_EMPTY = "SpoolNotEmpty"
    SPOOL_UNKNOWN = "SpoolUnknown"  # a keeper cannot be asked; unknown is never empty
    SPOOL_DRAINING = "SpoolDraining"
    SPOOL_STUCK = "SpoolStuck"  # did not drain within spoolDeadline
    QUARANTINED = "Quarantined"
    EMPTY = "Empty"
    MAINTENANCE = "MaintenanceMode"
    DATABASE_AWAY = "DatabaseAway"  # the detail is the database's own state
    DATABASE_UNKNOWN = "DatabaseUnknown"
    MESH_INCOMPLETE = "MeshIncomplete"  # a broker does not hear all others yet
    CONNECTION_TRIED = "ConnectionTried"  # one broker tries the new connection, the others wait for it
    SECRET_MISSING = "SecretMissing"  # noqa: S105 - a reason, not a password
    SECRET_INVALID = "SecretInvalid"  # noqa: S105
    INVALID_SPEC = "InvalidSpec"
    INTERNAL_ERROR = "InternalError"  # a fault of the operator itself; its log has the trace
    NAME_TAKEN = "NameTaken"  # an object with one of our names is not ours
    CLAIM_OF_OTHERS = "ClaimOfAnotherDatabase"  # its messages would be replayed into the wrong database
    CLAIM_DELETED = "ClaimDeleted"  # a claim is going with its pod
    CLAIM_REFUSED = "ClaimRefused"  # quota, or a storage class that does not let volumes grow
    SPOOL_FULL = "SpoolFull"  # pushes that should be spooled are refused
    POD_REFUSED = "PodRefused"  # quota, admission: no pod can be made
    POD_UNSCHEDULABLE = "PodUnschedulable"
    POD_CANNOT_START = "PodCannotStart"  # image, Secret, mount
    BROKER_CRASHES = "BrokerCrashes"
    BROKER_LATE = "BrokerLate"  # not Ready within brokerDeadline
    REMOVING = "RemovingBroker"  # a surplus broker is being taken away
    REMOVAL_BLOCKED = "RemovalBlocked"  # a surplus broker holds messages and cannot drain
    PROVING_EMPTY = "ProvingEmpty"  # a pod looks at a volume before its claim is deleted
    PROOF_FAILED = "ProofFailed"  # nobody could tell what a volume holds; unknown is never empty
    CLAIM_LOOKED_AT = "ClaimLookedAt"  # a claim from before this cluster is looked at before it is taken up
    DELETING = "Deleting"  # the cluster is deleted and drained first
    PAUSED = "Paused"
    NOT_PAUSED = "NotPaused"
    NOTHING_PENDING = "NothingPending"
    RENDERING_CHANGED = "RenderingChanged"  # only the operator's own rendering differs
    CHANGES_WAIT = "ChangesWait"  # what the user wrote waits for its guards
    PENDING = "Pending"
    REACHABLE = "Reachable"


class EventReason(StrEnum):
    """Reasons of the Events that tell what the operator did."""

    CHILDREN_CREATED = "ChildrenCreated"
    CHILDREN_CORRECTED = "ChildrenCorrected"
    CHILD_DELETED = "ChildDeleted"
    BROKER_RESTARTED = "BrokerRestarted"
    BROKER_REMOVED = "BrokerRemoved"
    BROKER_TAKEN_BACK = "BrokerTakenBack"  # wanted again before it was gone
    CLAIM_DELETED = "SpoolClaimDeleted"  # its volume was proved empty
    CLAIM_RETAINED = "SpoolClaimRetained"
    CLAIM_ADOPTED = "SpoolClaimAdopted"  # a claim from before this cluster is taken up
    CLAIM_LOST = "SpoolClaimLost"
    VOLUME_GROWN = "VolumeGrown"
    BROKER_FREED = "BrokerFreed"  # a crash-looping pod was replaced, since PostgreSQL is back
    SPOOLING_STARTED = "SpoolingStarted"
    SPOOLING_ENDED = "SpoolingEnded"
    DRAIN_STARTED = "DrainStarted"
    QUARANTINED = "Quarantined"
    STALLED = "Stalled"
    DATABASE = "DatabaseChanged"
