"""What the API server says about a QueenCluster, as the offline check says it: `path: sentence`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubernetes import client, config

from queen_operator.api.names import GROUP, PLURAL, VERSION

Object = dict[str, Any]

# What Kubernetes puts before the words of a rule, depending on its reason and on the kind of the field.
_PREFIX = re.compile(r'^(Forbidden|Required value|Invalid value: ("(\\.|[^"\\])*"|[^ ]+)): ')


class QueenClusters:
    """QueenClusters of one namespace through the official client, every request checked strictly."""

    def __init__(self, kubeconfig: Path, namespace: str, group: str = GROUP, plural: str = PLURAL) -> None:
        self._where = (group, VERSION, namespace, plural)
        self._api = client.CustomObjectsApi(config.new_client_from_config(str(kubeconfig)))

    def create(self, resource: Object, *, dry_run: bool = False) -> Object:
        """Create, or only ask; ApiException when refused."""
        options = {"dry_run": "All"} if dry_run else {}
        made: Object = self._api.create_namespaced_custom_object(
            *self._where, resource, field_validation="Strict", **options
        )
        return made

    def patch(self, name: str, changes: Object, *, dry_run: bool = False) -> Object:
        """Change by merge patch; ApiException when refused."""
        options = {"dry_run": "All"} if dry_run else {}
        made: Object = self._api.patch_namespaced_custom_object(
            *self._where, name, changes, field_validation="Strict", **options
        )
        return made

    def replace_spec(self, name: str, spec: Object, *, dry_run: bool = False) -> Object:
        """Write a whole new spec; ApiException when refused."""
        options = {"dry_run": "All"} if dry_run else {}
        stored = self.get(name)
        made: Object = self._api.replace_namespaced_custom_object(
            *self._where, name, {**stored, "spec": spec}, field_validation="Strict", **options
        )
        return made

    def patch_status(self, name: str, status: Object) -> Object:
        """Write the status; ApiException when refused."""
        made: Object = self._api.patch_namespaced_custom_object_status(*self._where, name, {"status": status})
        return made

    def get(self, name: str) -> Object:
        """Return a stored one."""
        found: Object = self._api.get_namespaced_custom_object(*self._where, name)
        return found


def refusals(request: Callable[[], Object]) -> list[tuple[str, str]]:
    """Send a request; return (field, sentence) for everything the API server has against it, empty when accepted."""
    try:
        request()
    except client.ApiException as error:
        answer = json.loads(error.body)
        causes = answer.get("details", {}).get("causes")
        assert causes, f"refused for no cause: {answer}"
        return [(cause["field"], _PREFIX.sub("", cause["message"])) for cause in causes]
    return []


def in_one_line(found: list[tuple[str, str]]) -> list[str]:
    """Return refusals in the form of the offline check."""
    return [f"{field}: {sentence}" for field, sentence in found]
