from pathlib import Path
from typing import Any

import pytest

from lab import cache, demo_cluster, demo_kind, setup
from lab.progress import LabError


def _resource(ready: str = "True", observed: int = 2) -> dict[str, Any]:
    conditions = [{"type": "Available", "status": "True"}, {"type": "Ready", "status": ready}]
    status = {"observedGeneration": observed, "conditions": conditions, "phase": "Running", "message": "3 of 3 ready"}
    return {"metadata": {"generation": 2}, "status": status}


def test_a_cluster_whose_status_is_about_the_present_spec_is_ready() -> None:
    assert demo_cluster.is_ready(_resource())


@pytest.mark.parametrize(
    "resource",
    [
        _resource(ready="False"),
        _resource(ready="Unknown"),
        _resource(observed=1),
        {"metadata": {"generation": 1}},
        {"metadata": {"generation": 1}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    ],
)
def test_an_old_or_missing_or_false_status_is_not_ready(resource: dict[str, Any]) -> None:
    assert not demo_cluster.is_ready(resource)


def test_the_status_is_shown_as_phase_and_message() -> None:
    assert demo_cluster.status_line(_resource()) == "Running: 3 of 3 ready"
    assert "not looked at it yet" in demo_cluster.status_line({"metadata": {"generation": 1}})


def test_without_docker_the_kind_demo_ends_with_one_sentence_and_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo_kind.up() == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert "docker info" in captured.err


def test_a_docker_client_without_an_engine_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no Docker engine" in demo_kind.why_not_here()


def test_with_docker_but_without_kind_kind_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 0\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo_kind.why_not_here() == "the program kind is not installed"


def test_the_pod_with_the_messages_gets_every_module_that_it_imports(tmp_path: Path) -> None:
    config_map, pod = demo_cluster.traffic_pod("traffic-1")
    package = tmp_path / "lab"
    package.mkdir()
    for name, content in config_map["data"].items():
        (package / name).write_text(content)
    imported = {
        line.split()[1].removeprefix("lab.")
        for source in package.iterdir()
        for line in source.read_text().splitlines()
        if line.startswith("from lab.")
    }
    assert imported <= {source.stem for source in package.iterdir()}
    assert pod["spec"]["containers"][0]["command"][2] == "lab.demo_traffic"
    assert (package / "demo_traffic.py").exists()


def test_one_part_of_the_setup_brings_what_it_needs_and_nothing_else() -> None:
    names = [task.name for task in setup.with_needs(setup.tasks(), ["operator image"])]
    assert names == ["debian packages", "python", "wheels", "base image", "operator image"]


def test_an_unknown_part_is_refused_with_the_list_of_parts() -> None:
    with pytest.raises(LabError, match="no part brokre; parts: debian packages, python"):
        setup.with_needs(setup.tasks(), ["brokre"])


def test_every_program_of_the_node_gets_a_link(tmp_path: Path) -> None:
    setup.point_to_programs(tmp_path)
    programs = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}
    programs |= {"coredns", "pause", "kubectl", "helm", "queen"}
    assert {p.name for p in tmp_path.iterdir()} == programs
    assert all(cache.root() in p.readlink().parents for p in tmp_path.iterdir())
