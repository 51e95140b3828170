"""What the keeper serves. Nothing here changes anything: `requeue` is for a person, by `kubectl exec`."""

from __future__ import annotations

from queen_operator.spool_keeper.contents import Reader
from queen_operator.spool_keeper.log import log
from queen_operator.spool_keeper.render import as_json, as_metrics, spool_values
from queen_operator.spool_keeper.state import State
from queen_operator.spool_keeper.wire import RefusedError, answer, read_head
from queen_operator.spool_keeper.writable import why_not_writable

COUNTING_SECONDS = 0.3
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

Page = tuple[int, str, str]


class Pages:
    """The pages of one keeper; `lock_told` brings in what the first process knows about the lock."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._reader = Reader(directory, COUNTING_SECONDS)
        self._held = False
        self._why_not_held = "the state of the lock is not known yet"
        self._scrape_errors = 0
        self._announced: str | None = None
        self._pages = {"/held": self._held_page, "/spool": self._spool, "/metrics": self._metrics, "/healthz": _healthz}

    def lock_told(self, line: str) -> None:
        """Take one line of the first process: `held`, or `waiting` and why."""
        word, _, reason = line.partition(" ")
        self._held = word == "held"
        self._why_not_held = "" if self._held else reason
        self.why_not_ready()

    def why_not_ready(self) -> str:
        """Return why the broker must not start on this spool, or nothing when it may; logs each change."""
        reason = self._why_not_held or why_not_writable(self._directory)
        if reason != self._announced:
            self._announced = reason
            log(f"not ready: {reason}" if reason else f"ready: {self._directory} is locked and writable")
        return reason

    def answer(self, head: bytes) -> bytes:
        """Answer one request."""
        try:
            method, path = read_head(head)
        except RefusedError as refused:
            return refusal(refused)
        if method not in ("GET", "HEAD"):
            body = as_json({"error": f"{method} is not served here, only GET and HEAD"})
            return answer(405, JSON, body, allow="GET, HEAD")
        page = self._pages.get(path)
        if page is None:
            routes = ", ".join(self._pages)
            status, kind, body = 404, JSON, as_json({"error": f"there is no {path} here, only {routes}"})
        else:
            status, kind, body = page()
        return answer(status, kind, body, without_body=method == "HEAD")

    def _held_page(self) -> Page:
        reason = self.why_not_ready()
        return (503, TEXT, f"{reason}\n") if reason else (200, TEXT, "held\n")

    def _spool(self) -> Page:
        state = self._look()
        return 503 if state.contents is None else 200, JSON, as_json(spool_values(state)) + "\n"

    def _metrics(self) -> Page:
        return 200, PROMETHEUS, as_metrics(self._look(), self._scrape_errors)

    def _look(self) -> State:
        state = State(self._reader, self._held, self._why_not_held)
        if state.contents is None:
            self._scrape_errors += 1
        return state


def _healthz() -> Page:
    return 200, TEXT, "ok\n"


def refusal(refused: RefusedError) -> bytes:
    """Answer a request that cannot be read."""
    return answer(refused.status, JSON, as_json({"error": refused.reason}))
