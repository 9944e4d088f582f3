# SPDX-License-Identifier: Apache-2.0

"""The commands in a cloud with the real Keystone, and Glance on MariaDB."""

import pathlib
from collections.abc import Iterator

import pytest

from tests import packages
from tests.functional import databases, keystone
from tests.functional.glance import service
from tests.functional.keystone import Keystone
from tests.functional.openstack_command import OpenStack

pytestmark = pytest.mark.services

_COUNT = 12


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keystone]:
    """A Keystone, and a Glance of its catalogue, with two projects."""
    with keystone.running(tmp_path_factory.mktemp("keystone")) as identity:
        folder = tmp_path_factory.mktemp("glance")
        with service.running(folder, databases.mariadb, identity) as glance:
            identity.add_service("glance", "image", glance.url)
            for name in ("north", "south"):
                identity.add_project(name)
            yield identity


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Packages each of which requires the next; the core library is beside them."""
    names = [f"org.chain.p{number}" for number in range(_COUNT)]
    packages.write(tmp_path / "core", packages.content("io.murano", "0.0.1"))
    for name, required in zip(names, [*names[1:], "io.murano"], strict=True):
        needs = {required: "0" if required == "io.murano" else "1"}
        packages.write(tmp_path / "packages" / name, packages.content(name, "1.0.0", Require=needs))
    return tmp_path / "packages"


def test_packages_are_published_at_once_and_shared_as_glance_has_it(
    cloud: Keystone, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder_of_admin = tmp_path / "admin"
    folder_of_admin.mkdir()
    admin = OpenStack.of_user(folder_of_admin, cloud.credentials())
    north = OpenStack.of_user(tmp_path, cloud.credentials("north"))

    refused = north.run("package", "publish", tmp_path / "core")
    assert (refused.code, "[name-reserved]" in refused.err) == (1, True)
    core = admin.json("package", "publish", tmp_path / "core", "--public")
    assert [row["Result"] for row in core] == ["published"]

    # The only service of the catalogue is found, and several archives are imported at once.
    published = north.json("package", "publish", folder)
    assert [row["Result"] for row in published] == ["published"] * _COUNT
    tree = north.ok("package", "tree", "org.chain.p0").out
    assert all(f"org.chain.p{number} 1.0.0" in tree for number in range(_COUNT))

    other = tmp_path / "south"
    other.mkdir()
    south = OpenStack.of_user(other, cloud.credentials("south"))
    assert [row["Name"] for row in south.json("package", "list")] == ["io.murano"]
    result = south.run("package", "tree", "org.chain.p0")
    assert (result.code, "was not found in Glance" in result.err) == (3, True)
