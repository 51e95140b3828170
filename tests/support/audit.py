"""Reading the API server's audit log: who sent which requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def position(audit_log: Path) -> int:
    """Where the log ends now, to count from later."""
    return audit_log.stat().st_size if audit_log.exists() else 0


def requests_of(audit_log: Path, user: str, since: int = 0) -> list[dict[str, Any]]:
    """Requests of a user after a position of the log, one entry each: a watch at its begin, others at their end."""
    with audit_log.open("rb") as file:
        file.seek(since)
        # The last line may be half-written.
        lines = file.read().split(b"\n")[:-1]
    entries = [entry for entry in map(json.loads, lines) if entry["user"]["username"] == user]
    return [entry for entry in entries if (entry["verb"] == "watch") == (entry["stage"] == "ResponseStarted")]
