"""JSON that a YAML reader takes too: for templates, and for server-side apply, whose body is read as YAML.

Ordinary JSON is not quite YAML. A character beyond U+FFFF is a pair of escapes there, which the API server refuses
(`found invalid Unicode character escape code`); unescaped, it refuses some control characters instead (`control
characters are not allowed`). So everything beyond printable ASCII is escaped, in YAML's own way.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final

_SURROGATE_PAIR: Final = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")


def yaml_json(value: Any, *, default: Callable[[Any], Any] | None = None) -> str:
    """Return a JSON value as text that YAML readers take for the same value.

    ``default`` stands in for what has no JSON; without it that is a TypeError.
    """
    text = json.dumps(value, default=default)
    # A backslash of the value's own is doubled in the text, so that what looks like a pair of escapes is one.
    return _SURROGATE_PAIR.sub(_one_escape, text).replace("\x7f", "\\u007f")


def _one_escape(pair: re.Match[str]) -> str:
    high, low = (int(half, 16) for half in pair.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"
