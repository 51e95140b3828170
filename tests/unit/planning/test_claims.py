"""What a live claim goes on saying about its spool, whatever is wanted of new claims."""

from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.manifests import render
from queen_operator.planning.claims import kept_claim
from queen_operator.planning.views import annotations
from tests.unit.planning.scene import MINIMAL, UID, context_of

OURS = "pg:5432/queen"


def _kept(live_annotations: dict[str, str] | None, *, moved: bool = False) -> dict[str, str]:
    claim = render.broker_claim(context_of(MINIMAL), 0, database=OURS)
    live: dict[str, Any] = {**claim, "metadata": {**claim["metadata"], "annotations": live_annotations}}
    return dict(annotations(kept_claim(claim, live, moved)))


def test_a_new_claim_says_which_cluster_writes_to_it() -> None:
    claim = render.broker_claim(context_of(MINIMAL), 0, database=OURS)
    assert annotations(claim) == {names.CLUSTER_UID_ANNOTATION: UID, names.DATABASE_ANNOTATION: OURS}


@pytest.mark.parametrize("moved", [False, True])
def test_a_claim_of_an_earlier_cluster_goes_on_naming_that_one(moved: bool) -> None:
    assert _kept({names.CLUSTER_UID_ANNOTATION: "earlier"}, moved=moved)[names.CLUSTER_UID_ANNOTATION] == "earlier"


@pytest.mark.parametrize("live", [None, {}, {"example.com/note": "x"}])
def test_a_claim_that_names_no_cluster_is_not_given_one(live: dict[str, str] | None) -> None:
    assert _kept(live) == {names.DATABASE_ANNOTATION: OURS}


def test_a_claim_follows_to_another_database_only_once_it_was_emptied() -> None:
    live = {names.DATABASE_ANNOTATION: "old:5432/queen"}
    assert _kept(live)[names.DATABASE_ANNOTATION] == "old:5432/queen"
    assert _kept(live, moved=True)[names.DATABASE_ANNOTATION] == OURS
