# SPDX-License-Identifier: Apache-2.0

import dataclasses
import pathlib
from typing import Any
from unittest import mock

import pytest

from glare_murano import wire
from loader.authoring import local_packages
from loader.catalogs.directory import DirectoryCatalog
from loader.catalogs.repository import Repository
from loader.publishing import publication, requirements
from loader.publishing.target import Target
from tests import packages


def _repository() -> mock.Mock:
    """Return a repository without packages, which enforces all checks."""
    checks = dict.fromkeys(wire.CHECKS, wire.ENFORCED)
    repository = mock.Mock(spec=Repository, named=lambda *_: (), checks=lambda: checks)
    repository.name = "Glare"
    return repository


def test_a_requirement_that_the_package_type_adds_is_checked_as_well(
    tmp_path: pathlib.Path,
) -> None:
    source = packages.write(tmp_path / "source", packages.content("org.app"))
    (package,) = local_packages.read_all([source], tmp_path)
    values = {**package.values, "requirements": {"org.added": ">=1"}}
    package = dataclasses.replace(package, values=values)
    catalog = DirectoryCatalog(tmp_path / "catalog")
    repository = _repository()

    with pytest.raises(publication.PublishError, match=r"requires org\.added in the range >=1"):
        requirements.find([package], Target(repository), catalog, (), "private")


def test_a_missing_core_library_is_named_as_such(tmp_path: pathlib.Path) -> None:
    source = packages.write(tmp_path / "source", packages.content("org.app"))
    read = local_packages.read_all([source], tmp_path)
    catalog = DirectoryCatalog(tmp_path / "catalog")
    repository = _repository()

    with pytest.raises(publication.PublishError) as refused:
        requirements.find(read, Target(repository), catalog, (), "private")

    (problem,) = refused.value.problems
    assert (
        "org.app 1.0.0 requires io.murano in the range 0, which was not found in Glare" in problem
    )
    assert "(available: none); io.murano is Murano's core library" in problem
    assert "--as-version 0.16.0" in problem


def test_the_remedy_for_a_missing_core_library_is_named_once(tmp_path: pathlib.Path) -> None:
    for fqn in ("org.app", "org.other"):
        packages.write(tmp_path / "source" / fqn, packages.content(fqn))
    read = local_packages.read_all([tmp_path / "source"], tmp_path)
    catalog = DirectoryCatalog(tmp_path / "catalog")
    repository = _repository()

    with pytest.raises(publication.PublishError) as refused:
        requirements.find(read, Target(repository), catalog, (), "private")

    first, last = refused.value.problems
    assert "org.app 1.0.0 requires io.murano" in first
    assert first.endswith("which was not found in Glare (available: none)")
    assert "org.other 1.0.0 requires io.murano" in last
    assert "--as-version 0.16.0" in last


@pytest.mark.parametrize(
    ("requirements_", "public", "visibility", "is_hidden", "enforced"),
    [
        ("enforce", "off", "private", False, True),
        ("warn", "enforce", "private", False, False),
        ("warn", "enforce", "public", False, True),
        ("enforce", "warn", "public", False, True),
        ("enforce", "warn", "public", True, False),
        ("warn", "enforce", "public", True, True),
        ("off", "off", "public", False, False),
    ],
)
def test_the_check_of_the_service_is_that_of_the_visibility(
    requirements_: str, public: str, visibility: Any, is_hidden: bool, enforced: bool
) -> None:
    checks = {"check_requirements": requirements_, "check_public_requirements": public}
    found = requirements.is_enforced(checks, visibility, is_hidden=is_hidden)
    assert found is enforced
