"""What events of a watch tell about a pod's life."""

from __future__ import annotations

from typing import Any

from tests.support.pod_lives import PodLife


def pod(*, ready: bool = False, leaving: bool = False, exit_code: int | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "b-0", "uid": "u"}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    state = {"running": {}} if exit_code is None else {"terminated": {"exitCode": exit_code}}
    return {
        "metadata": meta,
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "broker", "state": state, "lastState": {}, "restartCount": 0}],
        },
    }


def test_the_first_moment_of_each_kind_is_kept() -> None:
    life = PodLife("b-0", "0")
    life.take("ADDED", pod(), 1)
    life.take("MODIFIED", pod(ready=True), 2)
    life.take("MODIFIED", pod(ready=True), 3)
    life.take("MODIFIED", pod(ready=True, leaving=True), 4)
    life.take("MODIFIED", pod(leaving=True, exit_code=137), 5)
    life.take("DELETED", pod(leaving=True, exit_code=137), 6)

    assert (life.ready_at, life.leaving_at, life.gone_at) == (2, 4, 6)
    assert life.exits == {"broker": {137}}


def test_the_exit_before_a_restart_in_the_same_pod_counts() -> None:
    restarted = pod(ready=True)
    restarted["status"]["containerStatuses"][0] |= {"lastState": {"terminated": {"exitCode": 137}}, "restartCount": 1}
    life = PodLife("b-0", "0")
    life.take("MODIFIED", restarted, 1)

    assert (life.exits, life.restarts) == ({"broker": {137}}, 1)
