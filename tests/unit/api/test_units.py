"""Durations and quantities: by value, however they are spelled."""

from __future__ import annotations

from decimal import Decimal

import pytest

from queen_operator.api.units import canonical_quantity, check_quantity, duration_ms, duration_seconds, quantity
from queen_operator.api.units import same_quantity as same


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500ms", 500), ("30s", 30_000), ("1m30s", 90_000), ("2h", 7_200_000), ("0s", 0), ("1h1m1s1ms", 3_661_001)],
)
def test_a_duration_is_read_in_milliseconds(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "30", "1.5s", "-1s", "1 s", "s", "1d", "1s\n", "1234567s"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: write a number and a unit, such as 500ms"):
        duration_ms(text)


def test_a_part_of_a_second_counts_as_a_whole_one() -> None:
    assert [duration_seconds(text) for text in ("1ms", "1000ms", "1001ms")] == [1, 1, 2]


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", "0.5"), ("1Gi", "1073741824"), ("1G", "1e9"), ("1e3", "1000"), ("1E", "1e18"), ("0.1", "0.1"), (7, "7")],
)
def test_a_quantity_is_read_exactly(text: str | int, value: str) -> None:
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "banana", "-1", "1GB", "1 Gi", "1gi", "0x10", "1e999", ".5", "1\n"])
def test_what_is_no_quantity_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity: write a number and perhaps a unit, such as 500m"):
        check_quantity(text)


@pytest.mark.parametrize("value", [True, 1.5, None, [1], {"a": 1}])
def test_what_is_neither_number_nor_text_is_no_quantity(value: object) -> None:
    with pytest.raises(ValueError, match="must be a whole number or a quantity in quotes"):
        check_quantity(value)


def test_equal_quantities_are_equal_in_every_spelling() -> None:
    assert same("1Gi", "1024Mi")
    assert same(1, "1000m")
    assert not same("1G", "1Gi")
    assert canonical_quantity("1.5Gi") == canonical_quantity("1536Mi") == "1610612736"
