# SPDX-License-Identifier: Apache-2.0

"""Packages are published in the real Glance, yanked, and copied from and to Glare."""

import pathlib

import pytest

from loader import Cache, PackageLoader
from tests import packages
from tests.functional.client import Client
from tests.functional.glance import stored
from tests.functional.glance.conftest import Catalogs
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def command(tmp_path: pathlib.Path, glance: Glance, project: str, glare_url: str) -> OpenStack:
    """The command with two clouds: one has Glance, and one Glare."""
    token = f"user:{project}:member,reader"
    made = OpenStack(tmp_path, glance.url, token)
    made.add_glance("test", glance.url, token)
    made.add_cloud("glare", glare_url, f"user:{project}:member")
    core = packages.package("io.murano", "0.0.1")
    stored.store(glance, [stored.package(core, project, "public")])
    return made


@pytest.fixture
def fqn(project: str) -> str:
    return f"org.{project}.wiki"


@pytest.fixture
def folder(tmp_path: pathlib.Path, fqn: str) -> pathlib.Path:
    """Two packages that require each other."""
    folder = tmp_path / "packages"
    for name, required in ((fqn, f"{fqn}.db"), (f"{fqn}.db", fqn)):
        packages.write(folder / name, packages.content(name, "1.0.0", Require={required: "1"}))
    return folder


def test_packages_that_require_each_other_are_published_and_loaded(
    command: OpenStack,
    folder: pathlib.Path,
    fqn: str,
    catalog_of: Catalogs,
    project: str,
    tmp_path: pathlib.Path,
) -> None:
    done = command.ok("package", "publish", folder, "-f", "json")
    assert [row["Result"] for row in done.json()] == ["published", "published"]
    assert {f"uploaded {fqn} 1.0.0", f"uploaded {fqn}.db 1.0.0"} <= set(done.err.splitlines())

    again = command.json("package", "publish", folder)
    assert {row["Result"] for row in again} == {"skipped, was published before"}
    catalog = catalog_of(project)
    with PackageLoader(catalog, Cache(tmp_path / "cache")) as loaded:
        assert {p.full_name for p in loaded.load_all(fqn)} == {fqn, f"{fqn}.db", "io.murano"}
    # One for the closure, and one for all archives.
    assert catalog.counters.requests == 2


def test_an_interrupted_publication_goes_on(
    command: OpenStack, folder: pathlib.Path, fqn: str, images: ImageClient
) -> None:
    created = images.create(fqn, "1.0.0", package_version="1.0.0")
    assert images.put(created.json()["id"], b"PK and then nothing").status_code == 204
    assert [row["Status"] for row in command.json("package", "versions", fqn)] == ["drafted"]

    command.ok("package", "publish", folder)

    assert [row["Status"] for row in command.json("package", "versions", fqn)] == ["active"]


@pytest.mark.usefixtures("core_library")
def test_a_refused_publication_publishes_nothing(
    command: OpenStack, folder: pathlib.Path, fqn: str
) -> None:
    # Of another project, Glance's policy lets only an administrator publish for everybody.
    refused = command.fails("package", "publish", "--public", folder)

    assert "the policy publicize_image forbids it" in refused.err
    assert command.json("package", "list", f"{fqn}*") == []


def test_a_yanked_version_is_chosen_no_more(
    command: OpenStack, glance: Glance, project: str, fqn: str
) -> None:
    archives = [packages.package(fqn, version) for version in ("1.0.0", "1.1.0")]
    stored.store(glance, [stored.package(archive, project) for archive in archives])

    command.ok("package", "yank", f"{fqn}@1.1.0", "--reason", "loses data")
    assert command.json("package", "list", fqn)[0]["Version"] == "1.0.0"
    assert command.json("package", "list", fqn, "--yanked")[0]["Version"] == "1.1.0"
    assert command.json("package", "show", f"{fqn}@1.1.0")["yanked"] == "loses data"
    assert "1.0.0" in command.ok("package", "tree", fqn).out

    command.ok("package", "unyank", f"{fqn}@1.1.0")
    assert "1.1.0" in command.ok("package", "tree", fqn).out


def test_packages_are_copied_between_glance_and_glare(
    command: OpenStack,
    glance: Glance,
    project: str,
    glare: Client,
    fqn: str,
) -> None:
    archive = packages.package(fqn, "1.0.0", Tags=["fast"])
    published = glare.publish(fqn, "1.0.0", archive)
    glare.set(published["id"], "yanked", "loses data")
    glare.publish(fqn, "1.1.0", packages.package(fqn, "1.1.0"))

    def copy(source: str, *arguments: str) -> list[str]:
        result = command.ok("package", "copy", *arguments, "-f", "json", cloud=source)
        return [row["Result"] for row in result.json()]

    assert copy("glare", f"{fqn}@1.0.0", fqn, "--to-cloud", "test") == ["copied", "copied"]
    assert copy("glare", fqn, "--to-cloud", "test") == ["skipped, was published before"]
    shown = command.json("package", "show", f"{fqn}@1.0.0")
    assert (shown["sha256"], shown["yanked"]) == (published["archive"]["sha256"], "loses data")
    assert shown["tags"] == ["fast"]

    db = packages.package(f"{fqn}.db", "1.0.0")
    stored.store(glance, [stored.package(db, project)])
    command.ok("package", "set", f"{fqn}.db", "--category", "Web")
    assert copy("test", f"{fqn}.db", "--to-cloud", "glare") == ["copied"]
    assert glare.names(owner=project, categories="Web") == [(f"{fqn}.db", "1.0.0")]


def test_a_draft_with_other_files_is_refused_before_any_upload(
    command: OpenStack, folder: pathlib.Path, fqn: str, images: ImageClient
) -> None:
    required = {"Require": {f"{fqn}.db": "1"}}
    images.publish_draft(fqn, "1.0.0", packages.package(fqn, "1.0.0", Author="B", **required))

    refused = command.fails("package", "publish", folder)

    assert f"has a draft of {fqn} 1.0.0 with other files" in refused.err
    assert command.json("package", "list", f"{fqn}*", "--status", "drafted") != []
    command.fails("package", "versions", f"{fqn}.db", code=3)


def test_a_draft_with_the_same_files_is_published(
    command: OpenStack, folder: pathlib.Path, fqn: str, images: ImageClient
) -> None:
    manifest = packages.manifest(fqn, "1.0.0", Require={f"{fqn}.db": "1"})
    images.publish_draft(fqn, "1.0.0", packages.zipped(packages.files(manifest)))

    results = {row["Result"] for row in command.json("package", "publish", folder)}

    assert results == {"published", "published, was uploaded before"}


def test_a_shared_package_satisfies_requirements_once_it_is_accepted(
    command: OpenStack, glance: Glance, project: str, fqn: str, tmp_path: pathlib.Path
) -> None:
    archive = packages.package(f"{fqn}.db", "1.0.0")
    accepted = {project: "accepted"}
    stored.store(glance, [stored.package(archive, "another", "shared", members=accepted)])
    files = packages.content(fqn, "1.0.0", Require={f"{fqn}.db": "1"})

    command.ok("package", "publish", packages.write(tmp_path / "wiki", files))
    assert f"{fqn}.db 1.0.0" in command.ok("package", "tree", fqn).out


def test_classes_are_listed(command: OpenStack, folder: pathlib.Path, fqn: str) -> None:
    command.ok("package", "publish", folder)

    listed = command.json("class", "list", f"{fqn}*")
    assert {row["Class"] for row in listed} == {f"{fqn}.Thing", f"{fqn}.db.Thing"}
    assert command.json("class", "show", f"{fqn}.Thing")[0]["Package"] == fqn
    assert command.json("class", "list", "--subclass-of", f"{fqn}.Thing") == []
