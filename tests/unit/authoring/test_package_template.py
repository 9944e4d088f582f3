# SPDX-License-Identifier: Apache-2.0

"""New packages; tests/integration/test_test_runner.py runs their tests."""

import pathlib
from typing import Any

import pytest

from glare_murano.package import InvalidName
from loader.authoring import package_template
from loader.authoring.checking import check
from loader.errors import NotADirectory


@pytest.mark.parametrize("package_type", ["Application", "Library"])
@pytest.mark.parametrize("name", ["org.example.wiki", "org.example.web_shop", "a.B2"])
def test_a_new_package_has_no_problem(tmp_path: pathlib.Path, name: str, package_type: Any) -> None:
    paths = package_template.create(tmp_path / "new", name, package_type)
    assert check(tmp_path / "new") == []
    found = {path.relative_to(tmp_path / "new") for path in tmp_path.rglob("*.yaml")}
    assert found == set(paths)
    assert (pathlib.Path("UI/ui.yaml") in found) == (package_type == "Application")


@pytest.mark.parametrize("name", ["wiki", "org..wiki", "../wiki", "org.7zip", "org.yes", ""])
def test_a_name_without_a_valid_class_is_refused(tmp_path: pathlib.Path, name: str) -> None:
    with pytest.raises(InvalidName, match="name"):
        package_template.create(tmp_path / "new", name, "Library")
    assert not (tmp_path / "new").exists()


def test_a_directory_with_files_is_left_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(package_template.DirectoryUsed, match="is not empty"):
        package_template.create(tmp_path, "org.example.wiki", "Library")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_in_place_of_a_directory_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectory, match=r"file is a file; name a directory$"):
        package_template.create(tmp_path / "file", "org.example.wiki", "Library")
