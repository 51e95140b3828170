"""The command line: `hold`, `report`, `requeue`."""

from __future__ import annotations

import os

from queen_operator.spool_keeper.log import log

USAGE = (
    "usage: main.py hold --spool-dir DIR [--port 9632] [--termination-log FILE]\n"
    "       main.py report --spool-dir DIR [--termination-log FILE]\n"
    "       main.py requeue --spool-dir DIR"
)
OPTIONS = {
    "hold": ("--spool-dir", "--port", "--termination-log"),
    "report": ("--spool-dir", "--termination-log"),
    "requeue": ("--spool-dir",),
}
DEFAULTS = {
    "hold": {"--port": "9632", "--termination-log": "/dev/termination-log"},
    # None: asked by hand beside a running keeper, it must not write into that keeper's last word.
    "report": {"--termination-log": ""},
    "requeue": {},
}

EXIT_USAGE = 2


class BadArgumentsError(Exception):
    """The command line asks for something that does not exist; the text says what."""


def read_arguments(arguments: list[str]) -> tuple[str, dict[str, str]]:
    """Split a command line into the command and its options (`--name value` or `--name=value`).

    Raises BadArgumentsError. Written by hand because argparse costs as much memory as the whole HTTP part.
    """
    if not arguments or arguments[0] not in OPTIONS:
        raise BadArgumentsError(f"expected a command, one of {', '.join(OPTIONS)}")
    command, rest = arguments[0], arguments[1:]
    values: dict[str, str] = {}
    while rest:
        name, has_value, value = rest.pop(0).partition("=")
        if name not in OPTIONS[command]:
            raise BadArgumentsError(f"{command} has no option {name!r}")
        if not has_value:
            if not rest:
                raise BadArgumentsError(f"{name} needs a value")
            value = rest.pop(0)
        values[name] = value
    directory = values.get("--spool-dir", "")
    if not directory.startswith("/"):
        raise BadArgumentsError(f"--spool-dir must be an absolute path, got {directory!r}")
    return command, DEFAULTS[command] | values


def read_port(text: str) -> int:
    """Read a TCP port; raises BadArgumentsError."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise BadArgumentsError(f"--port must be a number from 1 to 65535, got {text!r}")
    return int(text)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; 2 for a command line that makes no sense."""
    try:
        command, options = read_arguments(arguments)
        port = read_port(options["--port"]) if command == "hold" else 0
    except BadArgumentsError as error:
        log(f"{error}\n{USAGE}")
        return EXIT_USAGE
    directory = options["--spool-dir"]
    if command == "hold":
        from queen_operator.spool_keeper.guard import hold

        return hold(directory, port, options["--termination-log"])
    if command == "report":
        from queen_operator.spool_keeper.report import report

        text, code = report(directory)
        if options["--termination-log"]:
            from queen_operator.spool_keeper.last_word import leave_last_word

            leave_last_word(text, options["--termination-log"])
    else:
        from queen_operator.spool_keeper.requeue import requeue

        text, code = requeue(directory)
    os.write(1, text.encode() + b"\n")
    return code
