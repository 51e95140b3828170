"""Readings of Kubernetes objects: what a pod, a container or a Deployment says, in our words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from queen_operator.api import names
from queen_operator.planning.observed import BrokerPage, JsonObject, Observed, Replay, Spool

LEAVING_ANNOTATION = f"{names.GROUP}/leaving-since"

# The API's own words end in a pod name that is new at each try; without it the message stands still.
_RETRY_SUFFIX_MARK = 'pods "'


def parse_time(text: str | None) -> datetime | None:
    """Return an aware UTC time of a Kubernetes timestamp, or None when there is none."""
    return datetime.fromisoformat(text) if text else None


def labels(item: JsonObject) -> Mapping[str, str]:
    """Labels of an object, empty when it has none."""
    return item["metadata"].get("labels") or {}


def annotations(item: JsonObject) -> Mapping[str, str]:
    """Annotations of an object, empty when it has none."""
    return item["metadata"].get("annotations") or {}


def condition(item: JsonObject, kind: str) -> JsonObject | None:
    """The condition of this type in an object's status."""
    found = (c for c in item.get("status", {}).get("conditions") or () if c.get("type") == kind)
    return next(found, None)


def owned_by(item: JsonObject, uid: str) -> bool:
    """Tell whether the object's controller is the QueenCluster with this UID."""
    return any(ref.get("uid") == uid for ref in item["metadata"].get("ownerReferences") or ())


@dataclass(frozen=True, slots=True)
class Container:
    """State of one container: running, started (its startup probe passed), or why not."""

    running: bool
    started: bool
    ready: bool
    restarts: int
    reason: str  # of waiting or terminated, empty while running
    message: str
    last_message: str  # of the previous termination: the broker's FATAL line
    ended: datetime | None  # when the previous run ended


def _container(statuses: Iterable[JsonObject], name: str) -> Container | None:
    for status in statuses:
        if status.get("name") == name:
            state = status.get("state") or {}
            stopped = state.get("waiting") or state.get("terminated") or {}
            last = (status.get("lastState") or {}).get("terminated") or {}
            return Container(
                running="running" in state,
                started=bool(status.get("started")),
                ready=bool(status.get("ready")),
                restarts=int(status.get("restartCount", 0)),
                reason=str(stopped.get("reason", "")),
                message=str(stopped.get("message", "")),
                last_message=str(last.get("message", "")).strip(),
                ended=parse_time(last.get("finishedAt")),
            )
    return None


@dataclass(frozen=True, slots=True)
class Pod:
    """One broker pod. ``ready`` is False once it is terminating, whatever its Ready condition still says."""

    item: JsonObject
    name: str
    uid: str
    ip: str | None
    created: datetime
    leaving: bool
    ready_since: datetime | None
    not_ready_since: datetime | None
    keeper: Container | None
    broker: Container | None
    config: str | None
    in_push_service: bool
    cordoned: bool  # taken out of both client Services for good
    closed_since: datetime | None

    @property
    def ready(self) -> bool:
        """Ready and not terminating: a terminating pod keeps its Ready condition until its containers end."""
        return self.ready_since is not None and not self.leaving

    @property
    def broker_started(self) -> bool:
        """The broker listens, or did: its startup probe passed and it runs."""
        return self.broker is not None and self.broker.running and self.broker.started


def read_pod(item: JsonObject) -> Pod:
    """Read a pod of ours."""
    meta, status = item["metadata"], item.get("status") or {}
    ready = condition(item, "Ready")
    is_ready = ready is not None and ready.get("status") == "True"
    since = parse_time(ready.get("lastTransitionTime")) if ready is not None else None
    created = parse_time(meta["creationTimestamp"])
    assert created is not None  # noqa: S101 - the API server always sets it
    return Pod(
        item=item,
        name=meta["name"],
        uid=meta["uid"],
        ip=status.get("podIP"),
        created=created,
        leaving="deletionTimestamp" in meta,
        ready_since=since if is_ready else None,
        not_ready_since=None if is_ready else since,
        keeper=_container(status.get("initContainerStatuses") or (), "keeper"),
        broker=_container(status.get("containerStatuses") or (), "broker"),
        config=annotations(item).get(names.CONFIG_ANNOTATION),
        in_push_service=labels(item).get(names.PUSH_LABEL) == "true",
        cordoned=labels(item).get(names.SERVE_LABEL) != "true",
        closed_since=parse_time(annotations(item).get(LEAVING_ANNOTATION)),
    )


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker as it is: its Deployment and the pods that stand for it (more than one only while one leaves)."""

    index: int
    name: str
    deployment: JsonObject | None
    pod: Pod | None  # the one that is not leaving
    leaving: tuple[Pod, ...]
    spool: Spool | None
    page: BrokerPage | None
    replay: Replay | None
    claim: JsonObject | None

    @property
    def config(self) -> str | None:
        """The configuration that its Deployment's template was made from."""
        if self.deployment is None:
            return None
        template = self.deployment["spec"]["template"]
        found: str | None = (template["metadata"].get("annotations") or {}).get(names.CONFIG_ANNOTATION)
        return found

    @property
    def settled(self) -> bool:
        """The Deployment controller has seen the template and made the pod that stands for it."""
        if self.deployment is None or self.pod is None or self.leaving:
            return False
        status = self.deployment.get("status") or {}
        return (
            status.get("observedGeneration") == self.deployment["metadata"].get("generation")
            and status.get("updatedReplicas", 0) == 1
            and self.pod.config == self.config
        )

    @property
    def ready(self) -> bool:
        """Its pod is Ready and made from the Deployment's present template."""
        return self.settled and self.pod is not None and self.pod.ready

    @property
    def running(self) -> bool:
        """Its broker process runs and has opened its port, Ready or not: it can spool."""
        return self.pod is not None and self.pod.broker_started

    @property
    def replaying(self) -> bool:
        """Its process runs, does not listen yet, and the volume holds files: recovery before the port opens."""
        pod = self.pod
        if pod is None or pod.broker is None or not pod.broker.running or pod.broker.started:
            return False
        return self.spool is not None and self.spool.files > 0

    @property
    def boots_unasked(self) -> bool:
        """Its process runs and does not listen yet, and nobody knows what its volume holds: it may be replaying."""
        pod = self.pod
        booting = pod is not None and pod.broker is not None and pod.broker.running and not pod.broker.started
        return booting and self.spool is None

    @property
    def claim_is_leaving(self) -> bool:
        """Somebody deleted its claim, which only its running pod keeps: with the pod the volume goes."""
        return self.claim is not None and "deletionTimestamp" in self.claim["metadata"]

    @property
    def is_lost_with_its_pod(self) -> bool:
        """Its claim goes with its pod, and nobody knows that nothing is on the volume, quarantine included."""
        spool = self.spool
        return self.claim_is_leaving and (spool is None or not spool.holds_nothing)

    @property
    def removed_by(self) -> str | None:
        """UID of the QueenCluster that takes this broker away for good, as its claim says."""
        return annotations(self.claim).get(names.REMOVING_ANNOTATION) if self.claim is not None else None

    @property
    def exists(self) -> bool:
        """Something of it runs, ends, or may be made again by Kubernetes."""
        return self.deployment is not None or self.pod is not None or bool(self.leaving)

    def ready_for(self, seconds: float, now: datetime) -> bool:
        """Tell whether it has been Ready at least this long."""
        since = self.pod.ready_since if self.ready and self.pod is not None else None
        return since is not None and (now - since).total_seconds() >= seconds


def standing_since(broker: Broker, observed: Observed) -> datetime:
    """Since when this broker's spool could drain and no file of it went away; now, while nothing is known of that.

    Without PostgreSQL nothing drains: its return is where the waiting begins.
    """
    if broker.replay is None:
        return observed.now
    back_since = observed.database.state_since if observed.database is not None else None
    return max(broker.replay.progress_at, back_since or broker.replay.progress_at)


def read_brokers(observed: Observed, cluster: str, wanted: int) -> tuple[Broker, ...]:
    """Read every broker that is wanted or exists, by index."""
    by_index: dict[int, list[Pod]] = {}
    for item in observed.pods:
        text = labels(item).get(names.BROKER_LABEL, "")
        if text.isdigit() and _of_deployment(item, names.broker_name(cluster, int(text))):
            by_index.setdefault(int(text), []).append(read_pod(item))
    indexes = set(range(wanted)) | set(by_index)
    for item in observed.deployments.values():
        text = labels(item).get(names.BROKER_LABEL, "")
        if text.isdigit():
            indexes.add(int(text))
    claims = claims_of(observed, cluster)
    uid = observed.resource["metadata"]["uid"]
    # A mark of another cluster, deleted half-way, takes nothing away here: its claim is one that was kept.
    indexes |= {index for index, claim in claims if annotations(claim).get(names.REMOVING_ANNOTATION) == uid}
    return tuple(_broker(observed, cluster, index, by_index.get(index, [])) for index in sorted(indexes))


def claims_of(observed: Observed, cluster: str) -> list[tuple[int, JsonObject]]:
    """Return every spool claim of the cluster with its index, whether or not a broker of that index is wanted."""
    found = []
    for name, item in sorted(observed.claims.items()):
        text = labels(item).get(names.BROKER_LABEL, "")
        if text.isdigit() and name == names.claim_name(cluster, int(text)):
            found.append((int(text), item))
    return found


def _broker(observed: Observed, cluster: str, index: int, pods: list[Pod]) -> Broker:
    # Of two live pods (somebody scaled the Deployment) the one whose broker runs is the broker, not the newest.
    staying = sorted((p for p in pods if not p.leaving and not _over(p)), key=lambda p: (p.broker_started, p.created))
    pod = staying[-1] if staying else None
    name = names.broker_name(cluster, index)
    return Broker(
        index=index,
        name=name,
        deployment=observed.deployments.get(name),
        pod=pod,
        leaving=tuple(p for p in pods if p.leaving),
        spool=observed.spools.get(pod.uid) if pod else None,
        page=observed.pages.get(pod.uid) if pod else None,
        replay=observed.replays.get(pod.uid) if pod else None,
        claim=observed.claims.get(names.claim_name(cluster, index)),
    )


def _of_deployment(item: JsonObject, deployment: str) -> bool:
    """Tell whether a ReplicaSet of this Deployment made it: a pod made by hand with our labels is no broker."""
    owners = item["metadata"].get("ownerReferences") or ()
    return any(o.get("kind") == "ReplicaSet" and str(o.get("name")).startswith(deployment + "-") for o in owners)


def _over(pod: Pod) -> bool:
    return (pod.item.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def stable_words(message: str) -> str:
    """Take the pod name out of the API's refusal, so that two tries give the same sentence."""
    if message.startswith(_RETRY_SUFFIX_MARK):
        return "the pod " + message.split('" ', 1)[-1]
    return message
