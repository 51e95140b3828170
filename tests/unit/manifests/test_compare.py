"""`difference`: silent about everything that is not ours, exact about everything that is."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.manifests import render
from queen_operator.manifests.compare import difference
from queen_operator.manifests.context import Context

MakeContext = Callable[..., Context]


@pytest.fixture
def wanted(make_context: MakeContext) -> dict[str, Any]:
    return render.broker_deployment(make_context(base="full"), 0)


@pytest.fixture
def live(wanted: dict[str, Any]) -> dict[str, Any]:
    """The Deployment as a server returns it, with defaults and a little of everybody else's."""
    live = deepcopy(wanted)
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "generation": 2, "managedFields": [{"manager": "x"}]}
    live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "3"
    live["metadata"]["labels"]["added-by"] = "somebody"
    live["status"] = {"replicas": 1}
    template = live["spec"]["template"]
    template["metadata"]["creationTimestamp"] = None
    template["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "2026-12-01T00:00:00Z"
    pod = template["spec"]
    pod |= {"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
    del pod["shareProcessNamespace"]
    pod["containers"].insert(0, {"name": "injected", "image": "mesh"})
    _broker(live)["env"].insert(0, {"name": "FOREIGN", "value": "x"})
    _broker(live)["terminationMessagePath"] = "/dev/termination-log"
    return live


def _broker(deployment: dict[str, Any]) -> dict[str, Any]:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return next(container for container in containers if container["name"] == "broker")


def test_what_the_server_and_others_add_is_no_difference(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    assert difference(wanted, live) is None


@pytest.mark.parametrize(("cpu", "memory"), [("0.5", "4096Mi"), ("500m", 4294967296), ("5e-1", "4Gi")])
def test_equal_quantities_are_no_difference(
    cpu: str, memory: str | int, wanted: dict[str, Any], live: dict[str, Any]
) -> None:
    _broker(live)["resources"] = {"requests": {"cpu": cpu, "memory": "512Mi"}, "limits": {"memory": memory}}
    assert difference(wanted, live) is None


def test_another_quantity_is_named_with_both_values(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    _broker(live)["resources"]["limits"]["memory"] = "512Mi"
    expected = ".spec.template.spec.containers[broker].resources.limits.memory: wanted 4Gi, found 512Mi"
    assert difference(wanted, live) == expected


def test_text_that_looks_like_a_quantity_elsewhere_is_compared_as_text(wanted: dict[str, Any]) -> None:
    other = deepcopy(wanted)
    wanted["metadata"]["labels"]["size"], other["metadata"]["labels"]["size"] = "1Gi", "1024Mi"
    assert difference(wanted, other) == ".metadata.labels.size: wanted 1Gi, found 1024Mi"


def test_a_claims_storage_is_a_quantity(make_context: MakeContext) -> None:
    claim = render.broker_claim(make_context({"spool": {"size": "5120Mi"}}), 0)
    live = deepcopy(claim)
    live["spec"]["resources"]["requests"]["storage"] = "5Gi"
    assert difference(claim, live) is None
    live["spec"]["resources"]["requests"]["storage"] = "4Gi"
    assert difference(claim, live) == ".spec.resources.requests.storage: wanted 5120Mi, found 4Gi"


def test_a_scaled_deployment_differs(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    live["spec"]["replicas"] = 2
    assert difference(wanted, live) == ".spec.replicas: wanted 1, found 2"


def test_a_stopped_broker_that_was_started_differs(make_context: MakeContext) -> None:
    stopped = render.broker_deployment(make_context(), 0, replicas=0)
    running = render.broker_deployment(make_context(), 0)
    assert difference(stopped, running) == ".spec.replicas: wanted 0, found 1"


def test_empty_values_that_the_server_drops_are_no_difference(make_context: MakeContext) -> None:
    context = make_context({"broker": {"env": [{"name": "EMPTY", "value": ""}]}})
    wanted = render.broker_deployment(context, 0)
    live = deepcopy(wanted)
    entry = next(entry for entry in _broker(live)["env"] if entry["name"] == "EMPTY")
    del entry["value"]
    assert difference(wanted, live) is None


def test_a_switch_that_somebody_turned_on_differs(make_context: MakeContext) -> None:
    service, _ = render.client_services(make_context())
    live = deepcopy(service)
    del live["spec"]["publishNotReadyAddresses"]
    assert difference(service, live) is None
    live["spec"]["publishNotReadyAddresses"] = True
    assert difference(service, live) == ".spec.publishNotReadyAddresses: wanted False, found True"


def test_a_missing_entry_of_a_list_is_named(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    live["spec"]["template"]["spec"]["volumes"] = []
    found = difference(wanted, live)
    assert found == ".spec.template.spec.volumes[spool]: wanted an entry, found nothing"


def test_the_order_of_named_entries_means_nothing(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    _broker(live)["env"].reverse()
    _broker(live)["ports"].reverse()
    assert difference(wanted, live) is None


def test_ports_are_told_apart_by_number_and_protocol(make_context: MakeContext) -> None:
    service = render.broker_service(make_context(), 0)
    live = deepcopy(service)
    for port in live["spec"]["ports"]:
        del port["protocol"]
        port["port"] = str(port["port"])
    assert difference(service, live) == ".spec.ports[6632/TCP].protocol: wanted TCP, found nothing"
    live = deepcopy(service)
    live["spec"]["ports"][1]["targetPort"] = "http"
    assert difference(service, live) == ".spec.ports[6633/TCP].targetPort: wanted mesh, found http"


def test_a_container_port_keeps_its_name(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    _broker(live)["ports"][0]["name"] = "web"
    expected = ".spec.template.spec.containers[broker].ports[6632/TCP].name: wanted http, found web"
    assert difference(wanted, live) == expected


def test_arguments_are_compared_as_a_whole(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    live["spec"]["template"]["spec"]["initContainers"][0]["args"].append("--quiet")
    found = difference(wanted, live)
    assert found is not None
    assert found.startswith(".spec.template.spec.initContainers[keeper].args: wanted ")


def test_a_toleration_that_is_gone_differs_and_a_foreign_one_does_not(
    wanted: dict[str, Any], live: dict[str, Any]
) -> None:
    tolerations = live["spec"]["template"]["spec"]["tolerations"]
    tolerations.insert(0, {"key": "foreign", "operator": "Exists"})
    assert difference(wanted, live) is None
    tolerations.pop()
    found = difference(wanted, live)
    assert found == ".spec.template.spec.tolerations[1]: wanted an entry, found nothing"


def test_a_lost_owner_or_label_differs(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    del live["metadata"]["labels"][names.CLUSTER_LABEL]
    assert difference(wanted, live) == ".metadata.labels[queen-operator.dev/cluster]: wanted orders, found nothing"
    live["metadata"]["labels"][names.CLUSTER_LABEL] = "orders"
    live["metadata"]["ownerReferences"] = []
    found = difference(wanted, live)
    uid = wanted["metadata"]["ownerReferences"][0]["uid"]
    assert found == f".metadata.ownerReferences[{uid}]: wanted an entry, found nothing"


def test_guards_of_a_write_are_no_wish(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    wanted["metadata"]["resourceVersion"] = "1"
    wanted["metadata"]["uid"] = "another"
    assert difference(wanted, live) is None


def test_what_a_template_was_made_from_is_told_apart_by_cause(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    live["spec"]["template"]["metadata"]["annotations"][names.CONFIG_ANNOTATION] = '{"Tomorrow":"0123456789ab"}'
    assert difference(wanted, live) is None


def test_values_of_secrets_are_never_in_the_words(make_context: MakeContext) -> None:
    secret = render.mesh_secret(make_context(), "topsecret")
    live = render.mesh_secret(make_context(), "yesterday")
    assert difference(secret, live) == ".data.secret: another value is wanted"
    assert difference(secret, {**live, "data": None}) == ".data: another value is wanted"


def test_values_of_variables_are_never_in_the_words(make_context: MakeContext) -> None:
    def deployment(value: str) -> dict[str, Any]:
        context = make_context({"broker": {"env": [{"name": "TOKEN", "value": value}]}})
        return render.broker_deployment(context, 0)

    wanted, live = deployment("topsecret"), deployment("yesterday")
    live["metadata"] = wanted["metadata"]
    expected = ".spec.template.spec.containers[broker].env[TOKEN].value: another value is wanted"
    assert difference(wanted, live) == expected
    broker = _broker(live)
    broker["env"] = [entry for entry in broker["env"] if entry["name"] != "TOKEN"]
    missing = ".spec.template.spec.containers[broker].env[TOKEN]: wanted an entry, found nothing"
    assert difference(wanted, live) == missing
    del broker["env"]
    assert difference(wanted, live) == ".spec.template.spec.containers[broker].env: wanted entries, found nothing"


def test_another_type_differs(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    live["spec"]["template"]["spec"]["securityContext"] = None
    assert difference(wanted, live) == ".spec.template.spec.securityContext: wanted an entry, found nothing"
    live["spec"]["template"]["spec"]["securityContext"] = "none"
    assert difference(wanted, live) == ".spec.template.spec.securityContext: wanted an entry, found none"


def test_long_values_are_cut(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    wanted["metadata"]["annotations"]["long"] = "x" * 5000
    assert difference(wanted, live) == f".metadata.annotations.long: wanted {'x' * 120}..., found nothing"


def test_an_empty_map_that_is_missing_is_no_difference() -> None:
    assert difference({"spec": {"emptyDir": {}}}, {"spec": {}}) is None
    assert difference({"spec": {"emptyDir": {}}}, {"spec": {"emptyDir": {"sizeLimit": "1Gi"}}}) is None
    assert difference({"spec": {"on": True}}, {"spec": {"on": 1}}) == ".spec.on: wanted True, found 1"
