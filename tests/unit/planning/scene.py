"""A healthy cluster of three brokers, of which each test breaks one thing."""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from queen_operator.api import names
from queen_operator.api.spec import QueenClusterSpec
from queen_operator.manifests.context import Context
from queen_operator.manifests.references import references
from queen_operator.manifests.render import mesh_secret
from queen_operator.planning.actions import Action
from queen_operator.planning.findings import find
from queen_operator.planning.observed import BrokerPage, Database, DatabaseState, Observed, ReferencedKey, Spool
from queen_operator.planning.plan import decide
from queen_operator.planning.status import make_status, zulu
from queen_operator.planning.wanted import Wanted, render_wanted

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
UID = "11111111-1111-1111-1111-111111111111"
MINIMAL: Mapping[str, Any] = {
    "version": "1.3.0",
    "postgres": {"host": "pg", "passwordSecret": {"name": "orders-postgres"}},
}

Json = dict[str, Any]
Change = Callable[[Json], None]


def context_of(spec: Mapping[str, Any], *, digest: str = "d1", restart: str | None = None) -> Context:
    parsed = QueenClusterSpec.model_validate(spec)
    digests = {(ref.secret, ref.key): digest for ref in references("orders", parsed)}
    return Context("orders", "q", UID, parsed, "keeper:1", digests, restart)


_RENDERED: dict[str, Wanted] = {}


def wanted_of(spec: Mapping[str, Any]) -> Wanted:
    """What this spec wants; rendered once, since it is frozen and the walks ask for it thousands of times."""
    key = json.dumps(spec, sort_keys=True)
    if key not in _RENDERED:
        _RENDERED[key] = render_wanted(context_of(spec))
    return _RENDERED[key]


@dataclass
class Scene:
    """Mutable arrangement; ``observed`` freezes it."""

    spec: Json
    wanted: Wanted
    deployments: dict[str, Json]
    pods: list[Json]
    claims: dict[str, Json]
    others: dict[tuple[str, str], Json]
    spools: dict[str, Spool]
    pages: dict[str, BrokerPage]
    references: tuple[ReferencedKey, ...]
    database: Database | None
    status: Json = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    deleting: bool = False
    finalizers: list[str] = field(default_factory=list)
    now: datetime = NOW
    more: dict[str, Any] = field(default_factory=dict)

    def observed(self, *, copied: bool = True) -> Observed:
        """What a round sees; not copied, it is only good until something of the scene is changed in place."""
        copy = deepcopy if copied else _itself
        meta: Json = {"name": "orders", "namespace": "q", "uid": UID, "generation": 7, "annotations": self.annotations}
        if self.deleting:
            meta["deletionTimestamp"] = zulu(self.now)
        if self.finalizers:
            meta["finalizers"] = list(self.finalizers)
        return Observed(
            now=self.now,
            resource={"metadata": meta, "spec": self.spec, "status": self.status},
            deployments=copy(self.deployments),
            pods=tuple(copy(self.pods)),
            claims=copy(self.claims),
            others=copy(self.others),
            references=self.references,
            spools=dict(self.spools),
            pages=dict(self.pages),
            database=self.database,
            **self.more,
        )

    def action(self) -> Action:
        return decide(self.observed(), self.wanted)

    def make_status(self) -> Json:
        observed = self.observed()
        return make_status(find(observed, self.wanted, decide(observed, self.wanted)))

    def condition(self, kind: str) -> Json | None:
        found = [item for item in self.make_status()["conditions"] if item["type"] == kind]
        return found[0] if found else None

    def pod(self, index: int) -> Json:
        return next(pod for pod in self.pods if pod["metadata"]["labels"][names.BROKER_LABEL] == str(index))

    def change_spec(self, **changes: Any) -> None:
        """The user edits the spec: what is wanted changes, what runs does not."""
        for key, value in changes.items():
            merged = {**self.spec.get(key, {}), **value} if isinstance(value, dict) else value
            self.spec = {**self.spec, key: merged}
        self.wanted = wanted_of(self.spec)

    def not_ready(self, index: int, *, seconds: int = 20) -> None:
        """The broker runs and its /health fails."""
        status = self.pod(index)["status"]
        set_condition(status, "Ready", "False", self.now - timedelta(seconds=seconds))
        status["containerStatuses"][0]["ready"] = False

    def crash(self, index: int, *, reason: str = "CrashLoopBackOff", last: str = "") -> None:
        """The broker's container does not run."""
        self.not_ready(index)
        container = self.pod(index)["status"]["containerStatuses"][0]
        container |= {"started": False, "restartCount": 3, "state": {"waiting": {"reason": reason, "message": ""}}}
        container["lastState"] = {"terminated": {"exitCode": 1, "message": last}}

    def unstarted(self, index: int) -> None:
        """The broker's process runs and has not opened its port: schema or replay."""
        self.not_ready(index)
        self.pod(index)["status"]["containerStatuses"][0]["started"] = False

    def leave(self, index: int) -> None:
        """Somebody else deletes the pod; its Ready condition still says True."""
        self.pod(index)["metadata"]["deletionTimestamp"] = zulu(self.now)

    def spool(self, index: int, **changes: Any) -> None:
        uid = self.pod(index)["metadata"]["uid"]
        self.spools[uid] = replace(self.spools[uid], **changes)

    def forget_spool(self, index: int) -> None:
        del self.spools[self.pod(index)["metadata"]["uid"]]

    def page(self, index: int, **changes: Any) -> None:
        uid = self.pod(index)["metadata"]["uid"]
        self.pages[uid] = replace(self.pages[uid], **changes)

    def database_is(self, state: DatabaseState, message: str = "connection refused") -> None:
        assert self.database is not None
        self.database = replace(self.database, state=state, message=message)

    def roll_on(self, index: int) -> None:
        """The restart of this broker was carried out, and its new pod is Ready, long ago."""
        self.deployments[f"orders-{index}"] = live_deployment(self.wanted.deployments[index], generation=2)
        self.pods = [p for p in self.pods if p["metadata"]["labels"][names.BROKER_LABEL] != str(index)]
        pod = live_pod(self.wanted.deployments[index], index, uid=f"new-{index}")
        self.pods.append(pod)
        self.spools[f"new-{index}"] = empty_spool(self.now)
        self.pages[f"new-{index}"] = good_page(self.now)


def _itself(value: Any) -> Any:
    return value


def set_condition(status: Json, kind: str, truth: str, since: datetime) -> None:
    kept = [item for item in status["conditions"] if item["type"] != kind]
    status["conditions"] = [*kept, {"type": kind, "status": truth, "lastTransitionTime": zulu(since)}]


def live_deployment(manifest: Mapping[str, Any], *, generation: int = 1) -> Json:
    live: Json = deepcopy(dict(manifest))
    live["metadata"] |= {"uid": f"deployment-{live['metadata']['name']}", "generation": generation}
    live["status"] = {"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    return live


def live_pod(manifest: Mapping[str, Any], index: int, *, uid: str) -> Json:
    template = deepcopy(dict(manifest["spec"]["template"]))
    meta = template["metadata"]
    running = {"running": {"startedAt": zulu(LONG_AGO)}}
    return {
        "metadata": {
            "name": f"orders-{index}-abc",
            "namespace": "q",
            "uid": uid,
            "creationTimestamp": zulu(LONG_AGO),
            "labels": {**meta["labels"], names.PUSH_LABEL: "true"},
            "annotations": meta["annotations"],
            "ownerReferences": [{"kind": "ReplicaSet", "name": f"orders-{index}-67fd", "controller": True}],
        },
        "spec": template["spec"],
        "status": {
            "phase": "Running",
            "podIP": f"10.0.0.{index + 1}",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": zulu(LONG_AGO)}],
            "initContainerStatuses": [
                {"name": "keeper", "state": running, "started": True, "ready": True, "restartCount": 0}
            ],
            "containerStatuses": [
                {"name": "broker", "state": running, "started": True, "ready": True, "restartCount": 0}
            ],
        },
    }


def empty_spool(now: datetime) -> Spool:
    return Spool(now, True, True, 0, 0, 0, None, 0, 0, 0, 9 * 2**30, 10 * 2**30)


def good_page(now: datetime) -> BrokerPage:
    return BrokerPage(now, True, True, False, 0, 0, True, True)


def healthy_cluster(**spec: Any) -> Scene:
    """Brokers Ready for an hour, spools empty, PostgreSQL reachable, everything as written."""
    full: Json = {**MINIMAL, **spec}
    wanted = wanted_of(full)
    context = wanted.context
    plain = [wanted.service_account, *wanted.services, mesh_secret(context, "s")]
    if wanted.disruption_budget is not None:
        plain.append(wanted.disruption_budget)
    others = {(item["kind"], item["metadata"]["name"]): with_uid(item) for item in plain}
    claims = {item["metadata"]["name"]: with_uid(item) for item in wanted.claims}
    for claim in claims.values():
        claim["status"] = {"phase": "Bound"}
    indexes = range(wanted.replicas)
    return Scene(
        spec=full,
        wanted=wanted,
        deployments={f"orders-{i}": live_deployment(wanted.deployments[i]) for i in indexes},
        pods=[live_pod(wanted.deployments[i], i, uid=f"pod-{i}") for i in indexes],
        claims=claims,
        others=others,
        spools={f"pod-{i}": empty_spool(NOW) for i in indexes},
        pages={f"pod-{i}": good_page(NOW) for i in indexes},
        references=tuple(
            ReferencedKey(ref.secret, ref.key, ref.purpose, digest="d1") for ref in references("orders", context.spec)
        ),
        database=Database(NOW, DatabaseState.REACHABLE, "", "15.18", 100, 3),
        status={"phase": "Ready"},
    )


def with_uid(item: Mapping[str, Any]) -> Json:
    live: Json = deepcopy(dict(item))
    live["metadata"]["uid"] = f"{item['kind']}-{item['metadata']['name']}"
    return live
