"""The demo on the local node: ``make demo`` and ``make demo-down``."""

import contextlib
import shutil

from lab import cache, demo_cluster, images, setup
from lab.demo_cluster import DATABASE, DATABASE_SERVICE, NAMESPACE, USER, Steps
from lab.kubectl import Kubectl
from lab.node import Node
from lab.node_launch import Record
from lab.postgres import Postgres
from lab.progress import say

STATE = cache.root() / "demo"
PORT = 16443


def up() -> None:
    """Bring up the demo, or bring a running one to the present state of the checkout; send messages through it.

    Raises LabError with what did not work; what runs by then stays, to look at.
    """
    steps = Steps()
    with steps.step("setup: programs and images"):
        setup.run([])
    image_key = images.current_operator_key()
    node = _node(steps, image_key)
    kubectl = Kubectl(node.kubeconfig)
    with steps.step("PostgreSQL"):
        if not node.postgres.is_running():
            node.postgres.start()
        _allow(node.postgres, demo_cluster.prepare_namespace(kubectl))
        kubectl.apply(node.postgres.service_manifests(NAMESPACE, DATABASE_SERVICE), NAMESPACE)
    with steps.step("install the operator with Helm"):
        demo_cluster.install_operator(kubectl, image_key)
    with steps.step("apply examples/queencluster.yaml and wait until it is Ready"):
        demo_cluster.apply_queencluster(kubectl)
        demo_cluster.wait_until_ready(kubectl)
    with steps.step("send messages"):
        demo_cluster.send_messages(kubectl)
    say(f"\nThe demo is up. It took:\n{steps.summary()}")
    say(demo_cluster.how_to_look(node.kubeconfig, "make demo-down"))


def down() -> None:
    """End the demo: every process, mount, network and cgroup of it, and its data."""
    record = Record.read(STATE)
    if record is None:
        say("no demo runs")
    else:
        # Also after a crash of the node: what it left behind goes too.
        Node(record).stop()
        say("the demo is gone")
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(STATE)


def _node(steps: Steps, image_key: str) -> Node:
    """Return the demo's node, started or found running, with the operator's present image in it."""
    try:
        node = Node.attach(STATE)
    except LookupError:
        with steps.step("start the Kubernetes node"):
            return Node.start(STATE, cache.bin_dir(), [cache.image(name) for name in images.ALL], PORT)
    say("==> the node of an earlier demo runs: it is used again")
    if demo_cluster.installed_image(Kubectl(node.kubeconfig)) != image_key:
        with steps.step("load the operator's image"):
            node.load_image(cache.image("operator"))
    return node


def _allow(postgres: Postgres, password: str) -> None:
    """Let the demo's user in with this password, creating it and its database at the first time."""
    if postgres.sql(f"SELECT 1 FROM pg_roles WHERE rolname = '{USER}'"):  # noqa: S608 (a constant of ours)
        postgres.set_password(USER, password)
    else:
        postgres.create_database(DATABASE, USER, password)
