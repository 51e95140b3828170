"""What the models of the spec are made of: limited texts and numbers, and names of Secrets."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic.alias_generators import to_camel

from queen_operator.api.units import (
    DURATION_MAX_LENGTH,
    DURATION_PATTERN,
    QUANTITY_MAX_LENGTH,
    QUANTITY_PATTERN,
    check_quantity,
)

Duration = Annotated[str, Field(pattern=DURATION_PATTERN, max_length=DURATION_MAX_LENGTH)]
Quantity = Annotated[
    str | int,
    PlainValidator(check_quantity),
    WithJsonSchema(
        {
            "maxLength": QUANTITY_MAX_LENGTH,
            "minimum": 0,
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
DataKey = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
LabelValue = Annotated[str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")]
Labels = Annotated[dict[str, LabelValue], Field(max_length=32)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=32)]


class Model(BaseModel):
    """Frozen, camelCase on the wire; fields of a newer CRD are left alone so that a rollback can read them."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")


class SecretKey(Model):
    """One key of a Secret in the cluster's namespace."""

    name: ObjectName = Field(description="Name of the Secret, in the namespace of the QueenCluster.")
    key: DataKey = Field(description="Key in the Secret.")


class PasswordKey(SecretKey):
    """A key that is called password unless the user says otherwise."""

    key: DataKey = Field(default="password", description="Key in the Secret.")


class CredentialsSecret(Model):
    """A Secret with the keys host, port, dbname, user and password, as CloudNativePG writes it."""

    name: ObjectName = Field(description="Name of the Secret, in the namespace of the QueenCluster.")


class PullSecret(Model):
    """A Secret for pulling images."""

    name: ObjectName = Field(description="Name of the Secret, in the namespace of the QueenCluster.")
