"""What the node does to the machine: folders, cgroups, names, the loopback door."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lab import cgroups, kubelet, namespace
from tests.support.ports import free_port
from tests.support.waiting import wait_until


def test_only_what_is_needed_stays_visible_in_a_covered_folder() -> None:
    needed = [Path("/var/lib/jenkins/work/state"), Path("/usr/bin"), Path("/var/lib/jenkins/venv"), Path("/var/lib")]

    assert namespace.kept_entries(Path("/var/lib"), needed) == {"jenkins"}
    assert namespace.kept_entries(Path("/run"), needed) == set()


def test_cgroups_are_made_in_every_hierarchy_and_removed_with_all_below(tmp_path: Path) -> None:
    for hierarchy in ("cpu", "memory", "unified"):
        (tmp_path / hierarchy).mkdir()

    cgroups.create("queen-lab-1", tmp_path)
    cgroups.create("queen-lab-2", tmp_path)
    (tmp_path / "cpu/queen-lab-1/kubepods/pod1").mkdir(parents=True)
    assert cgroups.existing("queen-lab-1", tmp_path) == [tmp_path / "cpu/queen-lab-1", tmp_path / "memory/queen-lab-1"]
    cgroups.remove("queen-lab-1", root=tmp_path)

    assert cgroups.existing("queen-lab-1", tmp_path) == []
    assert len(cgroups.existing("queen-lab-2", tmp_path)) == 2


def test_on_cgroup_v2_the_controllers_that_kubelet_wants_are_switched_on(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids rdma\n")

    cgroups.create("queen-lab-1", tmp_path)

    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory +pids"
    assert cgroups.existing("queen-lab-1", tmp_path) == [tmp_path / "queen-lab-1"]


def test_a_cgroup_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cpu/queen-lab-1").mkdir(parents=True)
    # Stands for a process in it: the kernel refuses to remove the folder, as it does here because of the file.
    (tmp_path / "cpu/queen-lab-1/busy").touch()

    with pytest.raises(OSError, match="not empty"):
        cgroups.remove("queen-lab-1", seconds=0.2, root=tmp_path)


def test_the_node_keeps_its_pods_below_its_own_cgroup() -> None:
    assert '"cgroupRoot": "/queen-lab-7"' in kubelet.kubelet_config(Path("/state/resolv.conf"), "queen-lab-7")


@pytest.mark.parametrize(("flags", "answers", "resolved"), [(0x8180, 1, True), (0x8180, 0, False), (0x8183, 0, False)])
def test_a_name_resolves_only_with_an_address(flags: int, answers: int, resolved: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.2", 0))
        asked: list[bytes] = []

        def answer_once() -> None:
            query, client = server.recvfrom(512)
            asked.append(query)
            server.sendto(query[:2] + struct.pack(">HHHHH", flags, 1, answers, 0, 0) + query[12:], client)

        thread = threading.Thread(target=answer_once)
        thread.start()
        assert namespace.resolves("a.example", "127.0.0.2", port=server.getsockname()[1]) is resolved
        thread.join()

    assert asked[0][12:] == b"\x01a\x07example\x00\x00\x01\x00\x01"


def test_the_door_leads_a_connection_through_in_both_directions() -> None:
    with socket.create_server(("127.0.0.1", 0)) as behind, socket.create_server(("127.0.0.1", 0)) as listener:
        os.set_inheritable(listener.fileno(), True)
        target = f"127.0.0.1:{behind.getsockname()[1]}"
        argv = [sys.executable, "-m", "lab.door", f"--fd={listener.fileno()}", f"--to={target}"]
        with subprocess.Popen(argv, pass_fds=[listener.fileno()], env=_with_path()) as door:
            try:
                with socket.create_connection(listener.getsockname(), timeout=10) as client:
                    client.sendall(b"question")
                    client.shutdown(socket.SHUT_WR)
                    server, _ = behind.accept()
                    with server:
                        assert server.recv(100) == b"question"
                        assert server.recv(100) == b""
                        server.sendall(b"answer")
                    assert client.recv(100) == b"answer"
                    assert client.recv(100) == b""
            finally:
                door.kill()


def test_the_door_closes_what_cannot_be_led_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        argv = [sys.executable, "-m", "lab.door", f"--fd={listener.fileno()}", f"--to=127.0.0.1:{free_port()}"]
        with subprocess.Popen(argv, pass_fds=[listener.fileno()], env=_with_path()) as door:
            try:
                with socket.create_connection(listener.getsockname(), timeout=10) as client:
                    assert client.recv(100) == b""
            finally:
                door.kill()


def _with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}


def test_waiting_in_vain_says_for_what_and_what_was_seen() -> None:
    with pytest.raises(AssertionError, match=r"waited 0 s in vain for a pod; the last answer was \[\]"):
        wait_until("a pod", list, seconds=0)
