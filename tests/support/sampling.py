"""Looks at the brokers every 200 ms while something happens to them, and remembers who was away and when."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

from lab.api_client import ApiClient
from tests.support.node_clusters import PODS, Cluster

Away = tuple[float, float]  # from when to when; seconds of the wall clock


class History:
    """What a series of looks has shown. A broker is away unless a pod of it is Ready and not being deleted.

    It is stopped when it is away for another cause than its own readiness: none of its pods that stay was ever Ready.
    """

    def __init__(self, brokers: int) -> None:
        self.most_away = self.most_stopped = 0
        self.most_away_who: tuple[str, ...] = ()
        self.away: dict[str, list[Away]] = {str(index): [] for index in range(brokers)}
        self.uids: dict[str, list[str]] = {str(index): [] for index in range(brokers)}  # in the order of appearance
        self.moments: list[float] = []
        self._away_since: dict[str, float] = {}
        self._was_ready: set[str] = set()

    def take(self, pods: Sequence[Mapping[str, Any]], now: float) -> None:
        """Add one look: all broker pods of the cluster at a moment of the wall clock."""
        self.moments.append(now)
        serving = {_broker(pod) for pod in pods if _serves(pod)}
        self._was_ready |= {pod["metadata"]["uid"] for pod in pods if _serves(pod)}
        up = {_broker(pod) for pod in pods if _stays(pod) and pod["metadata"]["uid"] in self._was_ready}
        self.most_stopped = max(self.most_stopped, len(self.away.keys() - up))
        for pod in pods:
            seen = self.uids.setdefault(_broker(pod), [])
            if pod["metadata"]["uid"] not in seen:
                seen.append(pod["metadata"]["uid"])
        missing = tuple(sorted(self.away.keys() - serving))
        if len(missing) > self.most_away:
            self.most_away, self.most_away_who = len(missing), missing
        for broker in missing:
            self._away_since.setdefault(broker, now)
        for broker in [name for name in self._away_since if name not in missing]:
            self.away[broker].append((self._away_since.pop(broker), now))

    def close(self, now: float) -> None:
        """End the intervals of brokers that are away still."""
        for broker, since in self._away_since.items():
            self.away[broker].append((since, now))
        self._away_since.clear()

    def away_now(self) -> list[str]:
        """Brokers that were away at the last look."""
        return sorted(self._away_since)

    def longest_gap_seconds(self) -> float:
        """The longest time between two looks: nothing shorter was missed."""
        return max((b - a for a, b in itertools.pairwise(self.moments)), default=0.0)

    def away_near(self, moment: float, margin_seconds: float = 0.0) -> list[str]:
        """Brokers that were away at a moment of the wall clock, or so many seconds before or after it."""
        return sorted(
            broker
            for broker, times in self.away.items()
            if any(start - margin_seconds <= moment <= end + margin_seconds for start, end in times)
        )

    def as_json(self) -> dict[str, Any]:
        """For the figures."""
        return {
            "most_away": self.most_away,
            "most_stopped": self.most_stopped,
            "samples": len(self.moments),
            "longest_gap_seconds": round(self.longest_gap_seconds(), 2),
            "away_from_to_seconds": {
                broker: [[round(moment - self.moments[0], 1) for moment in time] for time in times]
                for broker, times in self.away.items()
            },
        }


class Sampler:
    """Takes a look in each `every_seconds` while its context lasts; `history` and its figures are complete after it."""

    def __init__(self, cluster: Cluster, every_seconds: float = 0.2, *, brokers: int = 3) -> None:
        self.history = History(brokers)
        self.failed_looks = 0
        self._every_seconds = every_seconds
        self._reader = ApiClient.from_kubeconfig(cluster.node.kubeconfig).kept()
        self._path = f"/api/v1/namespaces/{cluster.kubectl.namespace}/pods?labelSelector={quote(PODS)}"
        self._done = Event()
        self._broken: Exception | None = None
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=30)
        self._reader.close()
        self.history.close(time.time())
        # What it did not see would look like a broker that was there.
        assert self._broken is None, f"the sampler broke: {self._broken!r}"

    @property
    def most_away(self) -> int:
        return self.history.most_away

    @property
    def most_stopped(self) -> int:
        return self.history.most_stopped

    @property
    def away(self) -> dict[str, list[Away]]:
        return self.history.away

    @property
    def samples(self) -> int:
        return len(self.history.moments)

    @property
    def longest_gap_seconds(self) -> float:
        return self.history.longest_gap_seconds()

    def as_json(self) -> dict[str, Any]:
        """For the figures."""
        return self.history.as_json() | {"failed_looks": self.failed_looks}

    def _run(self) -> None:
        try:
            for due in self._times():
                if self._done.wait(max(0.0, due - time.monotonic())):
                    return
                self._look()
        except Exception as error:  # told at the end of the context, where the test hears it
            self._broken = error

    def _times(self) -> Iterator[float]:
        """A fixed beat, so that the time of a look does not add up; after a late one the beat starts anew."""
        due = time.monotonic()
        while True:
            due = max(due + self._every_seconds, time.monotonic())
            yield due

    def _look(self) -> None:
        try:
            pods = self._reader.get(self._path)["items"]
        except OSError:
            self.failed_looks += 1  # the gap between two looks tells how long nothing was seen
            return
        self.history.take(pods, time.time())


def _broker(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"][PODS])


def _serves(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return _stays(pod) and any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _stays(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" not in pod["metadata"]
