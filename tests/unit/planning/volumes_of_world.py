"""Volumes of the small world, and what keepers and report pods say of them."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queen_operator.planning.observed import Spool

Json = dict[str, Any]

FILE_BYTES = 100
FILE_EVENTS = 10


@dataclass
class Volume:
    """What lies on one volume. ``drained`` counts the files that a broker has stored in PostgreSQL."""

    files: int = 0
    quarantined: int = 0
    drained: int = 0

    @property
    def empty(self) -> bool:
        return self.files == 0 and self.quarantined == 0

    def drain(self, files: int) -> None:
        gone = min(files, self.files)
        self.files -= gone
        self.drained += gone


def keeper_says(volume: Volume, now: datetime) -> Spool:
    """What the keeper beside a broker answers."""
    files, held = volume.files, volume.files * FILE_BYTES
    oldest = 3.0 if files else None
    return Spool(
        now, True, True, files, held, files * FILE_EVENTS, oldest, 0, volume.quarantined, 0, 9 * 2**30, 10 * 2**30
    )


def report_ended(volume: Volume, *, lock_is_free: bool) -> Json:
    """State of the container of a report pod that has looked."""
    said = {
        "held": lock_is_free,
        "files": volume.files,
        "bytes": volume.files * FILE_BYTES,
        "events": volume.files * FILE_EVENTS,
        "quarantined_files": volume.quarantined,
    }
    code = 4 if not lock_is_free else 0 if volume.empty else 3
    return {"terminated": {"exitCode": code, "message": json.dumps(said)}}
