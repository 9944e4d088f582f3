# SPDX-License-Identifier: Apache-2.0

"""Changes by Glance's own API, while others publish or hide the same package.

Glance loads an image, and saves the whole image after the change. It deletes an image in two
transactions.
"""

import concurrent.futures
import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterator

import pytest
import requests

from glare_murano import images as form
from tests import packages
from tests.functional.client import message, refusal
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

    with stored.running(tmp_path_factory.mktemp("saves"), change=change) as running:
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
        with glance.connection() as connection:
            written = connection.exec_driver_sql("SELECT * FROM image_locations").all()
        assert client.set(image_id, "note", "later", "add").status_code == 200
        with glance.connection() as connection:
            found = connection.exec_driver_sql("SELECT * FROM image_locations").all()
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


def test_a_slow_request_to_stage_data_ends_no_release(
    glance: service.Glance, images: ImageClient, image_admin: ImageClient, package_name: str
) -> None:
    data = packages.package(package_name, Require={"io.murano": "*"})
    draft = images.create(package_name).json()["id"]

    with _held(glance, "hold-staging", lambda: images.put(draft, b"late")) as slow:
        service.wait_for_import_timeout()
        images.imported(draft, data)
        published = image_admin.publications(draft, visibility="public")
        assert published.status_code == 200, published.text

    assert "another one has taken its place" in refusal(slow.result(), 409)
    found = images.show(draft)
    assert (found["status"], found["visibility"]) == ("active", "public")
    assert form.is_release(found)
    assert _found(images, package_name) == [package_name]
    assert images.request("GET", f"/v2/images/{draft}/file").content == data


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
    refused = refusal(images.publications(draft), 409)
    assert f"{package_name} 1.0.0 ({draft}) has lost its archive" in refused
    assert images.lost((package_name, "1.0.0")) == []
    assert images.delete(draft).status_code == 204
    assert stored.count_rows(glance, draft) == {}
    assert form.is_release(images.publish(package_name, "1.0.0", second))
    assert images.request("GET", f"/v2/images/{draft}/file").content == second


@contextlib.contextmanager
def _held(
    glance: service.Glance, hold: str, request: Callable[[], requests.Response]
) -> Iterator[concurrent.futures.Future[requests.Response]]:
    """Let a request wait in Glance, until the block ends."""
    (etc,) = glance.folder.glob("etc-*")
    for turn in ("held", "release"):
        (etc / turn).unlink(missing_ok=True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        (etc / hold).touch()
        sent = pool.submit(request)
        wait_until((etc / "held").exists, "the request")
        try:
            yield sent
        finally:
            (etc / "release").touch()


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
@pytest.mark.parametrize("hold", ["hold-stored", "hold-location"])
def test_an_import_of_a_deleted_draft_leaves_no_data(
    glance: service.Glance, images: ImageClient, package_name: str, hold: str, again: bool
) -> None:
    draft = images.create(package_name).json()["id"]
    assert images.put(draft, packages.package(package_name)).status_code == 204

    with _held(glance, hold, lambda: images.start_import(draft)):
        assert (glance.folder / "images" / draft).exists()
        assert images.delete(draft).status_code == 204
        assert not again or images.create(package_name).status_code == 201
    wait_until(lambda: _outcomes(glance, draft) == ["failure"], "the end of the import")

    assert not (glance.folder / "images" / draft).exists()
    assert again or stored.count_rows(glance, draft) == {}


def test_a_late_import_of_a_deleted_draft_leaves_the_data_of_a_later_one_alone(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    first, second = (packages.package(package_name, Author=name) for name in "AB")
    draft = images.create(package_name).json()["id"]
    assert images.put(draft, first).status_code == 204

    with _held(glance, "hold-stored", lambda: images.start_import(draft)):
        assert images.delete(draft).status_code == 204
        assert images.publish_draft(package_name, "1.0.0", second)["status"] == "active"
    wait_until(lambda: "failure" in _outcomes(glance, draft), "the end of the import")

    assert images.request("GET", f"/v2/images/{draft}/file").content == second


def _outcomes(glance: service.Glance, image_id: str) -> list[str]:
    """Return the status of each task that has imported an image."""
    with glance.connection() as connection:
        tasks = f"SELECT status FROM tasks WHERE image_id = '{image_id}'"
        return list(connection.exec_driver_sql(tasks).scalars())


def _release(glance: service.Glance, images: ImageClient, name: str, **require: str) -> str:
    data = packages.package(name, Require={"io.murano": "*", **require})
    release = stored.package(data, images.project)
    stored.store(glance, [release])
    return release.id


def _found(images: ImageClient, name: str) -> list[str]:
    releases = images.resolve(requirements={name: "*"}).json()["releases"]
    return [each["name"] for each in releases if each["name"] == name]


def test_a_killed_deletion_leaves_a_draft_which_can_be_published_again(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    id_ = _release(glance, images, package_name)
    before = images.show(id_)
    (process,) = glance.processes

    with _held(glance, "hold-data", lambda: images.delete(id_)) as deletion:
        # The package is out of the catalogue before Glance deletes anything.
        assert _found(images, package_name) == []
        assert form.PUBLISHED not in images.show(id_)
        refused = refusal(images.publications(id_), 409)
        assert f"another request is deleting {package_name} 1.0.0" in refused
        process.kill()
        assert isinstance(deletion.exception(), requests.ConnectionError)
    process.start()

    assert images.show(id_)["status"] == "active"
    service.wait_for_import_timeout()
    published = images.publications(id_)
    assert published.status_code == 200, published.text
    assert _found(images, package_name) == [package_name]
    after = images.show(id_)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert changed == {form.PUBLISHED, "updated_at"}


def test_a_release_whose_deletion_was_cut_leaves_its_id(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    id_ = _release(glance, images, package_name)
    (process,) = glance.processes

    with _held(glance, "hold", lambda: images.delete(id_)) as deletion:
        process.kill()
        assert isinstance(deletion.exception(), requests.ConnectionError)
    process.start()
    service.wait_for_import_timeout()

    assert images.show(id_)["status"] == "active"
    assert "has lost its archive" in message(images.publications(id_))
    assert images.delete(id_).status_code == 204
    assert images.lost((package_name, "1.0.0")) == [(package_name, "1.0.0")]
    assert images.create(package_name).status_code == 409


def test_a_release_that_glance_does_not_delete_is_published_again(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    id_ = _release(glance, images, package_name)
    before = images.show(id_)
    # The driver of the store cannot delete a directory.
    file = glance.folder / "images" / id_
    file.unlink()
    file.mkdir()

    refused = images.delete(id_)

    assert refused.status_code == 403, refused.text
    after = images.show(id_)
    assert after.pop("updated_at") >= before.pop("updated_at")
    assert after == before
    assert _found(images, package_name) == [package_name]


def test_a_release_is_not_deleted_while_its_protection_is_removed(
    glance: service.Glance, images: ImageClient, package_name: str
) -> None:
    id_ = _release(glance, images, package_name)
    assert images.set(id_, "protected", True).status_code == 200

    with _held(glance, "hold-get", lambda: images.delete(id_)) as deletion:
        assert images.set(id_, "protected", False).status_code == 200

    refused = deletion.result()
    assert refused.status_code == 403, refused.text
    assert "other requests are changing" in refused.text
    assert _found(images, package_name) == [package_name]
    assert images.delete(id_).status_code == 204


def test_a_release_is_not_published_again_beside_another_one(
    glance: service.Glance,
    images: ImageClient,
    images_of: Callable[..., ImageClient],
    image_admin: ImageClient,
    package_name: str,
) -> None:
    other = images_of(f"{images.project}-other")
    ids = [_release(glance, client, package_name) for client in (images, other)]
    assert image_admin.set(ids[0], "visibility", "public").status_code == 200
    file = glance.folder / "images" / ids[0]
    file.unlink()
    file.mkdir()

    with _held(glance, "hold-data", lambda: image_admin.delete(ids[0])) as deletion:
        assert image_admin.set(ids[1], "visibility", "public").status_code == 200

    assert deletion.result().status_code == 403
    assert form.PUBLISHED not in image_admin.show(ids[0])
    assert form.is_release(image_admin.show(ids[1]))
    assert f"the package {ids[0]} stays a draft: another {package_name} 1.0.0 is" in glance.log()


@pytest.mark.parametrize("change", ["visibility", "deactivate"])
def test_a_killed_change_leaves_the_release(
    glance: service.Glance, image_admin: ImageClient, package_name: str, change: str
) -> None:
    id_ = _release(glance, image_admin, package_name)
    before = image_admin.show(id_)
    (process,) = glance.processes

    def send() -> requests.Response:
        if change == "visibility":
            return image_admin.set(id_, "visibility", "public")
        return image_admin.request("POST", f"/v2/images/{id_}/actions/{change}")

    with _held(glance, "hold", send) as sent:
        process.kill()
        assert isinstance(sent.exception(), requests.ConnectionError)
    process.start()

    assert image_admin.show(id_) == before
    assert send().ok


@pytest.mark.parametrize("kind", ["multipart/form-data", "application/x-www-form-urlencoded"])
def test_forms_are_refused(images: ImageClient, package_name: str, kind: str) -> None:
    draft = images.create(package_name).json()["id"]

    for path in (f"images/{draft}/import", f"images/{draft}/stage", "images", "tasks", "nothing"):
        answer = images.request(
            "POST", f"/v2/{path}", data=b"_method=PUT", headers={"Content-Type": kind}
        )
        assert f"not '{kind}'" in refusal(answer, 415)
