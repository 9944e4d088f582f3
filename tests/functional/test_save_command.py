# SPDX-License-Identifier: Apache-2.0

"""``openstack murano package save``: ZIP files, and bundles for another cloud."""

import hashlib
import pathlib
from collections.abc import Callable, Iterator

import pytest

from glare_murano.package import VersionSpec
from glare_murano.wire import Release
from loader import CatalogUnavailable
from loader.catalogs.glare import GlareCatalog
from loader.publishing import exports
from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


def test_an_archive_is_saved_under_its_name(
    openstack: OpenStack,
    glare: Client,
    name: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive = packages.package(name, "1.2.0")
    glare.publish(name, "1.2.0", archive)
    monkeypatch.chdir(tmp_path)
    result = openstack.ok("package", "save", f"{name}@1")
    assert result.out == f"{name}.1.2.0.zip\n"
    assert (tmp_path / f"{name}.1.2.0.zip").read_bytes() == archive
    assert result.err == f"saved {name} 1.2.0\n"


def test_no_file_is_replaced(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    glare.publish(name, "1.2.0", packages.package(name, "1.2.0"))
    target = tmp_path / "package.zip"
    target.write_text("precious")
    openstack.fails("package", "save", name, "--file", target)
    assert target.read_text() == "precious"


def test_a_path_of_the_wrong_kind_is_named(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    glare.publish(name, "1.0.0", packages.package(name))
    file = tmp_path / "file"
    file.touch()

    refused = openstack.fails("package", "save", name, "--closure", "--file", file)
    assert refused.err == f"{file} is a file; name a directory\n"
    refused = openstack.fails("package", "save", name, "--file", tmp_path)
    assert refused.err == f"{tmp_path} is a directory; name a file\n"


def test_the_same_file_is_kept_without_a_download(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    glare.publish(name, "1.2.0", packages.package(name, "1.2.0"))
    target = tmp_path / "package.zip"
    openstack.ok("package", "save", name, "--file", target)
    before = target.stat().st_ino
    again = openstack.ok("package", "save", name, "--file", target)
    assert (again.out, again.err) == (f"{target}\n", "")
    assert target.stat().st_ino == before


def test_a_file_is_replaced_only_after_its_download(
    glare: Client, project: str, name: str, tmp_path: pathlib.Path
) -> None:
    class Failing(GlareCatalog):
        def fetch(self, release: Release) -> Iterator[bytes]:
            yield b"half"
            raise CatalogUnavailable("the connection is lost")

    glare.publish(name, "1.2.0", packages.package(name, "1.2.0"))
    catalog = Failing(glare.session(), project_id=project, endpoint=glare.url)
    (tmp_path / f"{name}.1.2.0.zip").write_text("precious")
    release, _ = exports.choose(catalog, name, VersionSpec.of("*"))
    with pytest.raises(CatalogUnavailable):
        exports.save_bundle(catalog, [release], tmp_path, lambda *_: None)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]


def test_a_package_that_was_saved_in_part_has_no_name(
    glare: Client, project: str, name: str, tmp_path: pathlib.Path
) -> None:
    """What a process has written when it is killed."""
    glare.publish(name, "1.2.0", packages.package(name, "1.2.0"))
    catalog = GlareCatalog(glare.session(), project_id=project, endpoint=glare.url)
    target = tmp_path / "package.zip"
    seen = []
    release, _ = exports.choose(catalog, name, VersionSpec.of("*"))
    exports.save(catalog, release, target, lambda *_: seen.append(target.exists()))
    assert seen == [False]
    assert target.exists()


def test_no_other_package_is_saved_than_that_of_the_id(
    openstack: OpenStack,
    glare: Client,
    as_user: Callable[[str], Client],
    admin: Client,
    name: str,
    tmp_path: pathlib.Path,
) -> None:
    """A project's own package comes before a public one of the same version."""
    own = glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    other = packages.package(name, "1.0.0", Author="Somebody else")
    public = as_user("the-other").publish(name, "1.0.0", other)
    assert admin.set(public["id"], "visibility", "public").status_code == 200
    for reference in (name, f"{name}@1.0.0", own["id"]):
        assert openstack.json("package", "show", reference)["id"] == own["id"]
    target = tmp_path / "package.zip"
    refused = openstack.run("package", "save", public["id"], "--file", target)
    assert (refused.code, target.exists()) == (3, False)
    assert f"your project has its own package of this version, {own['id']}" in refused.err
    openstack.ok("package", "save", own["id"], "--file", target)


def test_a_bundle_of_a_closure_is_published_in_another_cloud(
    openstack: OpenStack,
    glare: Client,
    as_user: Callable[[str], Client],
    name: str,
    tmp_path: pathlib.Path,
) -> None:
    library = f"{name}.library"
    glare.publish(library, "1.0.0", packages.package(library, "1.0.0"))
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0", Require={library: "1"}))
    folder = tmp_path / "bundle"
    openstack.ok("package", "save", name, "--closure", "--file", folder)
    other = as_user("other")
    (tmp_path / "other").mkdir()
    cloud = OpenStack(tmp_path / "other", other.url, other.token)
    cloud.ok("package", "publish", folder / "packages.bundle")
    assert other.names(name=f"in:{name},{library}", owner="other") == [
        (name, "1.0.0"),
        (library, "1.0.0"),
    ]


def test_a_bundle_is_completed_by_the_next_run(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    archive = packages.package(name, "1.0.0")
    glare.publish(name, "1.0.0", archive)
    openstack.ok("package", "save", name, "--closure", "--file", tmp_path / "bundle")
    saved = tmp_path / "bundle" / f"{name}.1.0.0.zip"
    saved.write_bytes(b"half")
    again = openstack.ok("package", "save", name, "--closure", "--file", tmp_path / "bundle")
    assert hashlib.sha256(saved.read_bytes()).digest() == hashlib.sha256(archive).digest()
    assert again.err == f"saved {name} 1.0.0\n"


def test_a_missing_requirement_is_reported(
    openstack: OpenStack, glare: Client, admin: Client, name: str, tmp_path: pathlib.Path
) -> None:
    library = f"{name}.library"
    created = glare.publish(library, "1.0.0", packages.package(library, "1.0.0"))
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0", Require={library: "1"}))
    assert admin.set(created["id"], "yanked", "loses data").status_code == 200
    result = openstack.fails(
        "package", "save", name, "--closure", "--file", tmp_path / "bundle", code=3
    )
    assert library in result.err
