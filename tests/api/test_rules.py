"""The API server refuses what the offline check refuses, with the same words, on create and on change."""

from __future__ import annotations

import json

import pytest

from lab.control_plane import ControlPlane
from lab.kubectl import Kubectl
from lab.progress import LabError
from queen_operator.api import environment
from queen_operator.api.reading import read_spec
from queen_operator.api.rules import violations
from tests.support.namespaces import NamespacedKubectl, fresh_name, namespace_object
from tests.support.refusals import QueenClusters, in_one_line, refusals
from tests.support.specs import CASES, MISSHAPEN, Case, Spec, env, minimal, postgres, resource

# One variable of each rule, and values that two implementations of a pattern could see differently.
_ONE_OF_EACH = (
    "FREE",
    "PORT",
    "NUM_WORKERS",
    "QUEEN_HOTLIST",
    "QUEEN_TENANCY_HEADER",
    *(numbers.names[0] for numbers in (*environment.WHOLE_NUMBERS, *environment.DECIMALS)),
    *environment.WORDS,
    environment.NEVER_EMPTY[0],
    environment.SKIP_PATHS,
)
_VALUES = (
    *("", " ", "0", "1", "2", "-1", "+1", "007", "1e3", "1.5", "0.5", "1.", ".5", " 1", "1 ", "1\n", "\n1", "1\t"),
    *("16", "17", "64", "65", "99", "100", "101", "999", "1000", "1001", "2147483647", "2147483648"),
    *("999999999999999", "1000000000000000", "18446744073709551616", "１", "٣", "1_000", "0x10", "NaN", "inf"),
    *("true", "TRUE", "tRuE", "on", "Off", "yes", "no", "y", "ture", "true\n", "truefalse", "shadow", "all", "new"),
    *("/", "//", "/health", "/health,/api/", "/health, /x", "/health ,/x", ",", "/a,", "/a\n", "/é", "/a b", "/%2F~"),
    *("ñ✓", "line1\nline2", "{{ x }}", "'", '"', "\\", "\u2028", "\x85", "x" * 4096),
)


@pytest.fixture(scope="module")
def clusters(control_plane: ControlPlane) -> QueenClusters:
    """QueenClusters of one namespace for this file; nearly all requests only ask."""
    namespace = fresh_name("rules")
    Kubectl(control_plane.kubeconfig).apply([namespace_object(namespace)])
    return QueenClusters(control_plane.kubeconfig, namespace)


@pytest.fixture(scope="module")
def stored(clusters: QueenClusters) -> dict[str, str]:
    """Names of stored resources by their spec: every spec from which a case of the table starts."""
    olds = {json.dumps(case.old or minimal()) for case in CASES}
    names = {spec: f"stored-{letter}" for letter, spec in zip("abcdefgh", sorted(olds), strict=False)}
    for spec, name in names.items():
        clusters.create(resource(json.loads(spec), name))
    return names


@pytest.mark.parametrize("case", [case for case in CASES if case.old is None], ids=lambda case: case.id)
def test_a_new_resource_is_refused_with_the_words_of_the_offline_check(case: Case, clusters: QueenClusters) -> None:
    found = refusals(lambda: clusters.create(resource(case.spec, case.name), dry_run=True))

    assert sorted(in_one_line(found)) == sorted(case.says)


@pytest.mark.parametrize("case", [case for case in CASES if case.name == "orders"], ids=lambda case: case.id)
def test_a_changed_resource_is_refused_with_the_words_of_the_offline_check(
    case: Case, clusters: QueenClusters, stored: dict[str, str]
) -> None:
    old = case.old or minimal()
    found = refusals(lambda: clusters.replace_spec(stored[json.dumps(old)], case.spec, dry_run=True))
    # What the table has as a new resource is a change here: the rules about changes may speak as well.
    expected = case.says if case.old else violations(case.name, case.spec, read_spec(old))

    assert sorted(in_one_line(found)) == sorted(expected)
    assert set(case.says) <= set(in_one_line(found))


@pytest.mark.parametrize(("spec", "field"), [row[1:] for row in MISSHAPEN], ids=[row[0] for row in MISSHAPEN])
def test_a_misshapen_spec_is_refused_at_the_field_that_the_offline_check_names(
    spec: Spec, field: str, clusters: QueenClusters
) -> None:
    found = refusals(lambda: clusters.create(resource(spec), dry_run=True))
    fields = {place.lstrip(".") for place, _ in found} - {"<nil>"}

    assert fields == {field}


@pytest.mark.parametrize("value", _VALUES, ids=lambda value: repr(value[:20]))
def test_a_value_is_judged_alike_by_the_api_server_and_offline(value: str, clusters: QueenClusters) -> None:
    spec = env(**dict.fromkeys(_ONE_OF_EACH, value))
    found = refusals(lambda: clusters.create(resource(spec), dry_run=True))

    assert sorted(in_one_line(found)) == sorted(violations("orders", spec))


@pytest.mark.parametrize(
    "keys",
    [
        ["a", "a.b", "a_b", "A", "a/b", "a.b/c", "a-/b", "a./b", "a..b/c", "a/", "/a", "a/b/c"],
        ["-a", "a-", "_a", "é", "a\n", "a b", " a", "", "0", "0/0", "A/b", "a/B", "x" * 63, "x" * 64],
        ["x" * 253 + "/a", "x" * 254 + "/a", "queen-operator.dev", "queen-operator.dev/", "xqueen-operator.dev/a"],
    ],
    ids=["forms", "edges", "domains"],
)
def test_a_key_is_judged_alike_by_the_api_server_and_offline(keys: list[str], clusters: QueenClusters) -> None:
    for key in keys:
        spec = minimal(podLabels={key: "x"}, podAnnotations={key: "x"})
        found = refusals(lambda spec=spec: clusters.create(resource(spec), dry_run=True))  # type: ignore[misc]

        assert sorted(in_one_line(found)) == sorted(violations("orders", spec)), key


@pytest.mark.parametrize(
    ("request_", "limit"),
    [
        ("1", "1000m"),
        ("1001m", "1"),
        (1, "0.999999999"),
        ("1e3", "1k"),
        ("1.5Gi", "1536Mi"),
        ("1025Ki", "1Mi"),
        ("1E", "1e18"),
        ("1Ei", "1E"),
        (0, "0"),
        ("0.000000001", "0"),
        ("1e-3", "1m"),
        ("999999999999999", "1P"),
    ],
)
def test_a_quantity_is_compared_alike_by_the_api_server_and_offline(
    request_: str | int, limit: str | int, clusters: QueenClusters
) -> None:
    spec = minimal(resources={"requests": {"memory": request_}, "limits": {"memory": limit}})
    found = refusals(lambda: clusters.create(resource(spec), dry_run=True))

    assert sorted(in_one_line(found)) == sorted(violations("orders", spec))


@pytest.mark.parametrize("duration", ["1s", "999ms", "1000ms", "0h0m1s", "1h", "59m30s", "3569s", "3571s", "999999h"])
def test_a_duration_is_judged_alike_by_the_api_server_and_offline(duration: str, clusters: QueenClusters) -> None:
    spec = minimal(broker={"popTimeout": duration, "maxPopTimeout": "1s"})
    found = refusals(lambda: clusters.create(resource(spec), dry_run=True))

    assert sorted(in_one_line(found)) == sorted(violations("orders", spec))


def test_a_hundred_variables_cost_nothing_and_the_last_one_is_looked_at(clusters: QueenClusters) -> None:
    paths = ",".join(["/" + "p" * 98] * 40)
    values = {f"QUEEN_FREE_{index:03d}": "v" * 2000 for index in range(98)}
    clusters.create(resource(env(**values, JWT_SKIP_PATHS=paths, QUEEN_HOTLIST="true"), "hundred"))
    found = refusals(lambda: clusters.replace_spec("hundred", env(**values, JWT_SKIP_PATHS=paths, QUEEN_HOTLIST="ja")))

    assert in_one_line(found) == [
        "spec.broker.env[99].value: QUEEN_HOTLIST: write true or false, in quotes; the broker exits on anything else"
    ]


def test_kubectl_scale_is_refused_with_the_numbers_when_the_database_is_too_small(kubectl: NamespacedKubectl) -> None:
    kubectl.apply([resource(postgres(maxConnections=97))])
    with pytest.raises(LabError) as refused:
        kubectl("scale", "queencluster/orders", "--replicas=4")

    assert "4 x (28 + 1) + 10 is more than 97: lower replicas or poolSize, or raise max_connections" in str(
        refused.value
    )
    kubectl("scale", "queencluster/orders", "--replicas=2")
    assert kubectl("get", "qc", "orders", "--output=jsonpath={.spec.replicas}") == "2"


@pytest.mark.parametrize("replicas", ["0", "10"])
def test_kubectl_scale_keeps_to_the_limits_of_replicas(replicas: str, kubectl: NamespacedKubectl) -> None:
    kubectl.apply([resource(minimal())])
    with pytest.raises(LabError, match=r"spec\.replicas in body should be (greater|less) than or equal to"):
        kubectl("scale", "qc/orders", f"--replicas={replicas}")

    assert kubectl("get", "qc", "orders", "--output=jsonpath={.spec.replicas}") == "3"


@pytest.mark.parametrize("way", [["--server-side"], [], ["--server-side", "--dry-run=server"], ["--dry-run=server"]])
def test_kubectl_apply_shows_the_words_in_every_way_of_applying(way: list[str], kubectl: NamespacedKubectl) -> None:
    manifest = """
apiVersion: queen-operator.dev/v1alpha1
kind: QueenCluster
metadata: {name: orders}
spec:
  version: 1.3.0
  postgres: {host: pg}
  broker:
    env:
    - {name: PORT, value: "80"}
"""
    with pytest.raises(LabError) as refused:
        kubectl("apply", *way, "--filename=-", stdin=manifest)

    assert "spec.postgres: Forbidden: give exactly one of passwordSecret and credentialsSecret" in str(refused.value)
    assert "spec.broker.env[0].name: Forbidden: PORT is set by the operator: brokers always listen on 6632" in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("written", "taken_for"), [("on", "boolean"), ("0123", "integer"), ("1e3", "integer"), ("1.5", "number")]
)
def test_an_unquoted_value_is_refused_and_never_changed(
    written: str, taken_for: str, kubectl: NamespacedKubectl
) -> None:
    manifest = f"""
apiVersion: queen-operator.dev/v1alpha1
kind: QueenCluster
metadata: {{name: orders}}
spec:
  version: 1.3.0
  postgres: {{host: pg, passwordSecret: {{name: pg}}}}
  broker:
    env:
    - name: A
      value: {written}
"""
    with pytest.raises(LabError, match=rf'spec\.broker\.env\[0\]\.value in body must be of type string: "{taken_for}"'):
        kubectl("apply", "--filename=-", stdin=manifest)


def test_odd_values_come_back_byte_for_byte(clusters: QueenClusters) -> None:
    values = {"A": "on", "B": "0123", "C": "1e3", "D": "true", "E": "", "F": "ñ✓", "G": "a: b # c", "H": "{{ x }}"}
    clusters.create(resource(env(**values, I="line1\nline2"), "odd"))
    kept = clusters.get("odd")["spec"]["broker"]["env"]

    assert {entry["name"]: entry["value"] for entry in kept} == {**values, "I": "line1\nline2"}


def test_an_unknown_field_is_refused_instead_of_dropped(kubectl: NamespacedKubectl) -> None:
    for way in (["--server-side"], []):
        with pytest.raises(LabError, match=r"bogus"):
            kubectl("apply", *way, "--filename=-", stdin=_yaml_of(minimal(bogus=1)))


def _yaml_of(spec: Spec) -> str:
    return json.dumps(resource(spec))
