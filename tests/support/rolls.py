"""A rollout under three loads at once, and what clients, samples, status and events show of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lab.api_client import ApiClient
from tests.support.loading import Load, loading
from tests.support.node_clusters import Cluster, is_ready
from tests.support.sampling import History, Sampler
from tests.support.waiting import wait_until

BROKERS = ("0", "1", "2")
MIN_READY_SECONDS = 5
ROLL_SECONDS = 600
_LOAD_SECONDS = 1500  # more than everything takes; the loads end with the test's body
_POLL_SECONDS = 20
_HELD_SECONDS = 300  # a minReadySeconds that no broker of a test reaches
# The clients of both busy loads together push 50 messages a second; half of them keep their connection.
_BUSY = {"rate": 25, "producers": 6, "connections": "half", "consumers": 2}
# A message each 20 s for twelve consumers: most of their polls wait the full time, at every broker.
_QUIET = {"rate": 0.05, "producers": 1, "connections": "new", "retries": 20, "consumers": 12}
_LATE_ANSWERS = ("PostgreSQL is away", "PostgreSQL does not answer", "has not answered lately")
_NEAR_SECONDS = 10  # before a pod is deleted its broker leaves the push Service; a client may notice late


@dataclass(frozen=True)
class Loads:
    """Clients that try again, clients that try once, and clients that mostly wait in long polls."""

    patient: Load
    hasty: Load
    quiet: Load

    def finish(self) -> dict[str, dict[str, Any]]:
        """End all producing, let the consumers take what is left; reports by name."""
        return {name: getattr(self, name).finish() for name in ("hasty", "patient", "quiet")}


@contextmanager
def three_loads(cluster: Cluster, folder: Path) -> Iterator[Loads]:
    """All three run while the body does."""
    with ExitStack() as stack:

        def start(name: str, **options: Any) -> Load:
            given = {"poll_seconds": _POLL_SECONDS, "seconds": _LOAD_SECONDS, **options}
            return stack.enter_context(loading(cluster, folder / name, queue=name, **given))

        loads = Loads(start("patient", retries=10, **_BUSY), start("hasty", **_BUSY), start("quiet", **_QUIET))
        for load in (loads.patient, loads.hasty, loads.quiet):
            load.wait_started()
        yield loads


def restarts_alone(cluster: Cluster, specs: Callable[[int], dict[str, Any]]) -> dict[str, float]:
    """A rollout in slow motion: seconds of each broker from the moment it may be restarted until it is Ready.

    specs gives the changed spec with a minReadySeconds. While a broker restarts, a long one holds the rollout behind
    it; the next one's time begins when a short one, which has passed by then, lets it go on.
    """
    uids, seconds = cluster.pod_uids(), {}
    with Sampler(cluster) as sampler:
        for broker in BROKERS:
            cluster.apply(specs(MIN_READY_SECONDS))
            began = time.time()
            wait_until(f"broker {broker} to be away", lambda b=broker: b in sampler.history.away_now(), ROLL_SECONDS)
            cluster.apply(specs(_HELD_SECONDS))
            wait_until(f"broker {broker} to be back", lambda: not sampler.history.away_now(), ROLL_SECONDS)
            seconds[broker] = sampler.away[broker][-1][1] - began
            time.sleep(MIN_READY_SECONDS + 1)  # it has been Ready for long enough when the next one may follow
    cluster.apply(specs(MIN_READY_SECONDS))
    cluster.wait_ready(ROLL_SECONDS)
    assert not set(uids.values()) & set(cluster.pod_uids().values())
    assert sampler.most_away == 1
    return seconds


@dataclass(frozen=True)
class Roll:
    """What a rollout looked like from outside."""

    began: float  # wall clock
    seconds: float  # from the change to Ready again
    waited_for: dict[str, set[str]]  # by broker: what the status said meanwhile that it waits for
    plans: list[tuple[float, str]]  # second of the roll, and the plan that the status told from then on


def roll(cluster: Cluster, sampler: Sampler, change: Callable[[], object]) -> Roll:
    """Make the change and follow the rollout to its end: every broker replaced and the cluster Ready."""
    uids = cluster.pod_uids()
    waited_for: dict[str, set[str]] = {broker: set() for broker in BROKERS}
    plans: list[tuple[float, str]] = []
    reader = ApiClient.from_kubeconfig(cluster.node.kubeconfig).kept()
    path = f"/apis/queen-operator.dev/v1alpha1/namespaces/{cluster.kubectl.namespace}/queenclusters/{cluster.name}"
    began = time.time()
    change()

    def is_over() -> bool:
        resource = reader.get(path)
        for broker, told in zip(BROKERS, resource["status"]["brokers"], strict=True):
            waited_for[broker].add(told.get("waitingFor", ""))
        plan = f"{resource['status']['plan']['action']} {resource['status']['plan'].get('reason', '')}".strip()
        if not plans or plans[-1][1] != plan:
            plans.append((round(time.time() - began, 1), plan))
        replaced = all(sampler.history.uids[broker][-1] != uids[broker] for broker in BROKERS)
        return replaced and is_ready(resource)

    wait_until("the rollout to end", is_over, ROLL_SECONDS)
    reader.close()
    return Roll(began, time.time() - began, waited_for, plans)


def held_seconds(rolled: Roll, history: History) -> float:
    """Seconds between restarts in which a guard waited for late answers: what a starved machine costs, not the roll.

    Such a time between two restarts counts wholly, but for minReadySeconds: a broker that was closed to pushes before
    the answers were late is opened again meanwhile, and closed once more afterwards.
    """
    held, free_since = 0.0, 0.0
    for start, end in sorted(times for away in history.away.values() for times in away):
        if _waited_for_answers(rolled.plans, free_since, start - rolled.began):
            held += start - rolled.began - free_since - (MIN_READY_SECONDS if free_since else 0)
        free_since = end - rolled.began
    return max(0.0, held)


def _waited_for_answers(plans: Sequence[tuple[float, str]], start: float, end: float) -> bool:
    """Whether a plan that was told in this time, or still held at its beginning, waited for a late answer."""
    ends = [second for second, _ in plans[1:]] + [float("inf")]
    told = [plan for (begins, plan), until in zip(plans, ends, strict=True) if begins < end and until > start]
    return any(words in plan for plan in told for words in _LATE_ANSWERS)


def restarted_events(cluster: Cluster) -> list[str]:
    """Messages of the Events that tell a restart of a broker."""
    events = cluster.kubectl.items("events")
    return [event.get("note") or event["message"] for event in events if event["reason"] == "BrokerRestarted"]


def push_errors(report: dict[str, Any], history: History, since: float) -> list[dict[str, Any]]:
    """Pushes that failed after a moment of the wall clock: second, kind, and the brokers that were leaving then."""
    start = datetime.fromisoformat(report["started_at"]).timestamp()
    return [
        {
            "second_of_roll": round(start + second - since, 1),
            "kind": kind,
            "leaving": history.away_near(start + second, _NEAR_SECONDS),
        }
        for second, who, kind in report["errors"]
        if who == "push" and start + second >= since
    ]
