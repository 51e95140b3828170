"""One-shot pods of the spool keeper that look at a volume no broker uses, and what each of them found."""

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from queen_operator.api import names
from queen_operator.planning.observed import JsonObject, Observed
from queen_operator.planning.views import annotations, condition, labels, parse_time

# Exit codes of the keeper's `report`; anything else is no answer.
_EXIT_EMPTY: Final = 0
_EXIT_NOT_EMPTY: Final = 3


class Verdict(StrEnum):
    """What a report pod says of its volume; unknown is never empty."""

    LOOKING = "looking"
    EMPTY = "empty"
    NOT_EMPTY = "not empty"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Held:
    """What a volume held when it was last looked at, quarantine apart. ``None`` numbers are unknown."""

    files: int
    bytes: int
    events: int | None
    quarantined_files: int

    @property
    def empty(self) -> bool:
        """Nothing is on the volume, quarantine included."""
        return self.files == 0 and self.quarantined_files == 0

    @property
    def sentence(self) -> str:
        """In words, with numbers."""
        messages = f" with {self.events} messages" if self.events is not None else ""
        return f"{self.files} files{messages} ({self.bytes} bytes) and {self.quarantined_files} quarantined files"

    def as_annotation(self) -> str:
        """As it is kept on the claim."""
        return json.dumps(
            {
                "files": self.files,
                "bytes": self.bytes,
                "events": self.events,
                "quarantinedFiles": self.quarantined_files,
            }
        )


def held_of_claim(claim: JsonObject | None) -> Held | None:
    """What a claim's annotation says that its volume held; None when nobody looked, or it cannot be read."""
    text = annotations(claim).get(names.HELD_ANNOTATION) if claim is not None else None
    return _held(_object(text), "quarantinedFiles")


@dataclass(frozen=True, slots=True)
class Report:
    """One report pod: ``claim_uid`` is the claim that it was made for, ``why_not`` why it found nothing yet."""

    pod: str
    uid: str
    created: datetime
    claim_uid: str
    leaving: bool
    verdict: Verdict
    held: Held | None
    why_not: str


def read_report(observed: Observed, index: int) -> Report | None:
    """Return the report pod of this broker's volume, or None when there is none."""
    for item in observed.pods:
        if labels(item).get(names.PROOF_LABEL) == str(index):
            return _report(item)
    return None


def reported_indexes(observed: Observed) -> set[int]:
    """Return the index of every broker whose volume a report pod looks at, or has looked at."""
    found = (labels(item).get(names.PROOF_LABEL, "") for item in observed.pods)
    return {int(text) for text in found if text.isdigit()}


def _report(item: JsonObject) -> Report:
    meta = item["metadata"]
    created = parse_time(meta["creationTimestamp"])
    assert created is not None  # noqa: S101 - the API server always sets it
    statuses = (item.get("status") or {}).get("containerStatuses") or ()
    # By its name: a webhook may have put a container of its own beside it.
    ours: JsonObject = next((status for status in statuses if status.get("name") == names.REPORT_CONTAINER), {})
    state: JsonObject = ours.get("state") or {}
    ended = state.get("terminated")
    held = _held(_object(ended.get("message")), "quarantined_files") if ended else None
    return Report(
        pod=meta["name"],
        uid=meta["uid"],
        created=created,
        claim_uid=annotations(item).get(names.CLAIM_UID_ANNOTATION, ""),
        leaving="deletionTimestamp" in meta,
        verdict=_verdict(item, ended, held),
        held=held,
        why_not=_why_not(item, state),
    )


def _verdict(item: JsonObject, ended: JsonObject | None, held: Held | None) -> Verdict:
    """Empty only when the keeper says so twice: by its exit code and by its numbers."""
    if ended is None:
        failed = (item.get("status") or {}).get("phase") == "Failed"
        return Verdict.UNKNOWN if failed else Verdict.LOOKING
    if held is None:
        return Verdict.UNKNOWN
    code = int(ended.get("exitCode", -1))
    said = {_EXIT_EMPTY: Verdict.EMPTY, _EXIT_NOT_EMPTY: Verdict.NOT_EMPTY}.get(code, Verdict.UNKNOWN)
    return said if (said is Verdict.EMPTY) == held.empty else Verdict.UNKNOWN


def _why_not(item: JsonObject, state: JsonObject) -> str:
    scheduled = condition(item, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        return f"no node takes it: {scheduled.get('message', '')}"
    ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    if ended:
        said = _object(ended.get("message")) or {}
        return str(said.get("error") or said.get("why_not_held") or f"it ended with {ended.get('exitCode')}")
    words = " ".join(str(waiting.get(key, "")) for key in ("reason", "message")).strip()
    status = item.get("status") or {}
    return words or str(status.get("message") or status.get("reason") or "it has not ended")


def _object(text: object) -> dict[str, Any] | None:
    try:
        found = json.loads(str(text))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _held(values: dict[str, Any] | None, quarantined: str) -> Held | None:
    """Numbers that are not there or are no numbers are unknown, and so is the whole."""
    if values is None:
        return None
    files, size, events, set_aside = (values.get(key) for key in ("files", "bytes", "events", quarantined))
    if not (type(files) is int and type(size) is int and type(set_aside) is int):
        return None
    return Held(files, size, events if type(events) is int else None, set_aside)
