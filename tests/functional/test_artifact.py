# SPDX-License-Identifier: Apache-2.0

"""The artifact type in the real Glare."""

import concurrent.futures
import datetime
import hashlib
import json
import pathlib
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from glare.common import exception, store_api
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_config import cfg
from oslo_utils import timeutils
from sqlalchemy.orm.exc import StaleDataError

from glare_murano import fields
from glare_murano.glare import uploads
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.package import Archive, InvalidPackage, read_contents
from tests import packages
from tests.functional import statements
from tests.functional.client import ARTIFACTS, Client, message, refusal


def _draft(glare: Client, name: str, version: str = "1.0.0") -> str:
    artifact_id: str = glare.create(name, version).json()["id"]
    return artifact_id


def test_the_server_fills_the_fields_from_the_manifest(glare: Client, name: str) -> None:
    for required in ("org.db", "org.other"):
        version = "1.3.0" if required == "org.db" else "0.1.0"
        glare.publish(required, version, packages.package(required, version))
    data = packages.package(
        name,
        "1.2.0",
        Type="Application",
        Name="A Wiki",
        Description="Keeps pages.",
        Author="Alice",
        Tags=["Pages", "wiki"],
        Supplier={"Name": "Example", "CompanyUrl": {"Link": "https://example.org"}},
        Require={"org.db": ">=1.2,<2", "org.other": None},
    )

    artifact = glare.publish(name, "1.2.0", data)

    expected = {
        "name": name,
        "version": "1.2.0",
        "status": "active",
        "type": "Application",
        "display_name": "A Wiki",
        "description": "Keeps pages.",
        "author": "Alice",
        "supplier": {"Name": "Example", "CompanyUrl.Link": "https://example.org"},
        "keywords": ["pages", "wiki", "a"],
        "categories": [],
        "format": "MuranoPL/1.4.0",
        "class_definitions": [f"{name}.Thing"],
        "requirements": {"org.db": ">=1.2,<2", "org.other": "0", "io.murano": "0", name: "1"},
    }
    assert {field: artifact[field] for field in expected} == expected
    assert sorted(artifact["tags"]) == ["Pages", "wiki"]
    assert artifact["archive"]["sha256"] == hashlib.sha256(data).hexdigest()


def test_the_statements_of_an_upload_do_not_grow_with_the_package(glare: Client, name: str) -> None:
    counts = []
    for number, classes in enumerate((1, 9)):
        fqn = f"{name}.n{number}"
        defined = {f"{fqn}.C{index}": f"C{index}.yaml" for index in range(classes)}
        tags = [f"tag{index}" for index in range(classes)]
        artifact_id = _draft(glare, fqn)
        with statements.recorded() as found:
            data = packages.package(fqn, Classes=defined, Tags=tags)
            assert glare.upload(artifact_id, data).status_code == 200
        counts.append(statements.of_artifacts(found))
        assert sorted(glare.show(artifact_id)["tags"]) == tags
    assert counts[0] == counts[1]


@pytest.mark.parametrize("path", ["/{id}", "?name={name}"])
def test_the_rows_of_an_artifact_are_not_multiplied(glare: Client, name: str, path: str) -> None:
    """Glare itself would join each element with each tag."""
    elements, tags = {f"key{n}": "value" for n in range(60)}, [f"tag{n}" for n in range(50)]
    created = glare.create(name, supplier=elements, tags=tags).json()

    with statements.recorded() as found:
        answer = glare.request("GET", path.format(id=created["id"], name=name)).json()

    (shown,) = answer.get("artifacts", [answer])
    assert (shown["supplier"], sorted(shown["tags"])) == (elements, sorted(tags))
    assert statements.rows(found) < 2 * (len(elements) + len(tags))


def test_a_page_has_at_most_a_hundred_artifacts(glare: Client, name: str) -> None:
    for number in range(101):
        glare.create(name, f"{number}.0.0")

    first = glare.request("GET", f"?name={name}&limit=1000").json()
    second = glare.request("GET", first["next"].removeprefix(ARTIFACTS)).json()

    assert [len(page["artifacts"]) for page in (first, second)] == [100, 1]


def _elements(count: int) -> dict[str, str]:
    return {f"key{number}": "value" for number in range(count)}


def test_no_request_exceeds_the_elements_of_a_package(glare: Client, name: str) -> None:
    """Each field alone has fewer elements."""
    excess = "supplier: 600 elements, and 1200 with all other lists and mappings of the package"
    words = [f"word{number}" for number in range(600)]

    created = glare.create(name, supplier=_elements(600), keywords=words)
    artifact_id = glare.create(name, supplier=_elements(600)).json()["id"]
    patched = glare.set(artifact_id, "keywords", words)

    for answer in (created, patched):
        refused = refusal(answer, 400)
        assert f"{excess}; at most 1024 are allowed; shorten" in refused
    assert glare.show(artifact_id)["keywords"] == []
    assert glare.set(artifact_id, "keywords", words[:424]).status_code == 200
    assert glare.set(artifact_id, "keywords", words[:425]).status_code == 400


def test_no_request_exceeds_the_size_of_a_package(glare: Client, name: str) -> None:
    """Each string alone is short enough."""
    inherits = {"org.Base": "x" * 20_000, "org.Other": "x" * 20_000}
    supplier = {f"key{number}": "x" * 4_000 for number in range(6)}

    created = glare.create(name, inherits=inherits, supplier=supplier)
    artifact_id = glare.create(name, inherits=inherits).json()["id"]
    patched = glare.set(artifact_id, "supplier", supplier)

    for answer in (created, patched):
        refused = refusal(answer, 400)
        assert "inherits: 40030 bytes in JSON, and 64" in refused
        assert "at most 61440 are allowed; shorten this field first [manifest-limit]" in refused
    assert glare.show(artifact_id)["supplier"] == {}
    assert glare.set(artifact_id, "supplier", {"key": "x" * 4_000}).status_code == 200


def test_a_patch_may_leave_or_remove_elements(glare: Client, name: str) -> None:
    """The archive has added to what the client had sent."""
    classes = {f"{name}.Class{number}": f"{number}.yaml" for number in range(900)}
    artifact_id = glare.create(name, categories=list(_elements(200))).json()["id"]
    assert glare.upload(artifact_id, packages.package(name, Classes=classes)).status_code == 200

    assert glare.set(artifact_id, "display_name", "Another").status_code == 200
    assert glare.set(artifact_id, "categories", list(_elements(201))).status_code == 400
    assert glare.set(artifact_id, "categories", list(_elements(199))).status_code == 200


def test_the_archive_comes_back_as_it_was_uploaded(glare: Client, name: str) -> None:
    data = packages.package(name)
    artifact = glare.publish(name, "1.0.0", data)

    assert glare.request("GET", f"/{artifact['id']}/archive").content == data


def test_a_package_is_created_with_its_version(glare: Client, name: str) -> None:
    refused = refusal(glare.create(name, None), 400)
    assert "version is missing: send the Version of the package's manifest" in refused

    created = glare.create(name, "0.0.0").json()
    assert glare.upload(created["id"], packages.package(name, None)).status_code == 200


@pytest.mark.parametrize("wrong", ["no name", "a" * 141])
def test_the_longest_name_is_in_the_message(glare: Client, wrong: str) -> None:
    answer = glare.create(wrong)

    assert (answer.status_code, "140" in message(answer)) == (400, True), answer.text


@pytest.mark.parametrize(
    ("said_name", "said_version", "words"),
    [
        ("org.test.other", "1.0.0", ["FullName", "org.test.other", "{name}"]),
        ("{name}", "1.0.1", ["Version", "1.0.1", "1.0.0"]),
    ],
)
def test_a_manifest_that_disagrees_is_refused_and_nothing_is_stored(
    glare: Client,
    name: str,
    state_dir: pathlib.Path,
    said_name: str,
    said_version: str,
    words: list[str],
) -> None:
    artifact_id = _draft(glare, name)
    stored = set((state_dir / "blobs").iterdir())

    answer = glare.upload(artifact_id, packages.package(said_name.format(name=name), said_version))

    refused = refusal(answer, 400)
    for word in words:
        assert word.format(name=name) in refused
    artifact = glare.show(artifact_id)
    assert artifact["archive"] is None
    assert artifact["class_definitions"] == []
    assert artifact["requirements"] == {}
    assert set((state_dir / "blobs").iterdir()) == stored


def _bad_packages() -> dict[str, tuple[bytes, str]]:
    """What is wrong -> an archive, and the rule that it breaks."""
    good = packages.manifest("org.test.bad")
    text = packages.zipped({"manifest.yaml": b"- a\n- list\n"})
    return {
        "no ZIP file": (b"This is no ZIP file.", "archive-format"),
        "an empty file": (b"", "archive-format"),
        "no manifest": (packages.zipped({"readme": b""}), "manifest-missing"),
        "a manifest that is no mapping": (text, "manifest-mapping"),
        "a manifest that is no YAML": (
            packages.zipped({"manifest.yaml": b"a: [b\n"}),
            "yaml-syntax",
        ),
        "an unknown format": (
            packages.package("org.test.bad", Format="Foo/1.0"),
            "manifest-format",
        ),
        "an odd name": (
            packages.zipped(packages.files({**good, "FullName": "a..b"})),
            "manifest-name",
        ),
        "no SemVer": (packages.package("org.test.bad", "one"), "manifest-version"),
        "no range": (packages.package("org.test.bad", Require={"a.b": ">>1"}), "manifest-require"),
        "an odd required name": (
            packages.package("org.test.bad", Require={"a b": "1"}),
            "manifest-require",
        ),
        "an unknown type": (packages.package("org.test.bad", Type="Thing"), "manifest-type"),
        "a class without its file": (
            packages.zipped({"manifest.yaml": packages.files(good)["manifest.yaml"]}),
            "class-file",
        ),
    }


@pytest.mark.parametrize("wrong", _bad_packages())
def test_bad_input_is_refused_in_the_same_words_on_both_sides(
    glare: Client, name: str, tmp_path: pathlib.Path, wrong: str
) -> None:
    data, rule = _bad_packages()[wrong]
    (tmp_path / "bad.zip").write_bytes(data)
    with (
        pytest.raises(InvalidPackage) as caught,
        Archive.open(tmp_path / "bad.zip") as archive,
    ):
        read_contents(archive)
    artifact_id = _draft(glare, name)

    refused = refusal(glare.upload(artifact_id, data), 400)

    assert refused == str(caught.value)
    assert f"[{rule}]" in refused
    assert glare.show(artifact_id)["archive"] is None


@pytest.mark.parametrize(
    "keys",
    [
        {"Author": "a" * 300},
        {"Name": "a" * 300},
        {"Description": "a" * 5000},
        {"Description": "\U0001f600"},
        {"Author": "\U0001f600"},
        {"Tags": ["a/b"]},
        {"Tags": [""]},
        {"Tags": [f"tag{number}" for number in range(300)]},
        {"Supplier": {"": "x"}},
        {"Supplier": {"Name": "\U0001f600"}},
    ],
)
def test_what_glare_cannot_keep_is_refused_and_the_draft_can_be_used_or_deleted(
    glare: Client, name: str, keys: dict[str, object]
) -> None:
    artifact_id = _draft(glare, name)

    refused = refusal(glare.upload(artifact_id, packages.package(name, **keys)), 400)

    assert "[manifest-limit]" in refused
    assert glare.names(name=name) == [(name, "1.0.0")]
    assert glare.upload(artifact_id, packages.package(name)).status_code == 200
    assert glare.delete(artifact_id).status_code == 204


@pytest.mark.parametrize("version", [1.1, 1, "", "1.0.0 ", " 1.0.0"])
def test_a_version_that_is_no_text_or_odd_is_read_as_written_or_refused(
    glare: Client, name: str, version: object
) -> None:
    answer = glare.request("POST", "", json={"name": name, "version": version})

    if isinstance(version, str):
        assert answer.json()["version"] == ("1.0.0" if version else "0.0.0")
    else:
        assert "expected a string" in refusal(answer, 400)


@pytest.mark.parametrize(
    ("bad_name", "bad_version"),
    [
        ("a..b", "1.0.0"),
        ("a b", "1.0.0"),
        ("ä", "1.0.0"),
        ("../a", "1.0.0"),
        ("a" * 141, "1.0.0"),
        ("a", "1.x"),
        ("a", "1.2.3.4"),
        ("a", "32768.0.0"),
        ("a", "1.65536.0"),
        ("a", "1.0.0-1234567"),
        ("a", "1.0.0-" + "a" * 60),
    ],
)
def test_an_odd_name_or_version_is_refused_at_creation(
    glare: Client, project: str, bad_name: str, bad_version: str
) -> None:
    refused = refusal(glare.create(bad_name, bad_version), 400)

    assert "name" in refused or "version" in refused
    assert glare.names(owner=project) == []


def test_the_largest_version_is_stored_and_found(glare: Client, name: str) -> None:
    version = f"{fields.MAX_MAJOR}.{fields.MAX_VERSION_NUMBER}.{fields.MAX_VERSION_NUMBER}"

    assert glare.create(name, version).status_code == 201

    assert glare.names(name=name, version=version) == [(name, version)]


def test_creation_reserves_name_and_version(glare: Client, name: str) -> None:
    assert glare.create(name, "1.0.0").status_code == 201
    again = refusal(glare.create(name, "1.0.0"), 409)
    assert "a private package of this name and version already; find it" in again
    assert glare.create(name, "1.0.1").status_code == 201


def test_a_name_and_version_is_public_once(glare: Client, admin: Client, name: str) -> None:
    data = packages.package(name, "1.0.0")
    admin.publish(name, "1.0.0", data, public=True)
    own = glare.publish(name, "1.0.0", data)

    again = refusal(admin.set(own["id"], "visibility", "public"), 409)

    assert "is public already; publish another version" in again


@pytest.mark.parametrize(("field", "value"), [("name", "org.test.stolen"), ("version", "9.0.0")])
def test_name_and_version_cannot_change(glare: Client, name: str, field: str, value: str) -> None:
    artifact_id = _draft(glare, name)
    glare.upload(artifact_id, packages.package(name))

    assert field in refusal(glare.set(artifact_id, field, value), 403)
    assert glare.show(artifact_id)[field] != value


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"op": "replace", "path": "", "value": {}}, 400),
        ({"op": "replace", "path": "/", "value": {}}, 400),
        ({"op": "move", "from": "/keywords", "path": "/categories"}, 400),
        ({"op": "move", "from": "/version", "path": "/display_name"}, 400),
        ({"op": "copy", "from": "/display_name", "path": "/name"}, 400),
        ({"op": "copy", "from": "/metadata", "path": "/metadata/a"}, 400),
        ({"op": "remove", "path": "/version"}, 403),
        ({"op": "add", "path": "/requirements/a.b", "value": "1"}, 403),
        ({"op": "add", "path": "/class_definitions/-", "value": "a.B"}, 403),
        ({"op": "replace", "path": "/archive", "value": None}, 400),
        ({"op": "test", "path": "/name", "value": "another"}, 400),
    ],
)
def test_no_patch_changes_what_the_package_says(
    glare: Client, name: str, operation: dict[str, object], status: int
) -> None:
    artifact_id = _draft(glare, name)
    glare.upload(artifact_id, packages.package(name))
    before = glare.show(artifact_id)

    answer = glare.request(
        "PATCH",
        f"/{artifact_id}",
        json=[operation],
        headers={"Content-Type": "application/json-patch+json"},
    )

    assert answer.status_code == status, answer.text
    assert glare.show(artifact_id) == before


@pytest.mark.parametrize(
    "operations",
    [
        [("replace", "display_name", "New"), ("replace", "display_name", "New")],
        [("replace", "display_name", "New"), ("test", "display_name", "New")],
        [("test", "display_name", "A Thing"), ("replace", "display_name", "New")],
        [("replace", "display_name", "Odd"), ("replace", "display_name", "New")],
    ],
)
def test_a_patch_that_names_a_field_twice_is_saved(
    glare: Client, name: str, operations: list[tuple[str, str, str]]
) -> None:
    """Glare's own way is to answer that it was, and to save nothing."""
    artifact_id = _draft(glare, name)
    glare.upload(artifact_id, packages.package(name))
    patch = [{"op": op, "path": f"/{field}", "value": value} for op, field, value in operations]

    answer = glare.request(
        "PATCH",
        f"/{artifact_id}",
        json=patch,
        headers={"Content-Type": "application/json-patch+json"},
    )

    assert answer.json()["display_name"] == "New"
    assert glare.show(artifact_id)["display_name"] == "New"


def test_a_lock_may_be_released_while_it_is_taken_over(
    glare: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Glare takes over a lock that is older than five seconds, and fails if it is gone by then."""
    artifact_id = glare.publish(name, "1.0.0", packages.package(name))["id"]
    create_lock = database.create_lock
    failed = []

    def fail_once(*arguments: Any) -> Any:
        if not failed:
            failed.append(arguments)
            raise StaleDataError
        return create_lock(*arguments)

    monkeypatch.setattr(database, "create_lock", fail_once)

    answer = glare.set(artifact_id, "display_name", "Another")

    assert answer.status_code == 200, answer.text
    assert len(failed) == 1


def test_a_refused_archive_can_be_followed_by_a_right_one(glare: Client, name: str) -> None:
    artifact_id = _draft(glare, name)
    assert glare.upload(artifact_id, b"no").status_code == 400

    assert glare.upload(artifact_id, packages.package(name)).status_code == 200
    assert glare.set(artifact_id, "status", "active").status_code == 200


def test_a_second_archive_replaces_the_first_and_all_that_it_said(glare: Client, name: str) -> None:
    artifact_id = _draft(glare, name)
    glare.upload(artifact_id, packages.package(name, Require={"a.b": "1"}, Tags=["old"]))

    second = packages.package(name, Require={"c.d": "2"}, Tags=["new"])
    assert glare.upload(artifact_id, second).status_code == 200

    artifact = glare.show(artifact_id)
    assert artifact["requirements"] == {"c.d": "2", "io.murano": "0", name: "1"}
    assert artifact["tags"] == ["new"]
    assert artifact["archive"]["sha256"] == hashlib.sha256(second).hexdigest()


def test_a_refused_second_archive_leaves_the_first_as_it_was(glare: Client, name: str) -> None:
    artifact_id = _draft(glare, name)
    first = packages.package(name, Require={"a.b": "1"})
    glare.upload(artifact_id, first)
    before = glare.show(artifact_id)

    assert glare.upload(artifact_id, packages.package(name, "9.0.0")).status_code == 400

    after = glare.show(artifact_id)
    assert {**after, "updated_at": None} == {**before, "updated_at": None}
    assert glare.request("GET", f"/{artifact_id}/archive").content == first


def test_without_an_archive_nothing_becomes_active(glare: Client, name: str) -> None:
    assert "archive" in refusal(glare.set(_draft(glare, name), "status", "active"), 403)


def test_an_archive_that_lies_elsewhere_is_refused(glare: Client, name: str) -> None:
    answer = glare.request(
        "PUT",
        f"/{_draft(glare, name)}/archive",
        json={"url": "http://127.0.0.1:9/package.zip", "md5": "0" * 32},
        headers={"Content-Type": "application/vnd+openstack.glare-custom-location+json"},
    )

    assert "must be uploaded" in refusal(answer, 403)


_CONTRADICTIONS = [
    ("type", "Application", "Library"),
    ("display_name", "Another Thing", "A Thing"),
    ("description", "Another thing.", ""),
    ("author", "Mallory", "Somebody"),
    ("author", "ydobemoS", "Somebody"),
    ("supplier", {"Name": "Mallory"}, {}),
    ("keywords", ["other"], ["a", "thing"]),
    ("tags", ["other"], []),
    ("format", "MuranoPL/1.0.0", "MuranoPL/1.4.0"),
    ("class_definitions", ["io.murano.Object"], ["{name}.Thing"]),
    ("inherits", {"io.murano.Object": "a.B"}, {}),
    ("requirements", {"a.b": "1"}, {"io.murano": "0", "{name}": "1"}),
]

_MUTABLE = ("display_name", "description", "keywords", "tags")


@pytest.mark.parametrize(("field", "sent", "packaged"), _CONTRADICTIONS)
def test_what_contradicts_the_package_is_refused_with_both_values(
    glare: Client, name: str, field: str, sent: object, packaged: object
) -> None:
    artifact_id = glare.create(name, **{field: sent}).json()["id"]

    refused = refusal(glare.upload(artifact_id, packages.package(name)), 400)

    assert "[manifest-mismatch]" in refused
    assert f"created with {field} " in refused
    assert _as_quoted(sent) in refused
    assert _as_quoted(packaged).replace("{name}", name) in refused
    assert glare.show(artifact_id)["archive"] is None
    assert glare.set(artifact_id, field, _with_name(packaged, name)).status_code == 200
    assert glare.upload(artifact_id, packages.package(name)).status_code == 200


@pytest.mark.parametrize(
    ("field", "sent", "packaged"),
    [case for case in _CONTRADICTIONS if case[0] not in _MUTABLE],
)
def test_an_uploaded_package_is_contradicted_by_no_patch(
    glare: Client, name: str, field: str, sent: object, packaged: object
) -> None:
    artifact_id = _draft(glare, name)
    glare.upload(artifact_id, packages.package(name))

    refused = refusal(glare.set(artifact_id, field, sent), 403)

    assert field in refused
    assert _as_quoted(sent) in refused
    assert _as_quoted(packaged).replace("{name}", name) in refused
    assert glare.set(artifact_id, field, _with_name(packaged, name)).status_code == 200


def _as_quoted(value: object) -> str:
    return repr(value if isinstance(value, str) else json.dumps(value))


def _with_name(value: object, name: str) -> object:
    return json.loads(json.dumps(value).replace("{name}", name))


def test_what_agrees_with_the_package_may_be_sent(glare: Client, name: str) -> None:
    fields = {"author": "Alice", "tags": ["web", "wiki"], "type": "Application"}
    artifact_id = glare.create(name, **fields, categories=["Web"]).json()["id"]
    data = packages.package(name, Author="Alice", Tags=["wiki", "web"], Type="Application")

    answer = glare.upload(artifact_id, data)

    assert answer.status_code == 200
    assert answer.json()["categories"] == ["Web"]


def test_an_active_package_cannot_change(glare: Client, name: str) -> None:
    artifact = glare.publish(name, "1.0.0", packages.package(name))

    assert glare.upload(artifact["id"], packages.package(name)).status_code == 403
    assert glare.set(artifact["id"], "author", "Mallory").status_code == 403
    assert glare.set(artifact["id"], "categories", ["Web"]).status_code == 200


def test_packages_are_found_by_what_they_say(glare: Client, name: str) -> None:
    wiki, db = f"{name}.wiki", f"{name}.db"
    for version in ("1.0.0", "1.2.0", "2.0.0-rc.1"):
        glare.publish(db, version, packages.package(db, version, Tags=["store"]))
    glare.publish(wiki, "1.0.0", packages.package(wiki, Require={db: "1"}, Type="Application"))

    assert glare.names(class_definitions=f"{wiki}.Thing") == [(wiki, "1.0.0")]
    assert glare.names(class_definitions="in:x,y") == []
    assert glare.names(requirements=db, name=f"neq:{db}") == [(wiki, "1.0.0")]
    assert glare.names(requirements="org.nobody") == []
    assert glare.names(type="Application", name=f"like:{name}%") == [(wiki, "1.0.0")]
    assert glare.names(name=db, version="gte:1.2") == [(db, "1.2.0"), (db, "2.0.0-rc.1")]
    assert glare.names(keywords="store", name=db, version="lt:1.1.0") == [(db, "1.0.0")]


def test_a_private_package_is_the_projects_own(
    glare: Client, as_user: Callable[[str], Client], name: str
) -> None:
    artifact = glare.publish(name, "1.0.0", packages.package(name))
    stranger = as_user("strangers")

    assert stranger.names(name=name) == []
    assert stranger.request("GET", f"/{artifact['id']}/archive").status_code == 404


def test_a_public_package_can_be_downloaded_by_every_project(
    admin: Client, glare: Client, name: str
) -> None:
    data = packages.package(name)
    artifact = admin.publish(name, "1.0.0", data, public=True)

    assert glare.request("GET", f"/{artifact['id']}/archive").content == data


@pytest.mark.parametrize(
    ("option", "value", "status", "rule"),
    [
        ("max_archive_size", 100, 413, "100"),
        ("max_unpacked_size", 50, 400, "unpacked-size"),
        ("max_archive_entries", 1, 400, "archive-entries"),
    ],
)
def test_the_operator_sets_the_limits(
    glare: Client, name: str, option: str, value: int, status: int, rule: str
) -> None:
    artifact_id = _draft(glare, name)
    group = "artifact_type:murano"
    cfg.CONF.set_override(option, value, group)
    try:
        refused = glare.upload(artifact_id, packages.package(name))
    finally:
        cfg.CONF.clear_override(option, group)

    assert refused.status_code == status
    assert rule in message(refused)
    assert glare.upload(artifact_id, packages.package(name)).status_code == 200


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100
GIF = b"GIF89a" + b"\0" * 50
FORM = packages.FORM


def _shown_package(name: str, **files: bytes) -> bytes:
    content = packages.content(name, Logo="brand.gif")
    shown = {"brand.gif": GIF, "supplier_logo.png": PNG, "UI/ui.yaml": FORM}
    return packages.zipped({**content, **shown, **files})


def test_logos_and_form_are_taken_out_of_the_archive(glare: Client, name: str) -> None:
    artifact = glare.publish(name, "1.0.0", _shown_package(name))

    for blob, content, content_type in (
        ("logo", GIF, "image/gif"),
        ("supplier_logo", PNG, "image/png"),
        ("ui_definition", FORM, "application/x-yaml"),
    ):
        assert artifact[blob]["sha256"] == hashlib.sha256(content).hexdigest()
        answer = glare.request("GET", f"/{artifact['id']}/{blob}")
        assert answer.content == content
        assert answer.headers["Content-Type"].startswith(content_type)


@pytest.mark.parametrize("mode", ["enforce", None])
def test_the_check_of_forms_is_the_operators_choice(
    glare: Client,
    name: str,
    set_option: Callable[[str, object], None],
    caplog: pytest.LogCaptureFixture,
    mode: str | None,
) -> None:
    """By default, only a dashboard refuses the form."""
    if mode:
        set_option("check_forms", mode)
    form = b"Application: {'?': {}}\n" + b"".join(b"T%d: {}\n" % n for n in range(100))
    artifact_id = _draft(glare, name)

    answer = glare.upload(artifact_id, _shown_package(name, **{"UI/ui.yaml": form}))

    problem = "UI/ui.yaml, line 1: the header '?' of Application has no 'type'"
    ignored = "UI/ui.yaml, line 2: the section 'T0' is unknown"
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    if mode:
        assert problem in refusal(answer, 400)
        assert glare.show(artifact_id)["ui_definition"] is None
    else:
        assert answer.status_code == 200
        assert glare.request("GET", f"/{artifact_id}/ui_definition").content == form
        (warning,) = [each for each in warnings if "UI/ui.yaml" in each]
        assert problem in warning
        assert ignored in warning
        assert warning.endswith("; and 51 more")


@pytest.mark.parametrize("mode", ["enforce", "warn"])
def test_a_version_that_engines_refuse_is_refused_in_a_form(
    glare: Client, name: str, set_option: Callable[[str, object], None], mode: str
) -> None:
    set_option("check_forms", mode)
    form = FORM.replace(b"    type:", b"    classVersion: 1.10\n    type:")

    answer = glare.upload(_draft(glare, name), _shown_package(name, **{"UI/ui.yaml": form}))

    refused = refusal(answer, 400)
    assert "UI/ui.yaml, line 4: classVersion: YAML reads '1.10' without" in refused
    assert "[form-range]" in refused


def test_a_package_without_logos_and_form_has_none(glare: Client, name: str) -> None:
    artifact = glare.publish(name, "1.0.0", packages.package(name))

    assert [artifact[blob] for blob in ("logo", "supplier_logo", "ui_definition")] == [None] * 3


@pytest.mark.parametrize("blob", ["logo", "supplier_logo", "ui_definition"])
def test_a_client_cannot_upload_what_the_archive_holds(glare: Client, name: str, blob: str) -> None:
    artifact_id = _draft(glare, name)

    assert blob in refusal(glare.upload(artifact_id, PNG, blob), 403)
    assert glare.show(artifact_id)[blob] is None


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"brand.gif": b"<svg/>"}, "image-type"),
        ({"brand.gif": GIF + b"\0" * 500 * 1024}, "image-size"),
        ({"supplier_logo.png": b"GIF is no PNG"}, "image-type"),
    ],
)
def test_an_image_that_is_none_is_refused(
    glare: Client, name: str, state_dir: pathlib.Path, files: dict[str, bytes], rule: str
) -> None:
    artifact_id = _draft(glare, name)
    stored = set((state_dir / "blobs").iterdir())

    assert f"[{rule}]" in refusal(glare.upload(artifact_id, _shown_package(name, **files)), 400)
    assert set((state_dir / "blobs").iterdir()) == stored


def test_what_an_upload_replaces_is_deleted_from_the_store(
    glare: Client, name: str, state_dir: pathlib.Path
) -> None:
    before = set((state_dir / "blobs").iterdir())
    artifact_id = _draft(glare, name)
    glare.upload(artifact_id, _shown_package(name))
    assert len(set((state_dir / "blobs").iterdir()) - before) == 4

    second = packages.package(name)
    assert glare.upload(artifact_id, second).status_code == 200

    left = set((state_dir / "blobs").iterdir()) - before
    assert [path.read_bytes() for path in left] == [second]
    assert glare.show(artifact_id)["logo"] is None
    assert glare.delete(artifact_id).status_code == 204
    assert set((state_dir / "blobs").iterdir()) == before


def _killed_upload(artifact_id: str, ago: datetime.timedelta) -> None:
    """What a process leaves in the database that is killed while it stores an archive."""
    session = database.get_session()
    with session.begin():
        artifact = session.get(models.Artifact, artifact_id)
        archive = next((blob for blob in artifact.blobs if blob.name == "archive"), None)
        if archive is None:
            archive = models.ArtifactBlob(name="archive", external=False, artifact=artifact)
        archive.status, archive.size = "saving", 4711
        session.add(models.ArtifactLock(id=f"murano-upload:{artifact_id}:killed"))
    _renewed(artifact_id, ago)


def _renewed(artifact_id: str, ago: datetime.timedelta) -> None:
    """Let the upload to an artifact have made its last progress some time ago."""
    session = database.get_session()
    with session.begin():
        leases = session.query(models.ArtifactLock).filter(
            models.ArtifactLock.id.startswith(f"murano-upload:{artifact_id}:")
        )
        renewed = {"acquired_at": timeutils.utcnow() - ago}
        assert leases.update(renewed, synchronize_session=False) == 1


_LONG_AGO = datetime.timedelta(hours=2)


def test_an_upload_expires_when_it_makes_no_progress(glare: Client, name: str) -> None:
    artifact_id = _draft(glare, name)
    _killed_upload(artifact_id, datetime.timedelta(seconds=120))

    assert glare.upload(artifact_id, packages.package(name)).status_code == 200
    assert glare.set(artifact_id, "status", "active").status_code == 200


def test_a_draft_that_is_locked_by_an_upload_says_until_when(glare: Client, name: str) -> None:
    artifact_id = _draft(glare, name)
    _killed_upload(artifact_id, datetime.timedelta(seconds=30))
    end = timeutils.utcnow() + datetime.timedelta(seconds=60)

    for answer in (
        glare.upload(artifact_id, packages.package(name)),
        glare.set(artifact_id, "status", "active"),
    ):
        said = re.search(r"expires at (\S+Z);", refusal(answer, 409))
        assert said
        ends = datetime.datetime.strptime(said[1], "%Y-%m-%dT%H:%M:%SZ")
        assert abs(ends - end) < datetime.timedelta(seconds=5)


@pytest.mark.parametrize("by", ["glare", "admin"])
def test_a_draft_whose_upload_was_killed_can_be_deleted_at_once(
    glare: Client, name: str, by: str, request: pytest.FixtureRequest
) -> None:
    artifact_id = _draft(glare, name)
    _killed_upload(artifact_id, datetime.timedelta())

    assert request.getfixturevalue(by).delete(artifact_id).status_code == 204
    assert _draft(glare, name) != artifact_id


def test_an_upload_is_ended_when_its_artifact_is_deleted(
    glare: Client, name: str, state_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion comes before the archive is stored."""
    artifact_id = _draft(glare, name)
    stored = set((state_dir / "blobs").iterdir())
    save = store_api.save_blob_to_store

    def delete_and_save(*args: object, **kwargs: object) -> object:
        other = Client(glare.url, glare.token)
        assert other.delete(artifact_id).status_code in (204, 404)
        return save(*args, **kwargs)

    monkeypatch.setattr(store_api, "save_blob_to_store", delete_and_save)
    answer = glare.upload(artifact_id, _shown_package(name))

    assert answer.status_code == 404
    assert glare.request("GET", f"/{artifact_id}").status_code == 404
    assert set((state_dir / "blobs").iterdir()) == stored


def test_a_killed_second_upload_leaves_the_first_archive(glare: Client, name: str) -> None:
    artifact_id = _draft(glare, name)
    data = packages.package(name)
    before = glare.upload(artifact_id, data).json()
    _killed_upload(artifact_id, _LONG_AGO)

    assert glare.show(artifact_id)["archive"] == before["archive"]
    assert glare.request("GET", f"/{artifact_id}/archive").content == data
    assert glare.set(artifact_id, "status", "active").status_code == 200


def test_a_batch_cancels_an_expired_upload(glare: Client, name: str) -> None:
    artifact_id = _draft(glare, name)
    before = glare.upload(artifact_id, packages.package(name)).json()
    _killed_upload(artifact_id, _LONG_AGO)

    assert glare.publish_all([artifact_id], "private").status_code == 200

    found = glare.show(artifact_id)
    assert (found["status"], found["archive"]) == ("active", before["archive"])


@pytest.mark.parametrize("stored", [True, False])
def test_an_expired_upload_changes_nothing_when_it_ends(
    glare: Client,
    name: str,
    state_dir: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    stored: bool,
) -> None:
    """The process was not killed, but slow: meanwhile the package has become active."""
    artifact_id = _draft(glare, name)
    data = packages.package(name)
    arrived, released = threading.Event(), threading.Event()
    save = store_api.save_blob_to_store

    def save_late(*args: object, **kwargs: object) -> object:
        arrived.set()
        assert released.wait(30)
        if not stored:
            raise exception.Forbidden(message="There is no room left.")
        return save(*args, **kwargs)

    before = set((state_dir / "blobs").iterdir())
    with concurrent.futures.ThreadPoolExecutor() as executor:
        with monkeypatch.context() as patched:
            patched.setattr(store_api, "save_blob_to_store", save_late)
            slow = Client(glare.url, glare.token)
            other = packages.package(name, Author="Somebody else")
            late = executor.submit(slow.upload, artifact_id, other)
            assert arrived.wait(30)
        _renewed(artifact_id, _LONG_AGO)
        assert glare.upload(artifact_id, data).status_code == 200
        assert glare.set(artifact_id, "status", "active").status_code == 200
        active = glare.show(artifact_id)
        released.set()
        answer = late.result()

    assert answer.status_code == (409 if stored else 403)
    assert glare.show(artifact_id) == active
    assert glare.request("GET", f"/{artifact_id}/archive").content == data
    assert len(set((state_dir / "blobs").iterdir()) - before) == 1


@pytest.mark.parametrize("again", [False, True])
def test_an_upload_needs_no_lock_of_glares(glare: Client, name: str, again: bool) -> None:
    """Another request has locked the artifact, such as a slow patch."""
    artifact_id = _draft(glare, name)
    if again:
        glare.upload(artifact_id, packages.package(name))
    session = database.get_session()
    lock = database.create_lock(None, f"murano:{artifact_id}", session)

    answer = glare.upload(artifact_id, _shown_package(name))
    patched = glare.set(artifact_id, "display_name", "Another")
    database.delete_lock(None, lock, session)

    assert answer.status_code == 200, answer.text
    assert "Lock already acquired" in refusal(patched, 409)


@pytest.mark.parametrize("again", [False, True])
def test_an_upload_is_refused_if_another_has_ended_since_glare_read_the_draft(
    glare: Client,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    again: bool,
) -> None:
    artifact_id = _draft(glare, name)
    if again:
        glare.upload(artifact_id, packages.package(name))
    begin = uploads.Upload.begin
    first = packages.package(name, Author="First")

    def begin_late(upload: uploads.Upload, context: Any) -> Any:
        monkeypatch.undo()
        assert Client(glare.url, glare.token).upload(artifact_id, first).status_code == 200
        return begin(upload, context)

    monkeypatch.setattr(uploads.Upload, "begin", begin_late)
    refused = refusal(glare.upload(artifact_id, packages.package(name, Author="Second")), 409)

    assert "another request has changed artifact" in refused
    assert glare.show(artifact_id)["author"] == "First"
    assert glare.request("GET", f"/{artifact_id}/archive").content == first
    assert glare.upload(artifact_id, _shown_package(name)).status_code == 200


@pytest.mark.parametrize("again", [False, True])
def test_a_patch_is_refused_if_an_upload_has_ended_since_glare_read_the_draft(
    glare: Client, name: str, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """All happens within a second, and MariaDB stores times in whole seconds."""
    now = timeutils.utcnow().replace(microsecond=0)
    monkeypatch.setattr(timeutils, "utcnow", lambda *_: now)
    data = packages.package(name, Require={"org.missing": "1"}, Author="First")
    requirements = {"org.missing": "1", "io.murano": "0", name: "1"}
    artifact_id = glare.create(name, requirements=requirements).json()["id"]
    if again:
        other = packages.package(name, Require={"org.missing": "1"})
        assert glare.upload(artifact_id, other).status_code == 200
    uploaded: list[Any] = []

    def save_late(artifact: MuranoPackageArtifact, context: Any) -> Any:
        if not uploaded:
            uploaded.append(Client(glare.url, glare.token).upload(artifact_id, data).json())
        return save(artifact, context)

    save = MuranoPackageArtifact.save
    monkeypatch.setattr(MuranoPackageArtifact, "save", save_late)
    field, value = ("display_name", "Another") if again else ("requirements", {})
    refused = refusal(glare.set(artifact_id, field, value), 409)

    assert "another request has changed artifact" in refused
    assert uploaded == [glare.show(artifact_id)]
    assert (uploaded[0]["requirements"], uploaded[0]["author"]) == (requirements, "First")


@pytest.mark.parametrize("again", [False, True])
def test_an_archive_that_cannot_be_stored_leaves_nothing(
    glare: Client,
    name: str,
    state_dir: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    again: bool,
) -> None:
    """A full disk, shown by Glare's own store: its driver finds no room for the archive."""
    artifact_id = _draft(glare, name)
    data = _shown_package(name)
    glare.upload(artifact_id, data)
    before = glare.show(artifact_id)
    stored = set((state_dir / "blobs").iterdir())
    save = store_api.save_blob_to_store

    def refuse_archives(blob_id: str, blob: object, *args: object, **kwargs: object) -> object:
        if kwargs["store_type"] and len(stored) + 3 <= len(set((state_dir / "blobs").iterdir())):
            raise exception.Forbidden(message="There is no room left.")
        return save(blob_id, blob, *args, **kwargs)

    monkeypatch.setattr(store_api, "save_blob_to_store", refuse_archives)
    other = data if again else _shown_package(name, **{"UI/ui.yaml": FORM + b"# Other\n"})
    answer = glare.upload(artifact_id, other)
    monkeypatch.undo()

    assert answer.status_code == 403
    after = glare.show(artifact_id)
    assert {**after, "updated_at": None} == {**before, "updated_at": None}
    assert set((state_dir / "blobs").iterdir()) == stored
    assert glare.request("GET", f"/{artifact_id}/ui_definition").content == FORM
    assert glare.request("GET", f"/{artifact_id}/archive").content == data
