"""What is refused, and with which words. The API server is held to the same table in tests/api."""

from __future__ import annotations

import pytest

from queen_operator.api.reading import read_spec
from queen_operator.api.rule import Rule, Transition
from queen_operator.api.rules import RULES, TRANSITIONS, violations
from tests.support.specs import CASES, MISSHAPEN, Case, Spec

_ALL: tuple[Rule | Transition, ...] = (*RULES, *TRANSITIONS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_resource_is_told_everything_that_is_wrong_with_it(case: Case) -> None:
    old = None if case.old is None else read_spec(case.old)

    assert sorted(violations(case.name, case.spec, old)) == sorted(case.says)


@pytest.mark.parametrize(("spec", "field"), [row[1:] for row in MISSHAPEN], ids=[row[0] for row in MISSHAPEN])
def test_a_misshapen_spec_is_told_which_field_it_is(spec: Spec, field: str) -> None:
    told = violations("orders", spec)

    assert [line.split(": ", 1)[0] for line in told] == [field]


def test_a_model_is_checked_like_a_dict() -> None:
    bad = next(case for case in CASES if case.id == "several at once")

    assert violations("orders", read_spec(bad.spec)) == violations("orders", bad.spec)


def test_every_rule_is_broken_by_some_case_of_the_table() -> None:
    told = {line.split(": ", 1)[1] for case in CASES for line in case.says}
    silent = [rule.cel for rule in _ALL if rule.message.fixed and rule.message.fixed not in told]

    assert silent == []


def test_a_rule_either_has_fixed_words_or_makes_them_in_both_languages() -> None:
    for rule in _ALL:
        made = bool(rule.message.cel), rule.message.words is not None

        assert made in ({(True, True)} if not rule.message.fixed else {(False, False)}), rule.cel
