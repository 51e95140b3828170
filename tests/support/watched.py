"""A cluster under load while a test does something to it, with everything watched that such tests judge by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.loading import Load, loading
from tests.support.node_clusters import Cluster
from tests.support.pod_lives import PodLives
from tests.support.sampling import Sampler
from tests.support.status_log import lives_of


class Watched(NamedTuple):
    """How many brokers are away, what became of each pod, and the load, which has begun."""

    sampler: Sampler
    pods: PodLives
    load: Load


@contextmanager
def watched_under_load(cluster: Cluster, folder: Path, *, seconds: int, **options: Any) -> Iterator[Watched]:
    """Watch and load the cluster while the body runs; ``seconds`` and ``options`` are those of ``loading``."""
    with (
        Sampler(cluster) as sampler,
        lives_of(cluster) as pods,
        loading(cluster, folder, seconds=seconds, **options) as load,
    ):
        load.wait_started()
        yield Watched(sampler, pods, load)
