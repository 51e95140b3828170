"""What explains a failed test on a cluster, as one text: statuses, pods, events, logs of its namespace."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from lab import cache

_SECONDS = 20
_LINES = 60
_OPERATOR_NAMESPACE = "queen-system"
_OVERVIEW = "deployments,replicasets,pods,persistentvolumeclaims,services,endpointslices,poddisruptionbudgets"


def explain(kubeconfig: Path, namespace: str) -> str:
    """Everything worth reading about a namespace and the operator; a part that cannot be had says why.

    No Secret is shown.
    """
    by_time = "--sort-by=.metadata.creationTimestamp"
    parts = [
        _kubectl(kubeconfig, namespace, "get", "queenclusters", "--output=yaml"),
        _kubectl(kubeconfig, namespace, "get", _OVERVIEW, "--output=wide"),
        _kubectl(kubeconfig, namespace, "get", "events", by_time, "--output=wide"),
        *_container_logs(kubeconfig, namespace),
        _kubectl(kubeconfig, _OPERATOR_NAMESPACE, "get", "pods", "--output=wide"),
        _kubectl(kubeconfig, _OPERATOR_NAMESPACE, "logs", "deployment/queen-operator", f"--tail={2 * _LINES}"),
    ]
    return "\n".join(parts)


def _container_logs(kubeconfig: Path, namespace: str) -> list[str]:
    listed = _run(kubeconfig, namespace, "get", "pods", "--output=json")
    try:
        pods = json.loads(listed)["items"]
    except ValueError:
        return [listed]
    parts = []
    for pod in pods:
        name = pod["metadata"]["name"]
        status = pod.get("status", {})
        for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            which = ["logs", name, f"--container={container['name']}", "--tail=40"]
            if container["restartCount"]:
                parts.append(_kubectl(kubeconfig, namespace, *which, "--previous"))
            parts.append(_kubectl(kubeconfig, namespace, *which))
    return parts


def _kubectl(kubeconfig: Path, namespace: str, *arguments: str) -> str:
    lines = _run(kubeconfig, namespace, *arguments).splitlines()
    limit = 400 if "--output=yaml" in arguments else 2 * _LINES
    cut = [f"... {len(lines) - limit} lines before"] if len(lines) > limit else []
    return "\n".join([f"--- kubectl -n {namespace} {' '.join(arguments)}", *cut, *lines[-limit:]])


def _run(kubeconfig: Path, namespace: str, *arguments: str) -> str:
    command = [str(cache.bin_dir() / "kubectl"), f"--namespace={namespace}", *arguments]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, env=environment, errors="replace", check=False
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        return f"not to be had: {error}"
    return done.stdout if done.returncode == 0 else f"{done.stdout}{done.stderr.strip()}"
