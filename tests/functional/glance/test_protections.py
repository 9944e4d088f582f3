# SPDX-License-Identifier: Apache-2.0

"""Ways into Glance past the check of packages, each closed by the shipped files.

The same request for another image succeeds: so it is the rule for packages that refuses it.
"""

import hashlib
import os
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from glare_murano import images as form
from tests import packages, prerequisites, processes, web
from tests.functional.client import refusal
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient

pytestmark = pytest.mark.usefixtures("core_library")

NAME = "org.example.db"
DATA = packages.package(NAME)
FORGED = b"anything"

# Every property of a package, and the same in letters that some databases do not tell apart.
PROPERTIES = (
    form.VERSION,
    form.PUBLISHED,
    form.YANKED,
    form.REFUSAL,
    "murano_",
    "MURANO_Published",
)


# Threads of a process of Glance read the protections at once, and print their numbers of rules.
_READ_AT_ONCE = """\
import concurrent.futures
import sys
from glance.common import property_utils
from glare_murano.glance import internals
sys.setswitchinterval(1e-6)
internals.read_protections_in_turn()
property_utils.CONF([], project="glance")
property_utils.CONF.set_override("property_protection_file", sys.argv[1])
def read(_):
    return len(property_utils.PropertyRules(object()).rules)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(*set(pool.map(read, range(200))))
"""


def test_threads_read_the_protections_in_turn() -> None:
    file = processes.ROOT / "glare_murano" / "glance" / "etc" / "property-protections.conf"
    read = subprocess.run(
        [prerequisites.glance() / "python", "-W", "ignore", "-c", _READ_AT_ONCE, file],
        env={**os.environ, "PYTHONPATH": str(processes.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    # The file's own rules; newer releases add one for Glance's own properties.
    own = file.read_text().count("\n[")
    assert read.stdout.split() in ([str(own)], [str(own + 1)])


@pytest.fixture(params=["member", "administrator"])
def caller(request: pytest.FixtureRequest, images: ImageClient, image_admin: ImageClient) -> Any:
    """The owner of the test's images, or an administrator."""
    return images if request.param == "member" else image_admin


@pytest.fixture
def draft(images: ImageClient) -> str:
    """The image of a package without data."""
    return _id(images.create(NAME, "0.1.0"))


@pytest.fixture
def other(images: ImageClient) -> str:
    """An image of a virtual machine without data."""
    values = {"id": str(uuid.uuid4()), "container_format": "bare", "os_hidden": False}
    return _id(images.create("disk", **values))


@pytest.fixture
def release(images: ImageClient, glance: service.Glance) -> dict[str, Any]:
    """A published package."""
    package = stored.package(DATA, images.project)
    stored.store(glance, [package])
    found = images.show(package.id)
    assert form.is_release(found)
    return found


@pytest.fixture(scope="module")
def location() -> Iterator[dict[str, Any]]:
    """A place outside Glance with other data, as a location of an image."""
    hashes = {"os_hash_algo": "sha512", "os_hash_value": hashlib.sha512(FORGED).hexdigest()}
    with web.serving(FORGED) as url:
        place = f"{url}/archive"
        yield {"url": place, "metadata": {"store": "web"}, "validation_data": hashes}


def _id(created: Any) -> str:
    assert created.status_code == 201, created.text
    return str(created.json()["id"])


def test_data_is_not_put_past_the_plug_in(
    images: ImageClient, caller: ImageClient, draft: str, other: str
) -> None:
    assert caller.put(other, FORGED, "file").status_code == 204

    assert caller.put(draft, FORGED, "file").status_code == 403
    assert images.show(draft)["status"] == "queued"


def test_no_location_is_added(
    images: ImageClient, draft: str, other: str, location: dict[str, Any]
) -> None:
    for image_id, status in ((other, 202), (draft, 403)):
        sent = {"url": location["url"], "validation_data": location["validation_data"]}
        answer = images.request("POST", f"/v2/images/{image_id}/locations", json=sent)
        assert answer.status_code == status, answer.text

    assert images.show(draft)["status"] == "queued"


@pytest.mark.parametrize("op", ["add", "replace", "remove"])
def test_no_location_is_patched(
    images: ImageClient,
    caller: ImageClient,
    draft: str,
    other: str,
    release: dict[str, Any],
    location: dict[str, Any],
    op: str,
) -> None:
    paths = {"add": "/locations/-", "replace": "/locations", "remove": "/locations/0"}
    values = {"add": {"value": location}, "replace": {"value": [location]}, "remove": {}}
    patch = {"op": op, "path": paths[op], **values[op]}
    if op != "remove":
        assert caller.patch(other, patch).status_code == 200
        assert caller.patch(draft, patch).status_code == 403

    assert caller.patch(release["id"], patch).status_code == 403

    assert images.show(draft)["status"] == "queued"
    assert images.request("GET", f"/v2/images/{release['id']}/file").content == DATA


@pytest.mark.parametrize("name", PROPERTIES)
def test_no_property_is_forged(
    images: ImageClient, caller: ImageClient, draft: str, other: str, name: str
) -> None:
    created = caller.create(NAME, "2.0.0", **{name: "1.0.0"})
    assert created.status_code == 403
    assert name in created.text

    for image_id in (draft, other):
        answer = caller.set(image_id, name, "1.0.0", "add")
        assert answer.status_code == 403
        assert name not in images.show(image_id)
    assert caller.set(other, "os_distro", "debian", "add").status_code == 200


def test_no_property_is_edited(caller: ImageClient, images: ImageClient, release: Any) -> None:
    names = [name for name in release if name.startswith(form.PREFIX)]
    assert len(names) >= 10
    for name in names:
        assert caller.set(release["id"], name, "9.9.9").status_code == 403
        assert caller.patch(release["id"], {"op": "remove", "path": f"/{name}"}).status_code == 403

    # What anybody may change leaves them alone.
    assert caller.set(release["id"], "os_distro", "debian", "add").status_code == 200
    assert {name: images.show(release["id"])[name] for name in names} == {
        name: release[name] for name in names
    }


@pytest.mark.parametrize("visibility", ["shared", "community", "public"])
def test_a_change_of_visibility_keeps_the_release(
    images: ImageClient, image_admin: ImageClient, release: dict[str, Any], visibility: str
) -> None:
    caller = image_admin if visibility == "public" else images

    assert caller.set(release["id"], "visibility", visibility).status_code == 200
    assert form.is_release(images.show(release["id"]))


@pytest.mark.parametrize("path", ["/image_id", "/ image_id "])
@pytest.mark.parametrize("op", ["add", "replace"])
@pytest.mark.parametrize(("method", "query"), [("PATCH", ""), ("POST", "?_method=PATCH")])
def test_no_image_is_written_over_a_package(
    images: ImageClient,
    draft: str,
    other: str,
    release: dict[str, Any],
    path: str,
    op: str,
    method: str,
    query: str,
) -> None:
    headers = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
    for image_id in (draft, other):
        patch = [{"op": op, "path": path, "value": release["id"]}]
        url = f"/v2/images/{image_id}{query}"
        answer = images.request(method, url, json=patch, headers=headers)
        assert answer.status_code == 403, answer.text

    assert images.show(release["id"]) == release
    assert images.request("GET", f"/v2/images/{release['id']}/file").content == DATA


@pytest.mark.parametrize("name", ["base", "extra_properties", "__class__", "__dict__"])
@pytest.mark.parametrize("op", ["add", "replace"])
def test_no_attribute_of_glances_objects_is_a_property(
    images: ImageClient, draft: str, other: str, name: str, op: str
) -> None:
    for image_id in (draft, other):
        refused = refusal(images.set(image_id, name, "x", op), 403)
        assert f"Glance itself uses the name {name}; choose another" in refused


@pytest.mark.parametrize(
    "path", ["/v2/images", "/v2/images%0A", "/v2.17/images", "/v2/images?_method=POST"]
)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param('{"id": "ID"}', id="the id alone"),
        pytest.param('{"id": "CAPITALS"}', id="in capitals"),
        pytest.param(f'{{"id": "{uuid.UUID(int=0)}", "id": "ID"}}', id="twice"),
        pytest.param('{"id": "ID", "container_format": "bare"}', id="another format"),
        pytest.param('{"id": "ID", "container_format": "murano"}', id="no version"),
        pytest.param(
            '{"id": "ID", "container_format": "murano", "name": "NAME",'
            ' "package_version": "1.0.0"}',
            id="the same name",
        ),
        pytest.param(
            '{"id": "CAPITALS", "container_format": "murano", "name": "NAME",'
            ' "package_version": "1.0.0", "owner": "PROJECT"}',
            id="the owner's name in capitals",
        ),
        pytest.param('{"id": "ID", "container_format": null}', id="no format"),
    ],
)
def test_nobody_else_creates_an_image_with_the_id_of_a_package(
    images: ImageClient, images_of: Any, image_admin: ImageClient, body: str, path: str
) -> None:
    id_ = images.id_of(NAME, "1.0.0")
    parts = {"ID": id_, "CAPITALS": id_.upper(), "NAME": NAME, "PROJECT": images.project}
    for name, value in parts.items():
        body = body.replace(f'"{name}"', f'"{value}"')
    headers = {"Content-Type": "application/json"}

    for client in (images_of("stranger"), image_admin):
        for data in (body, iter([body.encode()])):
            refused = client.request("POST", path, data=data, headers=headers)
            assert refused.status_code == 403, refused.text

    assert images.create(NAME).status_code == 201


@pytest.mark.parametrize("spelling", ["{%s}", "urn:uuid:%s", "%s\n", " %s"])
def test_glance_takes_no_other_spelling_of_an_id(images_of: Any, spelling: str) -> None:
    id_ = images_of("spelling").id_of(NAME, "1.0.0")
    for text in (spelling % id_, id_.replace("-", "")):
        answer = images_of("stranger").create("disk", id=text, container_format="bare")
        assert answer.status_code in (400, 403), answer.text


def test_a_package_has_the_id_of_its_owner_name_and_version(
    images: ImageClient, image_admin: ImageClient
) -> None:
    expected = images.id_of(NAME, "1.0.0")

    for id_ in (str(uuid.uuid4()), images.id_of(NAME, "1.0.1")):
        refused = images.create(NAME, id=id_)
        assert refused.status_code == 403
        assert (
            f"the package {NAME} 1.0.0 of project {images.project} has the id {expected}"
            in refused.json()["error"]["message"]
        )
    body = {"name": NAME, "container_format": "murano", form.OWN_VERSION: "1.0.0"}
    refused = images.request("POST", "/v2/images", json=body)
    assert (refused.status_code, expected in refused.text) == (403, True)
    del body[form.OWN_VERSION]
    refused = refusal(images.request("POST", "/v2/images", json=body), 403)
    assert "needs the property package_version" in refused

    # The administrator may create the image for its owner.
    created = image_admin.create(NAME, id=expected, owner=images.project)
    assert created.status_code == 201, created.text
    assert images.create(NAME).status_code == 409


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("1.x", "is not a valid version"),
        ("1.2.3.4", "is not a valid version"),
        ("32768.0.0", "services store a first number up to 32767"),
        ("1.0.0-1234567", "up to 6 digits in a pre-release"),
        (f"1.0.0-{'a' * 60}", "longer than 60 characters"),
    ],
)
def test_a_version_that_glare_refuses_is_refused(
    images: ImageClient, version: str, reason: str
) -> None:
    refused = images.create(NAME, version)

    assert refused.status_code == 403
    assert reason in refused.json()["error"]["message"]


@pytest.mark.parametrize("name", ["not a name", "org..db"])
def test_a_name_that_glare_refuses_is_refused(images: ImageClient, name: str) -> None:
    refused = images.create(name)

    assert refused.status_code == 403
    assert "the name of a package is its FullName" in refused.json()["error"]["message"]


def test_a_package_belongs_to_a_project(image_admin: ImageClient, images_of: Any) -> None:
    """Else its id would follow from no owner, in one way here and in another there."""
    without = images_of("", "admin,member,reader")

    for client, owner in ((image_admin, None), (image_admin, ""), (without, None)):
        for project in ("", "None"):
            id_ = form.image_id(project, NAME, "1.0.0")
            refused = client.create(NAME, id=id_, owner=owner)
            assert refused.status_code == 403, refused.text
            assert "a package belongs to a project" in refused.json()["error"]["message"]


def test_a_hidden_image_is_like_a_missing_one_as_the_marker_of_a_list(
    images: ImageClient, images_of: Any, release: dict[str, Any], draft: str, other: str
) -> None:
    assert images.delete(other).status_code == 204
    hidden = [release["id"], release["id"].upper(), draft, other, images.id_of(NAME, "9.9.9")]
    stranger = images_of("stranger")

    for id_ in hidden:
        for query in ({}, {"os_hidden": "true"}, {"visibility": "all"}):
            answer = stranger.request("GET", "/v2/images", params={"marker": id_, **query})
            assert (answer.status_code, answer.json()["message"].partition("<")[0]) == (
                400,
                f"No image found with ID {id_}",
            )
    own = {"marker": release["id"], "os_hidden": "true"}
    assert images.request("GET", "/v2/images", params=own).status_code == 200


@pytest.mark.parametrize("more", ["%01", "%7F", "%C3%A9"])
def test_an_id_that_a_database_may_find_by_mistake_does_not_reach_glance(
    images: ImageClient, release: dict[str, Any], more: str
) -> None:
    """MariaDB ignores some characters when it compares strings."""
    for method in ("GET", "DELETE"):
        answer = images.request(method, f"/v2/images/{release['id']}{more}")
        assert answer.status_code == 404
        # The filter's own answer; that of Glance has another form.
        assert answer.json()["error"]["message"].startswith("No image found with ID")


@pytest.mark.parametrize("body", [b"[", b"\xff", b"{}", b"null"])
def test_a_body_that_is_no_list_of_changes_is_refused_by_glance(
    images: ImageClient, release: dict[str, Any], body: bytes
) -> None:
    headers = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
    answer = images.request("PATCH", f"/v2/images/{release['id']}", data=body, headers=headers)
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("name", ["name", "owner"])
def test_the_name_and_the_owner_of_a_package_stay(
    images: ImageClient,
    image_admin: ImageClient,
    release: dict[str, Any],
    draft: str,
    other: str,
    name: str,
) -> None:
    for image_id in (release["id"], draft):
        before = images.show(image_id)
        assert images.set(image_id, name, "org.other").status_code == 403
        refused = refusal(image_admin.set(image_id, name, "org.other"), 403)
        assert f"the {name} of a package cannot be changed" in refused
        # Together with another change, nothing is changed.
        note = {"op": "add", "path": "/note", "value": "later"}
        patch = {"op": "replace", "path": f"/{name}", "value": "org.other"}
        assert image_admin.patch(image_id, note, patch).status_code == 403
        assert images.show(image_id) == before
        assert image_admin.set(image_id, name, before[name]).status_code == 200

    assert image_admin.set(other, name, "org.other").status_code == 200


def test_a_package_is_not_turned_into_another_image_nor_an_image_into_a_package(
    images_of: Any,
    images: ImageClient,
    caller: ImageClient,
    release: dict[str, Any],
    draft: str,
    other: str,
) -> None:
    assert caller.set(release["id"], "container_format", "bare").status_code == 403

    for image_id, new in ((draft, "bare"), (other, "murano")):
        before = images.show(image_id)
        assert "create another image" in refusal(caller.set(image_id, "container_format", new), 403)
        assert images.show(image_id) == before
        # A stranger learns nothing about the image.
        assert images_of("stranger").set(image_id, "container_format", new).status_code == 404

    assert caller.set(draft, "container_format", "murano").status_code == 200
    assert caller.set(other, "container_format", "ovf").status_code == 200


@pytest.mark.parametrize("key", ["id", "image_id"])
def test_a_task_of_the_former_api_makes_no_package(
    glance: service.Glance, image_admin: ImageClient, images: ImageClient, key: str
) -> None:
    properties = {
        key: images.id_of(NAME, "1.0.0"),
        "name": NAME,
        "owner": images.project,
        "container_format": "murano",
        "disk_format": "raw",
        form.OWN_VERSION: "1.0.0",
    }
    with web.serving(DATA) as url:
        values = {
            "import_from": f"{url}/archive",
            "import_from_format": "raw",
            "image_properties": properties,
        }
        created = image_admin.request("POST", "/v2/tasks", json={"type": "import", "input": values})
        assert created.status_code == 201, created.text
        path = f"/v2/tasks/{created.json()['id']}"

        processes.wait_until(
            lambda: image_admin.request("GET", path).json()["status"] in ("success", "failure"),
            "the end of the task",
        )

    task = image_admin.request("GET", path).json()
    assert task["status"] == "failure"
    expected = {
        "id": "unexpected keywords",
        "image_id": f"the package {NAME} 1.0.0 of project {images.project} has the id",
    }
    assert expected[key] in glance.log()
    for hidden in ("true", "false"):
        query = {"os_hidden": hidden, "owner": images.project}
        listed = image_admin.request("GET", "/v2/images", params=query).json()["images"]
        assert listed == []
    assert images.create(NAME).status_code == 201


def test_packages_are_not_among_the_images_of_a_list(
    images: ImageClient, release: dict[str, Any], other: str
) -> None:
    def listed(**query: str) -> set[str]:
        answer = images.request("GET", "/v2/images", params={"owner": images.project, **query})
        return {image["id"] for image in answer.json()["images"]}

    assert listed() == {other}
    assert listed(os_hidden="true") == {release["id"]}


def test_a_deactivated_release_is_not_one_until_it_is_reactivated(
    images: ImageClient, release: dict[str, Any]
) -> None:
    for action, expected in (("deactivate", False), ("reactivate", True)):
        path = f"/v2/images/{release['id']}/actions/{action}"
        assert images.request("POST", path).status_code == 204
        assert form.is_release(images.show(release["id"])) is expected
