"""What a worker remembers between rounds. Nothing here is needed for safety: a new process starts with it empty."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from queen_operator.planning.observed import BrokerPage, Database, Replay, Spool
from queen_operator.planning.wanted import Wanted

# One missed poll does not make a spool unknown in the status; a guard asks for a younger answer (planning.guards).
ANSWER_KEEPS = timedelta(seconds=25)
NUDGE_AGAIN_AFTER = timedelta(seconds=30)
REFUSED_AGAIN_AFTER = timedelta(seconds=20)
MISSING_FOR = timedelta(seconds=5)


@dataclass(slots=True)
class SecretContent:
    """The referenced keys of one Secret as last read, or why there are none. Never shown: repr hides the values."""

    asked: frozenset[str]
    values: dict[str, bytes] = field(default_factory=dict, repr=False)
    digests: dict[str, str] = field(default_factory=dict)
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a child could not be written, and when that is tried again."""

    words: str
    retry_at: datetime


@dataclass(slots=True)
class Memory:
    """Memory of one cluster's worker."""

    resource: dict[str, Any]
    secrets: dict[str, SecretContent] = field(default_factory=dict)
    spools: dict[str, Spool] = field(default_factory=dict)
    pages: dict[str, BrokerPage] = field(default_factory=dict)
    replays: dict[str, Replay] = field(default_factory=dict)
    database: Database | None = None
    refused: dict[tuple[str, str], Refusal] = field(default_factory=dict)
    foreign: dict[tuple[str, str], Refusal] = field(default_factory=dict)
    wanted_key: tuple[Any, ...] | None = None
    wanted: Wanted | None = None
    nudged: dict[str, datetime] = field(default_factory=dict)
    missing: dict[str, datetime] = field(default_factory=dict)  # wanted Deployments, since they were first not seen
    busy: bool = True  # something is being changed or is wrong: look often

    def take_spool(self, uid: str, spool: Spool | None) -> None:
        """Remember a keeper's answer and whether a replay moved; no answer leaves the last one to grow old."""
        if spool is None:
            return
        known = self.replays.get(uid)
        before = self.spools.get(uid)
        if known is None:
            self.replays[uid] = Replay(spool.files, spool.asked_at)
        elif spool.files > known.first_files:
            self.replays[uid] = replace(known, first_files=spool.files)  # more to do is no progress
        elif spool.empty or (before is not None and spool.files < before.files):
            gone = max(1, before.files - spool.files) if before is not None else 1
            seconds = (spool.asked_at - known.progress_at).total_seconds() / gone
            self.replays[uid] = Replay(known.first_files, spool.asked_at, 0.0 if spool.empty else seconds)
        self.spools[uid] = replace(spool, empty_since=_empty_since(before, spool))

    def take_page(self, uid: str, page: BrokerPage) -> None:
        """Remember a broker's pages. While maintenance mode is on nothing drains, so no file that stays is a delay."""
        self.pages[uid] = page
        known = self.replays.get(uid)
        if page.maintenance and known is not None:
            self.replays[uid] = replace(known, progress_at=page.asked_at)

    def fresh_spools(self, now: datetime) -> dict[str, Spool]:
        """Answers young enough to be called known."""
        return {uid: spool for uid, spool in self.spools.items() if now - spool.asked_at <= ANSWER_KEEPS}

    def fresh_pages(self, now: datetime) -> dict[str, BrokerPage]:
        """Metrics pages young enough to be called known."""
        return {uid: page for uid, page in self.pages.items() if now - page.asked_at <= ANSWER_KEEPS}

    def lately_nudged(self, now: datetime) -> frozenset[str]:
        """Pods that were told to leave maintenance mode so lately that an effect cannot be seen yet."""
        self.nudged = {uid: at for uid, at in self.nudged.items() if now - at < NUDGE_AGAIN_AFTER}
        return frozenset(self.nudged)

    def long_missing(self, wanted: set[str], present: set[str], now: datetime) -> frozenset[str]:
        """Wanted Deployments that have not been there for longer than a deletion takes to reach their pods."""
        self.missing = {name: self.missing.get(name, now) for name in wanted - present}
        return frozenset(name for name, since in self.missing.items() if now - since > MISSING_FOR)

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is remembered of pods that are gone."""
        for kept in (self.spools, self.pages, self.replays):
            for uid in set(kept) - alive:
                del kept[uid]

    def refuse(self, key: tuple[str, str], words: str, now: datetime) -> None:
        """Remember that the server takes no write of this object (kind, name) for now, with its words."""
        self.refused[key] = Refusal(words, now + REFUSED_AGAIN_AFTER)

    def standing(self, refusals: dict[tuple[str, str], Refusal], now: datetime) -> dict[tuple[str, str], str]:
        """Refusals whose time for another try has not come."""
        return {key: refusal.words for key, refusal in refusals.items() if refusal.retry_at > now}


def _empty_since(before: Spool | None, spool: Spool) -> datetime | None:
    """Since when the answers have said without a break that nothing is on the volume, quarantine included."""
    if not spool.holds_nothing:
        return None
    known = before.empty_since if before is not None else None
    return known or spool.asked_at
