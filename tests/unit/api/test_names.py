"""Names of children: whatever clusters are called, two of them never want one name for the same kind of object."""

from itertools import combinations

from queen_operator.api import names
from queen_operator.api.rules import violations
from tests.support.specs import minimal

CLUSTERS = ("orders", "orders-proof", "orders-spool", "orders-proof-x", "proof", "spool", "orders-eu", "orders-0-proof")


def _claims(cluster: str) -> set[str]:
    return {names.claim_name(cluster, index) for index in range(9)}


def _services(cluster: str) -> set[str]:
    return {cluster, names.push_service_name(cluster)} | {names.broker_name(cluster, index) for index in range(9)}


def _report_pods(cluster: str) -> set[str]:
    return {names.report_pod_name(cluster, index) for index in range(9)}


def test_clusters_never_share_a_name_of_a_claim_a_service_or_a_report_pod() -> None:
    assert [violations(cluster, minimal()) for cluster in CLUSTERS] == [[]] * len(CLUSTERS)
    for one, other in combinations(CLUSTERS, 2):
        for children in (_claims, _services, _report_pods):
            assert not children(one) & children(other), (one, other)


def test_a_report_pod_of_the_longest_name_still_has_a_host_name() -> None:
    assert len(names.report_pod_name("a" * names.MAX_CLUSTER_NAME_LENGTH, 8)) < 64


def test_a_report_pod_is_never_taken_for_a_pod_of_a_deployment() -> None:
    """The Deployment orders-proof-0 of another cluster makes pods of that name with two suffixes."""
    deployment = names.broker_name("orders-proof", 0)
    assert deployment in _report_pods("orders")
    assert f"{deployment}-5d4f8c7b9-abcde" not in _report_pods("orders")


def test_everything_of_ours_has_its_own_key() -> None:
    keys = [value for name, value in vars(names).items() if name.endswith(("_LABEL", "_ANNOTATION", "_FINALIZER"))]
    assert len(keys) == len(set(keys)) > 10
    ours = [key for key in keys if not key.startswith("app.kubernetes.io/")]
    assert all(key.startswith(f"{names.GROUP}/") for key in ours)
