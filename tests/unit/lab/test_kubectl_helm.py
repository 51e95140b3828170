import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from lab.progress import LabError
from lab.toolchain import kubectl_helm


def _wheel(directory: Path, layer: dict[str, bytes], package: str = "layer@2.2.2.jsii.tgz") -> Path:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as inner:
        for name, content in layer.items():
            inner.writestr(name, content)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as middle:
        info = tarfile.TarInfo("package/lib/layer.zip")
        info.size = len(zipped.getvalue())
        middle.addfile(info, io.BytesIO(zipped.getvalue()))
    wheel = directory / "kubectl-2.2.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as outer:
        outer.writestr("package/__init__.py", "")
        outer.writestr(f"package/_jsii/{package}", packed.getvalue())
    return wheel


def test_both_programs_are_taken_out_executable_and_nothing_else(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, {"kubectl/kubectl": b"k", "helm/helm": b"h", "helm/../../evil": b"e", "LICENSE": b"l"})
    into = tmp_path / "bin"
    into.mkdir()
    kubectl_helm.unpack(wheel, into)
    assert {p.name: p.read_bytes() for p in into.iterdir()} == {"kubectl": b"k", "helm": b"h"}
    assert all(os.access(p, os.X_OK) for p in into.iterdir())


def test_a_wheel_without_helm_is_refused_by_name_and_leaves_nothing(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, {"kubectl/kubectl": b"k"})
    into = tmp_path / "bin"
    into.mkdir()
    with pytest.raises(LabError, match=r"kubectl-2\.2\.2.*helm/helm"):
        kubectl_helm.unpack(wheel, into)
    assert list(into.iterdir()) == []


def test_a_wheel_that_is_packed_differently_is_refused(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, {"kubectl/kubectl": b"k", "helm/helm": b"h"}, package="layer.tar.zst")
    with pytest.raises(LabError, match="holds no kubectl and helm at the known place"):
        kubectl_helm.unpack(wheel, tmp_path)
