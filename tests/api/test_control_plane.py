"""The laboratory's API server: who may do what, what is counted, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab import cache
from lab.control_plane import ControlPlane
from lab.kubectl import Kubectl
from lab.processes import ProcessId, children_of
from lab.progress import LabError
from tests.support import audit
from tests.support.namespaces import NamespacedKubectl
from tests.support.ports import free_port
from tests.support.waiting import wait_until


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_user_may_do_what_a_role_gives_and_nothing_else(
    control_plane: ControlPlane, kubectl: NamespacedKubectl
) -> None:
    joe = NamespacedKubectl(control_plane.kubeconfig_for("joe", ("readers",)), kubectl.namespace)
    with pytest.raises(LabError, match='User "joe" cannot list resource "configmaps"'):
        joe("get", "configmaps")

    kubectl("create", "role", "read", "--verb=get,list", "--resource=configmaps")
    kubectl("create", "rolebinding", "read", "--role=read", "--group=readers")

    wait_until("the binding to work", lambda: joe("auth", "can-i", "list", "configmaps") == "yes\n", seconds=10)
    with pytest.raises(LabError, match='cannot create resource "configmaps"'):
        joe("create", "configmap", "mine")


def test_a_service_account_is_itself(control_plane: ControlPlane, kubectl: NamespacedKubectl) -> None:
    kubeconfig = control_plane.kubeconfig_of_service_account(kubectl.namespace, "default")

    said = Kubectl(kubeconfig).run("auth", "whoami", "--output=jsonpath={.status.userInfo.username}")

    assert said == f"system:serviceaccount:{kubectl.namespace}:default"
    with pytest.raises(LabError, match=r"no token for the service account .*/nobody"):
        control_plane.kubeconfig_of_service_account(kubectl.namespace, "nobody")


def test_the_audit_log_counts_the_requests_of_one_user(control_plane: ControlPlane, kubectl: NamespacedKubectl) -> None:
    counted = NamespacedKubectl(control_plane.kubeconfig_for("counted", ("system:masters",)), kubectl.namespace)
    counted("get", "configmaps")
    before = audit.position(control_plane.audit_log)

    kubectl.apply([config_map("by-admin")])
    counted.apply([config_map("by-counted")])

    wrote = [e for e in audit.requests_of(control_plane.audit_log, "counted", before) if e["verb"] == "patch"]
    assert [e["objectRef"]["name"] for e in wrote] == ["by-counted"]


def test_pods_that_break_the_restricted_level_are_refused(kubectl: NamespacedKubectl) -> None:
    careless = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "careless"},
        "spec": {"containers": [{"name": "c", "image": "docker.io/local/pause:1"}]},
    }
    with pytest.raises(LabError, match='violates PodSecurity "restricted:latest"'):
        kubectl.apply([careless])


def test_controllers_collect_the_children_of_a_deleted_owner(tmp_path: Path) -> None:
    with ControlPlane.start(tmp_path / "state", cache.bin_dir(), free_port(), controllers=True) as plane:
        kubectl = NamespacedKubectl(plane.kubeconfig, "default")
        kubectl.apply([config_map("owner")])
        owner = kubectl.get("configmap", "owner")
        assert owner is not None
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        child = {**config_map("child"), "metadata": {"name": "child", "ownerReferences": [reference]}}
        kubectl.apply([child])

        kubectl("delete", "configmap", "owner")

        wait_until("the child to be collected", lambda: kubectl.get("configmap", "child") is None)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "something").touch()

    with pytest.raises(LabError, match="is not empty"):
        ControlPlane.start(tmp_path, cache.bin_dir(), free_port())


def test_a_port_in_use_is_named_and_nothing_runs_on(control_plane: ControlPlane, tmp_path: Path) -> None:
    taken = int(Path(control_plane.kubeconfig).read_text().split("https://127.0.0.1:")[1].split('"')[0])
    before = set(children_of(os.getpid()))

    with pytest.raises(LabError, match=r"kube-apiserver ended[\s\S]*address already in use"):
        ControlPlane.start(tmp_path / "state", cache.bin_dir(), taken)

    assert set(children_of(os.getpid())) == before


def test_the_control_plane_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = f"""
import os, time
from pathlib import Path
from lab.control_plane import ControlPlane
from lab.processes import children_of
plane = ControlPlane.start(Path({str(tmp_path / "state")!r}), Path({str(cache.bin_dir())!r}), {free_port()})
print(*children_of(os.getpid()), flush=True)
time.sleep(600)
"""
    environment = {**os.environ, "PYTHONPATH": str(cache.CHECKOUT)}
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as starter:
        assert starter.stdout is not None
        programs = [ProcessId.of(int(pid)) for pid in starter.stdout.readline().split()]
        assert len(programs) == 2

        starter.send_signal(signal.SIGKILL)

    wait_until("etcd and the API server to die", lambda: not any(p.alive() for p in programs), seconds=20)
