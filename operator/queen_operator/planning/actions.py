"""The actions a round can decide on: a closed union, carried out by the control room, one per round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queen_operator.manifests.config import RestartCause
from queen_operator.planning.reasons import EventReason, Reason


@dataclass(frozen=True, slots=True)
class ApplyChildren:
    """Create children or put them back; none of them stops a running broker."""

    manifests: tuple[Mapping[str, Any], ...]
    event: EventReason
    message: str


@dataclass(frozen=True, slots=True)
class GenerateMeshSecret:
    """Make the mesh Secret with a fresh random value; only when none exists."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteChild:
    """Delete an object that is ours and no longer wanted, guarded by its UID."""

    kind: str
    name: str
    uid: str
    message: str
    event: EventReason | None = EventReason.CHILD_DELETED  # None: a passing helper, which nobody needs to hear of
    version: str | None = None  # only as it was seen


@dataclass(frozen=True, slots=True)
class MakeReportPods:
    """Make one-shot pods that tell what volumes hold which no broker uses."""

    manifests: tuple[Mapping[str, Any], ...]
    message: str


@dataclass(frozen=True, slots=True)
class AnnotateClaim:
    """Write or take away annotations of exactly this claim; None takes one away."""

    name: str
    uid: str
    annotations: Mapping[str, str | None]
    event: EventReason | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class SetFinalizer:
    """Put our finalizer on the QueenCluster or take it off, as it was seen.

    ``unproved``: what it was to protect is gone, and nobody has seen that it was empty.
    """

    present: bool
    message: str
    unproved: bool = False


@dataclass(frozen=True, slots=True)
class OpenToPushes:
    """Put a started broker's pod into the push Service, and back into the ordinary one if it was taken out."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class CloseToPushes:
    """Take a pod out of the push Service: it is leaving, or is about to be restarted.

    ``leaving_since`` is written beside it when a restart is meant, so that the next round, of this operator or of the
    next one, knows how long new connections have been kept away.
    """

    pod: str
    uid: str
    leaving_since: str | None = None
    cordon: bool = False  # out of the ordinary client Service too: the broker is taken away for good


@dataclass(frozen=True, slots=True)
class RestartBroker:
    """Change the Deployment of one broker, which stops a running one."""

    index: int
    manifest: Mapping[str, Any]
    causes: tuple[RestartCause, ...]
    message: str


@dataclass(frozen=True, slots=True)
class ReplacePod:
    """Delete exactly this pod of a broker, whose Deployment makes another from the same template: a restart as well."""

    pod: str
    uid: str
    index: int
    causes: tuple[RestartCause, ...]
    message: str


@dataclass(frozen=True, slots=True)
class SwitchMaintenance:
    """Switch maintenance mode at these pods (name, IP), without waiting for an answer.

    On: pushes are spooled while PostgreSQL is frozen. Off: every drain goes on.
    """

    enabled: bool
    pods: tuple[tuple[str, str], ...]
    event: EventReason
    message: str


@dataclass(frozen=True, slots=True)
class FreeFromBackoff:
    """Delete a pod whose broker container waits out kubelet's back-off although its cause is gone; nothing is lost."""

    pod: str
    uid: str
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing now: ``message`` is what the user reads, ``stalled`` that only a person can end it."""

    reason: Reason
    message: str
    again_seconds: float
    stalled: bool = False
    broker: int | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do."""


Action = (
    ApplyChildren
    | GenerateMeshSecret
    | DeleteChild
    | MakeReportPods
    | AnnotateClaim
    | SetFinalizer
    | OpenToPushes
    | CloseToPushes
    | RestartBroker
    | ReplacePod
    | SwitchMaintenance
    | FreeFromBackoff
    | Wait
    | Rest
)
