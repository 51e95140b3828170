"""What a round sees, as plain frozen values. Built by the rooms above, read by the planner.

``None`` always means *unknown*, never zero and never empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spool:
    """What the spool keeper of one pod said at ``asked_at``.

    Source: the keeper's ``/spool``. The broker's own pending counter starts at 0 at each boot and never counts
    older or quarantined files, so it is no witness of emptiness.
    """

    asked_at: datetime
    held: bool
    writable: bool
    files: int
    bytes: int
    events: int | None
    oldest_age_seconds: float | None
    unfinished_files: int
    quarantined_files: int
    broken_records: int
    free_bytes: int
    total_bytes: int
    # Since when every answer has said that nothing waits and nothing is quarantined; None: this one does not say so.
    empty_since: datetime | None = None

    @property
    def empty(self) -> bool:
        """Nothing waits to be replayed. Quarantined files are judged separately."""
        return self.files == 0

    @property
    def holds_nothing(self) -> bool:
        """Nothing is on the volume, quarantine included."""
        return self.empty and self.quarantined_files == 0


@dataclass(frozen=True, slots=True)
class BrokerPage:
    """What one broker's metrics pages said at ``asked_at``.

    ``alive`` is the answer of ``/metrics`` (no database needed), ``answering`` whether ``/metrics/prometheus`` (ends
    with a database read) answered in time: alive and not answering is a frozen database.
    """

    asked_at: datetime
    alive: bool
    answering: bool
    maintenance: bool | None = None
    pending: int | None = None
    failed_writes: int | None = None
    database_healthy: bool | None = None
    cluster_series: bool | None = None  # queen_cluster_* present: the page's own database read worked
    servers_alive: int | None = None  # other brokers that it hears on the mesh; needs an admin token when JWT is on


class DatabaseState(StrEnum):
    """PostgreSQL told apart; each is a reason of its own with its remedy."""

    REACHABLE = "Reachable"
    REFUSED = "ConnectionRefused"  # benign: pushes are spooled within a millisecond
    FROZEN = "Frozen"  # accepts and never answers: pushes hang
    READ_ONLY = "ReadOnly"  # a spool file is quarantined half a second after its push
    REJECTED = "Rejected"  # password, database, TLS: PostgreSQL says no
    TOO_MANY_CONNECTIONS = "TooManyConnections"
    UNSUPPORTED_VERSION = "UnsupportedVersion"  # below 14: brokers refuse to start
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Database:
    """The operator's own look at PostgreSQL, at ``asked_at``; ``message`` is PostgreSQL's own text, without secrets."""

    asked_at: datetime
    state: DatabaseState
    message: str = ""
    version: str | None = None
    max_connections: int | None = None
    superuser_reserved: int | None = None
    state_since: datetime | None = None  # since when looks have found this state; None: since this look


@dataclass(frozen=True, slots=True)
class ReferencedKey:
    """A key of a Secret that the spec names: its value's hash, or why there is none."""

    secret: str
    key: str
    purpose: str  # for the sentence: "password", "encryption key", ...
    digest: str | None = None
    problem: str | None = None  # "Secret orders-postgres does not exist", "... has no key password"


@dataclass(frozen=True, slots=True)
class Replay:
    """How the replay of one pod goes: files at its first look, and when a file last went away.

    Files are the measure and never a rate: replay slows down as it goes.
    """

    first_files: int
    progress_at: datetime
    last_step_seconds: float = 0.0  # how long the last file took


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything one round knows. ``now`` is the only clock that planning has.

    Kubernetes objects are kept as they came (dicts); views over them are in ``planning.views``.
    ``deployments``, ``claims``, ``services`` and ``others`` are keyed by name, ``others`` by (kind, name).
    ``spools`` and ``pages`` are keyed by pod UID; a missing key means that nobody could be asked.
    """

    now: datetime
    resource: JsonObject
    deployments: Mapping[str, JsonObject] = field(default_factory=dict)
    pods: tuple[JsonObject, ...] = ()
    claims: Mapping[str, JsonObject] = field(default_factory=dict)
    others: Mapping[tuple[str, str], JsonObject] = field(default_factory=dict)
    references: tuple[ReferencedKey, ...] = ()
    spools: Mapping[str, Spool] = field(default_factory=dict)
    pages: Mapping[str, BrokerPage] = field(default_factory=dict)
    replays: Mapping[str, Replay] = field(default_factory=dict)
    database: Database | None = None
    # (kind, name) of objects that have one of our names and are not ours, with whose they seem to be.
    foreign: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # (kind, name) of children that the API server refused lately, with its words; tried again after a while.
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # The same for those whose time for another try has come: the last words until it was taken.
    refused_before: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # What the spec may do and should not: told with a Ready cluster, never in the way of anything.
    warnings: tuple[str, ...] = ()
    # Pods whose stuck drain was set going lately: not again at once.
    nudged: frozenset[str] = frozenset()
    # Names of wanted Deployments that have been missing for a while, not only for the moment of a deletion.
    long_missing: frozenset[str] = frozenset()
    # A token is needed for maintenance mode (JWT is on) and none is there.
    token_missing: bool = False

    @property
    def deleted(self) -> bool:
        """The QueenCluster has been deleted, and only a finalizer keeps it."""
        return "deletionTimestamp" in self.resource["metadata"]
