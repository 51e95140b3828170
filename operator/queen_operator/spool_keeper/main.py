"""Entry point, by path (`python3 -I -S .../spool_keeper/main.py hold ...`) or as a module (`-m`).

A script is compiled at every start, the modules it imports only once: so there is nothing in here.
"""

import sys


def main() -> int:
    """Run the command that the arguments name; returns the exit code."""
    if not __package__:
        # -I keeps the script's own directory off the path and -S the installed packages: go by our own place.
        sys.path.insert(0, __file__.rsplit("/", 3)[0])
    from queen_operator.spool_keeper.commands import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
