"""The one-shot commands and the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.spool_keeper.conftest import StartKeeper
from tests.unit.spool_keeper.keeper_process import MAIN, ROOT, command, run
from tests.unit.spool_keeper.spool_files import add_file, file_name, records


def report(directory: Path, **how: Any) -> tuple[int, dict[str, Any]]:
    done = run("report", "--spool-dir", str(directory), **how)
    values: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, values


def test_report_proves_an_empty_spool_empty(spool: Path) -> None:
    (spool / "failed").mkdir()
    code, values = report(spool)
    assert code == 0
    assert (values["files"], values["quarantined_files"], values["error"]) == (0, 0, None)
    assert values["held"] is True, "nobody else is at this directory"


@pytest.mark.parametrize("place", ["queen-1700000000000-00000000.buf", "x.tmp", "failed/x.buf", "failed/x.tmp"])
def test_report_never_calls_a_spool_with_a_file_empty(spool: Path, place: str) -> None:
    (spool / "failed").mkdir()
    (spool / place).touch()
    code, values = report(spool)
    assert code == 3
    assert values["files"] + values["quarantined_files"] == 1


def test_report_of_what_cannot_be_read_is_unknown(spool: Path) -> None:
    add_file(spool, 1_700_000_000_000, records(1))
    spool.chmod(0o000)
    code, values = report(spool, as_broker_uid=True)
    assert (code, values["files"], values["error"]) == (4, None, f"cannot read {spool}: Permission denied")
    spool.chmod(0o755)
    assert report(spool / "missing")[0] == 4
    assert report(spool / file_name(1_700_000_000_000))[0] == 4


def test_report_counts_messages_it_may_not_read_as_unknown_and_not_as_none(spool: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("takes two users")
    add_file(spool, 1_700_000_000_000, records(1)).chmod(0o600)
    code, values = report(spool, as_broker_uid=True)
    assert (code, values["files"], values["events"]) == (3, 1, None)


def test_report_beside_a_keeper_works_and_proves_nothing_empty_or_not(spool: Path, start_keeper: StartKeeper) -> None:
    keeper = start_keeper()
    keeper.wait_until_held()
    code, values = report(spool)
    assert (code, values["held"], values["files"]) == (4, False, 0)
    assert values["error"] == f"another keeper holds the lock on {spool}"
    add_file(spool, 1_700_000_000_000, records(2))
    code, values = report(spool)
    assert (code, values["held"], values["files"], values["events"]) == (4, False, 1, 2)
    assert keeper.ask("/held")[0] == 200


def test_report_leaves_its_json_as_the_termination_message(spool: Path, tmp_path: Path) -> None:
    add_file(spool, 1_700_000_000_000, records(3))
    add_file(spool / "failed", 1_600_000_000_000, records(2))
    (spool / "x.tmp").touch()
    message = tmp_path / "termination-log"
    message.touch()
    done = run("report", "--spool-dir", str(spool), "--termination-log", str(message))
    values = json.loads(message.read_text())
    assert message.read_text() == done.stdout
    assert done.returncode == 3
    assert values.items() >= {"held": True, "files": 2, "events": 3, "unfinished_files": 1}.items()
    assert values.items() >= {"quarantined_files": 1, "quarantined_events": 2, "error": None}.items()


def test_report_makes_no_file_for_a_termination_message(spool: Path, tmp_path: Path) -> None:
    message = tmp_path / "termination-log"
    done = run("report", "--spool-dir", str(spool), "--termination-log", str(message))
    assert done.returncode == 0
    assert "no termination message" in done.stderr
    assert not message.exists()
    assert list(spool.iterdir()) == []


def test_a_termination_message_is_never_cut_in_its_middle(spool: Path, tmp_path: Path) -> None:
    directory = spool
    for _ in range(3):
        directory = directory / ("🐝" * 63)
    message = tmp_path / "termination-log"
    message.touch()
    done = run("report", "--spool-dir", str(directory), "--termination-log", str(message))
    text = message.read_text()
    assert len(text) <= 4096
    assert json.loads(text)["error"].startswith("cannot read /")
    assert done.returncode == 4


@pytest.mark.skipif(os.getuid() != 0, reason="a mount needs root")
def test_a_read_only_volume_is_named(spool: Path) -> None:
    script = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(spool), *command("report", "--spool-dir", str(spool))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    values = json.loads(done.stdout)
    assert (values["writable"], values["error"]) == (False, f"{spool} is on a read-only file system")
    assert done.returncode == 0


def requeue(directory: Path) -> tuple[int, dict[str, Any]]:
    done = run("requeue", "--spool-dir", str(directory))
    values: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, values


def test_requeue_moves_every_quarantined_file_back_unchanged(spool: Path) -> None:
    contents = {file_name(1_700_000_000_000 + number): records(number) for number in range(1, 6)}
    (spool / "failed").mkdir()
    for name, content in contents.items():
        (spool / "failed" / name).write_bytes(content)
    (spool / "failed" / "notes.txt").touch()
    assert requeue(spool) == (0, {"moved": 5, "left": 0, "error": None})
    assert {path.name: path.read_bytes() for path in spool.glob("*.buf")} == contents
    assert [path.name for path in (spool / "failed").iterdir()] == ["notes.txt"]
    assert requeue(spool) == (0, {"moved": 0, "left": 0, "error": None})


def test_requeue_never_overwrites_and_says_what_it_left(spool: Path) -> None:
    waiting = add_file(spool, 1_700_000_000_000, records(1))
    quarantined = add_file(spool / "failed", 1_700_000_000_000, records(2))
    other = add_file(spool / "failed", 1_700_000_000_001, records(3))
    code, values = requeue(spool)
    assert (code, values["moved"], values["left"]) == (1, 1, 1)
    assert values["error"] == f"cannot move {waiting.name}: a file of this name is in the spool"
    assert waiting.read_bytes() == records(1)
    assert quarantined.read_bytes() == records(2)
    assert (spool / other.name).read_bytes() == records(3)


def test_requeue_starts_with_the_oldest(spool: Path) -> None:
    """The broker may look at any moment, and replays what is there: so the oldest has to be there first."""
    for number in (3, 1, 2):
        add_file(spool / "failed", 1_700_000_000_000 + number, records(1))
    strace_free = [
        sys.executable,
        "-c",
        "import os, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "sys.addaudithook(lambda event, args: event == 'os.rename' and print(os.path.basename(args[0])))\n"
        "from queen_operator.spool_keeper.requeue import requeue\n"
        "requeue(sys.argv[2])\n",
        str(ROOT),
        str(spool),
    ]
    done = subprocess.run(strace_free, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [file_name(1_700_000_000_000 + number) for number in (1, 2, 3)]


def test_requeue_without_a_quarantine_moves_nothing(spool: Path) -> None:
    assert requeue(spool) == (0, {"moved": 0, "left": 0, "error": None})
    code, values = requeue(spool / "missing")
    assert (code, values["error"]) == (1, f"there is no directory {spool}/missing")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected a command, one of hold, report, requeue"),
        (("serve",), "expected a command"),
        (("hold",), "--spool-dir must be an absolute path, got ''"),
        (("hold", "--spool-dir", "spool"), "--spool-dir must be an absolute path, got 'spool'"),
        (("hold", "--spool-dir"), "--spool-dir needs a value"),
        (("hold", "--spool-dir", "/spool", "--port", "http"), "--port must be a number from 1 to 65535, got 'http'"),
        (("hold", "--spool-dir", "/spool", "--port=0"), "--port must be a number from 1 to 65535, got '0'"),
        (("report", "--spool-dir", "/spool", "--port", "1"), "report has no option '--port'"),
        (("report", "/spool"), "report has no option '/spool'"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused_with_a_reason(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "usage:" in done.stderr
    assert done.stdout == ""


def test_it_runs_as_a_module_too(spool: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "queen_operator.spool_keeper.main", "report", f"--spool-dir={spool}"],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_strange_directory_name_is_still_json(spool: Path) -> None:
    directory = spool / 'a "b"\n\\ü🐝'
    directory.mkdir()
    assert report(directory)[1]["directory"] == str(directory)


def test_the_first_process_imports_next_to_nothing() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from queen_operator.spool_keeper import guard, commands, main;"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(ROOT)], capture_output=True, text=True, timeout=60, check=True
    )
    heavy = {
        "socket",
        "selectors",
        "json",
        "re",
        "typing",
        "dataclasses",
        "argparse",
        "pathlib",
        "logging",
        "subprocess",
    }
    assert not heavy & set(done.stdout.split())
    assert MAIN.is_file()
