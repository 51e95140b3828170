"""A state as JSON and as Prometheus text."""

from __future__ import annotations

from queen_operator.spool_keeper.state import State

Value = int | float | str | bool | None

NUMBERS = (
    "files",
    "bytes",
    "events",
    "unfinished_files",
    "quarantined_files",
    "quarantined_bytes",
    "quarantined_events",
    "broken_records",
)

# name, type, help. A number that is not known has no sample.
METRICS = (
    ("files", "gauge", "Spool files that wait for PostgreSQL, unfinished ones included."),
    ("bytes", "gauge", "Bytes in these files."),
    ("events", "gauge", "Messages in these files; absent while they are still being counted."),
    ("oldest_age_seconds", "gauge", "Age of the oldest of these files; absent when there is none."),
    ("unfinished_files", "gauge", "Files that the broker is still writing, or left unfinished when it was killed."),
    ("quarantined_files", "gauge", "Files that PostgreSQL refused and the broker set aside in failed/."),
    ("quarantined_bytes", "gauge", "Bytes in quarantined files."),
    ("quarantined_events", "gauge", "Messages in quarantined files; absent while they are still being counted."),
    ("broken_records", "gauge", "Files with a record that cannot be read; what follows it in its file is lost."),
    ("writable", "gauge", "Whether the broker can write to the spool (1) or not (0)."),
    ("lock_held", "gauge", "Whether this keeper holds the lock on the spool (1) or waits for it (0)."),
    ("free_bytes", "gauge", "Bytes that the broker can still write to the volume."),
    ("total_bytes", "gauge", "Size of the volume."),
    ("scrape_errors", "counter", "Times that the spool could not be read since the keeper's HTTP part started."),
)


def as_json(values: dict[str, Value]) -> str:
    """Render a flat object, in ASCII."""
    return "{" + ", ".join(f"{_quoted(name)}: {_json_value(value)}" for name, value in values.items()) + "}"


def _json_value(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    code = ord(character)
    if 32 <= code < 127 and character not in '"\\':
        return character
    if code > 0xFFFF:  # JSON escapes UTF-16 units
        return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"


def spool_values(state: State) -> dict[str, Value]:
    """The object of `/spool` and `report`; every number is null when the spool cannot be read."""
    contents = state.contents
    return {
        "held": state.held,
        "directory": state.directory,
        "writable": state.writable,
        **{name: getattr(contents, name) if contents else None for name in NUMBERS},
        "oldest_age_seconds": state.oldest_age_seconds,
        "free_bytes": state.free_bytes,
        "total_bytes": state.total_bytes,
        "error": state.error or None,
    }


def as_metrics(state: State, scrape_errors: int) -> str:
    """Render the Prometheus page (text format 0.0.4)."""
    values = spool_values(state) | {"lock_held": state.held, "scrape_errors": scrape_errors}
    lines = []
    for name, kind, meaning in METRICS:
        full = f"queen_spool_{name}"
        lines.append(f"# HELP {full} {meaning}\n# TYPE {full} {kind}\n")
        value = values[name]
        if value is not None:
            lines.append(f"{full} {float(value) if isinstance(value, float) else int(value)}\n")
    return "".join(lines)
