# SPDX-License-Identifier: Apache-2.0

"""Imports that fail for want of space, and imports into several stores."""

import contextlib
import io
import json
import os
import pathlib
import random
import re
import sqlite3
import time
import uuid
from collections.abc import Iterator

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from sqlalchemy.engine import make_url

from glare_murano import images as form
from glare_murano.package import Version
from loader import errors
from loader.catalogs.glance import GlanceRepository
from tests import packages, processes
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient

NAME = "org.example.db"
DATA = packages.package(NAME, more={"Resources/a": random.Random(0).randbytes(700_000)})

_OPTIONS = """\
user_storage_quota = 1MB
enabled_backends = files:file,others:file

[others]
filesystem_store_datadir = {others}
"""


@pytest.fixture(scope="module")
def glance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[service.Glance]:
    """A Glance with two stores, and room for one archive of a project."""
    folder = tmp_path_factory.mktemp("failed")
    (folder / "others").mkdir()
    with service.running(folder, options=_OPTIONS.format(others=folder / "others")) as running:
        yield running


def _places(glance: service.Glance, image_id: str) -> list[str]:
    """Return the directories that have a file of an image."""
    found = glance.folder.glob(f"*/{image_id}*")
    return sorted(path.parent.name for path in found)


def _audited(glance: service.Glance, image_id: str) -> list[tuple[str, str]]:
    """Return the outcome of each import of an image, with the reason of a failure."""
    lines = re.findall(r"notification\.audit\.package\.import .*?(\{.*)", glance.log())
    records = [json.loads(line)["payload"] for line in lines]
    return [
        (each["outcome"], each.get("reason", {}).get("reasonCode", ""))
        for each in records
        if each["target"]["id"] == image_id
    ]


def _execute(glance: service.Glance, statement: str) -> None:
    with contextlib.closing(_connect(glance)) as connection:
        connection.execute(statement)


def _connect(glance: service.Glance) -> sqlite3.Connection:
    path = str(make_url(glance.database).database)
    return sqlite3.connect(path, isolation_level=None, timeout=30)


def test_an_import_waits_for_a_locked_sqlite(
    images: ImageClient, package_name: str, tmp_path: pathlib.Path
) -> None:
    data = packages.package(package_name)
    with service.running(tmp_path) as glance:
        client = ImageClient(glance.url, images.token)
        draft = client.create(package_name).json()["id"]
        assert client.put(draft, data).status_code == 204
        # The plug-in waits for the data.
        (glance.staging / draft).unlink()
        os.mkfifo(glance.staging / draft)
        assert client.start_import(draft).status_code == 202
        with (
            (glance.staging / draft).open("wb") as staged,
            contextlib.closing(_connect(glance)) as connection,
        ):
            # Until here, a locked database fails requests that Glance does not repeat. From here,
            # only the import is tested.
            glance.processes[0].stop_locking()
            connection.execute("BEGIN IMMEDIATE")
            staged.write(data)
            staged.close()
            time.sleep(2)
            connection.execute("COMMIT")

        assert client.wait(draft)["status"] == "active"


def test_the_error_of_a_task_that_never_begins_is_logged(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    draft = images.create(package_name).json()["id"]
    assert images.put(draft, packages.package(package_name)).status_code == 204
    locked = "BEGIN SELECT RAISE(ABORT, 'database is locked'); END"
    _execute(glance, f"CREATE TRIGGER locked BEFORE UPDATE ON tasks {locked}")

    try:
        assert images.start_import(draft).status_code == 202
        processes.wait_until(lambda: "(api_image_import) has failed" in glance.log(), "the log", 20)
    finally:
        _execute(glance, "DROP TRIGGER locked")


def test_a_publisher_tries_again_after_a_full_quota(
    glance: service.Glance, images: ImageClient
) -> None:
    machine = images.create("disk", id=str(uuid.uuid4()), container_format="bare").json()["id"]
    assert images.put(machine, DATA, "file").status_code == 204
    session = ksa_session.Session(auth=token_endpoint.Token(glance.url, images.token))
    repository = GlanceRepository(session, project_id=images.project, endpoint=glance.url)
    draft = repository.create(NAME, Version("1.0.0"))

    with pytest.raises(errors.CatalogError, match="see the log of the service"):
        repository.upload(draft, io.BytesIO(DATA), len(DATA))

    assert re.search("ERROR .*taskflow_executor .*will exceed the limit", glance.log())
    # The package was accepted, and not stored.
    assert _audited(glance, draft.id) == [
        ("success", ""),
        ("failure", "Glance could not store the archive; see its log"),
    ]
    refused = images.show(draft.id)
    assert refused["status"] == "queued"
    assert not [name for name in refused if name.startswith(form.PREFIX)]
    assert _places(glance, draft.id) == []
    assert images.delete(machine).status_code == 204
    assert repository.upload(draft, io.BytesIO(DATA), len(DATA)).size == len(DATA)


def test_a_full_staging_area_is_no_fault_of_the_package(
    glance: service.Glance, images: ImageClient
) -> None:
    image_id = images.create(NAME).json()["id"]
    assert images.put(image_id, DATA).status_code == 204
    copy = glance.staging / f"{image_id}.murano"
    copy.symlink_to(pathlib.Path("/dev/full"))
    assert images.start_import(image_id).status_code == 202

    refused = images.wait(image_id)

    assert refused["status"] == "queued"
    assert refused[form.REFUSAL] == "the archive could not be read; see Glance's log"
    assert "No space left on device" in glance.log()
    assert _places(glance, image_id) == []
    assert images.imported(image_id, DATA)["status"] == "active"


def test_a_package_is_stored_in_several_stores(glance: service.Glance, images: ImageClient) -> None:
    data = packages.package(NAME)
    image_id = images.create(NAME).json()["id"]
    assert images.put(image_id, data).status_code == 204
    body = {"method": {"name": "glance-direct"}, "all_stores": True}
    answer = images.request("POST", f"/v2/images/{image_id}/import", json=body)
    assert answer.status_code == 202, answer.text

    found = images.wait(image_id)

    assert (found["status"], found[form.VERSION]) == ("active", "1.0.0")
    assert _places(glance, image_id) == ["images", "others"]
    for place in ("images", "others"):
        assert (glance.folder / place / image_id).read_bytes() == data


def test_a_package_is_copied_to_another_store_and_stays_as_it_is(
    glance: service.Glance, images: ImageClient, image_admin: ImageClient
) -> None:
    data = packages.package(NAME)
    found = images.publish_draft(NAME, "1.0.0", data)
    image_id = found["id"]
    body = {"method": {"name": "copy-image"}, "stores": ["others"]}

    answer = image_admin.request("POST", f"/v2/images/{image_id}/import", json=body)
    assert answer.status_code == 202, answer.text

    copied = images.wait(image_id)
    assert _places(glance, image_id) == ["images", "others"]
    assert (glance.folder / "others" / image_id).read_bytes() == data
    properties = {name: value for name, value in found.items() if name.startswith(form.PREFIX)}
    assert {name: copied[name] for name in properties} == properties


def test_an_import_that_was_killed_between_two_stores_can_be_tried_again(
    glance: service.Glance, images: ImageClient
) -> None:
    old, new = (packages.package(NAME, Author=author) for author in ("Old", "New"))
    changed = {"status": "importing"}
    unpublished = {form.PUBLISHED: ""}
    package = stored.package(old, images.project, changed=changed, properties=unpublished)
    # With the location of the first store.
    stored.store(glance, [package])

    assert images.put(package.id, new).status_code == 204
    body = {"method": {"name": "glance-direct"}, "all_stores": True}
    answer = images.request("POST", f"/v2/images/{package.id}/import", json=body)
    assert answer.status_code == 202, answer.text

    found = images.wait(package.id)
    assert (found["status"], found["murano_author"]) == ("active", "New")
    assert sorted(found["stores"].split(",")) == ["files", "others"]
    for place in ("images", "others"):
        assert (glance.folder / place / package.id).read_bytes() == new
    assert images.request("GET", f"/v2/images/{package.id}/file").content == new
