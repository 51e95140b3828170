"""The tables of environment variables: no variable in two of them, and each value of a range judged at its ends."""

from __future__ import annotations

from collections import Counter

import pytest

from queen_operator.api import environment
from queen_operator.api.environment import Range
from queen_operator.api.environment_rules import owner_advice
from queen_operator.api.rules import violations
from tests.support.specs import env

_RANGES = [(numbers, name) for numbers in environment.WHOLE_NUMBERS for name in numbers.names]
_DECIMALS = [(numbers, name) for numbers in environment.DECIMALS for name in numbers.names]


def _tables() -> list[str]:
    numbers = [
        name for table in (environment.WHOLE_NUMBERS, environment.DECIMALS) for row in table for name in row.names
    ]
    free = [*environment.BOOLEANS, *environment.WORDS, *environment.NEVER_EMPTY, environment.SKIP_PATHS, *numbers]
    return [*free, *environment.OWNED, *environment.WITHOUT_EFFECT]


def test_no_variable_is_in_two_tables() -> None:
    twice = [name for name, count in Counter(_tables()).items() if count > 1]

    assert twice == []


def test_no_family_of_the_operator_swallows_a_variable_that_users_may_set() -> None:
    for name in _tables():
        owned = name in environment.OWNED

        assert (owner_advice(name) is not None) == owned, name


@pytest.mark.parametrize(("numbers", "name"), _RANGES, ids=[name for _, name in _RANGES])
def test_a_number_is_taken_inside_its_range_only(numbers: Range, name: str) -> None:
    good = [str(numbers.low), str(numbers.high)]
    bad = [str(numbers.low - 1), str(numbers.high + 1), "", "x", "1.5", f"{numbers.high}s", f" {numbers.low}"]

    assert [value for value in good if violations("orders", env(**{name: value}))] == []
    assert [value for value in bad if not violations("orders", env(**{name: value}))] == []


@pytest.mark.parametrize(("numbers", "name"), _DECIMALS, ids=[name for _, name in _DECIMALS])
def test_a_decimal_is_taken_inside_its_range_only(numbers: Range, name: str) -> None:
    good = [str(numbers.low), str(numbers.high), f"{numbers.high - 1}.25", f"{numbers.low}.0"]
    bad = ["-0.1", f"{numbers.high}.1", "", ".5", "1e0", "0,5", "nan", "inf"]

    assert [value for value in good if violations("orders", env(**{name: value}))] == []
    assert [value for value in bad if not violations("orders", env(**{name: value}))] == []


@pytest.mark.parametrize("name", environment.BOOLEANS)
def test_a_boolean_is_taken_in_the_spellings_that_the_broker_reads(name: str) -> None:
    good = ["true", "FALSE", "Yes", "no", "on", "OFF", "1", "0"]
    bad = ["ture", "2", "", "y", "enabled"]
    # Alone it is refused for another reason: it needs a second one.
    beside = {"QUEEN_KV_TRUSTED_PROXY": "1"} if name == environment.TENANCY else {}

    assert [value for value in good if violations("orders", env(**{name: value}, **beside))] == []
    assert [value for value in bad if not violations("orders", env(**{name: value}, **beside))] == []


def test_the_ceilings_that_the_operator_only_suggests_may_be_set() -> None:
    suggested = ("QUEEN_DEDUP_CACHE_MB", "QUEEN_ACK_REGISTRY_MB", "QUEEN_EPHEMERAL_MAX_BYTES")
    found = [
        name for name in (*suggested, "QUEEN_HOTLIST_RESEED_MS", "FILE_BUFFER_EVENTS_PER_FILE") if owner_advice(name)
    ]

    assert found == []
