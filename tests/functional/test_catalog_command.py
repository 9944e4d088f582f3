# SPDX-License-Identifier: Apache-2.0

"""``openstack murano catalog render``: who sees what on the pages, and what is printed."""

import pathlib

import pytest

from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def published(glare: Client, admin: Client, name: str) -> str:
    """A public package of the administrator's, and a private one of another project."""
    admin.publish(f"{name}.db", "1.0.0", packages.package(f"{name}.db"), public=True)
    glare.publish(f"{name}.own", "1.0.0", packages.package(f"{name}.own"))
    return name


def _files(folder: pathlib.Path) -> str:
    return "\n".join(
        f"{path.relative_to(folder)}\n{path.read_text()}"
        for path in folder.rglob("*")
        if path.is_file()
    )


def test_a_private_package_is_only_on_the_pages_of_its_project(
    openstack: OpenStack, admin_openstack: OpenStack, published: str, tmp_path: pathlib.Path
) -> None:
    own, others = tmp_path / "own", tmp_path / "others"
    names = [f"{published}.*"]
    shown = openstack.ok("catalog", "render", str(own), *names)
    assert shown.out == f"{own}/index.html\n"
    assert "2 packages with 2 releases; 2 archives were read" in shown.err
    assert f"{published}.own" in _files(own)
    assert "openstack murano package save" in _files(own)

    # An administrator may list it, and it is still not on the administrator's pages.
    admin_openstack.ok("package", "show", f"{published}.own")
    admin_openstack.ok("catalog", "render", str(others), *names)
    assert f"{published}.db" in _files(others)
    assert f"{published}.own" not in _files(others)


def test_a_yank_is_shown_without_reading_an_archive(
    admin_openstack: OpenStack, published: str, tmp_path: pathlib.Path
) -> None:
    target = tmp_path / "pages"
    arguments = ("catalog", "render", str(target), f"{published}.db")
    admin_openstack.ok(*arguments)
    admin_openstack.ok("package", "yank", f"{published}.db@1.0.0", "--reason", "It loses data")
    again = admin_openstack.ok(*arguments)
    assert "0 archives were read, and the pages of 1 packages were written" in again.err
    assert "It loses data" in _files(target)


def test_packages_on_this_host_need_no_cloud(openstack: OpenStack, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    (place / "db.zip").write_bytes(packages.package("org.db"))
    (place / "broken.zip").write_bytes(b"PK")
    arguments = ("catalog", "render", str(tmp_path / "pages"), "--path", str(place))
    shown = openstack.ok(*arguments, cloud="")
    assert f"{place}/broken.zip cannot be read: archive: " in shown.err
    (tmp_path / "pages" / "notes").touch()
    refused = openstack.fails(*arguments)
    assert "name an empty directory" in refused.err
    openstack.fails("catalog", "render", str(tmp_path / "new"), "x", "--path", str(place), code=3)


@pytest.mark.parametrize("port", ["abc", "99999"])
def test_a_port_that_is_not_a_number_is_refused(openstack: OpenStack, port: str) -> None:
    refused = openstack.fails("catalog", "serve", "--port", port, code=2)
    assert f"argument --port: '{port}' is not a number from 0 to 65535\n" in refused.err
