# SPDX-License-Identifier: Apache-2.0

"""Deletions in the real Glance: what can be published again, and what is refused."""

import pathlib
from collections.abc import Callable

import pytest

from glare_murano import images as form
from glare_murano import wire
from tests import packages
from tests.functional.client import Client, refusal
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance
from tests.functional.openstack_command import OpenStack

pytestmark = pytest.mark.usefixtures("core_library")


@pytest.fixture
def command(tmp_path: pathlib.Path, images: ImageClient, glare: Client) -> OpenStack:
    """The command with two clouds: one has Glance, and one Glare."""
    made = OpenStack(tmp_path, images.url, images.token)
    made.add_glance("test", images.url, images.token)
    made.add_cloud("glare", glare.url, glare.token)
    return made


def test_versions_that_the_project_cannot_publish_again_are_listed(
    glance: Glance,
    images: ImageClient,
    images_of: Callable[..., ImageClient],
    package_name: str,
) -> None:
    kinds = ("deleted", "deleted.draft", "draft", "never")
    deleted, deleted_draft, draft, never = ((f"{package_name}.{kind}", "1.0.0") for kind in kinds)
    release = stored.package(packages.package(*deleted), images.project)
    stored.store(glance, [release])
    assert images.delete(release.id).status_code == 204
    assert images.delete(images.create(*deleted_draft).json()["id"]).status_code == 204
    assert images.create(*draft).status_code == 201

    listed = (deleted, deleted_draft, draft, never)
    assert images.lost(*listed) == [deleted]
    assert [images.create(*each).status_code for each in listed] == [409, 201, 409, 201]
    # The ids of another project are others.
    assert images_of(f"{images.project}-other").lost(*listed) == []


def _put(_: ImageClient, __: str, ___: bytes) -> None:
    """Leave an image without data."""


def _stage(images: ImageClient, image_id: str, data: bytes) -> None:
    assert images.put(image_id, data).ok


def _import(images: ImageClient, image_id: str, data: bytes) -> None:
    assert images.imported(image_id, data)["status"] == "active"
    images.wait_idle(image_id)


def _deactivate(images: ImageClient, image_id: str, data: bytes) -> None:
    _import(images, image_id, data)
    assert images.request("POST", f"/v2/images/{image_id}/actions/deactivate").ok


@pytest.mark.parametrize("prepare", [_put, _stage, _import, _deactivate])
def test_a_deleted_draft_leaves_nothing(
    glance: Glance,
    images: ImageClient,
    package_name: str,
    prepare: Callable[[ImageClient, str, bytes], None],
) -> None:
    first, second = (packages.package(package_name, Author=name) for name in "AB")
    draft = images.create(package_name, visibility="shared").json()["id"]
    path = f"/v2/images/{draft}"
    assert images.request("PUT", f"{path}/tags/mine").status_code == 204
    assert images.request("POST", f"{path}/members", json={"member": "other"}).ok
    prepare(images, draft, first)
    assert stored.count_rows(glance, draft).keys() >= {"images", "image_tags", "image_members"}

    assert images.delete(draft).status_code == 204

    assert stored.count_rows(glance, draft) == {}
    for folder in (glance.staging, glance.folder / "images"):
        assert not (folder / draft).exists()
    assert images.request("GET", path).status_code == 404
    assert images.delete(draft).status_code == 404
    draft = images.publish_draft(package_name, "1.0.0", second, visibility="shared")["id"]
    images.wait_idle(draft)
    assert images.publications(draft).status_code == 200
    release = images.show(draft)
    assert (form.is_release(release), release["tags"]) == (True, [])
    assert images.request("GET", f"{path}/members").json()["members"] == []
    assert images.request("GET", f"{path}/file").content == second


def test_the_version_of_a_deleted_release_is_free_after_both_purges(
    glance: Glance, images: ImageClient, package_name: str
) -> None:
    first, second = (packages.package(package_name, Author=name) for name in "AB")
    release = images.publish(package_name, "1.0.0", first)["id"]
    version = (package_name, "1.0.0")
    assert images.delete(release).status_code == 204
    (etc,) = glance.folder.glob("etc-*")

    assert stored.count_rows(glance, release).keys() >= {"images", "image_properties"}
    # By default, one call purges 100 rows of a table; other tests leave more.
    all_rows = ("--age_in_days", "0", "--max_rows", "-1")
    service.manage(etc, "db", "purge", *all_rows)
    assert stored.count_rows(glance, release) == {"images": 1}
    assert images.lost(version) == [version]
    assert images.create(*version).status_code == 409

    service.manage(etc, "db", "purge_images_table", *all_rows)
    assert stored.count_rows(glance, release) == {}
    assert images.lost(version) == []
    assert form.is_release(images.publish(*version, second))
    assert images.request("GET", f"/v2/images/{release}/file").content == second


def test_the_data_of_a_draft_does_not_wait_for_the_scrubber(
    tmp_path: pathlib.Path, package_name: str
) -> None:
    data = packages.package(package_name, Require={"io.murano": "*"})
    with service.running(tmp_path, options="delayed_delete = True") as delaying:
        images = ImageClient(delaying.url, "user:delayed:member,reader")
        release = stored.package(packages.package(f"{package_name}.release"), images.project)
        stored.store(delaying, [release])
        draft = images.publish_draft(package_name, "1.0.0", data)["id"]
        images.wait_idle(draft)
        assert (delaying.folder / "images" / draft).exists()

        for image_id in (draft, release.id):
            assert images.delete(image_id).status_code == 204

        assert stored.count_rows(delaying, draft) == {}
        assert not (delaying.folder / "images" / draft).exists()
        assert (delaying.folder / "images" / release.id).exists()
        assert images.publish_draft(package_name, "1.0.0", data)["status"] == "active"


def test_a_version_is_listed_in_each_spelling(images: ImageClient, package_name: str) -> None:
    release = images.publish(package_name, "1.0.0", packages.package(package_name))["id"]
    assert images.delete(release).status_code == 204

    listed = [(package_name, version) for version in ("1", "1.0", "1.0.0", "1.0.1")]
    assert images.lost(*listed) == listed[:3]
    body = {"packages": [{"name": package_name, "version": "one"}]}
    assert "'one'" in refusal(images.query(wire.DELETIONS_PATH, **body), 400)


def test_a_deleted_version_is_refused_before_any_upload(
    command: OpenStack,
    glance: Glance,
    glare: Client,
    images: ImageClient,
    package_name: str,
    tmp_path: pathlib.Path,
) -> None:
    other = f"{package_name}.other"
    archives = {fqn: packages.package(fqn, "1.0.0") for fqn in (package_name, other)}
    stored.store(glance, [stored.package(archives[package_name], images.project)])
    command.ok("package", "delete", "--yes", f"{package_name}@1.0.0")
    for fqn, archive in archives.items():
        glare.publish(fqn, "1.0.0", archive)
        (tmp_path / f"{fqn}.zip").write_bytes(archive)
    files = [tmp_path / f"{fqn}.zip" for fqn in archives]

    refused = [
        command.run("package", "publish", *files),
        command.run("package", "publish", *files, "--dry-run"),
        command.run("package", "copy", *archives, "--to-cloud", "test", cloud="glare"),
        command.run("package", "copy", *archives, "--to-cloud", "test", "--dry-run", cloud="glare"),
    ]

    message = f"{package_name} 1.0.0 was deleted from Glance at {images.url}"
    for result in refused:
        assert (result.code, result.err.count(message)) == (1, 1)
        assert "publish these files as another version" in result.err
        assert "drafts" not in result.err
    command.fails("package", "versions", other, code=3)
