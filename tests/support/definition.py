"""The QueenCluster definition on an API server of a test run."""

from __future__ import annotations

from lab import cache
from lab.kubectl import Kubectl

CRDS = cache.CHECKOUT / "crds"


def install_definition(kubectl: Kubectl) -> None:
    """Apply what lies in crds/ and wait until the API server serves it."""
    for file in sorted(CRDS.glob("*.yaml")):
        kubectl.run("apply", "--server-side", f"--filename={file}")
        kubectl.run("wait", "--for=condition=Established", f"--filename={file}", "--timeout=60s")
