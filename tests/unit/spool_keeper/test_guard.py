"""The lock: who has it, who waits for it, and what ends it."""

import fcntl
import json
import os
import signal
from pathlib import Path

import pytest

from tests.unit.spool_keeper.conftest import StartKeeper
from tests.unit.spool_keeper.keeper_process import GENEROUS_SECONDS, is_alive, kill_9, wait_for
from tests.unit.spool_keeper.spool_files import add_file, records


def lock_is_free(directory: Path) -> bool:
    fd = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def test_a_keeper_takes_the_lock_and_makes_no_file_for_it(spool: Path, start_keeper: StartKeeper) -> None:
    keeper = start_keeper()
    keeper.wait_until_held()
    assert not lock_is_free(spool)
    assert list(spool.iterdir()) == []
    assert keeper.ask("/held") == (200, "held\n")


def test_a_second_keeper_waits_visibly_until_the_first_is_killed(spool: Path, start_keeper: StartKeeper) -> None:
    first = start_keeper()
    first.wait_until_held()
    second = start_keeper()
    second.wait_until_serving()
    why = f"another keeper holds the lock on {spool}"
    wait_for(lambda: second.ask("/held") == (503, f"{why}\n"), "the second keeper says why it waits")
    assert second.spool()["held"] is False
    assert second.spool()["error"] == why
    assert first.ask("/held")[0] == 200

    http_child = first.child_pid()
    kill_9(first.pid)
    second.wait_until_held()
    assert second.spool()["error"] is None
    wait_for(lambda: not is_alive(http_child), "the HTTP child of the killed keeper ends by itself")


def test_the_http_child_can_be_killed_without_freeing_the_lock(spool: Path, start_keeper: StartKeeper) -> None:
    keeper = start_keeper()
    keeper.wait_until_held()
    second = start_keeper()
    second.wait_until_serving()
    for _ in range(3):
        child = keeper.child_pid()
        kill_9(child)
        wait_for(lambda: keeper.child_pids() not in ([], [child]), "another child is there")  # noqa: B023
        assert not lock_is_free(spool)
        keeper.wait_until_held()
    assert second.ask("/held")[0] == 503
    assert "the HTTP child ended with -9, the lock stays" in keeper.log


def test_the_http_child_does_not_hold_the_lock_on_after_its_parent(spool: Path, start_keeper: StartKeeper) -> None:
    keeper = start_keeper()
    keeper.wait_until_held()
    child = keeper.child_pid()
    os.kill(child, signal.SIGSTOP)  # SIGSTOP: it cannot notice that its parent died
    try:
        kill_9(keeper.pid)
        keeper.process.wait(GENEROUS_SECONDS)
        assert is_alive(child)
        assert lock_is_free(spool)
    finally:
        os.kill(child, signal.SIGCONT)
    wait_for(lambda: not is_alive(child), "the child ends once it runs again")


def test_sigterm_ends_a_waiting_keeper_at_once(start_keeper: StartKeeper) -> None:
    first, second = start_keeper(), start_keeper()
    wait_for(lambda: 503 in (first.ask("/held")[0], second.ask("/held")[0]), "one of them waits")
    wait_for(lambda: 200 in (first.ask("/held")[0], second.ask("/held")[0]), "one of them holds")
    holding, waiting = (first, second) if first.ask("/held")[0] == 200 else (second, first)
    child = waiting.child_pid()
    assert waiting.terminate() == 0
    assert not is_alive(child)
    assert holding.ask("/held")[0] == 200


def test_sigterm_ends_a_holding_keeper_cleanly_with_the_spool_as_its_last_word(
    spool: Path, start_keeper: StartKeeper
) -> None:
    add_file(spool, 1_700_000_000_000, records(3))
    add_file(spool / "failed", 1_600_000_000_000, records(2))
    keeper = start_keeper()
    keeper.wait_until_held()
    keeper.termination_log.touch()
    child = keeper.child_pid()
    assert keeper.terminate() == 0
    assert not is_alive(child)
    assert lock_is_free(spool)
    assert json.loads(keeper.termination_log.read_text()) == {
        "held": True,
        "files": 1,
        "bytes": len(records(3)),
        "quarantined_files": 1,
        "quarantined_bytes": len(records(2)),
        "error": None,
    }


def test_a_last_word_without_a_place_for_it_makes_no_file(start_keeper: StartKeeper) -> None:
    keeper = start_keeper()
    keeper.wait_until_held()
    assert keeper.terminate() == 0
    assert not keeper.termination_log.exists()
    assert "no termination message" in keeper.log


def test_a_keeper_ends_at_once_even_when_its_http_child_hangs(start_keeper: StartKeeper) -> None:
    keeper = start_keeper()
    keeper.wait_until_held()
    child = keeper.child_pid()
    os.kill(child, signal.SIGSTOP)
    assert keeper.terminate() == 0
    assert not is_alive(child)


def test_a_taken_port_costs_the_http_part_and_not_the_lock(spool: Path, start_keeper: StartKeeper) -> None:
    keeper = start_keeper()
    keeper.wait_until_held()
    other = spool / "other"
    other.mkdir()
    second = start_keeper(other, port=keeper.port)
    wait_for(lambda: f"cannot listen on port {keeper.port}: Address already in use" in second.log, "it says so")
    assert not lock_is_free(other)
    assert keeper.terminate() == 0
    second.wait_until_held()


@pytest.mark.skipif(os.getuid() != 0, reason="a process namespace needs root")
@pytest.mark.parametrize("holding", [True, False], ids=["holding", "waiting"])
def test_pid_1_of_a_container_obeys_sigterm(start_keeper: StartKeeper, holding: bool) -> None:
    if not holding:
        start_keeper().wait_until_held()
    contained = start_keeper(prefix=("unshare", "--pid", "--fork", "--kill-child"))
    contained.wait_until_serving()
    wait_for(lambda: contained.ask("/held")[0] == (200 if holding else 503), "the keeper is where it should be")
    (pid_1,) = contained.child_pids()
    status = Path(f"/proc/{pid_1}/status").read_text()
    assert [line.split()[-1] for line in status.splitlines() if line.startswith("NSpid")] == ["1"]
    os.kill(pid_1, signal.SIGTERM)
    assert contained.process.wait(GENEROUS_SECONDS) == 0
