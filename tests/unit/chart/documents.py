"""What the pages and examples of this checkout say, as data."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

CHECKOUT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"), *CHECKOUT.glob("examples/*.md")],
)
EXAMPLES = sorted(CHECKOUT.glob("examples/*.yaml"))


def name_of(path: Path) -> str:
    """Name of a file as a reader of the repository knows it."""
    return str(path.relative_to(CHECKOUT))


def yaml_blocks(page: Path) -> list[Any]:
    """Return every document in the page's fenced YAML blocks."""
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [document for block in blocks for document in yaml.safe_load_all(block)]


def prose(page: Path) -> str:
    """Return the page without code blocks, inline code and the targets of links."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def table_rows(page: Path, columns: int) -> list[list[str]]:
    """Return the cells of every row of tables with this many columns, head and rule left out."""
    rows = []
    lines = page.read_text().splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not line.startswith("| ") or following.startswith("|---"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == columns:
            rows.append(cells)
    return rows


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings give."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    """Return the targets of a page's links to files and anchors of this repository."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not target.startswith(("http://", "https://"))]


def model_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """Return the model inside ``Model``, ``Model | None`` or ``tuple[Model, ...]``, and whether there are many."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    is_list = getattr(annotation, "__origin__", None) is tuple
    found = [model_in(argument) for argument in get_args(annotation)]
    return next(((model, is_list or many) for model, many in found if model is not None), (None, False))


def fields(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every field as a user writes it, ``postgres.tls.enabled`` or ``broker.env[].name``."""
    for info in model.model_fields.values():
        here = f"{path}{info.alias}"
        yield here, info
        inner, many = model_in(info.annotation)
        if inner is not None:
            yield from fields(inner, f"{here}{'[]' if many else ''}.")


def unknown_fields(model: type[BaseModel], data: Mapping[str, Any], path: str = "") -> list[str]:
    """Return the keys of data that the model does not have; the model itself ignores them."""
    by_alias = {info.alias: info for info in model.model_fields.values()}
    found = [f"{path}{key}" for key in data if key not in by_alias]
    for key in data.keys() & by_alias.keys():
        inner, many = model_in(by_alias[key].annotation)
        if inner is not None:
            for item in data[key] if many else [data[key]]:
                found += unknown_fields(inner, item, f"{path}{key}.")
    return found


def default_of(info: FieldInfo) -> Any:
    """Return the default as a user would write it: a section of its own is ``{}``, no value and no items are None."""
    value = info.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel):
        return {}
    return None if value == () else value
