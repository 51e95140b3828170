from __future__ import annotations

import json
from pathlib import Path

from tests.support import audit


def line(user: str, verb: str, stage: str = "ResponseComplete") -> str:
    return json.dumps({"user": {"username": user}, "verb": verb, "stage": stage}) + "\n"


def test_each_request_counts_once_and_only_its_users(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    assert audit.position(log) == 0
    log.write_text(line("operator", "list"))
    before = audit.position(log)
    with log.open("a") as file:
        file.write(line("operator", "watch", "ResponseStarted"))
        file.write(line("kubelet", "patch"))
        file.write(line("operator", "watch"))
        file.write(line("operator", "patch"))
        file.write('{"user": {"username": "oper')

    assert [entry["verb"] for entry in audit.requests_of(log, "operator", before)] == ["watch", "patch"]
    assert len(audit.requests_of(log, "operator")) == 3
