import re
from typing import Any

import pytest

from tests.unit.chart import helm

pytestmark = pytest.mark.usefixtures("needs_helm")

NAMED: dict[str, Any] = {"watchNamespaces": ["orders", "billing"]}
CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding"}
MODES = pytest.mark.parametrize("values", [{}, NAMED], ids=["all namespaces", "named namespaces"])


def roles(values: dict[str, Any], **where: str) -> list[helm.Manifest]:
    rendered = helm.objects(values, **where)
    return helm.of_kind("Role", rendered) + helm.of_kind("ClusterRole", rendered)


def bindings(values: dict[str, Any], **where: str) -> list[helm.Manifest]:
    rendered = helm.objects(values, **where)
    return helm.of_kind("RoleBinding", rendered) + helm.of_kind("ClusterRoleBinding", rendered)


def operator_role() -> helm.Manifest:
    """The ClusterRole that is bound to the operator; the others are for users."""
    (binding,) = helm.of_kind("ClusterRoleBinding", helm.objects())
    (role,) = [role for role in roles({}) if role["metadata"]["name"] == binding["roleRef"]["name"]]
    return role


def test_named_namespaces_give_no_cluster_scoped_right_at_all() -> None:
    kinds = {manifest["kind"] for manifest in helm.objects(NAMED)}

    assert not kinds & CLUSTER_SCOPED
    assert helm.of_kind("ClusterRole", helm.objects())  # they are there in the other mode


def test_named_namespaces_give_rights_there_and_a_lease_at_home() -> None:
    places = {role["metadata"]["namespace"]: role for role in roles(NAMED, namespace="ops")}

    assert places.keys() == {"orders", "billing", "ops"}
    assert {resource for resource, _ in helm.rules(places["ops"])} == {"leases.coordination.k8s.io"}
    assert helm.rules(places["orders"]) == helm.rules(places["billing"])


def test_both_modes_give_the_same_rights_in_a_namespace() -> None:
    in_namespace = next(role for role in roles(NAMED) if role["metadata"]["namespace"] == "orders")
    cluster_only = {"namespaces", "customresourcedefinitions", "nodes", "storageclasses"}

    everywhere = {
        key: verbs for key, verbs in helm.rules(operator_role()).items() if key[0].split(".")[0] not in cluster_only
    }

    assert everywhere == helm.rules(in_namespace)


@MODES
def test_no_rule_has_a_wildcard(values: dict[str, Any]) -> None:
    for role in roles(values):
        for rule in role["rules"]:
            assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]


@MODES
def test_secrets_can_never_be_deleted_or_replaced(values: dict[str, Any]) -> None:
    given = [
        verbs for role in roles(values) for (resource, _), verbs in helm.rules(role).items() if resource == "secrets"
    ]

    assert given
    assert all(verbs == {"create", "get", "list", "patch", "watch"} for verbs in given)


@MODES
def test_the_operator_cannot_raise_its_own_rights_or_enter_a_pod(values: dict[str, Any]) -> None:
    for role in roles(values):
        for (resource, _), verbs in helm.rules(role).items():
            assert not resource.endswith("rbac.authorization.k8s.io")
            assert resource not in {"pods/exec", "pods/attach", "pods/ephemeralcontainers", "serviceaccounts/token"}
            assert not verbs & {"bind", "escalate", "impersonate"}


@MODES
def test_no_cluster_is_made_replaced_or_deleted_by_the_operator(values: dict[str, Any]) -> None:
    bound = {binding["roleRef"]["name"] for binding in bindings(values)}
    given = [helm.rules(role) for role in roles(values) if role["metadata"]["name"] in bound]

    verbs = [rule[key] for rule in given for key in rule if key == ("queenclusters.queen-operator.dev", "")]
    assert verbs
    assert all(found == {"list", "patch", "watch"} for found in verbs)


@MODES
def test_every_binding_leads_to_a_role_of_the_chart_and_to_the_operators_account(values: dict[str, Any]) -> None:
    account = helm.deployment(values)["spec"]["template"]["spec"]["serviceAccountName"]
    known = {
        (role["kind"], role["metadata"].get("namespace"), role["metadata"]["name"])
        for role in roles(values, namespace="ops")
    }
    found = bindings(values, namespace="ops")

    assert found
    for binding in found:
        namespace = binding["metadata"].get("namespace")
        assert (binding["roleRef"]["kind"], namespace, binding["roleRef"]["name"]) in known
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "ops"}]


def test_the_lease_right_is_limited_to_the_operators_lease() -> None:
    (role,) = helm.of_kind("Role", helm.objects())

    assert helm.rules(role) == {
        ("leases.coordination.k8s.io", ""): {"create"},
        ("leases.coordination.k8s.io", "queen-operator"): {"get", "patch", "update"},
    }


def test_the_operator_reads_nothing_that_exists_once_per_kubernetes_cluster() -> None:
    resources = {resource for role in roles({}) for resource, _ in helm.rules(role)}

    assert not {"nodes", "namespaces", "storageclasses.storage.k8s.io"} & resources
    assert not any("customresourcedefinitions" in resource for resource in resources)


def test_users_with_edit_may_make_clusters_and_users_with_view_may_read_them() -> None:
    labels = "rbac.authorization.k8s.io/aggregate-to-"
    rendered = helm.of_kind("ClusterRole", helm.objects())
    edit = next(role for role in rendered if f"{labels}edit" in role["metadata"]["labels"])
    view = next(role for role in rendered if f"{labels}view" in role["metadata"]["labels"])

    assert "create" in helm.rules(edit)[("queenclusters.queen-operator.dev", "")]
    assert all("status" not in resource for resource, _ in helm.rules(edit))
    assert all(verbs == {"get", "list", "watch"} for verbs in helm.rules(view).values())


def test_without_rbac_nothing_of_it_is_rendered() -> None:
    kinds = {manifest["kind"] for manifest in helm.objects({"rbac": {"create": False}})}

    assert not kinds & (CLUSTER_SCOPED | {"Role", "RoleBinding"})


def test_an_account_of_ones_own_must_be_named() -> None:
    words = helm.refusal({"serviceAccount": {"create": False}})

    assert "serviceAccount.name: name the account to use" in words
    assert helm.of_kind("ServiceAccount", helm.objects({"serviceAccount": {"create": False, "name": "own"}})) == []


def test_the_security_page_lists_exactly_the_rights_that_are_rendered() -> None:
    page = (helm.CHECKOUT / "docs" / "security.md").read_text()
    rows = re.findall(r"^\| `([^`]+)`(?: named `([^`]+)`)? \| ([a-z, ]+) \| (\S.*) \|$", page, flags=re.MULTILINE)
    written = {(resource, name): set(verbs.split(", ")) for resource, name, verbs, _ in rows}
    (lease,) = helm.of_kind("Role", helm.objects())

    assert written == helm.rules(operator_role()) | helm.rules(lease)
