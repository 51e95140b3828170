"""Rules about the spool: how large its volumes may be, and what a claim cannot follow."""

from typing import Final

from queen_operator.api.rule import Message, Rule, Transition
from queen_operator.api.spool_spec import SpoolSpec
from queen_operator.api.units import quantity

_MIB: Final = 1024 * 1024


def spool_rules() -> tuple[Rule, ...]:
    """Return the rules about sizes."""

    def room_to_grow(spool: SpoolSpec) -> bool:
        return spool.auto_grow is None or quantity(spool.auto_grow.max) >= quantity(spool.size)

    most, size = "string(self.autoGrow.max)", "string(self.size)"
    return (
        _at_least_a_mebibyte("spec.spool.size"),
        _at_least_a_mebibyte("spec.spool.autoGrow.step"),
        Rule(
            at="spec.spool",
            cel=(
                f"!has(self.autoGrow) || !has(self.size) || !isQuantity({most}) || !isQuantity({size})"
                f" || quantity({most}).compareTo(quantity({size})) >= 0"
            ),
            holds=room_to_grow,
            message=Message("not less than spool.size: a volume never shrinks"),
            field=".autoGrow.max",
        ),
    )


def _at_least_a_mebibyte(at: str) -> Rule:
    return Rule(
        at=at,
        cel='!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity("1Mi")) >= 0',
        holds=lambda size: quantity(size) >= _MIB,
        message=Message("at least 1Mi: write the unit, as in 5Gi"),
    )


def transitions() -> tuple[Transition, ...]:
    """Return the rules about changes: what a claim cannot follow is refused before anybody waits for it."""

    def same_class(new: SpoolSpec, old: SpoolSpec) -> bool:
        return new.storage_class_name == old.storage_class_name

    return (
        Transition(
            at="spec.spool.size",
            cel=(
                "!isQuantity(string(self)) || !isQuantity(string(oldSelf))"
                " || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0"
            ),
            holds=lambda new, old: quantity(new) >= quantity(old),
            message=Message(
                cel='"a volume cannot shrink: " + string(oldSelf) + " to " + string(self)',
                words=lambda new, old: f"a volume cannot shrink: {old} to {new}",
            ),
        ),
        Transition(
            at="spec.spool",
            cel=(
                "has(self.storageClassName) == has(oldSelf.storageClassName)"
                " && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)"
            ),
            holds=same_class,
            message=Message("cannot be changed: a claim keeps the class that it was made with"),
            field=".storageClassName",
        ),
        Transition(
            at="spec.spool.accessMode",
            cel="self == oldSelf",
            holds=lambda new, old: bool(new == old),
            message=Message("cannot be changed: a claim keeps the mode that it was made with"),
        ),
    )
