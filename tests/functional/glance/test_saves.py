# SPDX-License-Identifier: Apache-2.0

"""Changes by Glance's own API, while others publish or hide the same package.

Glance loads an image, and saves the whole image after the change. It deletes an image in two
transactions.
"""

import concurrent.futures
import dataclasses
import pathlib
from collections.abc import Iterator

import pytest
import requests
import sqlalchemy

from glare_murano import images as form
from tests import packages
from tests.functional.client import message
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient
from tests.processes import wait_until


@pytest.fixture(scope="module")
def glance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    """A Glance in which a save can wait for the test."""

    def change(etc: pathlib.Path) -> None:
        paste = etc.parent / "glance-api-paste.ini"
        text = paste.read_text()
        assert "trusted_tokens:" in text
        paste.write_text(text.replace("trusted_tokens:", "held_saves:"))

    with service.running(tmp_path_factory.mktemp("saves"), change=change) as running:
        core = packages.package("io.murano", "0.0.0")
        stored.store(running, [stored.package(core, "core", "public")])
        yield running


def test_a_save_that_began_before_ends_neither_publication_nor_yank(
    glance: service.Glance,
    images: ImageClient,
    image_admin: ImageClient,
    package_name: str,
) -> None:
    archive = packages.package(package_name, Require={"io.murano": "*"})
    draft = stored.package(archive, images.project, properties={form.PUBLISHED: ""})
    stored.store(glance, [draft])
    (etc,) = glance.folder.glob("etc-*")

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        (etc / "hold").touch()
        save = pool.submit(images.set, draft.id, "note", "later", "add")
        wait_until((etc / "held").exists, "a save")
        published = image_admin.publications(draft.id, visibility="public")
        yanked = image_admin.yank(draft.id, "loses data")
        (etc / "release").touch()

    assert [each.status_code for each in (published, yanked, save.result())] == [200, 200, 200]
    found = images.show(draft.id)
    assert (found["note"], found[form.YANKED]) == ("later", "loses data")
    assert found[form.PUBLISHED]
    assert found["visibility"] == "public"


def test_a_save_writes_no_encrypted_location_again(
    images: ImageClient, package_name: str, tmp_path: pathlib.Path
) -> None:
    with service.running(tmp_path, options=f"metadata_encryption_key = {'k' * 16}") as glance:
        client = ImageClient(glance.url, images.token)
        data = packages.package(package_name)
        image_id = client.publish_draft(package_name, "1.0.0", data)["id"]
        client.wait_idle(image_id)
        engine = sqlalchemy.create_engine(glance.database)
        with engine.connect() as connection:
            written = connection.exec_driver_sql("SELECT * FROM image_locations").all()
        assert client.set(image_id, "note", "later", "add").status_code == 200
        with engine.connect() as connection:
            found = connection.exec_driver_sql("SELECT * FROM image_locations").all()
        engine.dispose()
        downloaded = client.request("GET", f"/v2/images/{image_id}/file").content

    assert found == written
    assert written
    assert "file://" not in str(written)
    assert downloaded == data


@pytest.mark.parametrize(
    ("name", "value", "status"), [("note", "later", 200), ("container_format", "bare", 403)]
)
def test_a_save_that_began_before_the_end_of_an_import_loses_no_data(
    glance: service.Glance,
    images: ImageClient,
    package_name: str,
    name: str,
    value: str,
    status: int,
) -> None:
    data = packages.package(package_name, Require={"io.murano": "*"})
    package = stored.package(data, images.project)
    importing = {"status": "importing", "size": None, "checksum": None}
    early = dataclasses.replace(package, changed=importing, properties={form.PUBLISHED: ""})
    stored.store(glance, [early])
    (etc,) = glance.folder.glob("etc-*")
    for turn in ("held", "release"):
        (etc / turn).unlink(missing_ok=True)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        (etc / "hold").touch()
        save = pool.submit(images.set, package.id, name, value, "add")
        wait_until((etc / "held").exists, "a save")
        stored.activate(glance, package.id, len(data))
        assert images.publications(package.id).status_code == 200
        (etc / "release").touch()

    assert save.result().status_code == status
    found = images.show(package.id)
    assert form.is_release(found)
    assert (found.get(name) == value) is (status == 200)
    assert found["size"] == len(data)
    assert images.request("GET", f"/v2/images/{package.id}/file").content == data


def test_a_deletion_that_was_cut_leaves_the_draft_and_can_be_repeated(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    first, second = (
        packages.package(package_name, Require={"io.murano": "*"}, Author=name) for name in "AB"
    )
    draft = images.publish_draft(package_name, "1.0.0", first)["id"]
    images.wait_idle(draft)
    (etc,) = glance.folder.glob("etc-*")
    for turn in ("held", "release"):
        (etc / turn).unlink(missing_ok=True)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        (etc / "hold").touch()
        deletion = pool.submit(images.delete, draft)
        wait_until((etc / "held").exists, "a deletion")
        (process,) = glance.processes
        process.kill()
        assert isinstance(deletion.exception(), requests.ConnectionError)
    process.start()

    assert images.show(draft)["status"] == "active"
    refused = images.publications(draft)
    assert refused.status_code == 409
    assert f"{package_name} 1.0.0 ({draft}) has lost its archive" in message(refused)
    assert images.lost((package_name, "1.0.0")) == []
    assert images.delete(draft).status_code == 204
    assert stored.count_rows(glance, draft) == {}
    assert form.is_release(images.publish(package_name, "1.0.0", second))
    assert images.request("GET", f"/v2/images/{draft}/file").content == second
