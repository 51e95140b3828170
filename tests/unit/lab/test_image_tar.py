import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from lab.image_tar import Image, pack_layer, pack_program, shared_libraries

IMAGE = Image("example.org/team/true:1", ("/app/bin/true",), "/app")
TRUE = Path(shutil.which("true") or "/bin/true")


def _read(tar_file: Path) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    with tarfile.open(tar_file) as tar:

        def content(name: str) -> bytes:
            file = tar.extractfile(name)
            assert file is not None
            return file.read()

        (manifest,) = json.loads(content("manifest.json"))
        (layer,) = manifest["Layers"]
        return manifest, json.loads(content(manifest["Config"])), content(layer)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tar_file = tmp_path_factory.mktemp("image") / "image.tar"
    pack_program(IMAGE, TRUE, tar_file)
    return tar_file


def test_the_image_has_its_full_name_and_starts_its_program(packed: Path) -> None:
    manifest, configuration, _ = _read(packed)
    assert manifest["RepoTags"] == ["example.org/team/true:1"]
    assert configuration["config"]["Entrypoint"] == ["/app/bin/true"]
    assert configuration["config"]["WorkingDir"] == "/app"
    assert "User" not in configuration["config"]


def test_the_digest_in_the_configuration_is_that_of_the_layer(packed: Path) -> None:
    _, configuration, layer = _read(packed)
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]


def test_the_program_runs_in_the_unpacked_image_and_nowhere_else_needs_a_file(packed: Path, tmp_path: Path) -> None:
    _, _, layer = _read(packed)
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        tar.extractall(tmp_path, filter="tar")
    loader = next(path for path in shared_libraries(TRUE) if path.name.startswith("ld-linux"))
    libraries = sorted({str((tmp_path / str(path).lstrip("/")).parent) for path in shared_libraries(TRUE)})
    command = [str(tmp_path / str(loader).lstrip("/")), "--inhibit-cache", "--library-path", ":".join(libraries)]
    listed = subprocess.run(
        [*command, "--list", str(tmp_path / "app/bin/true")], capture_output=True, text=True, check=True
    ).stdout
    found = [line.split("=>")[1].split()[0] for line in listed.splitlines() if "=>" in line]
    assert found
    assert all(path.startswith(str(tmp_path)) for path in found)


def test_everybody_may_write_to_tmp_and_run_the_program(packed: Path) -> None:
    _, _, layer = _read(packed)
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert tar.getmember("tmp").mode == 0o1777
        assert tar.getmember("app/bin/true").mode == 0o755
        assert tar.getmember("app").isdir()


def test_the_same_content_gives_the_same_image(packed: Path, tmp_path: Path) -> None:
    pack_program(IMAGE, TRUE, tmp_path / "again.tar")
    assert _read(tmp_path / "again.tar") == _read(packed)


def test_a_static_program_needs_no_library(tmp_path: Path) -> None:
    script = tmp_path / "not-dynamic"
    script.write_text("#!/bin/sh\n")
    assert list(shared_libraries(script)) == []


def test_a_layer_becomes_an_image_as_it_is(tmp_path: Path) -> None:
    layer = tmp_path / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        tar.add(TRUE, "bin/true")
    pack_layer(Image("localhost/base:1"), layer, tmp_path / "image.tar")
    manifest, configuration, content = _read(tmp_path / "image.tar")
    assert content == layer.read_bytes()
    assert manifest["RepoTags"] == ["localhost/base:1"]
    assert configuration["config"]["Entrypoint"] == []
