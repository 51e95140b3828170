"""The status of a QueenCluster: what the operator sees, what it does next, and why it waits.

Every field that is ever written is declared here, since the API server drops undeclared ones without a word.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from queen_operator.api.spec import Model

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Phase(StrEnum):
    """One word for people; conditions are for programs."""

    PENDING = "Pending"  # brokers are coming up for the first time
    READY = "Ready"  # everything is as written
    ROLLING = "Rolling"  # brokers are being restarted one after the other
    RECOVERING = "Recovering"  # a broker replays its spool or comes back
    DEGRADED = "Degraded"  # something is away and nothing for the operator to do about it
    SCALING_DOWN = "ScalingDown"  # a surplus broker is drained, and its volume proved empty
    DELETING = "Deleting"  # the cluster is deleted, and drained first
    BLOCKED = "Blocked"  # only a person can decide or repair
    PAUSED = "Paused"


class ConditionType(StrEnum):
    """Condition types; Reconciling and Stalled are present only while true, as kstatus reads them."""

    READY = "Ready"
    AVAILABLE = "Available"
    DATABASE_REACHABLE = "DatabaseReachable"
    SPOOL_EMPTY = "SpoolEmpty"
    RESTART_PENDING = "RestartPending"
    PAUSED = "Paused"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class Condition(Model):
    """A condition as in metav1.Condition."""

    type: str = Field(max_length=64)
    status: Literal["True", "False", "Unknown"]
    reason: str = Field(max_length=128)
    message: str = Field(default="", max_length=4096)
    last_transition_time: Time
    observed_generation: int = 0


class SpoolStatus(Model):
    """What a broker's volume holds, as its spool keeper says; known is false when the keeper could not be asked."""

    known: bool = Field(description="False: the keeper could not be asked. Unknown is never empty.")
    files: int | None = Field(default=None, description="Spool files on the volume.")
    bytes: int | None = Field(default=None, description="Bytes in these files.")
    events: int | None = Field(default=None, description="Messages in these files.")
    oldest_seconds: int | None = Field(default=None, description="Age of the oldest file when it was last asked.")
    quarantined_files: int | None = Field(default=None, description="Files that the broker gave up replaying.")
    replayed_files: int | None = Field(default=None, description="Files that this replay has done so far.")


class BrokerStatus(Model):
    """One broker."""

    name: str
    pod: str | None = None
    ready: bool = False
    version: str | None = Field(default=None, description="Version of Queen that its pod was made for.")
    restarts: int = Field(default=0, description="Restarts of the broker container in this pod.")
    spool: SpoolStatus | None = None
    waiting_for: str | None = Field(default=None, description="Why this broker is not Ready or not yet restarted.")


class DatabaseStatus(Model):
    """PostgreSQL as the operator's own probe and the brokers see it."""

    state: str
    message: str = ""
    since: Time | None = None
    version: str | None = None
    max_connections: int | None = None


class SpoolingStatus(Model):
    """Maintenance mode that the operator turned on itself, and turns off again when PostgreSQL answers."""

    since: Time
    pods: tuple[str, ...] = Field(default=(), description="Pods that were told to spool.")


class RetainedClaim(Model):
    """A spool claim that no broker uses: kept at a scale-down, or left by a cluster of this name."""

    name: str
    known: bool = Field(description="False: nobody has looked at its volume. Unknown is never empty.")
    files: int | None = Field(default=None, description="Spool files on it when it was last looked at.")
    bytes: int | None = Field(default=None, description="Bytes in these files.")
    events: int | None = Field(default=None, description="Messages in these files.")
    quarantined_files: int | None = Field(default=None, description="Files that a broker gave up replaying.")


class PlanStatus(Model):
    """What the operator does next, and why."""

    action: str
    reason: str = ""


class QueenClusterStatus(Model):
    """Status of a QueenCluster."""

    observed_generation: int = 0
    phase: Phase | None = None
    message: str = Field(default="", description="One sentence: what is going on, with numbers.")
    replicas: int = Field(default=0, description="Brokers that exist.")
    ready_replicas: int = Field(default=0, description="Brokers that are Ready.")
    ready: str = Field(default="", description="Ready of wanted brokers, such as 2/3.")
    selector: str = Field(default="", description="Label selector of the broker pods, for the scale subresource.")
    version: str | None = Field(default=None, description="Version that all brokers run, or a range while they differ.")
    brokers: tuple[BrokerStatus, ...] = ()
    retained_claims: tuple[RetainedClaim, ...] | None = None
    database: DatabaseStatus | None = None
    spooling: SpoolingStatus | None = None
    plan: PlanStatus | None = None
    conditions: tuple[Condition, ...] = ()
