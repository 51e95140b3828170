"""The cache: nothing that was deleted comes back, and what it remembers of that stays small."""

import asyncio
from typing import Any

import pytest

from queen_operator.cluster import cache as cache_module
from queen_operator.cluster.cache import Cache
from queen_operator.cluster.kinds import POD


def pod(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"namespace": "q", "name": name, "resourceVersion": str(version)}}


class Events:
    """Stands for the API server's watch: these events, then the end of the stream."""

    def __init__(self, *events: tuple[str, dict[str, Any]]) -> None:
        self._events = events

    async def watch(self, *_: Any, **__: Any) -> Any:
        for kind, item in self._events:
            yield {"type": kind, "object": item}


def watched(*events: tuple[str, dict[str, Any]]) -> Cache:
    found = Cache(Events(*events), POD, on_change=lambda *_: None)  # type: ignore[arg-type]
    asyncio.run(found._watch("1"))
    return found


def test_an_answer_to_a_write_does_not_bring_back_what_was_deleted_after_it() -> None:
    found = watched(("ADDED", pod("a", 99)), ("DELETED", pod("a", 101)))

    found.put(pod("a", 100))
    assert found.items == {}

    found.put(pod("a", 102))
    assert ("q", "a") in found.items


def test_what_is_remembered_of_deletions_stays_small_and_is_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "MOST_BURIED", 3)
    found = watched(*(("DELETED", pod(name, 10 + index)) for index, name in enumerate("abcda")))

    assert list(found._buried) == [("q", "c"), ("q", "d"), ("q", "a")]
