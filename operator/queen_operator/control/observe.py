"""Builds what a round sees, from the caches and the worker's memory; asks the API server only for changed Secrets."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from queen_operator.api import names
from queen_operator.api.cluster import ParsedCluster
from queen_operator.cluster.client import Api, NotFound, Object
from queen_operator.cluster.kinds import BUDGET, CLAIM, DEPLOYMENT, POD, SECRET, SERVICE, SERVICE_ACCOUNT, Kind
from queen_operator.cluster.store import Store
from queen_operator.cluster.writes import whose
from queen_operator.control import secrets
from queen_operator.control.memory import Memory
from queen_operator.manifests.context import Context
from queen_operator.manifests.references import references
from queen_operator.planning.observed import Observed, ReferencedKey
from queen_operator.planning.wanted import Wanted, render_wanted

MESH_DESIGNED_FOR: Final = 3


async def observe(api: Api, store: Store, memory: Memory, cluster: ParsedCluster, now: datetime) -> Observed:
    """Return this round's view. Raises ApiError when a changed Secret cannot be read: then nothing is known of it."""
    wanted_keys = references(cluster.name, cluster.spec)
    read = (*wanted_keys, *secrets.token_reference(cluster.spec))
    await secrets.read_secrets(api, store, memory, cluster.namespace, cluster.name, read)
    mesh = names.mesh_secret_name(cluster.name) if cluster.spec.mesh.secret is None else ""
    sorted_out = _Sorted(store, cluster)
    foreign = memory.standing(memory.foreign, now) | sorted_out.foreign
    pods = tuple(store.of_cluster(POD, cluster.namespace, cluster.name).values())
    deployments = sorted_out.ours(DEPLOYMENT)
    return Observed(
        now=now,
        resource=memory.resource,
        deployments={**deployments, **await _unlabeled(api, cluster, pods, deployments)},
        pods=pods,
        claims=sorted_out.ours(CLAIM),
        others=sorted_out.others(),
        references=secrets.resolve(memory, wanted_keys, mesh),
        spools=memory.fresh_spools(now),
        pages=memory.fresh_pages(now),
        replays=dict(memory.replays),
        database=memory.database,
        foreign=foreign,
        refused=memory.standing(memory.refused, now),
        refused_before={key: refusal.words for key, refusal in memory.refused.items() if refusal.retry_at <= now},
        warnings=_warnings(cluster),
        nudged=memory.lately_nudged(now),
        long_missing=memory.long_missing(_deployment_names(cluster), set(sorted_out.ours(DEPLOYMENT)), now),
        token_missing=cluster.spec.auth.enabled and secrets.admin_token(memory, cluster.spec) is None,
    )


async def _unlabeled(
    api: Api, cluster: ParsedCluster, pods: tuple[Object, ...], known: Mapping[str, Object]
) -> dict[str, Object]:
    """Deployments of ours that no watch shows, since our label was taken off: their pods say that they must be there.

    Taken for gone, such a broker would be made anew, with a new template and without a guard.
    """
    indexes = {(pod["metadata"].get("labels") or {}).get(names.BROKER_LABEL, "") for pod in pods}
    wanted = {names.broker_name(cluster.name, int(index)) for index in indexes if index.isdigit()}
    found: dict[str, Object] = {}
    for name in sorted(wanted - set(known)):
        with suppress(NotFound):
            item = await api.get(DEPLOYMENT, cluster.namespace, name)
            if whose(DEPLOYMENT, item, cluster.name, cluster.uid) is None:
                found[name] = item
    return found


def _deployment_names(cluster: ParsedCluster) -> set[str]:
    return {names.broker_name(cluster.name, index) for index in range(cluster.spec.replicas)}


def _warnings(cluster: ParsedCluster) -> tuple[str, ...]:
    found = tuple(f"{words.rstrip('.')}." for words in cluster.warnings)
    if cluster.spec.replicas > MESH_DESIGNED_FOR:
        found += (f"The mesh between brokers is designed for up to {MESH_DESIGNED_FOR} of them.",)
    return found


class _Sorted:
    """Cached objects of the cluster, what is not ours set aside with whose it is."""

    def __init__(self, store: Store, cluster: ParsedCluster) -> None:
        self._store = store
        self._cluster = cluster
        self.foreign: dict[tuple[str, str], str] = {}
        self._ours = {kind: self._sort(kind) for kind in (DEPLOYMENT, CLAIM, SERVICE, SERVICE_ACCOUNT, BUDGET, SECRET)}

    def ours(self, kind: Kind) -> dict[str, Object]:
        return self._ours[kind]

    def others(self) -> dict[tuple[str, str], Object]:
        kinds = (SERVICE, SERVICE_ACCOUNT, BUDGET, SECRET)
        return {(kind.name, name): item for kind in kinds for name, item in self._ours[kind].items()}

    def _sort(self, kind: Kind) -> dict[str, Object]:
        cluster = self._cluster
        ours: dict[str, Object] = {}
        for name, item in self._store.of_cluster(kind, cluster.namespace, cluster.name).items():
            owner = whose(kind, item, cluster.name, cluster.uid)
            if owner is None:
                ours[name] = item
            else:
                self.foreign[kind.name, name] = owner
        return ours


def wanted_children(
    memory: Memory, cluster: ParsedCluster, keys: tuple[ReferencedKey, ...], keeper_image: str
) -> Wanted:
    """Return the rendered children, made anew only when the spec, a Secret, or the operator's image changed."""
    # What cannot be read is left out: rendering then knows that it is unknown, and takes it for no change.
    digests = {(key.secret, key.key): key.digest for key in keys if key.digest is not None}
    restart = cluster.annotations.get(names.RESTART_ANNOTATION)
    wanted_key: tuple[Any, ...] = (
        cluster.uid,
        cluster.generation,
        restart,
        keeper_image,
        tuple(sorted(digests.items())),
    )
    if memory.wanted is None or memory.wanted_key != wanted_key:
        context = Context(
            name=cluster.name,
            namespace=cluster.namespace,
            uid=cluster.uid,
            spec=cluster.spec,
            keeper_image=keeper_image,
            secret_digests=digests,
            restart=restart,
        )
        memory.wanted, memory.wanted_key = render_wanted(context), wanted_key
    return memory.wanted
