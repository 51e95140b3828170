"""Does a live object say everything that a manifest wants?

What others added, and what the server filled in, is none of our business: a writer that takes it away fights for ever.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from queen_operator.api.names import CONFIG_ANNOTATION
from queen_operator.api.units import same_quantity

# Lists that server-side apply treats as maps: the field that holds the list -> the fields that name an entry.
_MERGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "volumeMounts": ("mountPath",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "ownerReferences": ("uid",),
}
_CONTAINER_PORT_KEYS: Final = ("containerPort", "protocol")
_SERVICE_PORT_KEYS: Final = ("port", "protocol")
_KEY_DEFAULTS: Final = {"protocol": "TCP"}
# Maps that server-side apply replaces as a whole: an entry that only the live one has changes what is selected.
_WHOLE: Final = frozenset({".selector", ".matchLabels", ".nodeSelector"})
_QUANTITY_FIELDS: Final = frozenset({".requests", ".limits"})
_LONGEST_WORDS: Final = 120
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    path: Path
    wanted: Any
    live: Any


def difference(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> str | None:
    """Return the first place where ``live`` does not say what ``wanted`` says, with both values; None if there is none.

    An entry that only ``live`` has is no difference, save in a selector, and a wanted empty value equals a missing
    one, since the server drops it. Of the metadata only labels, annotations and owner references count; the annotation
    that says what a template was made from does not: it is told apart by cause. Values of Secrets and environment
    variables are never in the text. Source of the keys of lists: what server-side apply merges by.
    """
    found = _first_difference(_what_counts(wanted), live, ())
    if found is None:
        return None
    place = "".join(found.path)
    if _is_hidden(found.path, is_secret=wanted.get("kind") == "Secret"):
        return f"{place}: another value is wanted"
    return f"{place}: wanted {_words(found.wanted)}, found {_words(found.live)}"


def _what_counts(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Without what paired the two objects (kind, name) and what the server and others write into the metadata."""
    counts = {field: value for field, value in wanted.items() if field not in ("apiVersion", "kind", "status")}
    if "metadata" in wanted:
        counting = ("labels", "annotations", "ownerReferences")
        counts["metadata"] = {field: value for field, value in wanted["metadata"].items() if field in counting}
    return counts


def _first_difference(wanted: Any, live: Any, path: Path) -> _Found | None:
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return _of_maps(wanted, live, path)
    if isinstance(wanted, list | tuple) and isinstance(live, list | tuple):
        return _of_lists(wanted, live, path)
    return None if _same(wanted, live, path) else _Found(path, wanted, live)


def _of_maps(wanted: Mapping[str, Any], live: Mapping[str, Any], path: Path) -> _Found | None:
    for name, value in wanted.items():
        found = None
        if name != CONFIG_ANNOTATION:
            found = _first_difference(value, live.get(name), (*path, _step(name)))
        if found is not None:
            return found
    beside = sorted(set(live) - set(wanted)) if path and path[-1] in _WHOLE else []
    return _Found((*path, _step(beside[0])), None, live[beside[0]]) if beside else None


def _of_lists(wanted: Sequence[Any], live: Sequence[Any], path: Path) -> _Found | None:
    if not all(isinstance(entry, Mapping) for entry in wanted):
        return None if list(wanted) == list(live) else _Found(path, wanted, live)
    keys = _merge_keys(wanted, path)
    if keys:
        return _of_keyed_lists(wanted, live, path, keys)
    for position, entry in enumerate(wanted):
        if all(_first_difference(entry, other, path) is not None for other in live):
            return _Found((*path, f"[{position}]"), entry, None)
    return None


def _of_keyed_lists(
    wanted: Sequence[Mapping[str, Any]], live: Sequence[Any], path: Path, keys: tuple[str, ...]
) -> _Found | None:
    entries = {_key(entry, keys): entry for entry in live if isinstance(entry, Mapping)}
    for entry in wanted:
        key = _key(entry, keys)
        found = _first_difference(entry, entries.get(key), (*path, f"[{'/'.join(key)}]"))
        if found is not None:
            return found
    return None


def _merge_keys(wanted: Sequence[Mapping[str, Any]], path: Path) -> tuple[str, ...]:
    field = path[-1].removeprefix(".") if path else ""
    if field == "ports":
        return _CONTAINER_PORT_KEYS if any("containerPort" in entry for entry in wanted) else _SERVICE_PORT_KEYS
    return _MERGE_KEYS.get(field, ())


def _key(entry: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(entry.get(key, _KEY_DEFAULTS.get(key, ""))) for key in keys)


def _same(wanted: Any, live: Any, path: Path) -> bool:
    if wanted is None or (not wanted and live is None):
        return True
    if isinstance(wanted, bool) or isinstance(live, bool):
        return wanted is live
    if isinstance(wanted, int | float | str) and isinstance(live, int | float | str):
        if _QUANTITY_FIELDS.intersection(path[-2:-1]):
            return same_quantity(wanted, live)
        # A port may come back as text where it went in as a number.
        return str(wanted) == str(live)
    return bool(wanted == live)


def _step(name: str) -> str:
    return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"[{name}]"


def _is_hidden(path: Path, *, is_secret: bool) -> bool:
    if is_secret and path[0] in (".data", ".stringData"):
        return True
    return ".env" in path and path[-1] == ".value"


def _words(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "an entry"  # never its content, which may be a variable with a value
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        return "entries"
    text = str(value)
    return text if len(text) <= _LONGEST_WORDS else f"{text[:_LONGEST_WORDS]}..."
