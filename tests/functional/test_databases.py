# SPDX-License-Identifier: Apache-2.0

"""The API gives the same answers over every database that Glare runs on."""

import uuid
from typing import Any

import pytest
import sqlalchemy as sa
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_utils import timeutils
from sqlalchemy import orm

from glare_murano.budget import Budget
from glare_murano.glare.db import artifact_queries, artifact_reads
from glare_murano.glare.db.artifact_reads import ArtifactApi
from glare_murano.glare.db.glare_database import GlareDatabase, snapshot
from glare_murano.package import Version
from glare_murano.resolver import PackageVersion
from glare_murano.service.database import Viewer
from glare_murano.service.source import CatalogSource
from glare_murano.wire import Query
from tests import packages
from tests.functional import exact_lists, sites
from tests.functional.client import Client
from tests.functional.sites import Site

pytestmark = pytest.mark.programs

# In the order of SemVer.
VERSIONS = (
    "1.0.0-ALPHA",
    "1.0.0-Beta",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.2.0",
    "1.10.0",
    "2.0.0-rc.1",
    "2.0.0",
)

UNSTORABLE = ("a\0b", "a\ud800b", "a\U0001f600b")


# One API process over a database.
site = sites.fixture(sites.of_database, ["sqlite", *sites.SHARED_DATABASES], number=1)


@pytest.fixture
def glare(site: Site, project: str) -> Client:
    return site.client(project)


def _publish(glare: Client, name: str, version: str = "1.0.0", **keys: Any) -> Any:
    return glare.publish(name, version, packages.package(name, version, **keys))


def _versions(glare: Client, query: str) -> list[str]:
    """The versions that a query finds, in its order."""
    answer = glare.request("GET", f"?{query}")
    assert answer.status_code == 200, answer.text
    return [found["version"] for found in answer.json()["artifacts"]]


def test_versions_are_found_and_sorted_as_semver_orders_them(glare: Client, name: str) -> None:
    for version in reversed(VERSIONS):
        _publish(glare, name, version)
    documented = f"name={name}&version=gte:1.0.0&version=lt:2.0.0-0&sort=version:desc"

    assert _versions(glare, f"name={name}&sort=version:asc&limit=100") == list(VERSIONS)
    assert _versions(glare, documented) == ["1.10.0", "1.2.0", "1.0.0"]
    assert _versions(glare, f"{documented}&limit=1") == ["1.10.0"]
    assert _versions(glare, f"name={name}&version=latest") == ["2.0.0"]
    assert _versions(glare, f"name={name}&version=latest&version=lte:2.0.0-rc.1") == ["2.0.0-rc.1"]
    stable = f"name={name}&version=latest&version=stable&version=lte:2.0.0-rc.1"
    assert _versions(glare, stable) == ["1.10.0"]
    assert _versions(glare, f"name={name}&version=1.0.0-ALPHA") == ["1.0.0-ALPHA"]
    assert _versions(
        glare, f"name={name}&version=gt:1.0.0-beta.2&version=lt:1.0.0&sort=version:asc"
    ) == ["1.0.0-beta.11", "1.0.0-rc.1"]


def test_a_page_follows_another_in_order(glare: Client, name: str) -> None:
    for version in VERSIONS:
        _publish(glare, name, version)
    found: list[str] = []
    path: str | None = f"?name={name}&sort=version:desc&limit=4"
    while path:
        page = glare.request("GET", path).json()
        found += [artifact["version"] for artifact in page["artifacts"]]
        path = page.get("next", "").removeprefix("/artifacts/murano")

    assert found == list(reversed(VERSIONS))


def test_packages_are_found_by_what_they_say_in_this_case(glare: Client, name: str) -> None:
    _publish(glare, "org.Other", "0.1.0")
    _publish(glare, name, Require={"org.Other": None})
    other = {"org.Other": "org.other", name: name.upper(), f"{name}.Thing": f"{name}.thing"}

    for field, value in (
        ("name", name),
        ("class_definitions", f"{name}.Thing"),
        ("requirements", "org.Other"),
    ):
        assert (name, "1.0.0") in glare.names(**{field: value})
        assert glare.names(**{field: other[value]}) == []


def test_names_that_differ_in_case_are_two_packages(glare: Client, name: str) -> None:
    second = name.upper()
    _publish(glare, name)
    _publish(glare, second, Require={name: "1"})

    assert glare.names(name=name) == [(name, "1.0.0")]
    assert glare.names(name=second) == [(second, "1.0.0")]
    for asked, expected in ((name, {name}), (second, {name, second})):
        answer = glare.resolve(requirements={asked: "1"}).json()
        assert {found["name"] for found in answer["releases"]} - {"io.murano"} == expected
        assert answer["unsatisfied"] == []


def test_lists_compare_and_sort_exactly(site: Site, glare: Client, project: str, name: str) -> None:
    for package in exact_lists.archives(name):
        glare.publish(*package)

    exact_lists.check(glare.query, name)
    exact_lists.check_owner(site.client(project.upper()).query, name)


def test_an_id_in_another_case_is_no_way_to_a_draft(site: Site, glare: Client, name: str) -> None:
    draft = glare.draft(name, "1.0.0", packages.package(name))

    assert glare.resolve(package=draft.upper()).status_code == 404

    assert glare.upload(draft, packages.package(name, Author="Another")).status_code == 200
    archive = glare.set(draft, "status", "active").json()["archive"]
    releases = glare.resolve(requirements={name: "1"}).json()["releases"]
    assert archive["sha256"] in [release["sha256"] for release in releases]


def test_an_id_in_another_case_ends_no_running_upload(site: Site, glare: Client, name: str) -> None:
    draft = glare.create(name).json()["id"]
    mark = {"id": str(uuid.uuid4()), "name": "archive", "external": False, "status": "saving"}
    mark |= {"artifact_id": draft, "content_type": "application/octet-stream"}
    lease = {"id": f"murano-upload:{draft}:{uuid.uuid4()}", "acquired_at": timeutils.utcnow()}
    with site.database.begin() as connection:
        connection.execute(sa.insert(models.ArtifactBlob).values(mark))
        connection.execute(sa.insert(models.ArtifactLock).values(lease))

    glare.request("GET", f"/{draft.upper()}")

    assert glare.show(draft)["archive"]["status"] == "saving"
    assert glare.delete(draft).status_code == 204


def test_a_closure_is_planned(glare: Client, name: str) -> None:
    for version in ("1.0.0", "1.1.0", "2.0.0-rc.1"):
        _publish(glare, f"{name}.db", version)
    _publish(glare, name, Require={f"{name}.db": "<2"})

    answer = glare.resolve(
        objects=[{"class": f"{name}.Thing", "version": "1"}], prereleases=False
    ).json()

    assert answer["unsatisfied"] == []
    found = {(release["name"], release["version"]) for release in answer["releases"]}
    assert {(name, "1.0.0"), (f"{name}.db", "1.1.0")} <= found
    assert len(found) == 3


def test_a_yanked_package_is_listed_and_not_chosen(glare: Client, name: str) -> None:
    ids = [_publish(glare, name, version)["id"] for version in ("1.0.0", "1.1.0")]

    for reason, chosen, yanked in (("ä" * 255, "1.0.0", [(name, "1.1.0")]), ("", "1.1.0", [])):
        assert glare.set(ids[1], "yanked", reason).json()["yanked"] == reason
        releases = glare.resolve(requirements={name: "1"}).json()["releases"]
        assert [release["version"] for release in releases if release["name"] == name] == [chosen]
        assert glare.names(name=name, yanked="neq:") == yanked


# The indexes by which packages are found. SQLite, which serves development alone, lacks them.
INDEXES = ("ix_murano_classes", "ix_murano_keys")


@pytest.mark.services
@pytest.mark.parametrize("site", ["mariadb", "postgresql"], indirect=True)
def test_classes_and_dependents_are_found_by_index(site: Site, glare: Client, name: str) -> None:
    artifact_id = _publish(glare, name)["id"]
    engine = site.database
    of_class = artifact_queries.DEFINING.params(values=[f"{name}.Thing", f"{name}.Other"])
    of_dependents = artifact_queries.dependents(name, None)
    table = "TABLE " * (engine.dialect.name == "mysql") + "glare_artifact_properties"
    with engine.begin() as connection:
        rows = [
            {"id": str(uuid.uuid4()), "artifact_id": artifact_id, "name": field, **value}
            for number in range(3000)
            for field, value in (
                ("class_definitions", {"string_value": f"{name}.n{number}", "key_name": None}),
                ("requirements", {"string_value": "1", "key_name": f"{name}.n{number}"}),
            )
        ]
        connection.execute(models.ArtifactProperty.__table__.insert(), rows)
        connection.exec_driver_sql(f"ANALYZE {table}")
        plans = [_explained(connection, each) for each in (of_class, of_dependents)]

    for plan, index in zip(plans, INDEXES, strict=True):
        assert index in plan


def _explained(connection: sa.engine.Connection, statement: Any) -> str:
    """Return by which indexes a database would answer a statement."""
    compiled = statement.compile(connection, compile_kwargs={"literal_binds": True})
    return str(connection.exec_driver_sql(f"EXPLAIN {compiled}".replace("%", "%%")).all())


def test_what_is_deleted_is_gone(site: Site, glare: Client, name: str) -> None:
    data = packages.package(name, Tags=["one", "two"], Supplier={"Name": "Somebody"})
    artifact_id = glare.publish(name, "1.0.0", data)["id"]
    assert glare.request("GET", f"/{artifact_id}/archive").content == data

    assert glare.delete(artifact_id).status_code == 204

    assert glare.names(name=name) == []
    assert site.leftovers() == {}
    assert _publish(glare, name)["status"] == "active"


@pytest.mark.services
@pytest.mark.parametrize("site", ["mariadb", "postgresql"], indirect=True)
def test_a_query_sees_one_state_of_the_database(
    site: Site, glare: Client, project: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact_id = _publish(glare, name)["id"]
    package = PackageVersion(name, Version("1.0.0"))
    monkeypatch.setattr(database, "get_session", lambda: orm.Session(site.database))

    with snapshot() as connection:
        viewer = Viewer(project, is_admin=True)
        found = GlareDatabase(connection, viewer, Budget(60, ""))
        source = CatalogSource(found, Query(project_id=project))
        assert source.versions([name]) == {name: (package.version,)}
        assert glare.delete(artifact_id).status_code == 204

        assert "io.murano" in source.requirements([package])[package]
        assert [release.key for release in source.releases([package])] == [package]


@pytest.mark.services
@pytest.mark.parametrize("site", ["mariadb", "postgresql"], indirect=True)
def test_an_artifact_is_read_in_one_state(
    site: Site, glare: Client, project: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload ends between two statements of the read."""
    artifact_id = glare.create(name, supplier={"Name": "Example"}).json()["id"]
    data = packages.package(name, Supplier={"Name": "Example"}, Author="Alice", Tags=["web"])
    monkeypatch.setattr(database, "get_session", lambda: orm.Session(site.database))
    monkeypatch.setattr(database, "_do_artifacts_query", database._do_artifacts_query)
    artifact_reads.install()
    uploads: list[int] = []

    def upload(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "FROM glare_artifacts" in statement and not uploads:
            uploads.append(glare.upload(artifact_id, data).status_code)

    sa.event.listen(site.database, "after_cursor_execute", upload)
    found = ArtifactApi().get(Viewer(project, is_admin=True), "murano", artifact_id)
    sa.event.remove(site.database, "after_cursor_execute", upload)

    assert uploads == [200]
    assert (found["supplier"], found["tags"]) == ({"Name": "Example"}, [])
    assert not {"archive", "author", "requirements"} & found.keys()


def _unstorable_manifest(name: str, text: str) -> bytes:
    # Bytes, since YAML would not write what it reads.
    content = packages.content(name)
    escaped = text.encode("ascii", "backslashreplace").replace(b"\0", b"\\0")
    content["manifest.yaml"] += b'Description: "%b"\n' % escaped
    return packages.zipped(content)


@pytest.mark.parametrize("text", UNSTORABLE, ids=ascii)
def test_what_some_database_cannot_hold_is_refused(
    site: Site, glare: Client, name: str, text: str
) -> None:
    artifact_id = glare.create(name).json()["id"]

    for answer in (
        glare.upload(artifact_id, _unstorable_manifest(name, text)),
        glare.set(artifact_id, "display_name", text),
        glare.set(artifact_id, "yanked", text),
        glare.set(artifact_id, "tags", [text]),
        glare.set(artifact_id, "metadata", {text: "value"}),
        glare.create(f"{name}.other", description=text),
        glare.resolve(requirements={text: "1"}),
        glare.resolve(objects=[{"class": text}]),
    ):
        assert answer.status_code == 400, answer.text

    assert glare.upload(artifact_id, packages.package(name)).status_code == 200
    assert site.leftovers() == {}


@pytest.mark.parametrize("kind", ["murano", "all"])
def test_an_id_with_nul_is_refused(glare: Client, name: str, kind: str) -> None:
    artifact_id = glare.create(name).json()["id"]
    other = Client(glare.url, glare.token, kind)
    patch = {"json": [], "headers": {"Content-Type": "application/json-patch+json"}}

    for answer in (
        other.request("GET", f"/{artifact_id}%00"),
        other.request("DELETE", f"/{artifact_id}%00"),
        other.request("PATCH", f"/{artifact_id}%00", **patch),
        other.request("GET", "/%00/archive"),
        other.request("GET", f"?marker={artifact_id}%00"),
        other.request("GET", "?id=%00"),
        glare.resolve(package="\0"),
        glare.yank("\0", "a reason"),
        glare.publish_all(["\0"], "private"),
        glare.batch(["\0"]),
    ):
        assert answer.status_code == 400, answer.text
        assert "error" in answer.json()
