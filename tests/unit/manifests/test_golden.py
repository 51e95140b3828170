"""Every child of two clusters, byte for byte, so that a changed template is seen before a release.

A change here is taken up by running clusters at their next restart and shows as RestartPending until then: say so in
the release notes. A change of the config annotation alone would restart every cluster at the upgrade: do not make it.
After an intended change: `UPDATE_GOLDEN=1 pytest tests/unit/manifests/test_golden.py`, then read the diff.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from queen_operator.manifests import render
from queen_operator.manifests.context import Context

GOLDEN = Path(__file__).with_name("golden")


def _children(context: Context) -> list[dict[str, Any]]:
    identity = render.database_identity(context)
    budget = render.disruption_budget(context)
    return [
        render.service_account(context),
        render.mesh_secret(context, "a value made elsewhere"),
        *([budget] if budget else []),
        *render.client_services(context),
        render.broker_service(context, 0),
        render.broker_claim(context, 0, database=identity),
        render.broker_deployment(context, 0),
        render.report_pod(context, 0, "c1a10000-0000-4000-8000-000000000002", owned=True),
    ]


@pytest.mark.parametrize("kind", ["minimal", "full"])
def test_the_children_are_what_the_last_release_rendered(kind: str, make_context: Callable[..., Context]) -> None:
    file = GOLDEN / f"{kind}.yaml"
    text = yaml.safe_dump_all(_children(make_context(base=kind)), sort_keys=False, allow_unicode=True, width=120)
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
