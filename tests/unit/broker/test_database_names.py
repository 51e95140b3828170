"""The look-up of PostgreSQL's host name, with real name servers in a network of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from queen_operator.planning.observed import DatabaseState

ROOT = Path(__file__).resolve().parents[3]
NAMESPACES = ("unshare", "--mount", "--net")
HOST = "orders-db.example"


def look_through(behavior: str, directory: Path) -> tuple[str, str]:
    if subprocess.run([*NAMESPACES, "true"], capture_output=True).returncode != 0:
        pytest.skip("this user may not make network namespaces")
    resolver = directory / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
    inside = 'mount --bind "$1" /etc/resolv.conf && exec "$2" -m tests.unit.broker.name_server "$3"'
    done = subprocess.run(
        [*NAMESPACES, "sh", "-ec", inside, "sh", str(resolver), sys.executable, behavior],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    state, message = json.loads(done.stdout)
    return state, message


def test_a_name_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert look_through("no such name", tmp_path) == (
        DatabaseState.REFUSED,
        f"PostgreSQL's host {HOST} does not exist: the name is not known",
    )


def test_a_silent_name_server_is_no_frozen_database(tmp_path: Path) -> None:
    state, message = look_through("silence", tmp_path)
    assert state == DatabaseState.UNKNOWN
    assert message == f"the name of PostgreSQL's host {HOST} could not be looked up: no answer in time"


@pytest.mark.parametrize("behavior", ["failure", "absence"])
def test_a_name_server_in_trouble_says_nothing_about_the_database(behavior: str, tmp_path: Path) -> None:
    state, message = look_through(behavior, tmp_path)
    assert state == DatabaseState.UNKNOWN
    assert HOST in message
