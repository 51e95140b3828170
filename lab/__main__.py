"""The door of the laboratory: ``python3 -m lab VERB``. The standard library is enough for it to start."""

import argparse
import signal
import sys

from lab import progress


def main() -> int:
    """Do what the command line says and return the exit code: 0 done, 1 failed, 2 cannot be done here."""
    parser = argparse.ArgumentParser(prog="python3 -m lab", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    setup = verbs.add_parser("setup", help="install and build what demo and tests need (cached)")
    setup.add_argument("part", nargs="*", help="only these parts and what they need; default: all")
    verbs.add_parser("demo", help="operator, three brokers and PostgreSQL on a local node; again: refresh it")
    verbs.add_parser("demo-down", help="end the demo, nothing stays behind")
    verbs.add_parser("demo-kind", help="the same with Docker and kind, where they work")
    verbs.add_parser("demo-kind-down", help="delete the kind cluster of the demo")
    verbs.add_parser("lock", help="resolve the Python dependencies anew and write requirements*.lock")
    arguments = parser.parse_args()
    # As Ctrl-C: what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _do(arguments)
    except (progress.LabError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _do(arguments: argparse.Namespace) -> int:
    # Imported late: each verb needs other parts, and a broken part must not break the other verbs.
    match arguments.verb:
        case "setup":
            from lab import setup

            setup.run(arguments.part)
        case "lock":
            from lab.toolchain import python_env

            python_env.make_environment()
            print(python_env.write_locks())
        case "demo":
            from lab import demo

            demo.up()
        case "demo-down":
            from lab import demo

            demo.down()
        case "demo-kind":
            from lab import demo_kind

            return demo_kind.up()
        case "demo-kind-down":
            from lab import demo_kind

            return demo_kind.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
