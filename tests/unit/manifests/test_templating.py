"""Nothing of a user's breaks out of a template, and no mistake of ours goes unseen."""

import random
from pathlib import Path

import jinja2
import pytest

from queen_operator.manifests import templating
from queen_operator.manifests.templating import rendered

SURROGATES = range(0xD800, 0xE000)


def _through(value: object) -> object:
    return rendered("secret", metadata={"annotations": value}, data={})["metadata"]["annotations"]


def test_every_character_survives() -> None:
    for start in range(0, 0x110000, 0x4000):
        text = "".join(chr(code) for code in range(start, start + 0x4000) if code not in SURROGATES)
        assert _through({"key": text}) == {"key": text}


def test_random_text_survives_as_value_and_as_key() -> None:
    pieces = ["\\", '"', "'", "\n", "\r", "\t", "\x7f", "\x85", "\u2028", "{{", "}}", "{%", "#}", ": ", " #", "\\ud83d",
              "\\U0001f600", "\U0001f600", "<", "&", "\x00", "- ", "!!python", "<<", "a"]  # fmt: skip
    choice = random.Random(7)
    for _ in range(500):
        text = "".join(choice.choice(pieces) for _ in range(choice.randrange(1, 12)))
        assert _through({text: text, "list": [text]}) == {text: text, "list": [text]}


@pytest.mark.parametrize("value", [0, -1, 2**53, True, False, None, 0.5, [], {}, "yes", "0123", "1e3", "~", "="])
def test_every_type_survives(value: object) -> None:
    found = _through([value])
    assert found == [value]
    assert isinstance(found, list)
    assert type(found[0]) is type(value)


def test_a_value_that_a_template_lacks_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="data"):
        rendered("secret", metadata={})


def test_a_value_that_goes_in_without_tojson_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "careless.yaml.j2").write_text("name: {{ name }}\n")
    monkeypatch.setattr(templating, "_TEMPLATES", tmp_path)
    templating._environment.cache_clear()
    try:
        with pytest.raises(TypeError, match="without tojson"):
            rendered("careless", name="x")
    finally:
        templating._environment.cache_clear()
