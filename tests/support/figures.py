"""Figures that tests measure, kept as files for the documentation."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import cache

FOLDER_VARIABLE = "QUEEN_FIGURES"


@dataclass(frozen=True)
class Figures:
    """Writes one JSON file for each name, such as `roll.image`; a later run replaces it."""

    folder: Path

    @classmethod
    def of_environment(cls) -> Figures:
        """Into the folder that QUEEN_FIGURES names, else into `.lab/figures` of the checkout."""
        return cls(Path(os.environ.get(FOLDER_VARIABLE) or cache.POINTERS / "figures"))

    def note(self, name: str, values: dict[str, Any]) -> None:
        """Keep the values under a name, with the time of the measurement."""
        self.folder.mkdir(parents=True, exist_ok=True)
        noted = {"name": name, "measured_at": datetime.now(UTC).isoformat(timespec="seconds"), **values}
        (self.folder / f"{name}.json").write_text(json.dumps(noted, indent=2) + "\n")
