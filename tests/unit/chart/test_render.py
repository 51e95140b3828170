import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.unit.chart import helm

pytestmark = pytest.mark.usefixtures("needs_helm")

# Values that turn on every branch of every template.
EVERYTHING: dict[str, Any] = {
    "image": {"tag": "9.9.9", "pullSecrets": [{"name": "registry"}]},
    "replicas": 2,
    "watchNamespaces": ["orders", "billing"],
    "serviceAccount": {"name": "queen", "annotations": {"example.com/role": "queen"}},
    "metrics": {"service": {"annotations": {"example.com/scrape": "true"}}},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "tolerationSeconds": 3600}],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "podAnnotations": {"example.com/a": "1"},
    "podLabels": {"example.com/team": "queues"},
    "extraLabels": {"example.com/unit": "platform"},
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
}


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_the_chart_passes_a_strict_lint(values: dict[str, Any]) -> None:
    done = helm.run("lint", "--strict", str(helm.CHART), values=values)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_two_renders_are_identical(values: dict[str, Any]) -> None:
    arguments = ("template", "queen-operator", str(helm.CHART))

    assert helm.run(*arguments, values=values).stdout == helm.run(*arguments, values=values).stdout


def test_the_pod_meets_the_restricted_pod_security_standard() -> None:
    pod = helm.deployment()["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"} & pod.keys()
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert not any("hostPort" in port for port in container["ports"])


def test_only_the_operators_own_pod_gets_a_token() -> None:
    (account,) = helm.of_kind("ServiceAccount", helm.objects())
    pod = helm.deployment()["spec"]["template"]["spec"]

    assert account["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is True
    assert pod["serviceAccountName"] == account["metadata"]["name"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, "ghcr.io/queen-operator/queen-operator:{version}"),
        ({"tag": "7.0.0"}, "ghcr.io/queen-operator/queen-operator:7.0.0"),
        ({"repository": "mirror.example.com/q", "tag": "7.0.0"}, "mirror.example.com/q:7.0.0"),
        ({"tag": "7.0.0", "digest": "sha256:" + "a" * 64}, "ghcr.io/queen-operator/queen-operator@sha256:" + "a" * 64),
    ],
)
def test_the_spool_keeper_runs_from_the_operators_own_image(image: dict[str, str], expected: str) -> None:
    values = {"image": image}
    version = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())["appVersion"]

    assert helm.container(values)["image"] == expected.format(version=version)
    assert helm.environment(values)["QUEEN_OPERATOR_KEEPER_IMAGE"]["value"] == helm.container(values)["image"]


def test_the_pod_tells_the_operator_who_and_where_it_is() -> None:
    variables = helm.environment()

    assert variables["QUEEN_OPERATOR_NAMESPACE"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace"
    assert variables["QUEEN_OPERATOR_POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"


def test_a_service_called_queen_operator_does_not_change_a_setting() -> None:
    # Service links would set QUEEN_OPERATOR_PORT=tcp://..., and each option of the operator has such a variable.
    assert helm.deployment()["spec"]["template"]["spec"]["enableServiceLinks"] is False


def test_every_variable_of_the_chart_is_an_option_that_the_operator_has() -> None:
    main = pytest.importorskip("queen_operator.control.main").main
    known = {f"QUEEN_OPERATOR_{option.name.upper()}" for option in main.params if option.name}
    known |= {option.envvar for option in main.params if isinstance(option.envvar, str)}

    assert helm.environment().keys() <= known
    assert {"--namespace"} <= {word for option in main.params for word in option.opts}


def test_log_settings_reach_the_operator() -> None:
    variables = helm.environment({"logging": {"level": "debug", "format": "text"}})

    assert variables["QUEEN_OPERATOR_LOG_LEVEL"]["value"] == "debug"
    assert variables["QUEEN_OPERATOR_LOG_FORMAT"]["value"] == "text"


def test_watched_namespaces_become_arguments_and_none_means_all() -> None:
    named = helm.container({"watchNamespaces": ["orders", "billing"]})

    assert named["args"] == ["--namespace", "orders", "--namespace", "billing"]
    assert "args" not in helm.container()


def test_replicas_zero_stops_the_operator_instead_of_meaning_the_default() -> None:
    assert helm.deployment({"replicas": 0})["spec"]["replicas"] == 0


def test_a_new_release_never_takes_the_working_operator_away_first() -> None:
    strategy = helm.deployment()["spec"]["strategy"]

    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def test_probes_ask_the_operators_own_pages() -> None:
    container = helm.container()

    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    assert container["ports"] == [{"name": "metrics", "containerPort": 8080, "protocol": "TCP"}]


def test_user_ids_of_ten_digits_stay_integers() -> None:
    pod = helm.deployment({"podSecurityContext": {"runAsUser": 1000680000}})["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsUser"] == 1000680000


def test_a_default_can_be_removed_for_platforms_that_choose_user_ids() -> None:
    pod = helm.deployment({"podSecurityContext": {"runAsUser": None, "fsGroup": None}})["spec"]["template"]["spec"]

    assert not {"runAsUser", "fsGroup"} & pod["securityContext"].keys()
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_an_environment_value_reaches_the_pod_byte_for_byte() -> None:
    values = ["on", "0123", "1e3", "true", "", "ñ✓", "a: b # c", "{{ x }}", "line1\nline2"]
    given = [{"name": f"V{number}", "value": value} for number, value in enumerate(values)]

    variables = helm.environment({"extraEnv": given})

    assert [variables[f"V{number}"]["value"] for number in range(len(values))] == values


def test_labels_of_the_user_never_break_the_selector() -> None:
    stolen = {"app.kubernetes.io/name": "other", "app.kubernetes.io/instance": "other", "example.com/team": "queues"}

    spec = helm.deployment({"extraLabels": stolen, "podLabels": stolen})["spec"]

    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert spec["template"]["metadata"]["labels"]["example.com/team"] == "queues"
    assert spec["selector"] == helm.deployment()["spec"]["selector"]


def test_every_object_carries_the_extra_labels() -> None:
    ours = [item for item in helm.objects(EVERYTHING) if item["kind"] != "CustomResourceDefinition"]

    assert {item["metadata"]["labels"]["example.com/unit"] for item in ours} == {"platform"}


def test_the_metrics_service_finds_the_pod_and_can_be_left_out() -> None:
    (service,) = helm.of_kind("Service", helm.objects())
    pod = helm.deployment()["spec"]["template"]

    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["ports"] == [{"name": "metrics", "port": 8080, "targetPort": "metrics", "protocol": "TCP"}]
    assert helm.of_kind("Service", helm.objects({"metrics": {"service": {"enabled": False}}})) == []


@pytest.mark.parametrize("release", ["q", "a" * 53, "123", "true"])
def test_any_release_name_gives_names_that_kubernetes_accepts(release: str) -> None:
    rendered = helm.objects({"watchNamespaces": ["orders"]}, release=release)

    for manifest in rendered:
        name = manifest["metadata"]["name"]
        assert isinstance(name, str)
        assert len(name) <= 63 or manifest["kind"] == "CustomResourceDefinition"
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name)
        assert all(isinstance(value, str) for value in manifest["metadata"].get("labels", {}).values())


def test_two_releases_of_one_name_share_no_cluster_scoped_object() -> None:
    def names(namespace: str) -> set[str]:
        roles = helm.of_kind("ClusterRole", helm.objects(namespace=namespace))
        return {role["metadata"]["name"] for role in roles}

    assert names("one")
    assert not names("one") & names("two")


def test_every_namespaced_object_says_its_namespace() -> None:
    cluster_scoped = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
    for manifest in helm.objects(namespace="ops"):
        expected = None if manifest["kind"] in cluster_scoped else "ops"
        assert manifest["metadata"].get("namespace") == expected, manifest["metadata"]["name"]


def test_the_notes_say_how_to_go_on_and_what_an_uninstall_does() -> None:
    arguments = ("install", "queen-operator", str(helm.CHART), "--namespace", "ops", "--dry-run=client")

    kept = helm.run(*arguments, values={"watchNamespaces": ["orders", "billing"]})
    dropped = helm.run(*arguments, values={"crd": {"keep": False}})

    assert kept.returncode == 0, kept.stderr
    assert "It serves QueenClusters in: orders, billing." in kept.stdout
    assert "stops no broker and deletes no volume" in kept.stdout
    assert "EVERY QueenCluster" in dropped.stdout
    assert "EVERY QueenCluster" not in kept.stdout


@pytest.mark.skipif(not (helm.CHART / "templates" / "crd.yaml").exists(), reason="the CRD has not been generated")
def test_the_crd_is_kept_on_uninstall_and_can_be_left_out() -> None:
    (kept,) = helm.of_kind("CustomResourceDefinition", helm.objects())
    (dropped,) = helm.of_kind("CustomResourceDefinition", helm.objects({"crd": {"keep": False}}))

    assert kept["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert "helm.sh/resource-policy" not in dropped["metadata"].get("annotations", {})
    assert helm.of_kind("CustomResourceDefinition", helm.objects({"crd": {"install": False}})) == []


def test_chart_and_package_have_one_version() -> None:
    chart = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())
    package = tomllib.loads((helm.CHECKOUT / "pyproject.toml").read_text())

    assert chart["version"] == chart["appVersion"] == package["project"]["version"]
