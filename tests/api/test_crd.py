"""The definition on a real API server: how it gets there, what it fills in, and what becomes of older resources."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiException

from lab import cache
from lab.control_plane import ControlPlane
from lab.kubectl import Kubectl
from queen_operator.api import crd
from queen_operator.api.cluster import InvalidSpec, parse
from queen_operator.api.names import GROUP
from queen_operator.api.status import QueenClusterStatus
from tests.support.filled import filled
from tests.support.namespaces import NamespacedKubectl, fresh_name, namespace_object
from tests.support.refusals import QueenClusters
from tests.support.specs import env, minimal, resource
from tests.support.waiting import wait_until

Object = dict[str, Any]
_FILE = cache.CHECKOUT / "crds" / "queenclusters.yaml"
_DEFAULTS: Object = {
    "imagePullPolicy": "IfNotPresent",
    "imagePullSecrets": [],
    "replicas": 3,
    "paused": False,
    "postgres": {
        "port": 5432,
        "database": "queen",
        "user": "queen",
        "tls": {"enabled": False, "verify": True},
        "poolSize": 28,
        "onFrozen": "Report",
        "passwordSecret": {"name": "pg", "key": "password"},
    },
    "broker": {
        "popTimeout": "30s",
        "maxPopTimeout": "60s",
        "statementTimeout": "30s",
        "applySchema": True,
        "logLevel": "info",
        "logJson": True,
        "statsInterval": "10s",
        "metricsFlushInterval": "60s",
        "retentionInterval": "5s",
        "env": [],
    },
    "spool": {"size": "5Gi", "accessMode": "ReadWriteOncePod", "onScaleDown": "Delete", "onDelete": "Retain"},
    "auth": {"enabled": False, "algorithm": "HS256"},
    "mesh": {},
    "service": {"type": "ClusterIP", "annotations": {}},
    "scheduling": {"nodeSelector": {}, "tolerations": []},
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
    "podLabels": {},
    "podAnnotations": {},
    "securityContext": {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532},
    "rollout": {"minReadySeconds": 5, "brokerDeadline": "10m", "spoolDeadline": "10m"},
}


@pytest.fixture
def clusters(control_plane: ControlPlane, namespace: str) -> QueenClusters:
    """QueenClusters of this test's namespace."""
    return QueenClusters(control_plane.kubeconfig, namespace)


class Definition:
    """The definition under other names: a test may loosen and tighten it, and kubectl never takes it for ours."""

    plural = "trials"

    def __init__(self, kubectl: Kubectl, group: str, folder: Path) -> None:
        self.group = group
        self._kubectl = kubectl
        self._file = folder / "definition.yaml"

    def write(self, change: Callable[[Object], None] = lambda version: None) -> Path:
        """Write the definition, its version changed, as a file for kubectl."""
        definition = json.loads(json.dumps(crd.custom_resource_definition()).replace(GROUP, self.group))
        definition["metadata"]["name"] = f"{self.plural}.{self.group}"
        definition["spec"]["names"] = {"kind": "Trial", "plural": self.plural}
        change(definition["spec"]["versions"][0])
        self._file.write_text(yaml.safe_dump(definition))
        return self._file

    def resource(self, spec: Object, name: str) -> Object:
        """Return a resource of this definition."""
        names = {"apiVersion": f"{self.group}/v1alpha1", "kind": "Trial"}
        return {**resource(copy.deepcopy(spec), name), **names}

    def apply(self, *ways: str) -> None:
        """Apply the file and wait until it is served."""
        self._kubectl.run("apply", *ways, f"--filename={self._file}")
        self._kubectl.run("wait", "--for=condition=Established", f"--filename={self._file}", "--timeout=60s")


@pytest.fixture
def definition(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Definition:
    """A definition that no other test uses."""
    return Definition(Kubectl(control_plane.kubeconfig), f"{namespace}.example.com", tmp_path)


@pytest.mark.parametrize("ways", [["--server-side"], []], ids=["server-side", "client-side"])
def test_the_definition_is_taken_in_every_way_of_applying(ways: list[str], definition: Definition) -> None:
    definition.write()
    definition.apply(*ways)
    definition.apply(*ways)


def test_client_side_apply_has_room_left(kubectl: NamespacedKubectl, definition: Definition) -> None:
    definition.write()
    definition.apply()
    text = kubectl("get", "crd", f"{definition.plural}.{definition.group}", "--output=json")
    kept = json.loads(text)["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]

    assert len(kept) < 262_144 / 4


def test_the_file_of_the_checkout_is_what_is_served(kubectl: NamespacedKubectl) -> None:
    served = json.loads(kubectl("get", "crd", "queenclusters.queen-operator.dev", "--output=json"))
    conditions = {c["type"]: c["status"] for c in served["status"]["conditions"]}

    assert served["spec"]["versions"] == yaml.safe_load(_FILE.read_text())["spec"]["versions"]
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_the_minimal_resource_gets_every_default(clusters: QueenClusters) -> None:
    stored = clusters.create(resource(minimal()))["spec"]
    written = minimal()
    expected = {**_DEFAULTS, "version": written["version"], "postgres": {**_DEFAULTS["postgres"], "host": "pg"}}

    assert stored == expected
    assert parse(clusters.get("orders")).spec == parse({**clusters.get("orders"), "spec": written}).spec


def test_a_new_resource_is_pending_and_not_ready_before_anybody_has_looked(
    clusters: QueenClusters, kubectl: NamespacedKubectl
) -> None:
    # A status of the user's own must not make a pipeline believe that anything runs.
    forged = {**resource(minimal()), "status": {"phase": "Ready", "observedGeneration": 1}}
    stored = clusters.create(forged)

    assert stored["status"] == dict(crd.INITIAL_STATUS)
    assert stored["metadata"]["generation"] != stored["status"]["observedGeneration"]
    row = kubectl("get", "qc", "orders", "--no-headers", "--output=wide").split()
    assert row[:3] == ["orders", "1.3.0", "Pending"]
    assert row[4:] == ["Waiting", "for", "the", "operator."]


def test_kubectl_shows_what_people_look_for(clusters: QueenClusters, kubectl: NamespacedKubectl) -> None:
    clusters.create(resource(minimal()))
    clusters.patch_status("orders", {"ready": "2/3", "phase": "Rolling", "message": "orders-1 is being restarted."})
    head, row = kubectl("get", "qc").splitlines()

    assert head.split() == ["NAME", "READY", "VERSION", "PHASE", "AGE"]
    assert row.split()[:4] == ["orders", "2/3", "1.3.0", "Rolling"]
    assert kubectl("get", "qc", "--output=wide").splitlines()[1].endswith("orders-1 is being restarted.")
    assert kubectl("get", "queen", "--output=name") == "queencluster.queen-operator.dev/orders\n"


def test_kubectl_explain_tells_fields_and_their_meaning(kubectl: NamespacedKubectl) -> None:
    told = kubectl("explain", "queenclusters.spec.broker")

    assert "maxPopTimeout\t<string>" in told
    assert "The longest wait that clients of this cluster ask for." in told
    assert "ReadWriteOncePod keeps a second pod off the volume" in kubectl("explain", "qc.spec.spool.accessMode")
    assert "conditions\t<[]Object>" in kubectl("explain", "qc.status")


def test_a_status_with_every_field_survives_a_read_back(clusters: QueenClusters) -> None:
    clusters.create(resource(minimal()))
    status = filled(QueenClusterStatus)
    sent = status.model_dump(mode="json", by_alias=True)
    clusters.patch_status("orders", sent)

    assert clusters.get("orders")["status"] == sent
    assert QueenClusterStatus.model_validate(clusters.get("orders")["status"]) == status
    assert len(json.dumps(sent)) > 1000


def test_the_scale_subresource_reads_the_status(clusters: QueenClusters, kubectl: NamespacedKubectl) -> None:
    clusters.create(resource(minimal()))
    clusters.patch_status("orders", {"replicas": 2, "selector": "queen-operator.dev/cluster=orders"})
    scale = json.loads(kubectl("get", "qc", "orders", "--subresource=scale", "--output=json"))

    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "queen-operator.dev/cluster=orders"}


def test_two_managers_may_each_set_a_variable(kubectl: NamespacedKubectl) -> None:
    kubectl.apply([resource(env(A="1"))])
    other = {**resource({"broker": {"env": [{"name": "B", "value": "2"}]}})}
    kubectl("apply", "--server-side", "--field-manager=other", "--filename=-", stdin=json.dumps(other))
    stored = kubectl.get("queencluster", "orders")

    assert stored is not None
    assert stored["spec"]["broker"]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]


def _without_rules(version: Object) -> None:
    # With the scale subresource the API server itself insists on a number of replicas.
    del version["subresources"]["scale"]
    schema = version["schema"]["openAPIV3Schema"]
    schema.pop("x-kubernetes-validations")
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture(scope="module")
def older(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> QueenClusters:
    """Resources that were stored before there were rules, under the definition of today."""
    namespace = fresh_name("older-resources")
    kubectl = Kubectl(control_plane.kubeconfig)
    kubectl.apply([namespace_object(namespace)])
    definition = Definition(kubectl, f"{namespace}.example.com", tmp_path_factory.mktemp("definition"))
    definition.write(_without_rules)
    definition.apply("--server-side")
    clusters = QueenClusters(control_plane.kubeconfig, namespace, definition.group, definition.plural)
    for name, spec in _OLDER.items():
        body = definition.resource(spec, name)
        wait_until(f"the definition to take {name}", lambda body=body: _created(clusters, body))  # type: ignore[misc]
    definition.write()
    definition.apply("--server-side")
    probe = definition.resource(minimal(), "not.allowed")
    wait_until("the rules of today", lambda: not _created(clusters, probe, dry_run=True))
    return clusters


_OLDER: dict[str, Object] = {
    "orders.eu": minimal(),
    "too-many-connections": minimal(
        replicas=9, postgres={"host": "pg", "passwordSecret": {"name": "pg"}, "maxConnections": 50, "poolSize": 28}
    ),
    "port-set": env(PORT="80", QUEEN_HOTLIST="maybe"),
    "unreadable": minimal(replicas="three", spool={"size": ""}),
}


def _created(clusters: QueenClusters, body: Object, *, dry_run: bool = False) -> bool:
    try:
        clusters.create(body, dry_run=dry_run)
    except ApiException:
        return False
    return True


@pytest.mark.parametrize("name", ["orders.eu", "too-many-connections", "port-set"])
def test_a_rule_that_is_younger_than_a_resource_lets_its_status_and_metadata_be_written(
    name: str, older: QueenClusters
) -> None:
    older.patch_status(name, {"message": "seen", "observedGeneration": 1})
    older.patch(name, {"metadata": {"labels": {"a": "b"}, "finalizers": ["queen-operator.dev/spool"]}})
    older.patch(name, {"metadata": {"finalizers": None}})
    stored = older.get(name)

    assert stored["status"]["message"] == "seen"
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert "finalizers" not in stored["metadata"]


def test_other_fields_of_an_older_resource_may_be_changed_beside_a_variable_that_is_refused_today(
    older: QueenClusters,
) -> None:
    older.patch("port-set", {"spec": {"replicas": 2}})

    assert older.get("port-set")["spec"]["replicas"] == 2
    with pytest.raises(ApiException, match="PORT is set by the operator"):
        older.replace_spec("port-set", env(NEW="1", PORT="81", QUEEN_HOTLIST="maybe"))


def test_an_unreadable_resource_names_both_fields_and_is_cured_by_correcting_them(older: QueenClusters) -> None:
    with pytest.raises(InvalidSpec, match=r"^spec\.replicas: .*; spec\.spool\.size: [^;]*$"):
        parse(older.get("unreadable"))
    older.patch_status("unreadable", {"message": "spec.replicas: must be a whole number"})
    assert older.get("unreadable")["status"]["message"] == "spec.replicas: must be a whole number"
    older.patch("unreadable", {"spec": {"replicas": 2, "spool": {"size": "1Gi"}}})

    assert parse(older.get("unreadable")).spec.replicas == 2
