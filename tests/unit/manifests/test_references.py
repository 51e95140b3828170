"""Which Secret keys are needed: all that a pod will ask for, and nothing that it will not."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from queen_operator.manifests import render
from queen_operator.manifests.context import Context
from queen_operator.manifests.references import Reference, references

MakeContext = Callable[..., Context]


def _asked_for(context: Context) -> set[tuple[str, str]]:
    deployment = render.broker_deployment(context, 0)
    env = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    found = (entry["valueFrom"]["secretKeyRef"] for entry in env if "valueFrom" in entry)
    return {(reference["name"], reference["key"]) for reference in found}


CHANGES: list[Mapping[str, Any]] = [
    {},
    {"postgres": {"tls": {"enabled": True, "caSecret": {"name": "ca", "key": "crt"}}}},
    {"postgres": {"tls": {"enabled": False, "caSecret": {"name": "ca", "key": "crt"}}}},
    {"postgres": {"passwordSecret": None, "credentialsSecret": {"name": "app"}}},
    {"postgres": {"host": None, "passwordSecret": None, "credentialsSecret": {"name": "app"}}},
    {"auth": {"enabled": True, "secret": {"name": "jwt", "key": "k"}}},
    {"auth": {"enabled": False, "secret": {"name": "jwt", "key": "k"}}},
    {"auth": {"enabled": True, "algorithm": "RS256", "publicKeySecret": {"name": "jwt", "key": "pem"}}},
    {"encryption": {"keySecret": {"name": "enc", "key": "key"}}},
    {"mesh": {"secret": {"name": "own", "key": "token"}}},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_exactly_what_the_pod_asks_for_is_referenced(changes: Mapping[str, Any], make_context: MakeContext) -> None:
    context = make_context(changes)
    assert {(ref.secret, ref.key) for ref in references("orders", context.spec)} == _asked_for(context)


def test_the_order_is_fixed_and_each_has_its_purpose(make_context: MakeContext) -> None:
    assert references("orders", make_context(base="full").spec) == (
        Reference("orders-app", "host", "PostgreSQL host"),
        Reference("orders-app", "port", "PostgreSQL port"),
        Reference("orders-app", "dbname", "PostgreSQL database name"),
        Reference("orders-app", "user", "PostgreSQL user"),
        Reference("orders-app", "password", "PostgreSQL password"),
        Reference("orders-ca", "ca.crt", "certificate authority of PostgreSQL"),
        Reference("orders-jwt", "public.pem", "JWT public key"),
        Reference("orders-encryption", "key", "encryption key"),
        Reference("orders-own-mesh", "token", "mesh secret"),
    )


def test_a_mesh_secret_that_nobody_named_is_the_generated_one(make_context: MakeContext) -> None:
    assert references("orders", make_context().spec)[-1] == Reference("orders-mesh", "secret", "mesh secret")
