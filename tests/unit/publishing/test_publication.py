# SPDX-License-Identifier: Apache-2.0

import dataclasses
import pathlib

import pytest

from glare_murano.package import VersionSpec
from loader.authoring import local_packages
from loader.catalogs.directory import DirectoryCatalog
from loader.publishing import publication
from tests import packages


def test_a_requirement_that_the_package_type_adds_is_checked_as_well(
    tmp_path: pathlib.Path,
) -> None:
    source = packages.write(tmp_path / "source", packages.files(packages.manifest("org.app")))
    (package,) = local_packages.read_all([source], tmp_path)
    required = {"org.added": VersionSpec.of(">=1")}
    contents = dataclasses.replace(package.contents, requirements=required)
    package = dataclasses.replace(package, contents=contents)
    catalog = DirectoryCatalog(tmp_path / "catalog")

    with pytest.raises(publication.PublishError, match=r"requires org\.added in the range >=1"):
        publication.find_requirements([package], catalog, ())
