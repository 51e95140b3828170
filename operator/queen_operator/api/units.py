"""Durations and quantities as Kubernetes users write them, parsed once and compared by value."""

import re
from decimal import Decimal
from typing import Any, Final

# Digits are bounded so that neither CEL's duration() nor its quantity() can overflow on text that the pattern lets by.
DURATION_PATTERN: Final = r"^([0-9]{1,6}(ms|s|m|h))+$"
DURATION_MAX_LENGTH: Final = 16
QUANTITY_PATTERN: Final = r"^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?[0-9]{1,2})?$"
QUANTITY_MAX_LENGTH: Final = 32

_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_FACTORS: Final = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration such as ``30s``, ``1m30s`` or ``500ms``.

    Raises ValueError with a sentence when the text is not a duration.
    """
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{text!r} is not a duration: write a number and a unit, such as 500ms, 30s, 5m or 1h")
    parts = re.findall(r"([0-9]+)(ms|s|m|h)", text)
    return sum(int(number) * _MILLISECONDS[unit] for number, unit in parts)


def duration_seconds(text: str) -> int:
    """Return the whole seconds of a duration, rounded up: a grace period must never be shorter than the wait."""
    return -(-duration_ms(text) // 1000)


def quantity(value: str | int | float) -> Decimal:
    """Return the value of a Kubernetes quantity (``500m``, ``1Gi``, ``1e3``, ``2``) as a plain number.

    Raises ValueError with a sentence when it is not a quantity.
    """
    text = str(value)
    if not re.fullmatch(QUANTITY_PATTERN, text):
        raise ValueError(f"{text!r} is not a quantity: write a number and perhaps a unit, such as 500m, 128Mi or 5Gi")
    exponent = re.fullmatch(r"([0-9.]+)[eE]([-+]?[0-9]+)", text)
    if exponent:
        return Decimal(exponent[1]) * Decimal(10) ** int(exponent[2])
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", text).groups()  # type: ignore[union-attr]
    return Decimal(number) * _FACTORS[unit]


def check_quantity(value: Any) -> str | int:
    """Return a quantity as it is written; raises ValueError with a sentence when it is none, or below 0."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("must be a whole number or a quantity in quotes, such as 500m, 128Mi or 5Gi")
    if len(str(value)) > QUANTITY_MAX_LENGTH:
        raise ValueError(f"must have at most {QUANTITY_MAX_LENGTH} characters")
    quantity(value)
    return value


def same_quantity(one: str | int | float, other: str | int | float) -> bool:
    """Tell whether two quantities are equal however they are spelled; text that is no quantity equals only itself."""
    try:
        return quantity(one) == quantity(other)
    except ValueError:
        return str(one) == str(other)


def canonical_quantity(value: str | int | float) -> str:
    """Return one spelling for all equal quantities, for hashes; never shown to a person."""
    number = quantity(value).normalize()
    return f"{number:f}"
