"""Reads the few series that the operator needs from a broker's Prometheus page, and nothing else.

A page has a line for each queue and statistic, thousands on a busy cluster, of which five kinds matter here: a scan for
their names takes a fraction of what a full parser takes, and a page that was cut off is still good for what it holds.
"""

import re
from dataclasses import dataclass
from typing import Final

PENDING: Final = b"queen_file_buffer_pending"
FAILED: Final = b"queen_file_buffer_failed"
DATABASE_HEALTHY: Final = b"queen_file_buffer_db_healthy"
MAINTENANCE: Final = b"queen_maintenance_mode_enabled"

_NUMBER: Final = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
# Name, value and the optional time stamp of the text format; a line without its end may be half a number.
_GAUGE: Final = re.compile(
    rb"^("
    + b"|".join((PENDING, FAILED, DATABASE_HEALTHY, MAINTENANCE))
    + rb") +("
    + _NUMBER
    + rb")(?: +-?[0-9]+)?\r?\n",
    re.MULTILINE,
)
_CLUSTER: Final = re.compile(
    rb"^queen_cluster_[a-z_]+(?:\{[^\n]*\})? +" + _NUMBER + rb"(?: +-?[0-9]+)?\r?\n", re.MULTILINE
)
_LARGEST: Final = 2.0**53  # above it a float no longer tells one event from the next


@dataclass(frozen=True, slots=True)
class Page:
    """What a Prometheus page says; ``None`` is unknown: not there, there twice with two values, or not a number."""

    maintenance: bool | None = None
    pending: int | None = None
    failed_writes: int | None = None
    database_healthy: bool | None = None
    cluster_series: bool | None = None


def read_page(body: bytes, *, whole: bool) -> Page:
    """Return what ``body`` says; ``whole`` tells whether it is the complete page or only its beginning.

    The absence of ``queen_cluster_*`` means that the broker's own database read failed, but only on a complete page
    that a broker made: its four process gauges are on every page (text format 0.0.4, measured with 1.3.0).
    """
    found: dict[bytes, set[float]] = {}
    text = body if body.endswith(b"\n") or not whole else body + b"\n"
    for name, number in _GAUGE.findall(text):
        found.setdefault(name, set()).add(float(number))
    values = {name: numbers.pop() for name, numbers in found.items() if len(numbers) == 1}
    cluster = True if _CLUSTER.search(text) else None
    if cluster is None and whole and values:
        cluster = False
    return Page(
        maintenance=_flag(values.get(MAINTENANCE)),
        pending=_count(values.get(PENDING)),
        failed_writes=_count(values.get(FAILED)),
        database_healthy=_flag(values.get(DATABASE_HEALTHY)),
        cluster_series=cluster,
    )


def _flag(value: float | None) -> bool | None:
    return {0.0: False, 1.0: True}.get(value) if value is not None else None


def _count(value: float | None) -> int | None:
    if value is None or not 0 <= value <= _LARGEST or not value.is_integer():
        return None
    return int(value)
