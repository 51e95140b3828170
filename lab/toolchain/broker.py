"""The Queen broker, compiled from its published crate."""

import os
from pathlib import Path

from lab import cache, progress

VERSION = "1.3.0"
_CRATE = "queen-engine"
# The crate's own release profile (full link-time optimization, one unit) takes three times as long and the broker
# behaves the same; panic = "abort" comes from the crate and stays.
_PROFILE = {
    "CARGO_PROFILE_RELEASE_LTO": "false",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_PROFILE_RELEASE_INCREMENTAL": "false",
}
PART = cache.Part("broker", VERSION, (_CRATE, *(f"{k}={v}" for k, v in _PROFILE.items())))
PROGRAMS = ("queen",)


def make() -> str:
    """Compile the broker unless it is there."""
    return "built" if PART.make(_build) else "already there"


def _build(into: Path) -> None:
    installed = PART.workshop / "installed"
    command = ["cargo", "install", _CRATE, "--version", VERSION, "--locked", "--no-track", "--force"]
    command += ["--root", str(installed), "--target-dir", str(PART.workshop / "target")]
    progress.run_logged(command, PART.log, env=dict(os.environ, **_PROFILE))
    (installed / "bin" / "queen").rename(into / "queen")
