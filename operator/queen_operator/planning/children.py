"""Which children are missing or differ, without ever touching the template of a running broker.

A broker's template is changed by a restart alone (``restarts.py``). Everything else of a child is put back at once.
"""

from dataclasses import dataclass

from queen_operator.api import names
from queen_operator.manifests.compare import difference
from queen_operator.manifests.config import RestartCause, changed_causes
from queen_operator.planning.actions import Action, ApplyChildren, DeleteChild, GenerateMeshSecret
from queen_operator.planning.adoption import is_taken_up
from queen_operator.planning.claims import exactly, kept_claim, may_be_mounted
from queen_operator.planning.observed import JsonObject, Observed
from queen_operator.planning.reasons import EventReason
from queen_operator.planning.restarts import OutOfDate
from queen_operator.planning.views import Broker, annotations, labels, owned_by
from queen_operator.planning.volumes import restart_causes
from queen_operator.planning.wanted import Manifest, Wanted


@dataclass(frozen=True, slots=True)
class Template:
    """How a live template stands to the wanted one."""

    causes: tuple[RestartCause, ...]  # what the user wrote differs, or a person edited it: a restart
    rendering_differs: bool  # only the operator renders it differently: taken up at the next restart


def compare_template(live: JsonObject, wanted: Wanted, index: int) -> Template:
    """Tell what of a broker's live template is not as wanted."""
    found = (live["spec"]["template"]["metadata"].get("annotations") or {}).get(names.CONFIG_ANNOTATION)
    causes = changed_causes(found, wanted.parts)
    if causes:
        return Template(causes, rendering_differs=False)
    if annotations(live).get(names.RENDERED_ANNOTATION) != wanted.rendered[index]:
        return Template((), rendering_differs=True)
    template = {"spec": {"template": wanted.deployments[index]["spec"]["template"]}}
    if difference(template, live) is not None:
        return Template((RestartCause.EDITED,), rendering_differs=False)
    return Template((), rendering_differs=False)


def out_of_date(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> list[OutOfDate]:
    """Brokers that need a restart to be as the user wrote them.

    While the content of a Secret cannot be read it is unknown, and unknown is not changed.
    """
    unread = any(reference.digest is None for reference in observed.references)
    ignored = {RestartCause.CREDENTIALS, RestartCause.SECRET_CONTENT} if unread else set()
    late = []
    for broker in brokers:
        if broker.deployment is not None and broker.index < wanted.replicas:
            template = compare_template(broker.deployment, wanted, broker.index)
            written = tuple(cause for cause in template.causes if cause not in ignored)
            causes = (*written, *restart_causes(observed, broker))
            if causes:
                late.append(OutOfDate(broker, causes))
    return late


def rendering_pending(wanted: Wanted, brokers: tuple[Broker, ...]) -> tuple[str, ...]:
    """Names of brokers that only the operator's own rendering has left behind."""
    return tuple(
        broker.name
        for broker in brokers
        if broker.deployment is not None
        and broker.index < wanted.replicas
        and compare_template(broker.deployment, wanted, broker.index).rendering_differs
    )


def plan_children(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> Action | None:
    """Return the creation or repair that is due, or None when every child is there as wanted."""
    missing_secret = _mesh_secret_missing(observed, wanted)
    if missing_secret is not None:
        return missing_secret
    created, restored, lost_claims = [], [], []
    for kind, name, manifest, live in _pairs(observed, wanted, brokers):
        if (kind, name) in observed.foreign or (kind, name) in observed.refused:
            continue
        if live is None:
            created.append(manifest)
            if kind == "PersistentVolumeClaim" and _had_a_broker(brokers, manifest):
                lost_claims.append(name)
        elif difference(manifest, live) is not None:
            restored.append(exactly(manifest, live))
    if created or restored:
        return _apply(created, restored, lost_claims)
    return _unwanted_budget(observed, wanted) or _unwanted_service(observed, wanted, brokers)


def _apply(created: list[Manifest], restored: list[Manifest], lost_claims: list[str]) -> ApplyChildren:
    if lost_claims:
        message = f"The claim {', '.join(lost_claims)} had vanished with whatever its spool held; an empty one is made."
        return ApplyChildren((*created, *restored), EventReason.CLAIM_LOST, message)
    if created:
        return ApplyChildren((*created, *restored), EventReason.CHILDREN_CREATED, f"Created {_listed(created)}.")
    return ApplyChildren(
        tuple(restored), EventReason.CHILDREN_CORRECTED, f"Brought to what is wanted: {_listed(restored)}."
    )


def _listed(manifests: list[Manifest]) -> str:
    shown = [f"{m['kind']} {m['metadata']['name']}" for m in manifests]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")


def _mesh_secret_missing(observed: Observed, wanted: Wanted) -> GenerateMeshSecret | None:
    if wanted.context.spec.mesh.secret is not None:
        return None
    name = names.mesh_secret_name(wanted.context.name)
    if any(("Secret", name) in found for found in (observed.others, observed.foreign, observed.refused)):
        return None
    return GenerateMeshSecret(name)


Pair = tuple[str, str, Manifest, JsonObject | None]


def _pairs(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> list[Pair]:
    """Every child that may be applied now, beside the live one. Claims come before the pods that mount them."""
    plain = [wanted.service_account, *wanted.services]
    if wanted.disruption_budget is not None:
        plain.append(wanted.disruption_budget)
    by_index = {broker.index: broker for broker in brokers}
    pairs: list[Pair] = []
    for manifest in plain:
        key = (manifest["kind"], manifest["metadata"]["name"])
        pairs.append((*key, manifest, observed.others.get(key)))
    for index, claim in enumerate(wanted.claims):
        name = claim["metadata"]["name"]
        moved = _writes_to_its_database(wanted, by_index[index])
        live = observed.claims.get(name)
        pairs.append(("PersistentVolumeClaim", name, claim if live is None else kept_claim(claim, live, moved), live))
    pairs.extend(_deployment_pairs(observed, wanted, brokers))
    return pairs


def _writes_to_its_database(wanted: Wanted, broker: Broker) -> bool:
    """It is Ready with the present connection and its spool holds nothing: whatever comes now is for this database."""
    if broker.deployment is None or not broker.ready or broker.spool is None:
        return False
    up_to_date = not compare_template(broker.deployment, wanted, broker.index).causes
    return up_to_date and broker.spool.holds_nothing


def _deployment_pairs(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> list[Pair]:
    usable = all(reference.digest and not reference.problem for reference in observed.references)
    by_index = {broker.index: broker for broker in brokers}
    pairs: list[Pair] = []
    for index, manifest in enumerate(wanted.deployments):
        broker, name = by_index[index], manifest["metadata"]["name"]
        live = broker.deployment
        if live is not None:
            pairs.append(("Deployment", name, _with_live_template(manifest, live), live))
        elif usable and _has_room(observed, broker, manifest) and _claim_is_there(observed, wanted, broker):
            pairs.append(("Deployment", name, manifest, None))
    return pairs


def _claim_is_there(observed: Observed, wanted: Wanted, broker: Broker) -> bool:
    return may_be_mounted(observed, wanted, broker.index) and is_taken_up(observed, wanted, broker)


def _has_room(observed: Observed, broker: Broker, manifest: Manifest) -> bool:
    """No old pod runs or drains: a new Deployment would put a second one beside it within milliseconds.

    One that was left behind by its Deployment on purpose is taken over, when it is exactly what is wanted: the new
    Deployment adopts its ReplicaSet and restarts nothing.
    """
    if broker.leaving or broker.pod is None:
        return not broker.leaving
    template = manifest["spec"]["template"]
    as_wanted = difference({"metadata": template["metadata"], "spec": template["spec"]}, broker.pod.item) is None
    return broker.name in observed.long_missing and as_wanted and broker.pod.config == _configuration(manifest)


def _configuration(manifest: Manifest) -> str | None:
    found: str | None = manifest["spec"]["template"]["metadata"]["annotations"].get(names.CONFIG_ANNOTATION)
    return found


def _with_live_template(manifest: Manifest, live: JsonObject) -> Manifest:
    """The Deployment as wanted around the template that runs: putting back a field must not restart the broker."""
    metadata = dict(manifest["metadata"])
    rendered = annotations(live).get(names.RENDERED_ANNOTATION)
    kept = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key != names.RENDERED_ANNOTATION
    }
    if rendered is not None:
        kept[names.RENDERED_ANNOTATION] = rendered
    metadata["annotations"] = kept
    return {**manifest, "metadata": metadata, "spec": {**manifest["spec"], "template": live["spec"]["template"]}}


def _had_a_broker(brokers: tuple[Broker, ...], claim: Manifest) -> bool:
    index = claim["metadata"]["labels"].get(names.BROKER_LABEL)
    return any(str(broker.index) == index and broker.deployment is not None for broker in brokers)


def _unwanted_budget(observed: Observed, wanted: Wanted) -> DeleteChild | None:
    """At one broker a budget could hold a node drain for ever."""
    live = observed.others.get(("PodDisruptionBudget", wanted.context.name))
    several = len(observed.deployments) > 1  # brokers beyond replicas keep running, and keep their protection
    if wanted.disruption_budget is not None or several or live is None or not _may_be_deleted(observed, wanted, live):
        return None
    name, uid = live["metadata"]["name"], live["metadata"]["uid"]
    return DeleteChild("PodDisruptionBudget", name, uid, "One broker has no disruption budget: it would hold drains.")


def _unwanted_service(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> DeleteChild | None:
    """The host name of a broker that is gone for good, and whose claim is not on its way out any more."""
    left = {broker.index for broker in brokers if broker.exists or broker.removed_by is not None}
    for (kind, name), live in sorted(observed.others.items()):
        index = labels(live).get(names.BROKER_LABEL, "")
        if kind != "Service" or not index.isdigit() or name != names.broker_name(wanted.context.name, int(index)):
            continue
        if int(index) >= wanted.replicas and int(index) not in left and _may_be_deleted(observed, wanted, live):
            return DeleteChild(kind, name, live["metadata"]["uid"], f"{name} has no broker any more.")
    return None


def _may_be_deleted(observed: Observed, wanted: Wanted, live: JsonObject) -> bool:
    """Ours, not going already, and not refused lately: a delete that changes nothing would be sent for ever."""
    key = (live["kind"], live["metadata"]["name"])
    going = "deletionTimestamp" in live["metadata"] or key in observed.refused
    return not going and owned_by(live, wanted.context.uid)
