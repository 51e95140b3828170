"""Our manifests against a real API server: applied twice they change nothing, and nothing is seen where nothing is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.api_client import APPLY_PATCH, ApiClient, ApiError
from lab.control_plane import ControlPlane
from queen_operator.api import names
from queen_operator.api.spec import QueenClusterSpec
from queen_operator.manifests import render
from queen_operator.manifests.compare import difference
from queen_operator.manifests.context import Context
from queen_operator.manifests.references import references
from queen_operator.manifests.yaml_json import yaml_json

Object = dict[str, Any]

MINIMAL: Object = {"version": "1.3.0", "postgres": {"host": "pg", "passwordSecret": {"name": "pg"}}}
FULL: Object = {
    "version": "1.3.0",
    "imagePullSecrets": [{"name": "registry"}],
    "postgres": {
        "credentialsSecret": {"name": "app"},
        "tls": {"enabled": True, "caSecret": {"name": "ca", "key": "ca.crt"}},
    },
    "broker": {
        "env": [{"name": "EMPTY", "value": ""}, {"name": "ODD", "value": "{{ x }}\n$(PORT) ñ✓ 😀\x7f\x85 a: b # c"}]
    },
    "spool": {"size": "10240Mi", "storageClassName": "fast", "accessMode": "ReadWriteOnce"},
    "auth": {"enabled": True, "secret": {"name": "jwt", "key": "k"}},
    "encryption": {"keySecret": {"name": "enc", "key": "k"}},
    "service": {"type": "NodePort", "annotations": {"example.com/note": "0123"}},
    "scheduling": {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "queen", "effect": "NoExecute", "tolerationSeconds": 60}, {"operator": "Exists"}],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
                ]
            }
        },
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "priorityClassName": "system-cluster-critical",
    },
    "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"memory": "1.5Gi", "cpu": 2}},
    "podLabels": {"team": "orders"},
    "podAnnotations": {"example.com/inject": "false"},
}

_PLACES = {
    "Deployment": "apis/apps/v1/namespaces/{}/deployments",
    "PodDisruptionBudget": "apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "Service": "api/v1/namespaces/{}/services",
    "Secret": "api/v1/namespaces/{}/secrets",
    "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts",
    "PersistentVolumeClaim": "api/v1/namespaces/{}/persistentvolumeclaims",
}


def _path(child: Object) -> str:
    metadata = child["metadata"]
    return f"/{_PLACES[child['kind']].format(metadata['namespace'])}/{metadata['name']}"


@pytest.fixture
def client(control_plane: ControlPlane) -> ApiClient:
    return ApiClient.from_kubeconfig(control_plane.kubeconfig)


@pytest.fixture
def apply(client: ApiClient) -> Callable[[Object], Object]:
    """Apply a child as the operator does, and return what the server made of it."""

    def send(child: Object) -> Object:
        query = f"?fieldManager={names.FIELD_MANAGER}&force=true"
        # The server reads this body as YAML, where a character beyond U+FFFF has another escape than in JSON.
        with client._open("PATCH", _path(child) + query, yaml_json(child).encode(), APPLY_PATCH) as answer:
            return dict(json.loads(answer.read()))

    return send


@pytest.fixture
def context(namespace: str) -> Callable[..., Context]:
    def make(spec: Object) -> Context:
        parsed = QueenClusterSpec.model_validate(spec)
        digests = {(ref.secret, ref.key): f"digest of {ref.key}" for ref in references("orders", parsed)}
        return Context("orders", namespace, "5c0f2a60-0000-4000-8000-000000000001", parsed, "keeper:1", digests)

    return make


def _children(context: Context) -> Iterator[Object]:
    yield render.service_account(context)
    yield render.mesh_secret(context, "a value")
    budget = render.disruption_budget(context)
    assert budget is not None
    yield budget
    yield from render.client_services(context)
    for index in range(2):
        yield render.broker_service(context, index)
        yield render.broker_claim(context, index, database=render.database_identity(context))
        yield render.broker_deployment(context, index, replicas=1 - index)


SPECS = pytest.mark.parametrize("spec", [MINIMAL, FULL], ids=["minimal", "full"])


@SPECS
def test_applied_again_nothing_changes_and_no_difference_is_seen(
    spec: Object, apply: Callable[[Object], Object], context: Callable[..., Context], client: ApiClient
) -> None:
    children = list(_children(context(spec)))
    for child in children:
        apply(child)
    # The first re-application of a claim gives it a new version once, with nothing else in it.
    before = {_path(child): apply(child)["metadata"]["resourceVersion"] for child in children}
    after = {_path(child): apply(child)["metadata"]["resourceVersion"] for child in children}
    assert after == before
    for child in children:
        live = client.get(_path(child))
        assert live is not None
        assert difference(child, live) is None


def test_a_deployment_applied_again_has_its_first_generation(
    apply: Callable[[Object], Object], context: Callable[..., Context]
) -> None:
    # A higher generation is a new template: a restart.
    first = apply(render.broker_deployment(context(FULL), 0))
    second = apply(render.broker_deployment(context(FULL), 0))
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert second["metadata"]["generation"] == 1


def test_equal_quantities_spelled_differently_neither_restart_nor_differ(
    apply: Callable[[Object], Object], context: Callable[..., Context]
) -> None:
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1536Mi", "cpu": "2000m"}}
    other = render.broker_deployment(context({**FULL, "resources": resources}), 0)
    live = apply(render.broker_deployment(context(FULL), 0))
    assert difference(other, live) is None
    assert apply(other)["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]


def test_reordered_lists_neither_restart_nor_differ(
    apply: Callable[[Object], Object], context: Callable[..., Context]
) -> None:
    reordered = json.loads(json.dumps(FULL))
    reordered["broker"]["env"].reverse()
    reordered["scheduling"]["tolerations"].reverse()
    live = apply(render.broker_deployment(context(FULL), 0))
    other = render.broker_deployment(context(reordered), 0)
    assert difference(other, live) is None
    assert apply(other)["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]


def test_values_are_stored_byte_for_byte(apply: Callable[[Object], Object], context: Callable[..., Context]) -> None:
    live = apply(render.broker_deployment(context(FULL), 0))
    env = {entry["name"]: entry for entry in live["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["ODD"]["value"] == "{{ x }}\n$$(PORT) ñ✓ 😀\x7f\x85 a: b # c"
    assert "value" not in env["EMPTY"]


HAND_MADE: list[tuple[str, Object, str]] = [
    ("Deployment", {"spec": {"replicas": 2}}, ".spec.replicas: wanted 1, found 2"),
    (
        "Deployment",
        {"metadata": {"labels": {names.CLUSTER_LABEL: None}}},
        ".metadata.labels[queen-operator.dev/cluster]: wanted orders, found nothing",
    ),
    (
        "Deployment",
        {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 30}}}},
        ".spec.template.spec.terminationGracePeriodSeconds: wanted 105, found 30",
    ),
    (
        "Service",
        {"spec": {"publishNotReadyAddresses": True}},
        ".spec.publishNotReadyAddresses: wanted False, found True",
    ),
    ("PodDisruptionBudget", {"spec": {"maxUnavailable": "50%"}}, ".spec.maxUnavailable: wanted 1, found 50%"),
    ("Secret", {"data": {"secret": "b3RoZXI="}}, ".data.secret: another value is wanted"),
]


@pytest.mark.parametrize(("kind", "patch", "words"), HAND_MADE)
def test_a_change_by_hand_is_seen_and_put_back(
    kind: str,
    patch: Object,
    words: str,
    apply: Callable[[Object], Object],
    context: Callable[..., Context],
    client: ApiClient,
) -> None:
    child = next(child for child in _children(context(MINIMAL)) if child["kind"] == kind)
    apply(child)
    changed = client.send("PATCH", f"{_path(child)}?fieldManager=somebody", patch, "application/merge-patch+json")
    assert difference(child, changed) == words
    assert difference(child, apply(child)) is None


def test_foreign_annotations_stay_and_are_no_difference(
    apply: Callable[[Object], Object], context: Callable[..., Context], client: ApiClient
) -> None:
    child = render.broker_deployment(context(MINIMAL), 0)
    apply(child)
    patch = {"metadata": {"annotations": {"example.com/foreign": "x"}}}
    live = client.send("PATCH", f"{_path(child)}?fieldManager=somebody", patch, "application/merge-patch+json")
    assert difference(child, live) is None
    assert apply(child)["metadata"]["annotations"]["example.com/foreign"] == "x"


def test_what_the_user_takes_out_of_a_service_is_seen_and_goes(
    apply: Callable[[Object], Object], context: Callable[..., Context]
) -> None:
    annotated, _ = render.client_services(context(FULL))
    live = apply(annotated)
    assert live["spec"]["ports"][0]["nodePort"]
    plain, _ = render.client_services(context({**FULL, "service": {}}))
    assert difference(plain, live) is not None
    live = apply(plain)
    assert "example.com/note" not in live["metadata"]["annotations"]
    assert live["spec"]["type"] == "ClusterIP"
    assert "nodePort" not in live["spec"]["ports"][0]
    assert difference(plain, live) is None


@SPECS
def test_a_namespace_with_the_restricted_profile_takes_our_pods(
    spec: Object, apply: Callable[[Object], Object], context: Callable[..., Context], client: ApiClient, namespace: str
) -> None:
    made = context(spec)
    apply(render.service_account(made))
    for user in (65532, 1001):
        with_user = made.spec.security_context.model_copy(update={"run_as_user": user})
        changed = made.spec.model_copy(update={"security_context": with_user})
        template = render.broker_deployment(context(changed.model_dump(by_alias=True)), 0)["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = {**template["metadata"], "name": f"try-{user}"}
        assert client.send("POST", f"/api/v1/namespaces/{namespace}/pods", pod)["status"]["phase"] == "Pending"
    for index, owned in ((0, True), (1, False)):
        report = render.report_pod(made, index, "a claim's", owned=owned)
        assert client.send("POST", f"/api/v1/namespaces/{namespace}/pods", report)["status"]["phase"] == "Pending"


def test_the_restricted_profile_is_enforced_here(
    client: ApiClient, namespace: str, context: Callable[..., Context]
) -> None:
    template = render.broker_deployment(context(MINIMAL), 0)["spec"]["template"]
    template["spec"]["serviceAccountName"] = "default"
    template["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = {**template["metadata"], "name": "careless"}
    with pytest.raises(ApiError, match="allowPrivilegeEscalation"):
        client.send("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
