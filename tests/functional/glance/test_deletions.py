# SPDX-License-Identifier: Apache-2.0

"""A version that was deleted from the real Glance is refused before any upload."""

import pathlib
from collections.abc import Callable

import pytest

from tests import packages
from tests.functional.client import Client
from tests.functional.glance import stored
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
    images: ImageClient,
    images_of: Callable[..., ImageClient],
    image_admin: ImageClient,
    package_name: str,
) -> None:
    kinds = ("deleted", "renamed", "given", "draft", "never")
    listed = [(f"{package_name}.{kind}", "1.0.0") for kind in kinds]
    ids = {name: images.create(name).json()["id"] for name, _ in listed[:4]}
    deleted, renamed, given = list(ids)[:3]
    assert images.delete(ids[deleted]).status_code == 204
    assert images.set(ids[renamed], "name", "another").status_code == 200
    assert image_admin.set(ids[given], "owner", "another").status_code == 200

    assert images.lost(*listed) == listed[:3]
    # The ids of another project are others.
    assert images_of(f"{images.project}-other").lost(*listed) == []


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
    assert command.run("package", "versions", other).code == 3
