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
    POD_REFUSED = "PodRefused"  # quota, admission: no pod can be made
    POD_UNSCHEDULABLE = "PodUnschedulable"
    POD_CANNOT_START = "PodCannotStart"  # image, Secret, mount
    BROKER_CRASHES = "BrokerCrashes"
    BROKER_LATE = "BrokerLate"  # not Ready within brokerDeadline
    SURPLUS_BROKERS = "SurplusBrokers"  # more brokers run than are wanted
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
    CLAIM_LOST = "SpoolClaimLost"
    BROKER_FREED = "BrokerFreed"  # a crash-looping pod was replaced, since PostgreSQL is back
    SPOOLING_STARTED = "SpoolingStarted"
    SPOOLING_ENDED = "SpoolingEnded"
    DRAIN_STARTED = "DrainStarted"
    QUARANTINED = "Quarantined"
    STALLED = "Stalled"
    DATABASE = "DatabaseChanged"
