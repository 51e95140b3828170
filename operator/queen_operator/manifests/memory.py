"""The broker's three memory ceilings, made to fit the memory limit of its container.

At their defaults they add up to 832 MiB: with the default limit of 1 GiB a busy broker would be killed long before
its caches are full. Each gets a fixed share of the limit, 13/32 together, and never more than the broker's own
default. The rest is for pushes that hang on a frozen database (108 KiB each), bodies and the file being replayed.
"""

from dataclasses import dataclass
from typing import Final

from queen_operator.api.spec import ResourcesSpec
from queen_operator.api.units import quantity

MIB: Final = 1024 * 1024

# (default of the broker in MiB, the part of the limit that it may have)
_DEDUP: Final = (512, 4)
_EPHEMERAL: Final = (256, 8)
_ACK_REGISTRY: Final = (64, 32)


@dataclass(frozen=True, slots=True)
class CacheCeilings:
    """Ceilings in the units in which the broker takes them: MiB, MiB and bytes."""

    dedup_mib: int
    ack_registry_mib: int
    ephemeral_bytes: int


def cache_ceilings(resources: ResourcesSpec) -> CacheCeilings | None:
    """Return the ceilings for the memory limit, or None when there is no limit and the broker's defaults hold."""
    limit = resources.limits.get("memory")
    if limit is None:
        return None
    limit_mib = int(quantity(limit)) // MIB
    return CacheCeilings(
        dedup_mib=_share(limit_mib, *_DEDUP),
        ack_registry_mib=_share(limit_mib, *_ACK_REGISTRY),
        ephemeral_bytes=_share(limit_mib, *_EPHEMERAL) * MIB,
    )


def _share(limit_mib: int, default_mib: int, part: int) -> int:
    # At least 1: the broker takes 0 as something else than "none" for each of the three.
    return max(1, min(default_mib, limit_mib // part))
