"""A healthy cluster called orders, from which each test changes one thing."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from queen_operator.api.spec import QueenClusterSpec
from queen_operator.manifests.context import Context
from queen_operator.manifests.references import references

GOLDEN = Path(__file__).with_name("golden")


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for name, change in changes.items():
        old = result.get(name)
        if isinstance(old, Mapping) and isinstance(change, Mapping):
            result[name] = _merged(old, change)
        else:
            result[name] = change
    return result


@pytest.fixture(scope="session")
def spec_of() -> Callable[[str], dict[str, Any]]:
    """Read the spec of one of the golden clusters, minimal or full."""
    return lambda kind: yaml.safe_load((GOLDEN / f"{kind}.spec.yaml").read_text())


@pytest.fixture(scope="session")
def make_context(spec_of: Callable[[str], dict[str, Any]]) -> Callable[..., Context]:
    """Make a context of the minimal cluster with changes merged into its spec, every Secret's content known."""

    def make(
        changes: Mapping[str, Any] | None = None,
        *,
        base: str = "minimal",
        content: Mapping[tuple[str, str], str] | None = None,
        **fields: Any,
    ) -> Context:
        spec = QueenClusterSpec.model_validate(_merged(spec_of(base), changes or {}))
        digests = {(ref.secret, ref.key): f"digest of {ref.secret}/{ref.key}" for ref in references("orders", spec)}
        known: dict[str, Any] = {
            "name": "orders",
            "namespace": "shop",
            "uid": "5c0f2a60-0000-4000-8000-000000000001",
            "spec": spec,
            "keeper_image": "registry.example/queen-operator:0.1.0",
            "secret_digests": digests | dict(content or {}),
        }
        return Context(**(known | fields))

    return make


@pytest.fixture(scope="session")
def env_of() -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the broker's environment of a Deployment by name: the text, or the Secret's name and key."""

    def entry(item: Mapping[str, Any]) -> Any:
        if "valueFrom" not in item:
            return item["value"]
        reference = item["valueFrom"]["secretKeyRef"]
        return reference["name"], reference["key"]

    def read(deployment: Mapping[str, Any]) -> dict[str, Any]:
        (broker,) = deployment["spec"]["template"]["spec"]["containers"]
        return {item["name"]: entry(item) for item in broker["env"]}

    return read
