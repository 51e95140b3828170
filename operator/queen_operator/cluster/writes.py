"""Writes of children, each guarded so that nothing of somebody else's is ever touched."""

from collections.abc import Mapping
from typing import Any, Final

from queen_operator.api import names
from queen_operator.cluster.client import Api, NotFound, Object, Refused
from queen_operator.cluster.kinds import BUDGET, BY_NAME, CLAIM, DEPLOYMENT, SERVICE, Kind
from queen_operator.cluster.store import Store

UNPROCESSABLE: Final = 422
_SPEC_IS_OURS: Final = (SERVICE, BUDGET, DEPLOYMENT)


class ForeignObject(Exception):  # noqa: N818 - a finding, not a fault
    """An object with one of our names is not ours; ``owner`` says whose it seems to be."""

    def __init__(self, kind: str, name: str, owner: str) -> None:
        super().__init__(f"{kind} {name} is not ours: {owner}")
        self.kind = kind
        self.name = name
        self.owner = owner


def whose(kind: Kind, item: Object, cluster: str, uid: str) -> str | None:
    """Return None when the object belongs to this cluster, else whose it seems to be, in words.

    Children are ours by owner reference. Claims outlive their cluster, so they are ours by label.
    """
    meta = item["metadata"]
    owners = [ref for ref in meta.get("ownerReferences") or () if ref.get("controller")]
    if owners:
        owner = owners[0]
        if owner.get("uid") == uid:
            return None
        if owner.get("kind") == names.KIND and owner.get("name") == cluster:
            return "left over from the deleted cluster of this name, and about to be collected"
        return f"controlled by {owner.get('kind')} {owner.get('name')}"
    labels = meta.get("labels") or {}
    # A claim that only lost its label is ours all the same: calling it foreign would invite people to delete it.
    said = labels.get(names.CLUSTER_LABEL, labels.get(names.INSTANCE_LABEL))
    ours = labels.get(names.MANAGED_BY_LABEL) == names.FIELD_MANAGER and said == cluster
    if kind is CLAIM and ours:
        return None
    manager = labels.get(names.MANAGED_BY_LABEL)
    return f"managed by {manager}" if manager else "it has no owner reference to this cluster"


async def apply_child(api: Api, store: Store, manifest: Mapping[str, Any], uid: str) -> Object:
    """Create or correct one child and remember the server's answer.

    Raises ForeignObject when the name is taken: an apply by force would take the object over.
    """
    kind = BY_NAME[manifest["kind"]]
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    cluster = manifest["metadata"]["labels"][names.CLUSTER_LABEL]
    found = store.find(kind, namespace, name)
    if found is None:
        try:
            found = await api.get(kind, namespace, name, metadata_only=True)
        except NotFound:
            found = None
    owner = whose(kind, found, cluster, uid) if found is not None else None
    if owner is not None:
        raise ForeignObject(kind.name, name, owner)
    if kind is DEPLOYMENT and found is not None and "uid" not in manifest["metadata"]:
        # Ours, and only its labels were taken off: an apply of the whole would restart its broker without a guard.
        meta = {"uid": found["metadata"]["uid"], "labels": manifest["metadata"]["labels"]}
        answer = await api.merge(kind, namespace, name, {"metadata": meta})
        store.put(kind, answer)
        return answer
    try:
        answer = await api.apply(kind, manifest)
    except Refused as error:
        if found is None or error.status != UNPROCESSABLE or kind not in _SPEC_IS_OURS:
            raise
        # An apply leaves what others have set, even where the server refuses it beside our own fields: a port of the
        # same name, a minAvailable, a second handler of a probe. Our spec as a whole takes it away.
        await api.replace_spec(kind, namespace, name, found["metadata"]["uid"], manifest["spec"])
        answer = await api.apply(kind, manifest)
    store.put(kind, answer)
    return answer


async def patch_pod(api: Api, store: Store, namespace: str, name: str, uid: str, meta: Mapping[str, Any]) -> bool:
    """Change labels and annotations of exactly this pod; False when it is gone and needs nothing any more."""
    kind = BY_NAME["Pod"]
    try:
        answer = await api.merge(kind, namespace, name, {"metadata": {"uid": uid, **meta}})
    except NotFound:
        store.drop(kind, namespace, name)
        return False
    store.put(kind, answer)
    return True
