"""The images that the node runs, as tars for ``ctr images import``; no container engine is needed to make them."""

import shutil
import tempfile
from pathlib import Path

from lab import cache, image_tar, progress
from lab.image_tar import Image
from lab.toolchain import base_image, broker, go_programs, python_env

PAUSE = Image("docker.io/local/pause:1", ("/pause",))
BROKER = Image(f"ghcr.io/queen-mq/queen:{broker.VERSION}", ("/app/bin/queen",), "/app")
OPERATOR_NAME = "docker.io/local/queen-operator:dev"
ALL = ("pause", "broker", "operator")

_FORMAT = "3"  # raise it when image_tar packs something else, so that cached images are packed again
PAUSE_PART = cache.Part("image-pause", "1", (_FORMAT, repr(PAUSE), go_programs.PART.key))
BROKER_PART = cache.Part("image-broker", broker.VERSION, (_FORMAT, repr(BROKER), broker.PART.key))
OPERATOR_LOG = cache.root() / "logs" / "image-operator.log"
_KEPT_OPERATOR_IMAGES = 4
# Exactly what .dockerignore lets through, and the two files themselves.
OPERATOR_INPUTS = (
    *("Dockerfile", ".dockerignore", "requirements.lock", "requirements-build.lock", "pyproject.toml"),
    *("README.md", "LICENSE", "operator"),
)


def make_pause() -> str:
    """Pack the pause image unless it is there."""
    program = go_programs.PART.path / "pause"
    made = PAUSE_PART.make(lambda into: image_tar.pack_program(PAUSE, program, into / "image.tar"))
    return _publish("pause", PAUSE_PART, made)


def make_broker() -> str:
    """Pack the broker's image, under upstream's name, unless it is there."""
    program = broker.PART.path / "queen"
    made = BROKER_PART.make(lambda into: image_tar.pack_program(BROKER, program, into / "image.tar"))
    return _publish("broker", BROKER_PART, made)


def make_operator() -> str:
    """Build the operator's image from the Dockerfile unless one of exactly these sources is there.

    Raises LabError when a source is missing or the build fails.
    """
    cache.root().mkdir(parents=True, exist_ok=True)
    # Built from a copy: an edit during the build would otherwise be kept under the name of the sources before it.
    with tempfile.TemporaryDirectory(dir=cache.root(), prefix=".sources-") as name:
        sources = Path(name)
        _copy_sources(cache.CHECKOUT, sources)
        part = operator_part(sources)
        made = part.make(lambda into: _build_operator(sources, into / "image.tar"))
    if made:
        _forget_old_operator_images(part)
    return _publish("operator", part, made)


def current_operator_key() -> str:
    """Return the key of the operator image that ``cache.image("operator")`` leads to."""
    return cache.image("operator").resolve().parent.name


def _copy_sources(checkout: Path, into: Path) -> None:
    for source in (checkout / name for name in OPERATOR_INPUTS):
        if source.is_dir():
            shutil.copytree(source, into / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, into)


def operator_part(checkout: Path) -> cache.Part:
    """Return the cached operator image that belongs to the present content of a checkout."""
    sources = [checkout / name for name in OPERATOR_INPUTS]
    missing = [source.name for source in sources if not source.exists()]
    if missing:
        raise progress.LabError(f"the operator's image needs {', '.join(missing)}")
    return cache.Part("image-operator", "dev", (cache.fingerprint(*sources), base_image.PART.key))


def _publish(name: str, part: cache.Part, made: bool) -> str:
    cache.point(cache.image(name), part.path / "image.tar")
    return "packed" if made else "already there"


def _build_operator(checkout: Path, tar_file: Path) -> None:
    # A store of our own: the machine's images are neither used nor touched. One build at a time in it.
    store = cache.root() / "buildah"
    OPERATOR_LOG.unlink(missing_ok=True)
    with cache.exclusive("buildah"), tempfile.TemporaryDirectory() as run:
        buildah = ["buildah", "--root", str(store), "--runroot", run, "--storage-driver=overlay"]
        progress.run_logged(
            [
                *(*buildah, "bud", "--isolation=chroot", "--layers", "--pull-never"),
                # Wheels from the host: what this machine needs to reach a registry must not be known in the image.
                *(f"--volume={python_env.WHEELS.path}:/mnt:ro", "--build-arg=PIP_OPTIONS=--no-index --find-links=/mnt"),
                f"--build-arg=BASE_IMAGE={_base_image(buildah)}",
                *(f"--tag={OPERATOR_NAME}", f"--file={checkout / 'Dockerfile'}", checkout),
            ],
            OPERATOR_LOG,
        )
        destination = f"docker-archive:{tar_file}:{OPERATOR_NAME}"
        progress.run_logged([*buildah, "push", OPERATOR_NAME, destination], OPERATOR_LOG)


def _base_image(buildah: list[str]) -> str:
    """Bring the base image into the store of buildah and return its name there."""
    archive = base_image.PART.path / "image.tar"
    progress.run_logged([*buildah, "pull", "--policy=missing", f"docker-archive:{archive}"], OPERATOR_LOG)
    return base_image.NAME


def _forget_old_operator_images(newest: cache.Part) -> None:
    """Remove the operator images before the last few: each edit of the operator makes one of 200 MB."""
    found = [path for path in cache.root().glob("image-operator-dev-*") if path != newest.path]
    found.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[_KEPT_OPERATOR_IMAGES - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
