"""The database in the spec of a QueenCluster."""

from enum import StrEnum

from pydantic import Field

from queen_operator.api.fields import CredentialsSecret, Model, PasswordKey, SecretKey


class PostgresTls(Model):
    """TLS to PostgreSQL."""

    enabled: bool = Field(default=False, description="Require TLS for every connection to PostgreSQL.")
    verify: bool = Field(
        default=True, description="Verify the server's certificate. Ignored by the broker when caSecret is given."
    )
    ca_secret: SecretKey | None = Field(
        default=None, description="PEM certificates to trust instead of the public ones; the content is handed over."
    )


class OnFrozen(StrEnum):
    """What the operator does while PostgreSQL accepts connections and never answers."""

    REPORT = "Report"
    SPOOL = "Spool"


class PostgresSpec(Model):
    """The one PostgreSQL database that all brokers of the cluster share."""

    host: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        pattern=r"^[^\s/@]+$",
        description="Host name or address of the primary; a read-only server is refused.",
    )
    port: int = Field(default=5432, ge=1, le=65535, description="Port of PostgreSQL.")
    database: str = Field(default="queen", min_length=1, max_length=63, description="Name of the database.")
    user: str = Field(default="queen", min_length=1, max_length=63, description="User that owns Queen's schemas.")
    password_secret: PasswordKey | None = Field(default=None, description="Where the user's password is.")
    credentials_secret: CredentialsSecret | None = Field(
        default=None,
        description="A Secret with host, port, dbname, user and password (CloudNativePG's keys) instead of the fields"
        " above. A host given here, with its port, wins over the Secret's.",
    )
    tls: PostgresTls = Field(default_factory=PostgresTls, description="TLS to PostgreSQL.")
    pool_size: int = Field(
        default=28,
        ge=20,
        le=2000,
        description="Largest number of connections of one broker. Three brokers with 28 fit a stock PostgreSQL.",
    )
    max_connections: int | None = Field(
        default=None,
        ge=1,
        le=262143,
        description="max_connections of the server, when known: replicas x (poolSize + 1) + 10 must fit into it.",
    )
    on_frozen: OnFrozen = Field(
        default=OnFrozen.REPORT,
        description="While PostgreSQL accepts connections and never answers, pushes hang. Report says so; Spool also"
        " turns maintenance mode on at every broker, so that pushes are spooled, and off again afterwards.",
    )
