import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from queen_operator.api.rules import violations
from queen_operator.api.spec import BrokerSpec, QueenClusterSpec
from queen_operator.api.status import ConditionType, Phase, QueenClusterStatus
from queen_operator.manifests.timing import PRE_STOP_SECONDS, STARTUP_BUDGET_SECONDS, grace_seconds
from queen_operator.planning.observed import DatabaseState
from queen_operator.planning.reasons import Reason
from tests.unit.chart import documents

BELITTLING = re.compile(r"\b(just|easy|easily|simple|simply|obviously|of course)\b", re.IGNORECASE)
pages = pytest.mark.parametrize("page", documents.PAGES, ids=documents.name_of)


def clusters() -> Iterator[Any]:
    """Yield every QueenCluster in an example or on a page."""
    for path in documents.EXAMPLES:
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            if document["kind"] == "QueenCluster":
                yield pytest.param(document, id=f"{documents.name_of(path)}-{number}")
    for page in documents.PAGES:
        for number, document in enumerate(documents.yaml_blocks(page)):
            if document.get("kind") == "QueenCluster":
                yield pytest.param(document, id=f"{documents.name_of(page)}-{number}")


def statuses() -> list[Any]:
    """Every status that a page shows."""
    return [block["status"] for page in documents.PAGES for block in documents.yaml_blocks(page) if "status" in block]


def test_the_readme_and_the_examples_have_clusters_to_look_at() -> None:
    places = {str(parameter.id).rsplit("-", 1)[0] for parameter in clusters()}

    assert {"README.md", "examples/minimal.yaml", "examples/queencluster.yaml", "examples/production.yaml"} <= places


@pytest.mark.parametrize("cluster", list(clusters()))
def test_every_cluster_that_we_show_is_one_that_the_operator_accepts(cluster: dict[str, Any]) -> None:
    spec = QueenClusterSpec.model_validate(cluster["spec"])
    broken = violations(cluster["metadata"]["name"], spec)

    assert broken == []
    assert documents.unknown_fields(QueenClusterSpec, cluster["spec"]) == []
    assert cluster["apiVersion"] == "queen-operator.dev/v1alpha1"
    assert cluster["metadata"].keys() == {"name"}


def test_a_misspelled_field_in_an_example_would_be_found() -> None:
    spec = {"version": "1.3.0", "postgres": {"hots": "x", "tls": {"on": True}}, "broker": {"env": [{"nam": "A"}]}}

    found = documents.unknown_fields(QueenClusterSpec, spec)

    assert sorted(found) == ["broker.env.nam", "postgres.hots", "postgres.tls.on"]


def test_every_status_that_we_show_is_one_that_the_operator_can_write() -> None:
    assert statuses()
    for status in statuses():
        read = QueenClusterStatus.model_validate(status)
        assert documents.unknown_fields(QueenClusterStatus, status) == []
        assert {condition.type for condition in read.conditions} <= set(ConditionType)
        assert {condition.reason for condition in read.conditions} <= set(Reason) | set(DatabaseState)
        assert read.database is None or read.database.state in set(DatabaseState)


@pytest.mark.parametrize("path", documents.EXAMPLES, ids=documents.name_of)
def test_no_example_names_a_namespace(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        assert "namespace" not in document["metadata"]


def test_the_list_of_examples_is_complete() -> None:
    page = documents.CHECKOUT / "examples" / "README.md"

    assert {row[0] for row in documents.table_rows(page, columns=2)} == {
        f"[{path.name}]({path.name})" for path in documents.EXAMPLES
    }


def test_the_configuration_page_has_every_field_with_the_default_of_the_model() -> None:
    page = documents.CHECKOUT / "docs" / "configuration.md"
    rows = [row for row in documents.table_rows(page, columns=3) if row[0].startswith("`") and "/" not in row[0]]
    written = {row[0].strip("`"): row[1] for row in rows}
    model = dict(documents.fields(QueenClusterSpec))

    assert written.keys() == model.keys()
    for name, info in model.items():
        cell = written[name]
        if info.is_required():
            assert cell == "required", name
        elif documents.default_of(info) is None:
            assert cell == "none", name
        else:
            assert yaml.safe_load(cell.strip("`")) == documents.default_of(info), name


def test_the_troubleshooting_page_has_every_reason_phase_condition_and_database_state_and_no_other() -> None:
    page = documents.CHECKOUT / "docs" / "troubleshooting.md"
    sections = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)

    def first_cells(title: str) -> list[str]:
        section = next(text for text in sections if text.startswith(f"{title}\n"))
        return re.findall(r"^\| (\w+) \|", re.sub(r"^\| .*\n(?=\|---)", "", section, flags=re.MULTILINE), re.MULTILINE)

    assert sorted(first_cells("Reasons")) == sorted(Reason)
    assert sorted(first_cells("Conditions")) == sorted(ConditionType)
    assert sorted(first_cells("The database")) == sorted(set(DatabaseState) - {DatabaseState.REACHABLE})
    opening = re.findall(r"^\| (\w+) \| .* \| .* \|$", sections[0], re.MULTILINE)
    assert sorted(set(opening) - {"Phase"}) == sorted(Phase)


def test_the_concepts_page_tells_every_database_state() -> None:
    page = documents.CHECKOUT / "docs" / "concepts.md"
    cells = {row[0] for row in documents.table_rows(page, columns=2)}

    assert set(DatabaseState) <= cells


@pytest.mark.parametrize("max_pop_timeout", ["60s", "120s"])
def test_the_concepts_page_computes_the_grace_period_as_the_operator_does(max_pop_timeout: str) -> None:
    page = (documents.CHECKOUT / "docs" / "concepts.md").read_text()
    spec = QueenClusterSpec.model_validate(
        {"version": "1.3.0", "postgres": {"host": "postgres", "passwordSecret": {"name": "s"}}}
    ).model_copy(update={"broker": BrokerSpec(max_pop_timeout=max_pop_timeout)})

    assert f"= **{grace_seconds(spec)} s**" in page
    assert f"| preStop | {PRE_STOP_SECONDS} s |" in page
    assert f"| startup | TCP connect, for {STARTUP_BUDGET_SECONDS // 60} minutes |" in page


@pages
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in documents.links(page):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        assert not anchor or anchor in documents.anchors(path), link


def test_the_list_of_decisions_is_complete() -> None:
    folder = documents.CHECKOUT / "docs" / "adr"
    pages_there = sorted(path.name for path in folder.glob("[0-9]*.md"))

    assert sorted(documents.links(folder / "README.md")) == pages_there


@pytest.mark.parametrize("page", sorted((documents.CHECKOUT / "docs" / "adr").glob("[0-9]*.md")), ids=documents.name_of)
def test_every_decision_says_context_decision_consequences_and_alternatives(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)

    assert headings == ["Context", "Decision", "Consequences", "Alternatives"]
    assert page.read_text().startswith(f"# {page.name[:4]}: ")


@pages
def test_no_page_belittles_the_work_of_its_reader(page: Path) -> None:
    assert BELITTLING.findall(documents.prose(page)) == []


def test_the_license_is_the_whole_apache_license() -> None:
    text = (documents.CHECKOUT / "LICENSE").read_text()

    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
