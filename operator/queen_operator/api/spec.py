"""The spec of a QueenCluster as the user writes it, with a safe default for everything that has one.

Field descriptions become the text of ``kubectl explain``; limits become the CRD's schema.
Cross-field rules live in ``rules.py`` and are checked by the API server.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from queen_operator.api.fields import Annotations, Duration, Labels, Model, PullSecret, Quantity, SecretKey
from queen_operator.api.postgres_spec import OnFrozen, PostgresSpec, PostgresTls
from queen_operator.api.spool_spec import AccessMode, AutoGrowSpec, OnDelete, OnScaleDown, SpoolSpec

__all__ = [
    "AccessMode",
    "AuthSpec",
    "AutoGrowSpec",
    "BrokerSpec",
    "EnvVar",
    "Labels",
    "LogLevel",
    "Model",
    "OnDelete",
    "OnFrozen",
    "OnScaleDown",
    "PostgresSpec",
    "PostgresTls",
    "QueenClusterSpec",
    "ResourcesSpec",
    "SchedulingSpec",
    "SecretKey",
    "SpoolSpec",
]


class LogLevel(StrEnum):
    """Log levels of the broker."""

    ERROR = "error"
    WARN = "warn"
    INFO = "info"
    DEBUG = "debug"
    TRACE = "trace"


class EnvVar(Model):
    """One environment variable for the broker, for what has no field of its own."""

    name: str = Field(min_length=1, max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Name.")
    value: str = Field(
        default="", max_length=4096, pattern=r"^[^\x00]*$", description="Value, handed over byte for byte."
    )


class BrokerSpec(Model):
    """Settings of the broker process."""

    pop_timeout: Duration = Field(default="30s", description="How long a pop waits when the client does not say.")
    max_pop_timeout: Duration = Field(
        default="60s",
        description="The longest wait that clients of this cluster ask for. The broker does not cap it; the grace"
        " period is computed from it, so that no pop is cut when a broker stops.",
    )
    statement_timeout: Duration = Field(default="30s", description="Time limit of a push, pop or ack statement.")
    apply_schema: bool = Field(default=True, description="Let each booting broker apply Queen's schema.")
    log_level: LogLevel = Field(default=LogLevel.INFO, description="Log level of the broker.")
    log_json: bool = Field(default=True, description="One JSON object a line instead of text.")
    stats_interval: Duration = Field(default="10s", description="How often the cluster's queue statistics are made.")
    metrics_flush_interval: Duration = Field(default="60s", description="How often counters go to PostgreSQL.")
    retention_interval: Duration = Field(default="5s", description="Cadence of the retention loop.")
    env: tuple[EnvVar, ...] = Field(
        default=(),
        max_length=100,
        description="Further environment variables. Names that the operator sets itself are refused, as are numbers"
        " and booleans that the broker would misread.",
    )


class JwtAlgorithm(StrEnum):
    """Algorithms the broker accepts for tokens."""

    HS256 = "HS256"
    HS384 = "HS384"
    HS512 = "HS512"
    RS256 = "RS256"
    RS384 = "RS384"
    RS512 = "RS512"
    EDDSA = "EdDSA"
    AUTO = "auto"


class AuthSpec(Model):
    """Token authentication of the broker's HTTP API."""

    enabled: bool = Field(default=False, description="Demand a token on every route but health and metrics.")
    algorithm: JwtAlgorithm = Field(default=JwtAlgorithm.HS256, description="Algorithm of the tokens.")
    secret: SecretKey | None = Field(default=None, description="Shared key of the HS algorithms.")
    public_key_secret: SecretKey | None = Field(default=None, description="PEM public key of the RS and EdDSA ones.")
    jwks_url: str | None = Field(
        default=None, max_length=2048, pattern=r"^https?://\S+$", description="Where the public keys are published."
    )
    issuer: str | None = Field(default=None, max_length=1024, description="Issuer that a token must name.")
    audience: str | None = Field(default=None, max_length=1024, description="Audience that a token must name.")
    admin_token_secret: SecretKey | None = Field(
        default=None,
        description="A token with the role admin, for what the operator asks of brokers beyond health and metrics: the"
        " mesh, and maintenance mode. Without it, with authentication on, the mesh is unknown. It restarts no broker.",
    )


class EncryptionSpec(Model):
    """Encryption of the payloads of queues that ask for it."""

    key_secret: SecretKey = Field(description="64 hexadecimal digits. The broker takes anything else as no key.")


class MeshSpec(Model):
    """The wake-up mesh between the brokers of the cluster."""

    secret: SecretKey | None = Field(
        default=None, description="Shared secret of the mesh. Generated into <name>-mesh when not given."
    )


class ServiceType(StrEnum):
    """Types of the two client Services."""

    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    LOAD_BALANCER = "LoadBalancer"


class ServiceSpec(Model):
    """The two client Services: <name> for everything, <name>-push for pushes that outlive a database outage."""

    type: ServiceType = Field(default=ServiceType.CLUSTER_IP, description="Type of both Services.")
    annotations: Annotations = Field(default_factory=dict, description="Annotations of both Services.")


FreeForm = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]


class SchedulingSpec(Model):
    """Where broker pods may run."""

    node_selector: Labels = Field(default_factory=dict, description="Labels that a node must have.")
    tolerations: tuple[FreeForm, ...] = Field(default=(), max_length=50, description="Taints that pods tolerate.")
    affinity: FreeForm | None = Field(default=None, description="Affinity of the pods, as in a pod spec.")
    topology_spread_constraints: tuple[FreeForm, ...] | None = Field(
        default=None, max_length=10, description="Spread of the pods; by host, where possible, when not given."
    )
    priority_class_name: str | None = Field(default=None, max_length=253, description="Priority class of the pods.")


Quantities = Annotated[dict[str, Quantity], Field(max_length=8)]


def _default_requests() -> dict[str, str | int]:
    return {"cpu": "100m", "memory": "128Mi"}


def _default_limits() -> dict[str, str | int]:
    return {"memory": "1Gi"}


class ResourcesSpec(Model):
    """Requests and limits of the broker container. No CPU limit: throttling shows as latency."""

    requests: Quantities = Field(default_factory=_default_requests, description="What a broker is given.")
    limits: Quantities = Field(default_factory=_default_limits, description="What a broker may use at most.")


class SecurityContextSpec(Model):
    """User and groups of the broker and keeper; everything else is fixed to the restricted profile."""

    run_as_user: int = Field(default=65532, ge=1, le=2147483647, description="User id of the processes.")
    run_as_group: int = Field(default=65532, ge=1, le=2147483647, description="Group id of the processes.")
    fs_group: int = Field(default=65532, ge=1, le=2147483647, description="Group that owns the spool volume.")


class RolloutSpec(Model):
    """How brokers are restarted."""

    min_ready_seconds: int = Field(
        default=5, ge=0, le=3600, description="How long a new broker must stay Ready before it counts."
    )
    broker_deadline: Duration = Field(
        default="10m", description="How long a new broker may take beyond its replay before the rollout stops."
    )
    spool_deadline: Duration = Field(
        default="10m", description="How long a broker that is to be restarted may take to drain its spool."
    )


class QueenClusterSpec(Model):
    """Spec of a QueenCluster: version, postgres.host and a password Secret are all that must be written."""

    version: str = Field(
        pattern=r"^1\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$", max_length=64, description="Version of Queen, such as 1.3.0."
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=512,
        pattern=r"^\S+$",
        description="Image instead of ghcr.io/queen-mq/queen:<version>.",
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="When the image is pulled."
    )
    image_pull_secrets: tuple[PullSecret, ...] = Field(
        default=(), max_length=10, description="Secrets for pulling the image."
    )
    replicas: int = Field(
        default=3, ge=1, le=9, description="Number of brokers. The mesh is designed for up to 3; more is a warning."
    )
    paused: bool = Field(default=False, description="Take no action at all; the status goes on being written.")
    postgres: PostgresSpec = Field(description="The database.")
    broker: BrokerSpec = Field(default_factory=BrokerSpec, description="Settings of the broker process.")
    spool: SpoolSpec = Field(default_factory=SpoolSpec, description="The spool volumes.")
    auth: AuthSpec = Field(default_factory=AuthSpec, description="Token authentication.")
    encryption: EncryptionSpec | None = Field(default=None, description="Encryption of payloads.")
    mesh: MeshSpec = Field(default_factory=MeshSpec, description="The mesh between brokers.")
    service: ServiceSpec = Field(default_factory=ServiceSpec, description="The client Services.")
    scheduling: SchedulingSpec = Field(default_factory=SchedulingSpec, description="Where brokers may run.")
    resources: ResourcesSpec = Field(default_factory=ResourcesSpec, description="Resources of the broker container.")
    pod_labels: Labels = Field(default_factory=dict, description="Labels added to broker pods.")
    pod_annotations: Annotations = Field(default_factory=dict, description="Annotations added to broker pods.")
    security_context: SecurityContextSpec = Field(
        default_factory=SecurityContextSpec, description="User and groups of broker pods."
    )
    rollout: RolloutSpec = Field(default_factory=RolloutSpec, description="How brokers are restarted.")
