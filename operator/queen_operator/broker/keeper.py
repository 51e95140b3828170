"""Reads the answer of a spool keeper; whatever is not exactly what a keeper says is unknown, never empty."""

import logging
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from queen_operator.planning.observed import Spool

_log = logging.getLogger(__name__)

_Count = Annotated[int, Field(ge=0)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Answer(BaseModel):
    """The keeper's JSON. Keys of a newer keeper are left alone; a missing or misshapen key spoils the answer."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    held: bool
    writable: bool
    files: _Count
    bytes: _Count
    events: _Count | None
    oldest_age_seconds: _Seconds | None
    unfinished_files: _Count
    quarantined_files: _Count
    broken_records: _Count
    free_bytes: _Count
    total_bytes: _Count


def read_spool(body: bytes, now: datetime) -> Spool | None:
    """Return what the keeper said at ``now``, or ``None`` when ``body`` is not a keeper's answer.

    Strict on purpose: a field that is missing or of another type would otherwise turn into a 0, and 0 files is what
    lets a broker be stopped and a volume be deleted.
    """
    try:
        answer = _Answer.model_validate_json(body)
    except ValidationError as problem:
        _log.debug("not a keeper's answer: %s", "; ".join(_sentence(error) for error in problem.errors()))
        return None
    return Spool(asked_at=now, **answer.model_dump())


def _sentence(error: object) -> str:
    """Say where and what, without the input: it is long and not ours."""
    if not isinstance(error, dict):
        return ""
    return f"{'.'.join(str(part) for part in error['loc'])} {error['msg']}".strip()
