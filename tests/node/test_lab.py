"""The laboratory itself: what every other test on the node takes for granted."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lab import cache, cgroups, images
from lab.node import Node
from lab.node_launch import MARK
from lab.postgres import Postgres
from lab.processes import every_pid, marked_with
from lab.progress import LabError
from tests.support import diagnostics, node_folders
from tests.support.databases import Database
from tests.support.namespaces import NamespacedKubectl
from tests.support.pods import claim, pausing_pod, pod_spec
from tests.support.ports import free_port
from tests.support.waiting import wait_until


def traffic(node: Node, *arguments: str | Path) -> dict[str, Any]:
    done = node.run_inside([sys.executable, "-m", "lab.traffic", *arguments], cwd=cache.CHECKOUT)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_the_node_is_ready_and_names_of_services_resolve(node: Node, kubectl: NamespacedKubectl) -> None:
    assert kubectl.is_true("node", "node", "Ready")

    found = node.run_inside(["getent", "hosts", f"postgres.{kubectl.namespace}.svc.cluster.local"])

    service = kubectl.get("service", "postgres")
    assert service is not None
    assert found.stdout.split()[0] == service["spec"]["clusterIP"]


def broker(database: Database) -> list[dict[str, Any]]:
    """One broker as somebody would write it by hand: claim, Deployment, Service."""
    environment = {
        "PG_HOST": database.host,
        "PG_USER": database.user,
        "PG_DATABASE": database.name,
        "DB_POOL_SIZE": "40",
        "FILE_BUFFER_DIR": "/spool",
    }
    password = {"secretKeyRef": {"name": database.secret, "key": "password"}}
    container = {
        "name": "broker",
        "image": images.BROKER.name,
        "env": [{"name": name, "value": value} for name, value in environment.items()]
        + [{"name": "PG_PASSWORD", "valueFrom": password}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 6632}, "periodSeconds": 1},
    }
    labels = {"app": "broker"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(container, ["spool"])}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "broker"},
        "spec": {"selector": {"matchLabels": labels}, "strategy": {"type": "Recreate"}, "template": template},
    }
    ports = [{"port": 6632}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "broker"},
        # The spool takes pushes while the database is away, and the broker is not Ready then.
        "spec": {"selector": labels, "ports": ports, "publishNotReadyAddresses": True},
    }
    return [claim("spool", "ReadWriteOncePod"), deployment, service]


def test_a_real_broker_spools_in_an_outage_and_every_message_comes_through_once(
    node: Node, postgres: Postgres, database: Database, kubectl: NamespacedKubectl, tmp_path: Path
) -> None:
    kubectl.apply(broker(database))
    wait_until("the broker to be Ready", lambda: kubectl.is_true("deployment", "broker", "Available"), seconds=120)
    to_broker = ["--url", f"http://broker.{kubectl.namespace}.svc.cluster.local:6632", "--queue", "orders"]
    files = [tmp_path / name for name in ("before", "outage", "after")]

    before = traffic(node, "push", *to_broker, "--count", "50", "--connections", "half", "--record", files[0])
    postgres.stop()
    outage = traffic(node, "push", *to_broker, "--count", "50", "--connections", "new", "--record", files[1])
    postgres.start()
    wait_until("the broker to be Ready again", lambda: kubectl.is_true("deployment", "broker", "Available"))
    after = traffic(node, "push", *to_broker, "--count", "50", "--record", files[2])
    expected = tmp_path / "expected"
    expected.write_text("".join(file.read_text() for file in files))
    came = traffic(node, "drain", *to_broker, "--group", "g", "--expect", expected, "--seconds", "90")
    left = traffic(node, "depth", *to_broker, "--group", "g")

    assert (before["queued"], outage["buffered"], after["queued"]) == (50, 50, 50)
    assert {key: came[key] for key in ("unique", "duplicates", "missing", "foreign", "unacknowledged")} == {
        "unique": 150,
        "duplicates": 0,
        "missing": 0,
        "foreign": 0,
        "unacknowledged": 0,
    }
    assert left["pending"] == 0


def test_a_frozen_database_answers_nobody_until_it_is_thawed(
    node: Node, postgres: Postgres, database: Database
) -> None:
    address = f"postgresql://{database.user}:{database.password}@{postgres.host}/{database.name}"
    ask = ["env", "PGCONNECT_TIMEOUT=2", "psql", address, "--command=SELECT 1"]

    postgres.freeze()
    while_frozen = node.run_inside(ask)
    postgres.thaw()

    assert "timeout expired" in while_frozen.stderr
    assert node.run_inside(ask).returncode == 0


def test_an_unreachable_database_answers_nobody_until_it_is_reachable(
    node: Node, postgres: Postgres, database: Database
) -> None:
    address = f"postgresql://{database.user}:{database.password}@{postgres.host}/{database.name}"
    ask = ["env", "PGCONNECT_TIMEOUT=2", "psql", address, "--command=SELECT 1"]

    postgres.set_unreachable(True)
    while_unreachable = node.run_inside(ask)
    postgres.set_unreachable(False)

    assert "timeout expired" in while_unreachable.stderr
    assert node.run_inside(ask).returncode == 0


def test_settings_of_the_server_hold_for_one_run(postgres: Postgres) -> None:
    postgres.stop()
    postgres.start({"max_connections": "30"})
    with_settings = postgres.sql("SHOW max_connections")
    postgres.kill()
    postgres.start()

    assert with_settings == [["30"]]
    assert postgres.sql("SHOW max_connections") == [["100"]]


def test_a_read_only_database_refuses_writes_on_open_connections_too(postgres: Postgres, database: Database) -> None:
    postgres.sql("CREATE TABLE seen (id int)", database.name)

    postgres.set_read_only(True)

    with pytest.raises(LabError, match="cannot execute INSERT in a read-only transaction"):
        postgres.sql("INSERT INTO seen VALUES (1)", database.name, own_choice=False)


def test_the_explanation_of_a_failure_names_the_cause_and_no_secret(
    node: Node, database: Database, kubectl: NamespacedKubectl
) -> None:
    stuck = pausing_pod("stuck", [])
    stuck["spec"]["containers"][0]["image"] = "docker.io/local/nowhere:1"
    kubectl.apply([stuck, pausing_pod("fine", [])])
    wait_until("the healthy pod", lambda: kubectl.is_true("pod", "fine", "Ready"))
    wait_until("the refusal", lambda: "ErrImageNeverPull" in kubectl("get", "pods"))

    text = diagnostics.explain(node.kubeconfig, kubectl.namespace)

    assert "ErrImageNeverPull" in text
    assert "logs fine --container=pause" in text
    assert database.password not in text


def traces_on_the_machine() -> set[str]:
    """Mounts, folders and links that a node would leave if its namespaces did not keep them in."""
    words = ("kubelet", "containerd", "netns", "test-nodes", "lab-volumes")
    mounts = {line for line in Path("/proc/self/mounts").read_text().splitlines() if any(w in line for w in words)}
    folders = [Path(top) / name for top in ("/run", "/var/lib", "/var/log") for name in (*words, "runc", "cni", "pods")]
    links = {
        entry.name for entry in Path("/sys/class/net").iterdir() if entry.name.startswith(("node0", "veth", "cni"))
    }
    return mounts | {str(folder) for folder in folders if folder.exists()} | links


def networks_in_use() -> set[Path]:
    """Network namespaces that some process lives in."""
    found = set()
    for pid in every_pid():
        with contextlib.suppress(OSError):
            found.add(Path(f"/proc/{pid}/ns/net").readlink())
    return found


def test_a_second_node_beside_the_first_leaves_nothing_behind(node: Node, kubectl: NamespacedKubectl) -> None:
    state = node_folders.own_folder("second")
    before = traces_on_the_machine()
    second = Node.start(state, cache.bin_dir(), [cache.image("pause")], free_port())
    try:
        second.postgres.start()
        here = NamespacedKubectl(second.kubeconfig, "default")
        wait_until("the account that pods need", lambda: here.get("serviceaccount", "default"))
        here.apply([claim("spool", "ReadWriteOncePod"), pausing_pod("user", ["spool"])])
        wait_until("a pod on the second node", lambda: here.is_true("pod", "user", "Ready"))
        waiting = second.popen_inside(["sleep", "1000"])
        assert traces_on_the_machine() == before
        network = Path(f"/proc/{second.pid}/ns/net").readlink()
        assert len(marked_with(MARK, second.record.name)) > 10
        assert cgroups.existing(second.record.name)
        with pytest.raises(LabError, match=r"a node runs in .* already"):
            Node.start(state, cache.bin_dir(), [], free_port())
    finally:
        Node.attach(state).stop()

    assert waiting.wait(10) < 0
    assert marked_with(MARK, second.record.name) == []
    assert cgroups.existing(second.record.name) == []
    assert traces_on_the_machine() == before
    assert network not in networks_in_use()
    assert {entry.name for entry in state.iterdir()} <= {"logs", "audit.log"}
    with pytest.raises(LookupError, match="no node runs in"):
        Node.attach(state)
    assert kubectl.is_true("node", "node", "Ready")
    node_folders.remove(state)


def test_a_node_names_the_program_that_died_and_stops() -> None:
    state = node_folders.own_folder("dying")
    dying = Node.start(state, cache.bin_dir(), [cache.image("pause")], free_port())
    try:
        (scheduler,) = [
            process
            for process in marked_with(MARK, dying.record.name)
            if Path(f"/proc/{process.pid}/comm").read_text().strip() == "kube-scheduler"
        ]
        scheduler.kill(seconds=10)
        wait_until("the node to end", lambda: not dying.is_running())

        assert "kube-scheduler ended with code -9" in dying.last_words()
        with pytest.raises(LabError, match="kube-scheduler ended"):
            dying.run_inside(["true"])
    finally:
        dying.stop()
        node_folders.remove(state)
