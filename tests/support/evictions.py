"""Evictions through the API, as `kubectl drain` makes them: the disruption budget may refuse, and is asked again."""

from __future__ import annotations

import time
from typing import Any

from lab.api_client import ApiClient, ApiError
from tests.support.namespaces import NamespacedKubectl

_TOO_MANY_REQUESTS = 429  # the budget's refusal
_PAUSE_SECONDS = 1.0


def evict(kubectl: NamespacedKubectl, pod: dict[str, Any]) -> bool:
    """Ask for the eviction of exactly this pod; False when the budget refuses it now, ApiError otherwise."""
    meta = pod["metadata"]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    try:
        ApiClient.from_kubeconfig(kubectl.kubeconfig).send("POST", path, body)
    except ApiError as error:
        if error.code == _TOO_MANY_REQUESTS:
            return False
        raise
    return True


def evict_patiently(kubectl: NamespacedKubectl, pod: dict[str, Any], seconds: float = 300) -> int:
    """Evict when the budget allows it; returns how often it refused, AssertionError after that many seconds."""
    deadline = time.monotonic() + seconds
    refusals = 0
    while not evict(kubectl, pod):
        refusals += 1
        assert time.monotonic() < deadline, f"the budget refuses to let {pod['metadata']['name']} go for {seconds} s"
        time.sleep(_PAUSE_SECONDS)
    return refusals
