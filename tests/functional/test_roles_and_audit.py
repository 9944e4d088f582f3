# SPDX-License-Identifier: Apache-2.0

"""What each role of Keystone may do in both services, and what an audit records of it.

Tokens are Keystone's, the audit is Keystone's filter, and the files are those that this
project ships; see ``audited_cloud``.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import requests

from glare_murano import images, wire
from tests import packages
from tests.functional import audited_cloud
from tests.functional.audited_cloud import PROJECT, ROLES, Cloud
from tests.functional.client import ARCHIVES, SUBCLASSES, Client
from tests.functional.glance import stored
from tests.functional.glance.image_client import ImageClient

# Three services start for the first test, and take as long as all others.
pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]

_counter = itertools.count()
_PATCH = {"Content-Type": "application/json-patch+json"}
_OVERRIDE = {"X-Murano-Override-Checks": "true"}
_BINARY = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with audited_cloud.running(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def glare(cloud: Cloud) -> Mapping[str, Client]:
    """Clients of Glare by role."""
    return {role: cloud.glare(role) for role in ROLES}


@pytest.fixture(scope="module")
def glance(cloud: Cloud) -> Mapping[str, ImageClient]:
    """Clients of Glance by role."""
    return {role: cloud.images(role) for role in ROLES}


def _new_name() -> str:
    return f"org.{PROJECT}.p{next(_counter)}"


class Operation(NamedTuple):
    """A request that some roles may send.

    :param least: the least of these roles.
    :param state: the state of the package before.
    :param send: sends the request for the package of an id.
    """

    title: str
    least: str
    state: str
    send: Callable[[Any, str], requests.Response]


def _check(
    operation: Operation,
    clients: Mapping[str, Any],
    make: Callable[[str], str],
    show: Callable[[str], Any],
) -> None:
    """Send the request in each role, and check who is refused."""
    first = ROLES.index(operation.least)
    package = make(operation.state)
    before = show(package)
    for role in ROLES[:first]:
        refused = operation.send(clients[role], package)
        assert refused.status_code == 403, (role, refused.text)
    assert show(package) == before
    for role in ROLES[first:]:
        answer = operation.send(clients[role], make(operation.state))
        assert answer.ok, (role, answer.text)


IN_GLARE = [
    Operation("lists packages", "reader", "private", lambda c, _: c.request("GET", "")),
    Operation("shows a package", "reader", "private", lambda c, id_: c.request("GET", f"/{id_}")),
    Operation("downloads", "reader", "private", lambda c, id_: c.request("GET", f"/{id_}/archive")),
    Operation(
        "downloads a batch", "reader", "private", lambda c, id_: c.post(ARCHIVES, _batch(id_))
    ),
    Operation(
        "resolves", "reader", "private", lambda c, _: c.resolve(requirements={"io.murano": "0"})
    ),
    Operation(
        "lists subclasses", "reader", "private", lambda c, _: c.query(SUBCLASSES, {"class": "a.B"})
    ),
    Operation("reserves a name", "member", "private", lambda c, _: c.create(_new_name())),
    Operation("uploads", "member", "drafted", lambda c, id_: c.upload(id_, b"")),
    Operation("activates", "member", "uploaded", lambda c, id_: c.set(id_, "status", "active")),
    Operation("publishes", "member", "uploaded", lambda c, id_: c.publish_all([id_], "private")),
    Operation("changes", "member", "private", lambda c, id_: c.set(id_, "display_name", "X")),
    Operation("yanks", "member", "private", lambda c, id_: c.yank(id_, "bad")),
    Operation("yanks by a patch", "member", "private", lambda c, id_: c.set(id_, "yanked", "bad")),
    Operation("yanks a public one", "member", "public", lambda c, id_: c.yank(id_, "bad")),
    Operation(
        "yanks a public one by a patch",
        "member",
        "public",
        lambda c, id_: c.set(id_, "yanked", "bad"),
    ),
    Operation("deletes", "member", "private", lambda c, id_: c.request("DELETE", f"/{id_}")),
    Operation(
        "changes a public one", "manager", "public", lambda c, id_: c.set(id_, "display_name", "X")
    ),
    Operation(
        "deletes a public one", "manager", "public", lambda c, id_: c.request("DELETE", f"/{id_}")
    ),
    Operation(
        "deactivates", "manager", "private", lambda c, id_: c.set(id_, "status", "deactivated")
    ),
    Operation(
        "reactivates", "manager", "deactivated", lambda c, id_: c.set(id_, "status", "active")
    ),
    Operation(
        "deletes a deactivated one",
        "manager",
        "deactivated",
        lambda c, id_: c.request("DELETE", f"/{id_}"),
    ),
    Operation(
        "makes public", "admin", "private", lambda c, id_: c.set(id_, "visibility", "public")
    ),
    Operation(
        "publishes publicly", "admin", "uploaded", lambda c, id_: c.publish_all([id_], "public")
    ),
    Operation(
        "overrides",
        "admin",
        "private",
        lambda c, id_: c.request("DELETE", f"/{id_}", headers=_OVERRIDE),
    ),
]


def _batch(package: str) -> dict[str, list[str]]:
    return {"artifacts": [package]}


def _in_glare(glare: Mapping[str, Client], state: str) -> str:
    """Bring a package of the project into a state, and return its id."""
    name = _new_name()
    member, admin = glare["member"], glare["admin"]
    if state == "drafted":
        return str(member.create(name).json()["id"])
    package = member.draft(name, "1.0.0", packages.package(name))
    if state != "uploaded":
        assert member.publish_all([package], "private").ok
    if state == "public":
        assert admin.publish_all([package], "public").ok
    if state == "deactivated":
        assert admin.set(package, "status", "deactivated").ok
    return package


@pytest.mark.parametrize("operation", IN_GLARE, ids=lambda each: each.title)
def test_roles_in_glare(glare: Mapping[str, Client], operation: Operation) -> None:
    member = glare["member"]
    if operation.title == "uploads":
        # An archive fits one name.
        operation = operation._replace(
            send=lambda c, id_: c.upload(id_, packages.package(member.show(id_)["name"]))
        )
    _check(operation, glare, lambda state: _in_glare(glare, state), member.show)


def _act(client: ImageClient, package: str, action: str) -> requests.Response:
    return client.request("POST", f"/v2/images/{package}/actions/{action}")


IN_GLANCE = [
    Operation("lists packages", "reader", "private", lambda c, _: c.request("GET", "/v2/images")),
    Operation(
        "shows a package", "reader", "private", lambda c, id_: c.request("GET", f"/v2/images/{id_}")
    ),
    Operation(
        "resolves", "reader", "private", lambda c, _: c.resolve(requirements={"io.murano": "0"})
    ),
    Operation("lists subclasses", "reader", "private", lambda c, _: c.subclasses("a.B")),
    Operation(
        "lists deletions",
        "reader",
        "private",
        lambda c, _: c.query(wire.DELETIONS_PATH, packages=[{"name": "a.B", "version": "1.0.0"}]),
    ),
    Operation(
        "downloads", "member", "private", lambda c, id_: c.request("GET", f"/v2/images/{id_}/file")
    ),
    Operation(
        "reserves a name",
        "member",
        "private",
        lambda c, _: c.create(_new_name(), id=str(uuid.uuid4())),
    ),
    Operation("stages", "member", "queued", lambda c, id_: c.put(id_, b"data")),
    Operation("imports", "member", "uploading", lambda c, id_: c.start_import(id_)),
    Operation("publishes", "member", "imported", lambda c, id_: c.publications(id_)),
    Operation("changes", "member", "private", lambda c, id_: c.set(id_, "note", "X", "add")),
    Operation("yanks", "member", "private", lambda c, id_: c.yank(id_, "bad")),
    Operation("yanks a public one", "member", "public", lambda c, id_: c.yank(id_, "bad")),
    Operation("deletes", "member", "private", lambda c, id_: c.delete(id_)),
    Operation("deactivates", "member", "private", lambda c, id_: _act(c, id_, "deactivate")),
    Operation("reactivates", "member", "deactivated", lambda c, id_: _act(c, id_, "reactivate")),
    Operation(
        "changes a public one", "manager", "public", lambda c, id_: c.set(id_, "note", "X", "add")
    ),
    Operation("deletes a public one", "manager", "public", lambda c, id_: c.delete(id_)),
    Operation(
        "deactivates a public one", "manager", "public", lambda c, id_: _act(c, id_, "deactivate")
    ),
    Operation(
        "makes private", "manager", "public", lambda c, id_: c.set(id_, "visibility", "private")
    ),
    Operation(
        "makes public", "admin", "private", lambda c, id_: c.set(id_, "visibility", "public")
    ),
    Operation(
        "publishes publicly",
        "admin",
        "imported",
        lambda c, id_: c.publications(id_, visibility="public"),
    ),
    Operation(
        "overrides",
        "admin",
        "private",
        lambda c, id_: c.request("DELETE", f"/v2/images/{id_}", headers=_OVERRIDE),
    ),
]


def _in_glance(cloud: Cloud, glance: Mapping[str, ImageClient], state: str) -> str:
    """Bring a package of the project into a state, and return its id."""
    name, member = _new_name(), glance["member"]
    if state in ("queued", "uploading"):
        package = str(member.create(name).json()["id"])
        if state == "uploading":
            assert member.put(package, packages.package(name)).ok
        return package
    visibility = "public" if state == "public" else "private"
    changed = {"status": "deactivated"} if state == "deactivated" else {}
    properties = {images.PUBLISHED: ""} if state == "imported" else {}
    archive = packages.package(name)
    draft = stored.package(
        archive, cloud.project_id, visibility, changed=changed, properties=properties
    )
    stored.store(cloud.glance, [draft])
    return draft.id


@pytest.mark.parametrize("operation", IN_GLANCE, ids=lambda each: each.title)
def test_roles_in_glance(
    cloud: Cloud, glance: Mapping[str, ImageClient], operation: Operation
) -> None:
    def send(client: ImageClient, package: str) -> requests.Response:
        answer = operation.send(client, package)
        if operation.title == "imports" and answer.ok:
            glance["member"].wait(package)
        return answer

    _check(
        operation._replace(send=send),
        glance,
        lambda state: _in_glance(cloud, glance, state),
        glance["member"].show,
    )


class Recorder:
    """The notifications of a service since the last call.

    :param read: returns all notifications.
    """

    def __init__(self, read: Callable[[], list[dict[str, Any]]]) -> None:
        self._read = read
        self._seen = len(read())

    def new(self) -> list[dict[str, Any]]:
        found = self._read()[self._seen :]
        self._seen += len(found)
        return found


def _records(events: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return action, target, outcome, status, user and project of each audited response."""
    found = [each["payload"] for each in events if each["event_type"] == "audit.http.response"]
    return [
        (
            each["action"],
            each["target"]["typeURI"],
            each["outcome"],
            each["reason"]["reasonCode"],
            each["initiator"]["id"],
            each["initiator"]["project_id"],
        )
        for each in found
    ]


def _changes(events: list[dict[str, Any]], prefix: str) -> list[tuple[Any, ...]]:
    """Return verb, packages, status of a refusal, user and project of each notification."""
    found = []
    for each in events:
        if each["event_type"].startswith(prefix):
            body = each["payload"]
            who = body["initiator"]
            assert who["request_id"]
            subject = body.get("packages") or [body.get("id")]
            verb = each["event_type"].removeprefix(prefix)
            found.append((verb, subject, body["status"], who["user_id"], who["project_id"]))
    return found


def test_glare_records_each_change_and_each_refusal_once(
    cloud: Cloud, glare: Mapping[str, Client]
) -> None:
    member, user = glare["member"], (cloud.user_id("member"), cloud.project_id)
    reader = (cloud.user_id("reader"), cloud.project_id)
    package = _in_glare(glare, "uploaded")
    lonely = _new_name()
    missing = packages.package(lonely, Require={"org.missing": "1"})
    incomplete = member.draft(lonely, "1.0.0", missing)
    recorder = Recorder(cloud.glare_events)

    def seen() -> tuple[list[tuple[str, ...]], list[tuple[Any, ...]]]:
        events = recorder.new()
        return _records(events), _changes(events, "artifact.artifact:")

    resource = "service/artifact/murano/v1/publications"
    assert member.publish_all([package], "private").status_code == 200
    assert seen() == (
        [("update/publish", resource, "success", "200", *user)],
        [(verb, [package], "active", *user) for verb in ("update", "activate")],
    )
    for ids, visibility, status in (
        ([package], "public", 403),
        ([incomplete], "private", 409),
        ([package], "shared", 400),
    ):
        assert member.publish_all(ids, visibility).status_code == status
        named = [None] if status == 400 else ids
        assert seen() == (
            [("update/publish", resource, "failure", str(status), *user)],
            [("refuse", named, status, *user)],
        )

    resource = "service/artifact/murano/v1/yanks"
    assert member.yank(package, "bad").status_code == 200
    assert seen() == (
        [("update/yank", resource, "success", "200", *user)],
        [(verb, [package], "active", *user) for verb in ("yank", "update")],
    )
    assert glare["reader"].yank(package, "").status_code == 403
    assert seen() == (
        [("update/yank", resource, "failure", "403", *reader)],
        [("refuse", [package], 403, *reader)],
    )

    resource = "service/artifact/artifacts/murano/package"
    assert member.set(package, "yanked", "").status_code == 200
    assert seen() == (
        [("update", resource, "success", "200", *user)],
        [(verb, [package], "active", *user) for verb in ("unyank", "update")],
    )
    assert glare["reader"].request("DELETE", f"/{package}").status_code == 403
    assert seen() == (
        [("delete", resource, "failure", "403", *reader)],
        [("refuse", [package], 403, *reader)],
    )
    assert member.request("DELETE", f"/{package}").status_code == 204
    assert seen() == (
        [("delete", resource, "success", "204", *user)],
        [("delete", [package], "active", *user)],
    )
    assert member.upload(incomplete, b"no archive").status_code == 400
    assert seen() == (
        [("update/upload", f"{resource}/archive", "failure", "400", *user)],
        [("refuse", [incomplete], 400, *user)],
    )
    assert member.resolve(requirements={"io.murano": "?"}).status_code == 400
    path = "service/artifact/murano/v1/dependencies"
    assert seen() == ([("read/list", path, "failure", "400", *user)], [])


def test_glance_records_each_change_and_each_refusal_once(
    cloud: Cloud, glance: Mapping[str, ImageClient]
) -> None:
    member, user = glance["member"], (cloud.user_id("member"), cloud.project_id)
    reader = (cloud.user_id("reader"), cloud.project_id)
    package = _in_glance(cloud, glance, "imported")
    name = member.show(package)["name"]
    requiring, incomplete = (
        stored.package(
            packages.package(_new_name(), Require={required: "1"}),
            cloud.project_id,
            properties={images.PUBLISHED: ""},
        )
        for required in (name, "org.missing")
    )
    stored.store(cloud.glance, [requiring, incomplete])
    recorder = Recorder(cloud.glance_events)

    def seen() -> tuple[list[tuple[str, ...]], list[tuple[Any, ...]]]:
        events = recorder.new()
        return _records(events), _changes(events, "package.")

    resource = "service/storage/image/murano/v1/publications"
    for ids, visibility, status in (
        ([package], "public", 403),
        ([incomplete.id], "private", 409),
        ([package], "shared", 400),
    ):
        assert member.publications(*ids, visibility=visibility).status_code == status
        named = [None] if status == 400 else ids
        assert seen() == (
            [("update/publish", resource, "failure", str(status), *user)],
            [("refuse", named, status, *user)],
        )
    assert member.publications(package, requiring.id).status_code == 200
    assert seen() == (
        [("update/publish", resource, "success", "200", *user)],
        [("activate", [each], "active", *user) for each in (package, requiring.id)],
    )

    resource = "service/storage/image/murano/v1/yanks"
    for reason, verb in (("bad", "yank"), ("", "unyank")):
        assert member.yank(package, reason).status_code == 200
        assert seen() == (
            [("update/yank", resource, "success", "200", *user)],
            [(verb, [package], "active", *user)],
        )
    assert glance["reader"].yank(package, "bad").status_code == 403
    assert seen() == (
        [("update/yank", resource, "failure", "403", *reader)],
        [("refuse", [package], 403, *reader)],
    )

    # Refused by the filter of this project, and by Glance's policy.
    resource = "service/storage/image/images/image"
    for client, status, who in ((member, 409, user), (glance["reader"], 403, reader)):
        assert client.delete(package).status_code == status
        assert seen() == (
            [("delete", resource, "failure", str(status), *who)],
            [("refuse", [package], status, *who)],
        )
    for action, verb, status in (
        ("disable", "deactivate", "deactivated"),
        ("enable", "reactivate", "active"),
    ):
        assert _act(member, requiring.id, verb).status_code == 204
        assert seen() == (
            [(action, resource, "success", "204", *user)],
            [(verb, [requiring.id], status, *user)],
        )
    assert member.delete(requiring.id).status_code == 204
    assert seen() == (
        [("delete", resource, "success", "204", *user)],
        [("delete", [requiring.id], "deleted", *user)],
    )


def test_glance_records_changes_of_visibility(
    cloud: Cloud, glance: Mapping[str, ImageClient]
) -> None:
    package = _in_glance(cloud, glance, "private")
    recorder = Recorder(cloud.glance_events)
    for visibility, verb in (("public", "publish"), ("private", "withdraw")):
        assert glance["admin"].set(package, "visibility", visibility).status_code == 200
        (found,) = _changes(recorder.new(), "package.")
        assert found[:3] == (verb, [package], "active")


@pytest.mark.parametrize("is_valid", [True, False])
def test_the_result_of_an_import_names_who_requested_it(
    cloud: Cloud, glance: Mapping[str, ImageClient], *, is_valid: bool
) -> None:
    name, manager = _new_name(), glance["manager"]
    package = manager.create(name).json()["id"]
    recorder = Recorder(cloud.glance_events)
    manager.imported(package, packages.package(name) if is_valid else b"no archive")

    (record,) = [
        each["payload"] for each in recorder.new() if each["event_type"] == "audit.package.import"
    ]
    assert record["typeURI"] == "http://schemas.dmtf.org/cloud/audit/1.0/event"
    assert record["action"] == "update/import"
    assert record["target"] == {
        "typeURI": "service/storage/image/image",
        "id": package,
        "name": name,
    }
    initiator = record["initiator"]
    assert (initiator["id"], initiator["project_id"]) == (
        cloud.user_id("manager"),
        cloud.project_id,
    )
    assert initiator["request_id"].startswith("req-")
    if is_valid:
        assert (record["outcome"], record.get("reason")) == ("success", None)
    else:
        reason = {
            "reasonType": "murano_refusal",
            "reasonCode": manager.show(package)[images.REFUSAL],
        }
        assert (record["outcome"], record["reason"]) == ("failure", reason)
        assert "[archive-format]" in reason["reasonCode"]


def test_a_request_without_a_token_has_no_user(cloud: Cloud) -> None:
    recorder = Recorder(cloud.glare_events)
    anybody = Client(cloud.glare_url, "forged")
    assert anybody.publish_all([str(uuid.uuid4())], "public").status_code == 401
    # Keystone's filter answers before the audit.
    assert recorder.new() == []
