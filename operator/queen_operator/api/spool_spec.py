"""The spool volumes in the spec of a QueenCluster."""

from enum import StrEnum

from pydantic import Field

from queen_operator.api.fields import Model, Quantity


class AccessMode(StrEnum):
    """Access mode of a spool volume."""

    READ_WRITE_ONCE_POD = "ReadWriteOncePod"
    READ_WRITE_ONCE = "ReadWriteOnce"


class OnScaleDown(StrEnum):
    """What becomes of the claim of a broker that is taken away, once its spool is proven empty."""

    DELETE = "Delete"
    RETAIN = "Retain"


class OnDelete(StrEnum):
    """What becomes of the claims when the QueenCluster is deleted."""

    RETAIN = "Retain"
    DELETE_WHEN_EMPTY = "DeleteWhenEmpty"


class AutoGrowSpec(Model):
    """Growth of a spool volume before it is full."""

    below: str = Field(
        default="20%", pattern=r"^[1-9][0-9]?%$", description="Grow a volume once less than this part of it is free."
    )
    step: Quantity = Field(default="5Gi", description="How much a volume grows at a time.")
    max: Quantity = Field(description="The largest size to which a volume grows by itself.")


class SpoolSpec(Model):
    """The volume in which a broker keeps pushes while PostgreSQL cannot take them."""

    size: Quantity = Field(default="5Gi", description="Size of each broker's volume. It may grow, never shrink.")
    storage_class_name: str | None = Field(
        default=None, min_length=1, max_length=253, description="Storage class; the default class when not given."
    )
    access_mode: AccessMode = Field(
        default=AccessMode.READ_WRITE_ONCE_POD,
        description="ReadWriteOncePod keeps a second pod off the volume; ReadWriteOnce is for storage without it.",
    )
    on_scale_down: OnScaleDown = Field(
        default=OnScaleDown.DELETE,
        description="The claim of a broker that is taken away. Delete: deleted once its volume is proven empty,"
        " quarantine included. Retain: kept for when the broker comes back.",
    )
    on_delete: OnDelete = Field(
        default=OnDelete.RETAIN,
        description="The claims of a QueenCluster that is deleted. Retain: all are kept, the deletion waits for nobody."
        " DeleteWhenEmpty: it waits until each spool is drained and proven empty, and its claim deleted.",
    )
    auto_grow: AutoGrowSpec | None = Field(
        default=None, description="Growth of volumes before they are full; needs a storage class that can expand."
    )
