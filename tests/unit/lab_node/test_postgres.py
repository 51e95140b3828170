from __future__ import annotations

import pytest

from lab.postgres import Postgres, identifier, literal
from lab.processes import ProcessId
from lab.progress import LabError

NO_NODE = ProcessId(4194305, 0, "no boot")


def test_names_and_passwords_cannot_leave_their_quotes() -> None:
    assert identifier('a"; DROP ROLE x; --') == '"a""; DROP ROLE x; --"'
    assert literal("it's") == "'it''s'"
    with pytest.raises(ValueError, match="no backslash"):
        literal("\\")


def test_the_service_has_no_selector_and_its_slice_leads_to_the_node() -> None:
    service, endpoints = Postgres(NO_NODE).service_manifests("shop", "postgres")

    assert "selector" not in service["spec"]
    assert endpoints["metadata"]["labels"]["kubernetes.io/service-name"] == "postgres"
    assert endpoints["endpoints"][0]["addresses"] == ["10.99.0.1"]
    assert {m["metadata"]["namespace"] for m in (service, endpoints)} == {"shop"}


def test_the_server_of_a_node_that_is_gone_says_so() -> None:
    server = Postgres(NO_NODE)

    assert not server.is_running()
    with pytest.raises(LabError, match="does not run any more"):
        server.sql("SELECT 1")
    with pytest.raises(LabError, match="cannot be frozen"):
        server.freeze()
    with pytest.raises(LabError, match="never started"):
        server.password()
