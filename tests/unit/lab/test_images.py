from pathlib import Path

import pytest

from lab import cache, images
from lab.progress import LabError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a small checkout with everything that the operator's image is made from."""
    for name in images.OPERATOR_INPUTS:
        if "." in name or name.isupper() or name == "Dockerfile":
            (tmp_path / name).write_text(name)
    (tmp_path / "operator" / "queen_operator").mkdir(parents=True)
    (tmp_path / "operator" / "queen_operator" / "__init__.py").write_text("")
    return tmp_path


def test_a_changed_test_or_document_makes_no_new_operator_image(checkout: Path) -> None:
    before = images.operator_part(checkout).key
    (checkout / "tests").mkdir()
    (checkout / "tests" / "test_x.py").write_text("")
    (checkout / "docs.md").write_text("")
    assert images.operator_part(checkout).key == before


@pytest.mark.parametrize(
    "name", ["Dockerfile", "requirements.lock", "pyproject.toml", "operator/queen_operator/new.py"]
)
def test_each_source_of_the_operator_image_makes_a_new_one(checkout: Path, name: str) -> None:
    before = images.operator_part(checkout).key
    (checkout / name).write_text("changed")
    assert images.operator_part(checkout).key != before


def test_a_missing_source_is_named(checkout: Path) -> None:
    (checkout / "LICENSE").unlink()
    with pytest.raises(LabError, match="LICENSE"):
        images.operator_part(checkout)


def test_what_the_build_may_see_is_what_the_image_is_cached_by() -> None:
    lines = (cache.CHECKOUT / ".dockerignore").read_text().splitlines()
    let_through = {line[1:] for line in lines if line.startswith("!")}
    assert let_through | {"Dockerfile", ".dockerignore"} == set(images.OPERATOR_INPUTS)


def test_old_operator_images_are_forgotten_but_the_last_few_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for number in range(7):
        (checkout / "Dockerfile").write_text(str(number))
        images.operator_part(checkout).make(lambda _: None)
    newest = images.operator_part(checkout)
    images._forget_old_operator_images(newest)
    assert newest.is_present()
    assert len(list(cache.root().glob("image-operator-*"))) == images._KEPT_OPERATOR_IMAGES
