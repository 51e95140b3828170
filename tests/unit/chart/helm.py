"""The real helm program on the chart of this checkout: renders and refusals as data."""

import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab import cache

CHECKOUT = Path(__file__).resolve().parents[3]
CHART = CHECKOUT / "charts" / "queen-operator"
Manifest = dict[str, Any]


def program() -> str | None:
    """Path of helm: the laboratory's own, else the one on the PATH, else None."""
    own = cache.bin_dir() / "helm"
    return str(own) if own.exists() else shutil.which("helm")


def run(*arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm with its own empty home, values on its standard input; never raises for an exit code."""
    found = program()
    assert found is not None
    with tempfile.TemporaryDirectory() as home:
        homes = {f"HELM_{kind}_HOME": f"{home}/{kind}" for kind in ("CACHE", "CONFIG", "DATA")}
        given = ("--values", "-") if values is not None else ()
        return subprocess.run(
            [found, *arguments, *given],
            # JSON and not YAML: PyYAML writes the text 1e3 without quotes, which Go reads as a number.
            input=None if values is None else json.dumps(values),
            env={"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": f"{home}/none", **homes},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@functools.cache
def _text(release: str, namespace: str, values: str) -> str:
    arguments = ("template", release, str(CHART), "--namespace", namespace)
    done = run(*arguments, values=json.loads(values))
    assert done.returncode == 0, done.stderr
    return done.stdout


def text(
    values: Mapping[str, Any] | None = None, release: str = "queen-operator", namespace: str = "queen-operator"
) -> str:
    """Render the chart and return helm's output; the same question is asked once per test run."""
    return _text(release, namespace, json.dumps(values or {}))


def objects(
    values: Mapping[str, Any] | None = None, release: str = "queen-operator", namespace: str = "queen-operator"
) -> list[Manifest]:
    """Render the chart and return its objects."""
    return [document for document in yaml.safe_load_all(text(values, release, namespace)) if document]


def refusal(values: Mapping[str, Any]) -> str:
    """Return what helm says to values that it must refuse; fails when it accepts them."""
    done = run("template", "queen-operator", str(CHART), values=values)
    assert done.returncode != 0, f"helm accepted {values}"
    return done.stderr


def of_kind(kind: str, manifests: list[Manifest]) -> list[Manifest]:
    """Return the objects of one kind, in the order of the render."""
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def deployment(values: Mapping[str, Any] | None = None, **where: str) -> Manifest:
    """Return the operator's Deployment."""
    (found,) = of_kind("Deployment", objects(values, **where))
    return found


def container(values: Mapping[str, Any] | None = None) -> Manifest:
    """Return the operator's container."""
    (found,) = deployment(values)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def environment(values: Mapping[str, Any] | None = None) -> dict[str, Manifest]:
    """Return the operator's environment by name."""
    return {variable["name"]: variable for variable in container(values)["env"]}


def rules(manifest: Manifest) -> dict[tuple[str, str], set[str]]:
    """Verbs of a Role by (resource as kubectl writes it, named object or "")."""
    found: dict[tuple[str, str], set[str]] = {}
    for rule in manifest["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                full = f"{resource}.{group}" if group else resource
                for name in rule.get("resourceNames", [""]):
                    found.setdefault((full, name), set()).update(rule["verbs"])
    return found
