# SPDX-License-Identifier: Apache-2.0

"""The operator's values of ``Usage: Config`` properties, and packages that may not read them."""

import logging
import pathlib
from typing import Any

import pytest

from examples import demo
from tests import packages
from tests.integration import publish, tasks

SECRET = "the operator's password"

_CLASS = """\
Name: {0}.Thing
Properties:
  password:
    Contract: $.string()
    Usage: Config
    Default: none
Methods:
  read:
    Scope: Public
    Body:
      Return: $.password
"""


@pytest.fixture
def config_file(conf: Any, tmp_path: pathlib.Path, name: str) -> pathlib.Path:
    """The operator's file for a class of the test's package."""
    folder = tmp_path / "class-configs"
    folder.mkdir()
    conf.set_override("class_configs", str(folder), "engine")
    file = folder / f"{name}.Thing-1.yaml"
    file.write_text(f"password: {SECRET}\n")
    return file


@pytest.fixture
def directory(tmp_path: pathlib.Path, name: str) -> pathlib.Path:
    """A package whose class has the name of the operator's file."""
    return packages.write(tmp_path / name, packages.content(name, code=_CLASS.format(name)))


@pytest.fixture
def private(directory: pathlib.Path, tenant: Any) -> None:
    """Publish the package for the project of the tasks."""
    publish.publish(tenant, [directory], public=False)


@pytest.fixture
def public(directory: pathlib.Path, glare: Any) -> None:
    """Publish the package for every project."""
    publish.publish(glare, [directory], public=True)


def _reserve(conf: Any, folder: pathlib.Path, prefix: str, *projects: str) -> None:
    file = folder / "reserved-names.yaml"
    file.write_text(f"{prefix}: [{', '.join(projects)}]\n")
    conf.set_override("reserved_names_file", str(file), "package_loader")


def _read(name: str) -> Any:
    header = {"type": f"{name}.Thing", "classVersion": "1"}
    return tasks.run(header, action=tasks.action("object", "read"))["action"]["result"]


@pytest.mark.usefixtures("private")
def test_a_private_package_does_not_read_the_operators_values(
    config_file: pathlib.Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert _read(name) == "none"

    (warning,) = [r.getMessage() for r in caplog.records if str(config_file) in r.getMessage()]
    for word in (f"{name}.Thing", f"{name} 1.0.0", "private", demo.PROJECT):
        assert word in warning


@pytest.mark.usefixtures("private")
def test_a_package_does_not_learn_whether_the_operator_has_a_file(
    config_file: pathlib.Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    config_file.write_text("a mistake: [\n")
    with_file = _read(name)
    config_file.unlink()
    caplog.clear()

    assert _read(name) == with_file == "none"
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.usefixtures("config_file", "public")
def test_a_public_package_reads_them(name: str) -> None:
    assert _read(name) == SECRET


@pytest.mark.usefixtures("config_file", "private")
def test_a_private_package_reads_them_if_its_project_owns_the_name(
    name: str, conf: Any, tmp_path: pathlib.Path
) -> None:
    _reserve(conf, tmp_path, name, demo.PROJECT)

    assert _read(name) == SECRET


@pytest.mark.usefixtures("config_file", "public")
def test_a_public_package_does_not_read_them_under_a_name_of_another_project(
    name: str, conf: Any, tmp_path: pathlib.Path
) -> None:
    _reserve(conf, tmp_path, f"{name}.Thing", "another")

    assert "cannot be loaded" in _read(name)["message"]


@pytest.mark.usefixtures("config_file")
def test_a_package_of_the_operators_directory_reads_them(
    directory: pathlib.Path, name: str, conf: Any, tmp_path: pathlib.Path
) -> None:
    conf.set_override("load_packages_from", [str(directory.parent)], "engine")
    _reserve(conf, tmp_path, name)

    assert _read(name) == SECRET
