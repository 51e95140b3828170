"""Refusals of ``spec.broker.env``, one rule for each way in which the broker would misread it."""

import re
from collections.abc import Callable, Iterable
from typing import Final

from queen_operator.api import environment
from queen_operator.api.rule import Message, Rule, cel_list, cel_map, cel_pattern, cel_text
from queen_operator.api.spec import BrokerSpec, EnvVar

_ENTRY: Final = "spec.broker.env[]"


def _is_one_of(names: Iterable[str], prefixes: Iterable[str] = ()) -> str:
    starts = [f"self.name.startsWith({cel_text(prefix)})" for prefix in prefixes]
    return " || ".join([f"self.name in {cel_list(names)}", *starts])


def _named(sentence: str) -> Message:
    """Make a message that begins with the variable's name."""
    return Message(cel=f"self.name + {cel_text(sentence)}", words=lambda entry: entry.name + sentence)


def _value_rule(names: Iterable[str], cel: str, holds: Callable[[str], bool], sentence: str) -> Rule:
    known = frozenset(names)

    def entry_holds(entry: EnvVar) -> bool:
        return entry.name not in known or holds(entry.value)

    cel_rule = f"!({_is_one_of(sorted(known))}) || ({cel})"
    return Rule(at=_ENTRY, cel=cel_rule, holds=entry_holds, message=_named(sentence), field=".value")


def _matches(pattern: str) -> tuple[str, Callable[[str], bool]]:
    return f"self.value.matches({cel_pattern(pattern)})", lambda value: re.fullmatch(pattern, value) is not None


def owner_advice(name: str) -> str | None:
    """Return what to use instead of a variable that the operator owns, or None when it is free."""
    for prefix, advice in environment.OWNED_PREFIXES.items():
        if name.startswith(prefix):
            return advice
    return environment.OWNED.get(name)


def _owned() -> Rule:
    advice = f"{cel_map(environment.OWNED.items())}[self.name]"
    for prefix, text in environment.OWNED_PREFIXES.items():
        advice = f"self.name.startsWith({cel_text(prefix)}) ? {cel_text(text)} : {advice}"
    belongs = " is set by the operator: "
    return Rule(
        at=_ENTRY,
        cel=f"!({_is_one_of(environment.OWNED, environment.OWNED_PREFIXES)})",
        holds=lambda entry: owner_advice(entry.name) is None,
        message=Message(
            cel=f"self.name + {cel_text(belongs)} + ({advice})",
            words=lambda entry: f"{entry.name}{belongs}{owner_advice(entry.name)}",
        ),
        field=".name",
    )


def _without_effect() -> Rule:
    def holds(entry: EnvVar) -> bool:
        return entry.name not in environment.WITHOUT_EFFECT and not entry.name.startswith(
            environment.WITHOUT_EFFECT_PREFIXES
        )

    return Rule(
        at=_ENTRY,
        cel=f"!({_is_one_of(environment.WITHOUT_EFFECT, environment.WITHOUT_EFFECT_PREFIXES)})",
        holds=holds,
        message=_named(" has no effect in Queen 1.x: leave it out"),
        field=".name",
    )


def _boolean() -> Rule:
    cel, holds = _matches(environment.BOOLEAN_PATTERN)
    return _value_rule(
        environment.BOOLEANS, cel, holds, ": write true or false, in quotes; the broker exits on anything else"
    )


def _whole_number(numbers: environment.Range) -> Rule:
    cel, matches = _matches(environment.WHOLE_NUMBER_PATTERN)
    return _value_rule(
        numbers.names,
        f"{cel} && int(self.value) >= {numbers.low} && int(self.value) <= {numbers.high}",
        lambda value: matches(value) and numbers.low <= int(value) <= numbers.high,
        f": write a whole number from {numbers.low} to {numbers.high}, digits only, in quotes",
    )


def _decimal(numbers: environment.Range) -> Rule:
    cel, matches = _matches(environment.DECIMAL_PATTERN)
    return _value_rule(
        numbers.names,
        f"{cel} && double(self.value) >= {numbers.low}.0 && double(self.value) <= {numbers.high}.0",
        lambda value: matches(value) and numbers.low <= float(value) <= numbers.high,
        f": write a number from {numbers.low} to {numbers.high}, such as 1 or 0.25, in quotes",
    )


def _words(name: str, words: tuple[str, ...]) -> Rule:
    listed = f"{', '.join(words[:-1])} or {words[-1]}"
    return _value_rule((name,), f"self.value in {cel_list(words)}", lambda value: value in words, f": write {listed}")


def _never_empty() -> Rule:
    return _value_rule(
        environment.NEVER_EMPTY,
        'self.value != ""',
        lambda value: value != "",
        ": write a name or leave it out; the broker would take empty as the name",
    )


def _skip_paths() -> Rule:
    cel, holds = _matches(environment.SKIP_PATHS_PATTERN)
    sentence = ": write paths that start with / and are separated by commas; one that ends in / would open all below it"
    return _value_rule((environment.SKIP_PATHS,), cel, holds, sentence)


def _tenancy() -> Rule:
    def is_on(name: str) -> str:
        matches = f"e.value.matches({cel_pattern(environment.TRUE_PATTERN)})"
        return f"self.env.exists(e, e.name == {cel_text(name)} && {matches})"

    def on(broker: BrokerSpec, name: str) -> bool:
        return any(entry.name == name and re.fullmatch(environment.TRUE_PATTERN, entry.value) for entry in broker.env)

    def holds(broker: BrokerSpec) -> bool:
        return not on(broker, environment.TENANCY) or on(broker, environment.TENANCY_NEEDS)

    return Rule(
        at="spec.broker",
        cel=f"!has(self.env) || !{is_on(environment.TENANCY)} || {is_on(environment.TENANCY_NEEDS)}",
        holds=holds,
        message=Message(
            f"{environment.TENANCY} needs {environment.TENANCY_NEEDS} as well: the broker exits without it"
        ),
        field=".env",
    )


def environment_rules() -> tuple[Rule, ...]:
    """Return all rules about ``spec.broker.env``."""
    rules = [_owned(), _without_effect(), _boolean()]
    rules += [_whole_number(numbers) for numbers in environment.WHOLE_NUMBERS]
    rules += [_decimal(numbers) for numbers in environment.DECIMALS]
    rules += [_words(name, words) for name, words in environment.WORDS.items()]
    rules += [_never_empty(), _skip_paths(), _tenancy()]
    return tuple(rules)
