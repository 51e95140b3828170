"""Where the broker's image comes from."""

from typing import Final

from queen_operator.api.spec import QueenClusterSpec

BROKER_REPOSITORY: Final = "ghcr.io/queen-mq/queen"


def default_image(version: str) -> str:
    """Return the image that upstream publishes for a version of Queen."""
    return f"{BROKER_REPOSITORY}:{version}"


def broker_image(spec: QueenClusterSpec) -> str:
    """Return the image of the broker: the user's own, else upstream's for the version."""
    return spec.image or default_image(spec.version)
