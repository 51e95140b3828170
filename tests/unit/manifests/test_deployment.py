"""The Deployment of a broker: what would lose messages if it were otherwise."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.manifests import render, timing
from queen_operator.manifests.context import Context

MakeContext = Callable[..., Context]


def _pod(deployment: Mapping[str, Any]) -> Any:
    return deployment["spec"]["template"]["spec"]


def _keeper_and_broker(deployment: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    (keeper,) = _pod(deployment)["initContainers"]
    (broker,) = _pod(deployment)["containers"]
    return keeper, broker


def test_rendering_twice_gives_the_same_to_the_order_of_everything(make_context: MakeContext) -> None:
    one = render.broker_deployment(make_context(base="full"), 1)
    other = render.broker_deployment(make_context(base="full"), 1)
    assert repr(one) == repr(other)


@pytest.mark.parametrize("replicas", [0, 1])
def test_replicas_are_always_sent(replicas: int, make_context: MakeContext) -> None:
    assert render.broker_deployment(make_context(), 0, replicas=replicas)["spec"]["replicas"] == replicas


def test_stopping_a_broker_leaves_its_template_alone(make_context: MakeContext) -> None:
    running = render.broker_deployment(make_context(), 0)
    stopped = render.broker_deployment(make_context(), 0, replicas=0)
    assert stopped["spec"]["template"] == running["spec"]["template"]
    assert stopped["metadata"] == running["metadata"]


def test_two_pods_never_overlap_on_a_template_change(make_context: MakeContext) -> None:
    assert render.broker_deployment(make_context(), 0)["spec"]["strategy"] == {"type": "Recreate"}


def test_the_selector_is_fixed_whatever_labels_the_user_adds(make_context: MakeContext) -> None:
    labeled = make_context({"podLabels": {"team": "a", "app.kubernetes.io/name": "mine"}})
    for context in (make_context(), labeled):
        selector = render.broker_deployment(context, 2)["spec"]["selector"]
        assert selector == {"matchLabels": {names.CLUSTER_LABEL: "orders", names.BROKER_LABEL: "2"}}


def test_users_labels_and_annotations_go_to_the_pod_and_never_displace_ours(make_context: MakeContext) -> None:
    theirs = {
        "team": "a",
        names.CLUSTER_LABEL: "another",
        names.SERVE_LABEL: "false",
        names.PUSH_LABEL: "true",
        "app.kubernetes.io/component": "other",
    }
    context = make_context({"podLabels": theirs, "podAnnotations": {"note": "x", names.CONFIG_ANNOTATION: "{}"}})
    deployment = render.broker_deployment(context, 0)
    metadata = deployment["spec"]["template"]["metadata"]
    assert metadata["labels"] == names.broker_labels("orders", 0) | {
        "team": "a",
        "app.kubernetes.io/component": "broker",
        "app.kubernetes.io/version": "1.3.0",
        names.SERVE_LABEL: "true",
    }
    assert metadata["annotations"]["note"] == "x"
    assert "Version" in metadata["annotations"][names.CONFIG_ANNOTATION]
    assert "team" not in deployment["metadata"]["labels"]


def test_a_pod_joins_the_push_service_only_by_the_operators_hand(make_context: MakeContext) -> None:
    labels = render.broker_deployment(make_context(base="full"), 0)["spec"]["template"]["metadata"]["labels"]
    assert names.PUSH_LABEL not in labels


def test_a_version_that_is_no_label_value_is_cut_to_one(make_context: MakeContext) -> None:
    context = make_context({"version": f"1.3.0-{'a' * 55}.-b"})
    label = render.broker_deployment(context, 0)["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/version"]
    assert label == f"1.3.0-{'a' * 55}"


def test_the_keeper_guards_the_spool_before_the_broker_starts(make_context: MakeContext) -> None:
    keeper, broker = _keeper_and_broker(render.broker_deployment(make_context(), 0))
    assert keeper["restartPolicy"] == "Always"
    assert keeper["startupProbe"]["httpGet"]["path"] == "/held"
    assert keeper["args"] == ["hold", "--spool-dir", "/var/lib/queen/spool", "--port", "9632"]
    assert keeper["volumeMounts"] == broker["volumeMounts"] == [{"name": "spool", "mountPath": names.SPOOL_DIRECTORY}]


def test_a_keeper_may_wait_for_its_lock_as_long_as_a_drain_takes(make_context: MakeContext) -> None:
    keeper, _ = _keeper_and_broker(render.broker_deployment(make_context(), 0))
    assert keeper["startupProbe"]["failureThreshold"] * keeper["startupProbe"]["periodSeconds"] > 10 * 365 * 24 * 3600


def test_nothing_kills_a_keeper_that_holds_the_lock(make_context: MakeContext) -> None:
    keeper, _ = _keeper_and_broker(render.broker_deployment(make_context(), 0))
    assert not {"livenessProbe", "readinessProbe"} & keeper.keys()


def test_only_readiness_may_ask_the_database(make_context: MakeContext) -> None:
    _, broker = _keeper_and_broker(render.broker_deployment(make_context(), 0))
    assert broker["readinessProbe"]["httpGet"] == {"path": "/health", "port": "http", "scheme": "HTTP"}
    for probe in ("livenessProbe", "startupProbe"):
        assert broker[probe]["tcpSocket"] == {"port": "http"}
        assert "httpGet" not in broker[probe]


def test_a_replay_at_its_cap_is_not_killed(make_context: MakeContext) -> None:
    deployment = render.broker_deployment(make_context(), 0)
    startup = _keeper_and_broker(deployment)[1]["startupProbe"]
    budget_seconds = startup["periodSeconds"] * startup["failureThreshold"]
    assert budget_seconds > 600 + 3600
    assert deployment["spec"]["progressDeadlineSeconds"] > budget_seconds + timing.grace_seconds(make_context().spec)


def test_the_pre_stop_sleep_is_inside_the_grace_period(make_context: MakeContext) -> None:
    context = make_context({"broker": {"popTimeout": "1ms", "maxPopTimeout": "1ms", "statementTimeout": "1ms"}})
    deployment = render.broker_deployment(context, 0)
    sleep = _keeper_and_broker(deployment)[1]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert 5 <= sleep < _pod(deployment)["terminationGracePeriodSeconds"]


def test_the_pods_satisfy_the_restricted_profile(make_context: MakeContext) -> None:
    deployment = render.broker_deployment(make_context(base="full"), 0)
    pod = _pod(deployment)
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 1001,
        "runAsGroup": 1002,
        "fsGroup": 1003,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container in _keeper_and_broker(deployment):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["shareProcessNamespace"] is False


def test_both_containers_have_requests_and_a_memory_limit(make_context: MakeContext) -> None:
    for container in _keeper_and_broker(render.broker_deployment(make_context(), 0)):
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}


def test_resources_that_the_user_empties_are_left_out(make_context: MakeContext) -> None:
    context = make_context()
    bare = context.spec.resources.model_copy(update={"requests": {}, "limits": {}})
    spec = context.spec.model_copy(update={"resources": bare})
    _, broker = _keeper_and_broker(render.broker_deployment(make_context(spec=spec), 0))
    assert "resources" not in broker


def test_brokers_spread_over_hosts_unless_told_otherwise(make_context: MakeContext) -> None:
    (spread,) = _pod(render.broker_deployment(make_context(), 0))["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"]["matchLabels"][names.CLUSTER_LABEL] == "orders"
    none = make_context({"scheduling": {"topologySpreadConstraints": []}})
    assert "topologySpreadConstraints" not in _pod(render.broker_deployment(none, 0))


def test_scheduling_reaches_the_pod_as_written(make_context: MakeContext) -> None:
    context = make_context(base="full")
    pod = _pod(render.broker_deployment(context, 0))
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["queen", "busy"]
    assert pod["affinity"] == context.spec.scheduling.affinity
    assert pod["priorityClassName"] == "important"
    assert pod["imagePullSecrets"] == [{"name": "registry-a"}, {"name": "registry-b"}]


def test_the_image_is_upstreams_for_the_version_or_the_users_own(make_context: MakeContext) -> None:
    assert render.broker_image(make_context().spec) == "ghcr.io/queen-mq/queen:1.3.0"
    assert render.broker_image(make_context({"image": "mine:7"}).spec) == "mine:7"


def test_the_last_words_of_a_broker_reach_the_pod_status(make_context: MakeContext) -> None:
    _, broker = _keeper_and_broker(render.broker_deployment(make_context(), 0))
    assert broker["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_only_what_the_operator_renders_is_in_the_rendered_hash(make_context: MakeContext) -> None:
    plain = render.broker_deployment(make_context(), 0)
    assert plain["metadata"]["annotations"][names.RENDERED_ANNOTATION] == render.rendered_hash(plain)
    rotated = make_context(content={("orders-postgres", "password"): "another"}, restart="now")
    assert render.rendered_hash(render.broker_deployment(rotated, 0)) == render.rendered_hash(plain)
    newer = render.broker_deployment(make_context(keeper_image="registry.example/queen-operator:0.2.0"), 0)
    assert render.rendered_hash(newer) != render.rendered_hash(plain)
