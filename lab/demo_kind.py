"""The demo where Docker and kind work: ``make demo-kind``.

No test covers what is done with Docker and kind here; all that is done in the cluster is shared with ``make demo``.
"""

import subprocess
import sys

from lab import cache, demo_cluster, images, setup
from lab.demo_cluster import NAMESPACE, Steps
from lab.kubectl import Kubectl
from lab.progress import LabError, say

_NAME = "queen-demo"
_KUBECONFIG = cache.POINTERS / "kind" / "kubeconfig"


def up() -> int:
    """Bring up the demo in a kind cluster; returns 2 with one sentence when Docker or kind do not work here."""
    missing = why_not_here()
    if missing:
        print(f"make demo-kind cannot run here: {missing}. `make demo` needs neither.", file=sys.stderr)
        return 2
    steps = Steps()
    with steps.step("setup: kubectl and helm"):
        setup.run(["kubectl and helm"])
    with steps.step("build the operator's image"):
        _show("docker", "build", f"--tag={images.OPERATOR_NAME}", str(cache.CHECKOUT))
    with steps.step("create the kind cluster"):
        _create_cluster()
        _show("kind", "load", "docker-image", images.OPERATOR_NAME, f"--name={_NAME}")
    kubectl = Kubectl(_KUBECONFIG)
    with steps.step("PostgreSQL"):
        demo_cluster.prepare_namespace(kubectl)
        kubectl.apply_file(cache.CHECKOUT / "examples" / "postgres.yaml", NAMESPACE)
        kubectl.run("rollout", "status", "deployment/postgres", f"--namespace={NAMESPACE}", "--timeout=300s")
    with steps.step("install the operator with Helm"):
        demo_cluster.install_operator(kubectl, images.operator_part(cache.CHECKOUT).key)
    with steps.step("apply examples/queencluster.yaml and wait until it is Ready"):
        demo_cluster.apply_queencluster(kubectl)
        demo_cluster.wait_until_ready(kubectl)
    with steps.step("send messages"):
        demo_cluster.send_messages(kubectl)
    say(f"\nThe demo is up. It took:\n{steps.summary()}")
    say(demo_cluster.how_to_look(_KUBECONFIG, "make demo-kind-down"))
    return 0


def down() -> int:
    """Delete the demo's kind cluster; returns 2 with one sentence when Docker or kind do not work here."""
    missing = why_not_here()
    if missing:
        print(f"there is no kind cluster to delete: {missing}", file=sys.stderr)
        return 2
    _show("kind", "delete", "cluster", f"--name={_NAME}", f"--kubeconfig={_KUBECONFIG}")
    return 0


def why_not_here() -> str:
    """Say in a few words why Docker and kind cannot be used, empty when they can."""
    for command, problem in (
        (["docker", "info"], "no Docker engine answers (`docker info` fails)"),
        (["kind", "version"], "the program kind is not installed"),
    ):
        try:
            done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return problem
        if done.returncode != 0:
            return problem
    return ""


def _create_cluster() -> None:
    listed = subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=True).stdout
    if _NAME not in listed.split():
        _show("kind", "create", "cluster", f"--config={cache.CHECKOUT / 'kind-config.yaml'}", "--wait=120s")
    _KUBECONFIG.parent.mkdir(parents=True, exist_ok=True)
    _show("kind", "export", "kubeconfig", f"--name={_NAME}", f"--kubeconfig={_KUBECONFIG}")


def _show(*command: str) -> None:
    """Run a program with its own output on the terminal."""
    if subprocess.run(command, check=False).returncode != 0:
        raise LabError(f"{' '.join(command[:3])} failed")
