"""The file format: image tars with one layer that ``ctr images import`` and ``buildah pull docker-archive:`` take."""

import hashlib
import io
import json
import platform
import re
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PASSWD = b"root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """What an image is called and how its container starts; no user is set."""

    name: str
    entrypoint: tuple[str, ...] = ()
    working_directory: str = "/"

    def configuration(self, layer_digest: str) -> bytes:
        """Return the image's configuration in the form that Docker and containerd read."""
        machine = platform.machine()
        return json.dumps(
            {
                "architecture": _ARCHITECTURES.get(machine, machine),
                "os": "linux",
                "config": {
                    "Entrypoint": list(self.entrypoint),
                    "WorkingDir": self.working_directory,
                    "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                },
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
                "history": [{"created_by": "lab"}],
            }
        ).encode()


def pack_program(image: Image, program: Path, tar_file: Path) -> None:
    """Write an image of one program at ``image.entrypoint[0]``, its shared libraries, ``/tmp`` (1777) and ``/etc``."""
    layer = tar_file.with_suffix(".layer")
    with tarfile.open(layer, mode="w") as tar:
        _add_directory(tar, "tmp", 0o1777)
        _add_directory(tar, "etc", 0o755)
        _add_file(tar, "etc/passwd", _PASSWD)
        # Some versions of the C library ask no DNS server without it.
        _add_file(tar, "etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
        if image.working_directory != "/":
            _add_directory(tar, image.working_directory.lstrip("/"), 0o755)
        _add_file(tar, image.entrypoint[0].lstrip("/"), program.read_bytes(), 0o755)
        for library in shared_libraries(program):
            _add_file(tar, str(library).lstrip("/"), library.read_bytes(), 0o755)
    pack_layer(image, layer, tar_file)
    layer.unlink()


def pack_layer(image: Image, layer: Path, tar_file: Path) -> None:
    """Write an image whose only layer is the tar ``layer``."""
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    configuration = image.configuration(digest)
    configuration_name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = [{"Config": configuration_name, "RepoTags": [image.name], "Layers": ["layer.tar"]}]
    with tarfile.open(tar_file, "w") as tar:
        _add_file(tar, configuration_name, configuration)
        tar.add(layer, "layer.tar")
        _add_file(tar, "manifest.json", json.dumps(manifest).encode())


def shared_libraries(program: Path) -> Sequence[Path]:
    """Return the files that the dynamic loader would map for a program, the loader included; none if it is static."""
    # ldd fails for a static program, which then needs nothing.
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return sorted({Path(found) for found in re.findall(r"(?:=>\s+|^\s+)(/\S+)", listed, re.MULTILINE)})


def _add_file(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = mode
    tar.addfile(info, io.BytesIO(content))


def _add_directory(tar: tarfile.TarFile, name: str, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    info.mode = mode
    tar.addfile(info)
