"""Whether the broker, which has our uid, can keep and set aside spool files in a directory."""
# pathlib costs 2 MiB in a container that is given few.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import stat

from queen_operator.spool_keeper.contents import QUARANTINE


def why_not_writable(directory: str) -> str:
    """Return why the broker could not use the directory, in one sentence, or nothing when it can.

    Nothing is written to find out. The broker itself says nothing at boot: it answers pushes with `failed` later on,
    and deletes a file that it cannot move into the quarantine (broker 1.3.0, `file_buffer.rs`).
    """
    reason = _why_not_usable(directory)
    if reason:
        return reason
    quarantine = f"{directory}/{QUARANTINE}"
    try:
        mode = os.lstat(quarantine).st_mode
    except FileNotFoundError:
        return ""  # the broker makes it at boot
    except OSError as error:
        return f"cannot look at {quarantine}: {error.strerror}"
    if not stat.S_ISDIR(mode):
        return f"{quarantine} is not a directory: the broker would delete the files that it should set aside there"
    return _why_not_usable(quarantine)


def _why_not_usable(directory: str) -> str:
    try:
        state = os.stat(directory)
        read_only = os.statvfs(directory).f_flag & os.ST_RDONLY
    except OSError as error:
        return f"cannot look at {directory}: {error.strerror}"
    if not stat.S_ISDIR(state.st_mode):
        return f"{directory} is not a directory"
    if read_only:
        return f"{directory} is on a read-only file system"
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return (
            f"{directory} (owner {state.st_uid}:{state.st_gid}, mode {stat.S_IMODE(state.st_mode):04o})"
            f" is not writable for uid {os.getuid()}, gid {os.getgid()}"
        )
    return ""
