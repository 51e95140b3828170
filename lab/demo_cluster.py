"""What a demo does in a cluster, whatever runs that cluster: operator, QueenCluster, messages through it."""

import base64
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from lab import cache, images
from lab.kubectl import Kubectl
from lab.progress import LabError, say

OPERATOR_NAMESPACE = "queen-system"
NAMESPACE = "demo"
CLUSTER = "orders"
USER = DATABASE = "orders"
DATABASE_SERVICE = "postgres"
MESSAGES = 300
_SECRET = "orders-postgres"
_IMAGE_ANNOTATION = "queen-operator.dev/lab-image"
_BROKER_PODS = f"queen-operator.dev/cluster={CLUSTER}"
_READY_SECONDS = 300
_TRAFFIC_SECONDS = 180
_TRAFFIC_SOURCES = ("__init__.py", "demo_traffic.py", "broker_http.py", "producing.py", "consuming.py")


@dataclass
class Steps:
    """Prints what is being done and remembers how long each step took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce a step and time it."""
        say(f"==> {title}")
        start = time.monotonic()
        yield
        self.seconds[title] = time.monotonic() - start

    def summary(self) -> str:
        """Return one line per step with its seconds, and their sum."""
        rows = [*self.seconds.items(), ("in all", sum(self.seconds.values()))]
        return "\n".join(f"  {seconds:6.1f} s  {title}" for title, seconds in rows)


def installed_image(kubectl: Kubectl) -> str:
    """Return the key of the operator image that the cluster runs, empty when there is no operator in it."""
    deployment = kubectl.get("deployment", "queen-operator", OPERATOR_NAMESPACE)
    if deployment is None:
        return ""
    annotations = deployment["spec"]["template"]["metadata"].get("annotations") or {}
    return str(annotations.get(_IMAGE_ANNOTATION, ""))


def install_operator(kubectl: Kubectl, image_key: str) -> None:
    """Install or upgrade the chart; a new ``image_key`` restarts the operator although its tag stays the same."""
    repository, tag = images.OPERATOR_NAME.rsplit(":", 1)
    annotation = _IMAGE_ANNOTATION.replace(".", "\\.")
    kubectl.run(
        *("upgrade", "--install", "queen-operator", str(cache.CHECKOUT / "charts" / "queen-operator")),
        *(f"--namespace={OPERATOR_NAMESPACE}", "--create-namespace", "--wait", "--timeout=180s"),
        *("--set", f"image.repository={repository}", "--set", f"image.tag={tag}"),
        *("--set", f"podAnnotations.{annotation}={image_key}"),
        program="helm",
    )


def prepare_namespace(kubectl: Kubectl) -> str:
    """Make the demo's namespace, with the strictest pod security, and the Secret; return the database password."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}])
    known = kubectl.get("secret", _SECRET, NAMESPACE)
    if known is not None:
        return base64.b64decode(known["data"]["password"]).decode()
    password = secrets.token_hex(16)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": _SECRET}, "stringData": {"password": password}}
    kubectl.apply([secret], NAMESPACE)
    return password


def apply_queencluster(kubectl: Kubectl) -> None:
    """Apply the example with three brokers."""
    kubectl.apply_file(cache.CHECKOUT / "examples" / "queencluster.yaml", NAMESPACE)


def wait_until_ready(kubectl: Kubectl) -> None:
    """Wait until the QueenCluster says Ready about its present generation; print its message whenever it changes."""
    deadline = time.monotonic() + _READY_SECONDS
    shown = ""
    while True:
        resource = kubectl.get("queencluster", CLUSTER, NAMESPACE)
        if resource is None:
            raise LabError(f"the QueenCluster {CLUSTER} has disappeared")
        message = status_line(resource)
        if message != shown:
            say(f"      {message}")
            shown = message
        if is_ready(resource):
            say(_starting_times(resource, kubectl.items("pods", NAMESPACE, _BROKER_PODS)))
            return
        if time.monotonic() > deadline:
            raise LabError(f"not Ready after {_READY_SECONDS} s; the last word was: {message}")
        time.sleep(1)


def _starting_times(resource: dict[str, Any], pods: list[dict[str, Any]]) -> str:
    """Return how long the cluster took to be Ready, and the slowest broker's own start, as the API dates them."""
    whole = _seconds_to_ready(resource)
    slowest = max(_seconds_to_ready(pod) for pod in pods)
    return f"      Ready {whole:.0f} s after it was created; the slowest broker's pod took {slowest:.0f} s of it"


def _seconds_to_ready(item: dict[str, Any]) -> float:
    ready = next(c for c in item["status"]["conditions"] if c["type"] == "Ready")
    begin, end = item["metadata"]["creationTimestamp"], ready["lastTransitionTime"]
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def is_ready(resource: dict[str, Any]) -> bool:
    """Tell whether condition Ready is True and the status is about the present spec."""
    status = resource.get("status") or {}
    if status.get("observedGeneration") != resource["metadata"]["generation"]:
        return False
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or [])


def status_line(resource: dict[str, Any]) -> str:
    """Return the phase and the message of a QueenCluster in one line."""
    status = resource.get("status") or {}
    words = [status.get("phase"), status.get("message")]
    return ": ".join(str(word) for word in words if word) or "the operator has not looked at it yet"


def send_messages(kubectl: Kubectl) -> None:
    """Push messages through the Service for pushes and take them from the other; raise LabError if one is not there.

    A pod does it, as a user's program would: it sees the Services and nothing else.
    """
    name = f"traffic-{secrets.token_hex(3)}"
    kubectl.apply(traffic_pod(name), NAMESPACE)
    try:
        _wait_for_end(kubectl, name)
        say(_told(kubectl.run("logs", name, f"--namespace={NAMESPACE}")))
    finally:
        kubectl.run("delete", f"pod/{name}", f"configmap/{name}", f"--namespace={NAMESPACE}", "--wait=false")


def _told(printed: str) -> str:
    return "\n".join(f"      {line}" for line in printed.splitlines())


def _wait_for_end(kubectl: Kubectl, name: str) -> None:
    deadline = time.monotonic() + _TRAFFIC_SECONDS
    while True:
        pod = kubectl.get("pod", name, NAMESPACE)
        phase = pod["status"].get("phase") if pod else "gone"
        if phase == "Succeeded":
            return
        if phase not in ("Pending", "Running") or time.monotonic() > deadline:
            logs = kubectl.run("logs", name, f"--namespace={NAMESPACE}") if phase != "Pending" else ""
            raise LabError(f"the messages did not come through, the pod {name} is {phase}:\n{_told(logs)}")
        time.sleep(1)


_TMP = "/tmp"  # noqa: S108 (of the pod: the only place where its program can write)


def traffic_pod(name: str) -> list[dict[str, Any]]:
    """Return the pod that sends the messages and the ConfigMap with the modules that it runs."""
    sources = {file: (cache.CHECKOUT / "lab" / file).read_text() for file in _TRAFFIC_SOURCES}
    container = {
        "name": "traffic",
        "image": images.OPERATOR_NAME,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "lab.demo_traffic", CLUSTER, name, str(MESSAGES)],
        "env": [{"name": "PYTHONPATH", "value": "/traffic"}],
        "volumeMounts": [{"name": "traffic", "mountPath": "/traffic/lab"}, {"name": "tmp", "mountPath": _TMP}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": [{"name": "traffic", "configMap": {"name": name}}, {"name": "tmp", "emptyDir": {}}],
        },
    }
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": sources}, pod]


def how_to_look(kubeconfig: Path, stop: str) -> str:
    """Return the commands with which a user looks around, ready to paste."""
    lines = [f"export KUBECONFIG={kubeconfig}"]
    if shutil.which("kubectl") is None:
        lines.append(f"export PATH={cache.bin_dir()}:$PATH")
    return "\n  ".join(
        [
            "\nLook around:",
            *lines,
            f"kubectl -n {NAMESPACE} get queenclusters,pods,services,pvc",
            f"kubectl -n {NAMESPACE} describe queencluster {CLUSTER}",
            f"kubectl -n {OPERATOR_NAMESPACE} logs deployment/queen-operator -f",
            f"Stop: {stop}",
        ]
    )
