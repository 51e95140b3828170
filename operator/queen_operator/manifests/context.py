"""What rendering needs to know about one QueenCluster, as plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass

from queen_operator.api.spec import QueenClusterSpec


@dataclass(frozen=True, slots=True)
class Context:
    """One cluster as the user wrote it, with the digests of what ``references()`` names, as far as they are known."""

    name: str
    namespace: str
    uid: str
    spec: QueenClusterSpec
    keeper_image: str
    secret_digests: Mapping[tuple[str, str], str]
    restart: str | None = None

    def digest(self, secret: str, key: str) -> str | None:
        """Return the digest of a Secret's key, or None when its content is not known."""
        return self.secret_digests.get((secret, key))
