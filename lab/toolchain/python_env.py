"""The Python environment of the checkout, the wheels for the operator's image, and the lock files of both."""

import subprocess
import sys
import tomllib
from pathlib import Path

from lab import cache, progress

_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
IMAGE_PYTHON = "3.11"
DEV_LOCK = cache.CHECKOUT / "requirements-dev.lock"
RUNTIME_LOCK = cache.CHECKOUT / "requirements.lock"
BUILD_LOCK = cache.CHECKOUT / "requirements-build.lock"
ENVIRONMENT = cache.Part("python", _VERSION, (sys.base_prefix, DEV_LOCK.read_text()))
WHEELS = cache.Part("wheels", IMAGE_PYTHON, (RUNTIME_LOCK.read_text(), BUILD_LOCK.read_text()))


def make_environment() -> str:
    """Install requirements-dev.lock into an environment of its own unless it is there, and point ``.venv`` to it."""
    made = ENVIRONMENT.make(_build_environment)
    pointer = cache.virtual_environment()
    if pointer.exists() and not pointer.is_symlink():
        raise progress.LabError(f"{pointer} is not ours: remove it")
    cache.point(pointer, ENVIRONMENT.path)
    return "installed" if made else "already there"


def make_wheels() -> str:
    """Download the wheels that the operator's image is built from unless they are there; hashes are checked."""
    return "downloaded" if WHEELS.make(_download_wheels) else "already there"


def write_locks() -> str:
    """Resolve the requirements in pyproject.toml anew, write the three lock files and return a sentence about it.

    No registry is named in them: the machine's own settings decide where packages come from.
    """
    project = tomllib.loads((cache.CHECKOUT / "pyproject.toml").read_text())
    runtime = project["project"]["dependencies"]
    development = project["project"]["optional-dependencies"]["dev"]
    for lock, requirements, constraints in (
        (RUNTIME_LOCK, runtime, []),
        # Tests run with the versions that the image has.
        (DEV_LOCK, [*runtime, *development], [f"--constraint={RUNTIME_LOCK.name}"]),
        (BUILD_LOCK, project["build-system"]["requires"], []),
    ):
        command = [
            str(cache.virtual_environment() / "bin" / "uv"),
            "pip",
            "compile",
            "--quiet",
            "--universal",
            "--upgrade",
        ]
        command += [f"--python-version={IMAGE_PYTHON}", "--generate-hashes", "--no-header", "--no-emit-index-url"]
        command += ["--no-annotate", f"--output-file={lock.name}", *constraints, "-"]
        subprocess.run(command, cwd=cache.CHECKOUT, input="\n".join(requirements), text=True, check=True)
    return f"{RUNTIME_LOCK.name}, {DEV_LOCK.name} and {BUILD_LOCK.name} are up to date"


def _build_environment(into: Path) -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 (the interpreter that starts the laboratory is the user's choice)
        raise progress.LabError(f"Python 3.11 or newer is needed, this is {_VERSION}")
    progress.run_logged([sys.executable, "-m", "venv", into], ENVIRONMENT.log)
    command = [
        str(into / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--require-hashes",
        "--no-deps",
        "--progress-bar=off",
    ]
    progress.run_logged([*command, f"--requirement={DEV_LOCK}"], ENVIRONMENT.log)
    # The scripts name the directory in which they were installed; it is about to get its final name.
    for script in (into / "bin").iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        content = script.read_bytes()
        if content.startswith(b"#!") or script.name.lower().startswith("activate"):
            script.write_bytes(content.replace(str(into).encode(), str(ENVIRONMENT.path).encode()))


def _download_wheels(into: Path) -> None:
    python = str(cache.virtual_environment() / "bin" / "python")
    command = [python, "-m", "pip", "download", "--require-hashes", "--no-deps", "--only-binary=:all:"]
    command += [f"--python-version={IMAGE_PYTHON}", "--progress-bar=off", f"--dest={into}"]
    command += [f"--requirement={RUNTIME_LOCK}", f"--requirement={BUILD_LOCK}"]
    progress.run_logged(command, WHEELS.log)
