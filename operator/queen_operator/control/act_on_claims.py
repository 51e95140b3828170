"""Carries out what takes brokers and claims away or up: pods that look at volumes, marks on claims, our finalizer."""

import logging
from datetime import datetime
from typing import Any

from queen_operator.api import names
from queen_operator.api.cluster import ParsedCluster
from queen_operator.api.spec import OnDelete
from queen_operator.cluster.client import Api, Conflict, NotFound, Refused
from queen_operator.cluster.kinds import BY_NAME, CLAIM, POD, QUEEN_CLUSTER
from queen_operator.cluster.store import Store
from queen_operator.control import metrics
from queen_operator.control.memory import Memory
from queen_operator.planning.actions import AnnotateClaim, DeleteChild, MakeReportPods, SetFinalizer

logger = logging.getLogger(__name__)


async def delete_child(api: Api, memory: Memory, cluster: ParsedCluster, action: DeleteChild, now: datetime) -> bool:
    """Delete exactly this object; False when it is another one by now, or the server refuses it."""
    kind = BY_NAME[action.kind]
    try:
        await api.delete(kind, cluster.namespace, action.name, action.uid, version=action.version)
    except Conflict:
        return False
    except Refused as error:
        logger.warning("%s/%s: %s %s stays: %s", cluster.namespace, cluster.name, kind.name, action.name, error.message)
        memory.refuse((kind.name, action.name), error.message, now)
        return False
    return True


async def make_report_pods(
    api: Api, store: Store, memory: Memory, cluster: ParsedCluster, action: MakeReportPods, now: datetime
) -> bool:
    """Create the pods; one that exists already is left as it is."""
    made = False
    for manifest in action.manifests:
        name = manifest["metadata"]["name"]
        try:
            store.put(POD, await api.create(POD, cluster.namespace, manifest))
            made = True
        except Conflict:
            # One of ours shows in the next round; another one has the name, and is not to be asked for each second.
            memory.refuse(("Pod", name), "a pod of this name exists already", now)
        except Refused as error:
            logger.warning("%s/%s: pod %s is refused: %s", cluster.namespace, cluster.name, name, error.message)
            memory.refuse(("Pod", name), error.message, now)
    return made


async def annotate_claim(
    api: Api, store: Store, memory: Memory, cluster: ParsedCluster, action: AnnotateClaim, now: datetime
) -> bool:
    """Write the marks on exactly this claim; False when it is gone, another one by now, or may not be written."""
    meta = {"uid": action.uid, "annotations": dict(action.annotations)}
    try:
        answer = await api.merge(CLAIM, cluster.namespace, action.name, {"metadata": meta})
    except NotFound:
        store.drop(CLAIM, cluster.namespace, action.name)
        return False
    except Conflict:
        return False
    except Refused as error:
        memory.refuse((CLAIM.name, action.name), error.message, now)
        return False
    store.put(CLAIM, answer)
    written = answer["metadata"].get("annotations") or {}
    if any(written.get(key) != value for key, value in action.annotations.items()):
        # Somebody takes it off as it is written: without this note it would be written each second.
        words = "its annotations are not kept as they are written"
        memory.refuse((CLAIM.name, action.name), words, now)
        return False
    return True


async def set_finalizer(api: Api, memory: Memory, cluster: ParsedCluster, action: SetFinalizer, now: datetime) -> bool:
    """Put our finalizer on the resource or take it off, beside whatever others have there.

    A Conflict, since the resource is not any more what this round looked at, leaves it to the next round.
    """
    meta = memory.resource["metadata"]
    others = [name for name in meta.get("finalizers") or () if name != names.DRAIN_FINALIZER]
    wanted = [*others, names.DRAIN_FINALIZER] if action.present else others
    body: dict[str, Any] = {
        "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "finalizers": wanted}
    }
    try:
        answer = await api.merge(QUEEN_CLUSTER, cluster.namespace, cluster.name, body)
    except (Conflict, NotFound):
        return False
    except Refused as error:
        memory.refuse((names.KIND, cluster.name), error.message, now)
        return False
    if cluster.deleting and not action.present:
        kept = cluster.spec.spool.on_delete is OnDelete.RETAIN
        outcome = "kept" if kept else "unproved" if action.unproved else "drained"
        metrics.RELEASED.labels(outcome).inc()
        level = logging.WARNING if action.unproved else logging.INFO
        logger.log(level, "%s/%s: the finalizer is taken off: %s", cluster.namespace, cluster.name, action.message)
    answer["metadata"].pop("managedFields", None)
    memory.resource = answer
    return True
