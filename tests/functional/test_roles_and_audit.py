# SPDX-License-Identifier: Apache-2.0

"""What each role of Keystone may do in both services, and what an audit records of it.

Tokens are Keystone's, the audit is Keystone's filter, and the files are those that this
project ships; see ``audited_cloud``.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_OVERRIDE = {"X-Murano-Override-Checks": "true"}


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
    Operation("lists by conditions", "reader", "private", lambda c, _: c.query(wire.PACKAGES_PATH)),
    Operation("lists categories", "reader", "private", lambda c, _: c.query(wire.CATEGORIES_PATH)),
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
    Operation("deletes", "member", "private", lambda c, id_: c.delete(id_)),
    Operation(
        "changes a public one", "manager", "public", lambda c, id_: c.set(id_, "display_name", "X")
    ),
    Operation("deletes a public one", "manager", "public", lambda c, id_: c.delete(id_)),
    Operation(
        "deactivates", "manager", "private", lambda c, id_: c.set(id_, "status", "deactivated")
    ),
    Operation(
        "reactivates", "manager", "deactivated", lambda c, id_: c.set(id_, "status", "active")
    ),
    Operation("deletes a deactivated one", "manager", "deactivated", lambda c, id_: c.delete(id_)),
    Operation(
        "makes public", "admin", "private", lambda c, id_: c.set(id_, "visibility", "public")
    ),
    Operation(
        "publishes publicly", "admin", "uploaded", lambda c, id_: c.publish_all([id_], "public")
    ),
    Operation("overrides", "admin", "private", lambda c, id_: c.delete(id_, headers=_OVERRIDE)),
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
    Operation("lists by conditions", "reader", "private", lambda c, _: c.read(wire.PACKAGES_PATH)),
    Operation("lists categories", "reader", "private", lambda c, _: c.read(wire.CATEGORIES_PATH)),
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
        lambda c, _: c.create(_new_name(), owner=c.project),
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
    :param prefix: what the types of the service's own notifications begin with.
    """

    def __init__(self, read: Callable[[], list[dict[str, Any]]], prefix: str) -> None:
        self._read = read
        self._prefix = prefix
        self._seen = len(read())

    def new(self) -> list[dict[str, Any]]:
        found = self._read()[self._seen :]
        self._seen += len(found)
        return found

    def check(
        self,
        answer: requests.Response,
        status: int,
        action: str,
        target: str,
        who: tuple[str, str],
        *changes: tuple[str, Sequence[str | None], str | int],
    ) -> None:
        """Check an answer, its only audit record, and the notifications of changes.

        :param who: user and project.
        :param changes: verb, packages, and status of the packages, or of a refusal.
        """
        assert answer.status_code == status, answer.text
        events = self.new()
        outcome = "success" if answer.ok else "failure"
        assert _records(events) == [(action, target, outcome, str(status), *who)]
        assert _changes(events, self._prefix) == [(*change, *who) for change in changes]


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


def _users(cloud: Cloud) -> list[tuple[str, str]]:
    """Return user and project of a member and of a reader."""
    return [(cloud.user_id(role), cloud.project_id) for role in ("member", "reader")]


def test_glare_records_each_change_and_each_refusal_once(
    cloud: Cloud, glare: Mapping[str, Client]
) -> None:
    member, reader = glare["member"], glare["reader"]
    user, other = _users(cloud)
    package = _in_glare(glare, "uploaded")
    lonely = _new_name()
    missing = packages.package(lonely, Require={"org.missing": "1"})
    incomplete = member.draft(lonely, "1.0.0", missing)
    check = Recorder(cloud.glare_events, "artifact.artifact:").check

    action, target = "update/publish", "service/artifact/murano/v1/publications"
    both = [(verb, [package], "active") for verb in ("update", "activate")]
    check(member.publish_all([package], "private"), 200, action, target, user, *both)
    for id_, visibility, status in (
        (package, "public", 403),
        (incomplete, "private", 409),
        (package, "shared", 400),
    ):
        refusal = ("refuse", [None if status == 400 else id_], status)
        check(member.publish_all([id_], visibility), status, action, target, user, refusal)

    action, target = "update/yank", "service/artifact/murano/v1/yanks"
    both = [(verb, [package], "active") for verb in ("yank", "update")]
    refusal = ("refuse", [package], 403)
    check(member.yank(package, "bad"), 200, action, target, user, *both)
    check(reader.yank(package, ""), 403, action, target, other, refusal)

    target = "service/artifact/artifacts/murano/package"
    both = [(verb, [package], "active") for verb in ("unyank", "update")]
    check(member.set(package, "yanked", ""), 200, "update", target, user, *both)
    check(reader.delete(package), 403, "delete", target, other, refusal)
    deleted = ("delete", [package], "active")
    check(member.delete(package), 204, "delete", target, user, deleted)
    answer = member.upload(incomplete, b"no archive")
    refusal = ("refuse", [incomplete], 400)
    check(answer, 400, "update/upload", f"{target}/archive", user, refusal)
    # A query is not a change.
    answer = member.resolve(requirements={"io.murano": "?"})
    check(answer, 400, "read/list", "service/artifact/murano/v1/dependencies", user)


def test_glance_records_each_change_and_each_refusal_once(
    cloud: Cloud, glance: Mapping[str, ImageClient]
) -> None:
    member, reader = glance["member"], glance["reader"]
    user, other = _users(cloud)
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
    check = Recorder(cloud.glance_events, "package.").check

    action, target = "update/publish", "service/storage/image/murano/v1/publications"
    for id_, visibility, status in (
        (package, "public", 403),
        (incomplete.id, "private", 409),
        (package, "shared", 400),
    ):
        refusal = ("refuse", [None if status == 400 else id_], status)
        answer = member.publications(id_, visibility=visibility)
        check(answer, status, action, target, user, refusal)
    both = [("activate", [each], "active") for each in (package, requiring.id)]
    check(member.publications(package, requiring.id), 200, action, target, user, *both)

    action, target = "update/yank", "service/storage/image/murano/v1/yanks"
    for reason, verb in (("bad", "yank"), ("", "unyank")):
        change = (verb, [package], "active")
        check(member.yank(package, reason), 200, action, target, user, change)
    refusal = ("refuse", [package], 403)
    check(reader.yank(package, "bad"), 403, action, target, other, refusal)

    # Refused by the filter of this project, and by Glance's policy.
    target = "service/storage/image/images/image"
    for client, status, who in ((member, 409, user), (reader, 403, other)):
        refusal = ("refuse", [package], status)
        check(client.delete(package), status, "delete", target, who, refusal)
    for action, verb, state in (
        ("disable", "deactivate", "deactivated"),
        ("enable", "reactivate", "active"),
    ):
        change = (verb, [requiring.id], state)
        check(_act(member, requiring.id, verb), 204, action, target, user, change)
    deleted = ("delete", [requiring.id], "deleted")
    check(member.delete(requiring.id), 204, "delete", target, user, deleted)


def test_glance_records_changes_of_visibility(
    cloud: Cloud, glance: Mapping[str, ImageClient]
) -> None:
    package = _in_glance(cloud, glance, "private")
    recorder = Recorder(cloud.glance_events, "package.")
    for visibility, verb in (("public", "publish"), ("private", "unpublish")):
        assert glance["admin"].set(package, "visibility", visibility).status_code == 200
        (found,) = _changes(recorder.new(), "package.")
        assert found[:3] == (verb, [package], "active")


@pytest.mark.parametrize("is_valid", [True, False])
def test_the_result_of_an_import_names_who_requested_it(
    cloud: Cloud, glance: Mapping[str, ImageClient], *, is_valid: bool
) -> None:
    name, manager = _new_name(), glance["manager"]
    package = manager.create(name).json()["id"]
    recorder = Recorder(cloud.glance_events, "package.")
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
    recorder = Recorder(cloud.glare_events, "artifact.artifact:")
    anybody = Client(cloud.glare_url, "forged")
    assert anybody.publish_all([str(uuid.uuid4())], "public").status_code == 401
    # Keystone's filter answers before the audit.
    assert recorder.new() == []
