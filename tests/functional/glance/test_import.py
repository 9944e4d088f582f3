# SPDX-License-Identifier: Apache-2.0

"""Packages that are imported into the real Glance: what is stored, refused and tried again."""

import contextlib
import hashlib
import json
import pathlib
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from glare_murano import images as form
from tests import packages, processes, web
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient

NAME = "org.example.db"


@pytest.fixture
def nothing_staged(glance: service.Glance) -> Iterator[None]:
    """No file stays in the staging area."""
    yield
    assert list(glance.staging.iterdir()) == []


def _large() -> bytes:
    """Make a package that takes a moment to read."""
    content = {"Resources/a": random.Random(0).randbytes(20_000_000)}
    return packages.package(NAME, more=content)


@contextlib.contextmanager
def _reading(
    images: ImageClient, glance: service.Glance, image_id: str, copied: int = 0
) -> Iterator[None]:
    """Start an import, and go on while the plug-in reads its own copy of the archive.

    :param copied: the least size of the copy in bytes.
    """
    copy = glance.staging / f"{image_id}.murano"

    def is_copied() -> bool:
        with contextlib.suppress(FileNotFoundError):
            return copy.stat().st_size >= copied
        return False

    # On a busy host the answer may come after the import.
    request = threading.Thread(target=images.start_import, args=(image_id,))
    request.start()
    end = time.monotonic() + processes.START_SECONDS
    while not is_copied():
        assert time.monotonic() < end, "the plug-in was not seen to read"
        time.sleep(0.001)
    yield
    request.join()


@pytest.mark.usefixtures("nothing_staged")
def test_a_package_is_read_and_stored(images: ImageClient) -> None:
    keys = {"Require": {"org.example.log": ">=1,<2"}, "Tags": ["SQL"]}
    data = packages.extending(NAME, "org.example.log.Base", "1.2.0", **keys)

    found = images.publish_draft(NAME, "1.2.0", data)

    assert found["status"] == "active"
    assert found["murano_version"] == "1.2.0"
    assert found["murano_type"] == "Library"
    assert found["murano_format"] == "MuranoPL/1.4.0"
    assert found["murano_display_name"] == "A Thing"
    assert json.loads(found["murano_classes"]) == [f"{NAME}.Thing"]
    assert json.loads(found["murano_inherits"]) == {"org.example.log.Base": f"{NAME}.Thing"}
    assert json.loads(found["murano_requirements"])["org.example.log"] == ">=1,<2"
    assert json.loads(found["murano_tags"]) == ["SQL"]
    assert found["murano_sha256"] == hashlib.sha256(data).hexdigest()
    assert images.request("GET", f"/v2/images/{found['id']}/file").content == data
    assert form.PUBLISHED not in found


def test_a_refused_import_is_one_line_of_the_log(
    glance: service.Glance, images: ImageClient
) -> None:
    """It is a mistake of a user, and no reason for an alert."""
    before = len(glance.log())

    refused = images.publish_draft(NAME, "1.0.0", packages.package(NAME, "one"))

    lines = glance.log()[before:].splitlines()
    assert [line for line in lines if f"{refused['id']} is refused: " in line and " INFO " in line]
    # Imports of earlier tests may still end.
    (task,) = images.request("GET", f"/v2/images/{refused['id']}/tasks").json()["tasks"]
    own = [line for line in lines if task["id"] in line]
    assert [line for line in own if " ERROR " in line or "taskflow_executor" in line] == []


@pytest.mark.usefixtures("nothing_staged")
def test_a_refused_import_names_the_reason_and_can_be_tried_again(images: ImageClient) -> None:
    refused = images.publish_draft(NAME, "1.0.0", packages.package(NAME, "one"))

    assert refused["status"] == "queued"
    assert "'one'" in refused[form.REFUSAL]
    assert refused[form.REFUSAL].endswith("[manifest-version]")
    tasks = images.request("GET", f"/v2/images/{refused['id']}/tasks").json()["tasks"]
    assert [task["message"] for task in tasks] == [refused[form.REFUSAL]]

    files = packages.content(NAME, more={"UI/ui.yaml": b"a: !unknown x"})
    again = images.imported(refused["id"], packages.zipped(files))
    assert again["status"] == "queued"
    assert "UI/ui.yaml, line 1: " in again[form.REFUSAL]
    assert again[form.REFUSAL].endswith("[yaml-tag]")

    found = images.imported(refused["id"], packages.package(NAME))
    assert found["status"] == "active"
    assert form.REFUSAL not in found
    assert found[form.VERSION] == "1.0.0"


def test_the_check_of_forms_is_the_operators_choice(
    tmp_path: pathlib.Path, glance: service.Glance, images: ImageClient, project: str
) -> None:
    """By default, only a dashboard refuses the form."""

    def enforce(etc: pathlib.Path) -> None:
        with (etc / "glance-image-import.conf").open("a") as conf:
            conf.write("\n[murano_packages]\ncheck_forms = enforce\n")

    form_file = {"UI/ui.yaml": packages.FORM.replace(b"[]", b"x") + b"Template: {}\n"}
    archive = packages.package(NAME, more=form_file)
    problem = "UI/ui.yaml, line 5: Forms is 'x'; expected a list [form-section]"
    ignored = "UI/ui.yaml, line 6: the section 'Template' is unknown [form-section]"
    with service.running(tmp_path, change=enforce) as strict:
        client = ImageClient(strict.url, f"user:{project}:member,reader")
        refused = client.publish_draft(NAME, "1.0.0", archive)

    assert refused["status"] == "queued"
    assert refused[form.REFUSAL] == f"{problem}; {ignored}"

    found = images.publish_draft(NAME, "1.0.0", archive)
    assert found["status"] == "active"
    (line,) = [
        line
        for line in glance.log().splitlines()
        if "WARNING" in line and found["id"] in line and "UI/ui.yaml" in line
    ]
    assert problem in line
    assert ignored in line


def test_a_version_in_a_form_that_engines_refuse_is_refused(images: ImageClient) -> None:
    form_file = packages.FORM.replace(b"    type:", b"    classVersion: 1.10\n    type:")
    files = packages.content(NAME, more={"UI/ui.yaml": form_file})

    refused = images.publish_draft(NAME, "1.0.0", packages.zipped(files))

    assert refused["status"] == "queued"
    assert "line 4: classVersion: YAML reads '1.10' without quotes" in refused[form.REFUSAL]
    assert refused[form.REFUSAL].endswith("[form-range]")


def test_a_class_that_extends_itself_is_refused(images: ImageClient) -> None:
    code = f"Name: {NAME}.Thing\nExtends: {NAME}.Thing\n"

    refused = images.publish_draft(
        NAME, "1.0.0", packages.zipped(packages.content(NAME, code=code))
    )

    assert refused["status"] == "queued"
    assert refused[form.REFUSAL].endswith("[class-cycle]")


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        pytest.param({"FullName": "org.example.other"}, "FullName: ", id="another name"),
        pytest.param({"Version": "1.0.1"}, "Version: ", id="another version"),
    ],
)
def test_a_package_of_another_name_or_version_is_refused(
    images: ImageClient, keys: dict[str, str], place: str
) -> None:
    manifest = {**packages.manifest(NAME), **keys}

    refused = images.publish_draft(NAME, "1.0.0", packages.zipped(packages.files(manifest)))

    assert refused["status"] == "queued"
    assert refused[form.REFUSAL].startswith(place)
    assert next(iter(keys.values())) in refused[form.REFUSAL]
    assert refused[form.REFUSAL].endswith("[manifest-mismatch]")


def test_two_projects_have_private_packages_of_the_same_name(
    images: ImageClient, images_of: Callable[..., ImageClient]
) -> None:
    other = images_of(f"{images.project}-other")

    found = [each.publish_draft(NAME, "1.0.0", packages.package(NAME)) for each in (images, other)]

    assert [image["status"] for image in found] == ["active", "active"]
    assert other.create(NAME).status_code == 409
    assert other.request("GET", f"/v2/images/{found[0]['id']}").status_code == 404


def test_a_package_of_129_classes_is_stored(images: ImageClient) -> None:
    classes = {f"{NAME}.Class{number}": f"{number}.yaml" for number in range(129)}

    found = images.publish_draft(NAME, "1.0.0", packages.package(NAME, Classes=classes))

    assert found["status"] == "active"
    assert sorted(json.loads(found[form.CLASSES])) == sorted(classes)


@pytest.mark.usefixtures("nothing_staged")
def test_metadata_over_60_kib_is_refused_by_name(images: ImageClient) -> None:
    classes = {f"{NAME}.{'Class' * 20}{number}": f"{number}.yaml" for number in range(600)}

    refused = images.publish_draft(NAME, "1.0.0", packages.package(NAME, Classes=classes))

    assert refused["status"] == "queued"
    assert refused[form.REFUSAL].startswith("class_definitions: ")
    assert (
        "at most 61440 are allowed; shorten this field first [manifest-limit]"
        in refused[form.REFUSAL]
    )
    assert form.VERSION not in refused


def test_properties_over_the_quota_are_refused_with_the_quota(images: ImageClient) -> None:
    own = {f"own{number}": "value" for number in range(120)}

    refused = images.publish_draft(NAME, "1.0.0", packages.package(NAME), **own)

    assert refused["status"] == "queued"
    assert "at most 128 are allowed (image_property_quota)" in refused[form.REFUSAL]
    removed = [{"op": "remove", "path": f"/{name}"} for name in list(own)[:20]]
    assert images.patch(refused["id"], *removed).ok
    assert images.imported(refused["id"], packages.package(NAME))["status"] == "active"


@pytest.mark.parametrize("author", ["\U0001f600", "a" * 256], ids=["beyond U+FFFF", "too long"])
def test_what_no_database_can_keep_is_refused(images: ImageClient, author: str) -> None:
    refused = images.publish_draft(NAME, "1.0.0", packages.package(NAME, Author=author))

    assert refused[form.REFUSAL].startswith("author: ")
    assert refused[form.REFUSAL].endswith("[manifest-limit]")


@pytest.mark.usefixtures("nothing_staged")
def test_what_is_stored_is_what_was_read(images: ImageClient, glance: service.Glance) -> None:
    """Another request may still be writing to the staged file: Glance does not wait for it."""
    data = _large()
    image_id = images.create(NAME).json()["id"]
    assert images.put(image_id, data).ok
    with (glance.staging / image_id).open("r+b", buffering=0) as staged:
        with _reading(images, glance, image_id, len(data)):
            staged.write(b"\0" * len(data))
        found = images.wait(image_id)

    assert found["status"] == "active", found
    assert images.request("GET", f"/v2/images/{image_id}/file").content == data


def test_a_deletion_while_the_archive_is_read_leaves_nothing_staged(
    images: ImageClient, glance: service.Glance
) -> None:
    image_id = images.create(NAME).json()["id"]
    assert images.put(image_id, _large()).ok

    with _reading(images, glance, image_id):
        assert images.delete(image_id).status_code == 204

    processes.wait_until(lambda: not [*glance.staging.iterdir()], "an empty staging area")


@pytest.mark.parametrize(
    ("method", "end"), [("PUT", ""), ("PUT", "%0A"), ("POST", "?_method=put"), ("PUT", "?_method=")]
)
def test_one_request_at_a_time_brings_data(
    images: ImageClient, glance: service.Glance, method: str, end: str
) -> None:
    image_id = images.create(NAME).json()["id"]
    stored.write_property(glance, image_id, "os_glance_murano_reservation", "of another request")

    staged = images.request(
        method,
        f"/v2/images/{image_id}/stage{end}",
        data=packages.package(NAME),
        headers={"Content-Type": "application/octet-stream"},
    )

    assert staged.status_code == 409
    assert images.show(image_id)["status"] == "queued"


@pytest.mark.usefixtures("nothing_staged")
def test_a_draft_that_is_deleted_before_its_staging_is_missing(
    images: ImageClient, glance: service.Glance, package_name: str
) -> None:
    image_id = images.create(package_name).json()["id"]

    with stored.deleted_before_reservation(glance, image_id):
        answers = [images.put(image_id, b""), images.start_import(image_id)]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert f"No image found with ID {image_id}" in answers[0].text


@pytest.mark.usefixtures("nothing_staged")
def test_a_staging_that_fails_can_be_tried_again(images: ImageClient) -> None:
    data = packages.package(NAME)
    image_id = images.create(NAME).json()["id"]
    headers = {"Content-Type": "application/octet-stream", "x-openstack-image-size": "1"}

    failed = images.request("PUT", f"/v2/images/{image_id}/stage", data=data, headers=headers)

    assert failed.status_code == 400, failed.text
    assert images.show(image_id)["status"] == "queued"
    assert images.imported(image_id, data)["status"] == "active"


@pytest.mark.usefixtures("nothing_staged")
def test_data_that_a_killed_process_has_left_is_replaced(
    images: ImageClient, glance: service.Glance
) -> None:
    data = packages.package(NAME)
    image_id = images.create(NAME).json()["id"]
    (glance.staging / image_id).write_bytes(b"left")

    assert images.put(image_id, data).status_code == 204
    assert images.start_import(image_id).status_code == 202

    assert images.wait(image_id)["status"] == "active"
    assert images.request("GET", f"/v2/images/{image_id}/file").content == data


def test_a_reservation_that_was_left_behind_leads_to_no_other_data(
    images: ImageClient, glance: service.Glance
) -> None:
    data = packages.package(NAME)
    package = stored.package(data, images.project)
    stored.store(glance, [package])
    # Of a request whose connection to the database broke, longer ago than an import may take.
    stored.write_property(glance, package.id, "os_glance_murano_reservation", "of another request")

    assert images.put(package.id, packages.package(NAME, Author="Other")).status_code == 409
    assert images.start_import(package.id).status_code == 409

    assert form.is_release(images.show(package.id))
    assert images.request("GET", f"/v2/images/{package.id}/file").content == data


@pytest.mark.parametrize("name", [NAME, "org.example.other"])
@pytest.mark.usefixtures("nothing_staged")
def test_data_of_another_host_is_read_as_well(images: ImageClient, name: str) -> None:
    image_id = images.create(NAME).json()["id"]
    with web.serving(packages.package(name)) as url:
        answer = images.start_import(image_id, name="web-download", uri=f"{url}/archive")
        assert answer.status_code == 202, answer.text
        found = images.wait(image_id)

    assert found["status"] == ("active" if name == NAME else "queued")
    assert (form.REFUSAL in found) == (name != NAME)


@pytest.mark.usefixtures("nothing_staged")
def test_a_cancelled_import_leaves_the_data_of_a_later_one_alone(
    images: ImageClient, glance: service.Glance, package_name: str
) -> None:
    data = packages.package(package_name)
    image_id = images.create(package_name).json()["id"]
    tasks = f"/v2/images/{image_id}/tasks"
    with web.pausing(data) as server:
        answer = images.start_import(image_id, name="web-download", uri=f"{server.url}/archive")
        assert answer.status_code == 202, answer.text
        assert server.half.wait(20)
        service.wait_for_import_timeout()
        assert images.put(image_id, data).status_code == 204
        assert f"The import of image {image_id} was cancelled" in glance.log()
        staged = (glance.staging / image_id).stat().st_ino

        server.proceed.set()
        processes.wait_until(
            lambda: images.request("GET", tasks).json()["tasks"][0]["status"] == "failure",
            "the end of the first import",
        )

    assert (glance.staging / image_id).stat().st_ino == staged
    images.start_import(image_id)
    assert images.wait(image_id)["status"] == "active"


@pytest.mark.parametrize("data", [packages.package(NAME), b"QFI\xfb\0\0\0\3", b""])
def test_other_images_are_left_alone(images: ImageClient, data: bytes) -> None:
    values: dict[str, Any] = {"id": str(uuid.uuid4()), "container_format": "bare"}

    found = images.publish_draft(NAME, "1.0.0", data, **values)

    assert found["status"] == "active"
    assert not [name for name in found if name.startswith(form.PREFIX)]
    assert images.request("GET", f"/v2/images/{found['id']}/file").content == data


def test_an_import_leaves_no_earlier_publication(
    images: ImageClient, glance: service.Glance, package_name: str
) -> None:
    image_id = images.create(package_name).json()["id"]
    stored.write_property(glance, image_id, form.PUBLISHED, stored.PUBLISHED_AT)

    found = images.imported(image_id, packages.package(package_name))

    assert found["status"] == "active"
    assert form.PUBLISHED not in found
    assert not form.is_release(found)


def test_a_reason_has_only_characters_that_all_databases_store(images: ImageClient) -> None:
    data = packages.package(NAME, Classes={"\U0001f600": "a.yaml"})
    refused = images.publish_draft(NAME, "1.0.0", data)
    assert "line 3: '\\U0001f600' is not a valid name" in refused[form.REFUSAL]


@pytest.mark.usefixtures("nothing_staged")
def test_data_that_was_staged_is_not_replaced(images: ImageClient, package_name: str) -> None:
    image_id = images.create(package_name).json()["id"]
    assert images.put(image_id, packages.package(package_name)).status_code == 204

    assert images.put(image_id, b"other data").status_code == 409

    assert images.start_import(image_id).status_code == 202
    assert images.wait(image_id)["status"] == "active"
