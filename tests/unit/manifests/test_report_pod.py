"""The one-shot pod that reports what a volume holds: it reads with the broker's rights and is nobody's broker."""

from collections.abc import Callable
from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.manifests import render
from queen_operator.manifests.context import Context
from queen_operator.spool_keeper.commands import read_arguments

MakeContext = Callable[..., Context]
CLAIM_UID = "c1a10000-0000-4000-8000-000000000002"
THEIRS = {"team": "a", names.SERVE_LABEL: "true", names.PUSH_LABEL: "true", names.BROKER_LABEL: "0"} | {
    "app.kubernetes.io/component": "broker"
}


def _report(context: Context, index: int = 0, *, owned: bool = True) -> dict[str, Any]:
    return render.report_pod(context, index, CLAIM_UID, owned=owned)


def _container(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return dict(container)


def _broker_pod(context: Context, index: int = 0) -> dict[str, Any]:
    return dict(render.broker_deployment(context, index)["spec"]["template"])


def _selectors(context: Context) -> list[dict[str, str]]:
    """Every selector that picks broker pods: Services, budget, Deployment, and the spread of the brokers."""
    budget = render.disruption_budget(context)
    assert budget is not None
    services = (*render.client_services(context), render.broker_service(context, 0))
    template = _broker_pod(context)["spec"]
    return [
        *(service["spec"]["selector"] for service in services),
        budget["spec"]["selector"]["matchLabels"],
        render.broker_deployment(context, 0)["spec"]["selector"]["matchLabels"],
        *(spread["labelSelector"]["matchLabels"] for spread in template["topologySpreadConstraints"]),
    ]


@pytest.mark.parametrize("users_labels", [{}, THEIRS], ids=["plain", "with labels that belong to us"])
def test_a_report_pod_is_in_no_service_no_budget_and_no_deployment(
    users_labels: dict[str, str], make_context: MakeContext
) -> None:
    context = make_context({"podLabels": users_labels})
    labels = _report(context)["metadata"]["labels"]
    broker = _broker_pod(context)["metadata"]["labels"] | {names.PUSH_LABEL: "true"}
    selectors = _selectors(context)
    assert len(selectors) == 6
    for selector in selectors:
        assert selector.items() <= broker.items(), "else this selector would tell nothing"
        assert not selector.items() <= labels.items()


def test_a_report_pod_says_whose_volume_it_looks_at(make_context: MakeContext) -> None:
    context = make_context(
        {"podLabels": {"team": "a"}, "podAnnotations": {"note": "x", names.CLAIM_UID_ANNOTATION: ""}}
    )
    pod = _report(context, 7)
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    assert pod["metadata"]["name"] == "orders-proof-7"
    assert pod["metadata"]["namespace"] == "shop"
    assert pod["metadata"]["labels"] == names.cluster_labels("orders") | {
        "team": "a",
        "app.kubernetes.io/component": "proof",
        names.PROOF_LABEL: "7",
    }
    assert pod["metadata"]["annotations"] == {"note": "x", names.CLAIM_UID_ANNOTATION: CLAIM_UID}
    (volume,) = pod["spec"]["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "orders-spool-7"}


def test_a_report_pod_goes_with_its_cluster_only_when_it_is_owned(make_context: MakeContext) -> None:
    context = make_context()
    (owner,) = _report(context, owned=True)["metadata"]["ownerReferences"]
    assert owner["uid"] == context.uid
    assert "ownerReferences" not in _report(context, owned=False)["metadata"]


@pytest.mark.parametrize("base", ["minimal", "full"])
def test_a_report_pod_reads_with_the_rights_of_the_broker(base: str, make_context: MakeContext) -> None:
    context = make_context(base=base)
    report, broker = _report(context)["spec"], _broker_pod(context)["spec"]
    (keeper,) = broker["initContainers"]
    same = ("securityContext", "serviceAccountName", "imagePullSecrets", "volumes", "priorityClassName")
    for field in (*same, "nodeSelector", "tolerations"):
        assert report.get(field) == broker.get(field), field
    assert _container(_report(context))["volumeMounts"] == keeper["volumeMounts"]
    assert _container(_report(context))["image"] == keeper["image"]


def test_a_report_pod_goes_wherever_the_volume_is(make_context: MakeContext) -> None:
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    context = make_context({"scheduling": {"affinity": apart, "topologySpreadConstraints": spread}})
    assert not {"affinity", "topologySpreadConstraints"} & _report(context)["spec"].keys()


def test_a_report_is_made_once_and_its_word_reaches_the_pod_status(make_context: MakeContext) -> None:
    pod = _report(make_context())
    container = _container(pod)
    command, options = read_arguments(container["args"])
    assert container["command"] == _broker_pod(make_context())["spec"]["initContainers"][0]["command"]
    assert (command, options["--spool-dir"]) == ("report", names.SPOOL_DIRECTORY)
    assert options["--spool-dir"] == container["volumeMounts"][0]["mountPath"]
    assert options["--termination-log"] == container["terminationMessagePath"]
    assert pod["spec"]["restartPolicy"] == "Never"
    assert "activeDeadlineSeconds" not in pod["spec"], "a volume that takes long to attach is no answer"


def test_a_report_pod_satisfies_the_restricted_profile(make_context: MakeContext) -> None:
    pod = _report(make_context(base="full"))["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert [volume.keys() for volume in pod["volumes"]] == [{"name", "persistentVolumeClaim"}]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False


def test_a_report_pod_is_small(make_context: MakeContext) -> None:
    large = {"resources": {"requests": {"cpu": 8}, "limits": {"cpu": 8, "memory": "64Gi"}}}
    resources = _container(_report(make_context(large)))["resources"]
    assert resources == {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}
