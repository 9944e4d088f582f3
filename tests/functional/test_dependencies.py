# SPDX-License-Identifier: Apache-2.0

"""Dependency queries, answered by the real Glare."""

import itertools
import re
import sqlite3
from collections.abc import Callable, Collection
from typing import Any

import pytest
import requests
from glare.db.sqlalchemy import api as database

from glare_murano import wire
from glare_murano.budget import Budget
from glare_murano.glare.db.glare_database import GlareDatabase
from glare_murano.service.database import Viewer
from glare_murano.service.source import METADATA_CACHE, CatalogSource
from glare_murano.wire import Query
from tests import packages
from tests.functional import statements
from tests.functional.client import DEPENDENCIES, SUBCLASSES, Client, message, refusal
from tests.functional.conftest import CORE_VERSION


def _closure(client: Client, **body: Any) -> dict[str, list[str]]:
    """FQN -> versions of the answer, the newest first; nothing may be missing."""
    answer = client.resolve(**body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["unsatisfied"] == []
    found: dict[str, list[str]] = {}
    for release in answer.json()["releases"]:
        found.setdefault(release["name"], []).insert(0, release["version"])
    return found


@pytest.fixture
def publish(glare: Client) -> Callable[..., Any]:
    def publish_package(name: str, version: str = "1.0.0", **requirements: str) -> Any:
        require = {fqn.replace("__", "."): text for fqn, text in requirements.items()}
        data = packages.package(name, version, Require=require)
        return glare.publish(name, version, data)

    return publish_package


def test_the_whole_closure_comes_in_one_answer(glare: Client, publish: Callable[..., Any]) -> None:
    for version in ("1.0.0", "1.2.0", "1.3.0", "2.0.0"):
        publish("org.db", version)
    publish("org.wiki", org__db=">=1.0,<1.3")
    publish("org.shop", org__db="2")
    publish("org.portal", org__wiki="1", org__shop="1")

    assert _closure(glare, requirements={"org.portal": "1"}) == {
        "io.murano": [CORE_VERSION],
        "org.db": ["2.0.0", "1.2.0"],
        "org.portal": ["1.0.0"],
        "org.shop": ["1.0.0"],
        "org.wiki": ["1.0.0"],
    }


def test_a_release_has_all_keys_that_a_loader_needs(
    glare: Client, project: str, publish: Callable[..., Any]
) -> None:
    published = publish("org.db", "1.2.0")
    publish("org.wiki", org__db="1")

    releases = glare.resolve(requirements={"org.wiki": "1"}).json()["releases"]

    (db,) = [release for release in releases if release["name"] == "org.db"]
    assert db == {
        "id": published["id"],
        "name": "org.db",
        "version": "1.2.0",
        "owner": project,
        "visibility": "private",
        "requirements": {"io.murano": "0", "org.db": "1"},
        "class_definitions": ["org.db.Thing"],
        "sha256": published["archive"]["sha256"],
        "size": published["archive"]["size"],
        "required_by": [
            {"name": "org.db", "range": "1", "requirer": {"name": "org.wiki", "version": "1.0.0"}}
        ],
    }


def test_pins_come_first(glare: Client, publish: Callable[..., Any]) -> None:
    for version in ("1.0.0", "1.2.0"):
        publish("org.db", version)

    found = _closure(glare, requirements={"org.db": "1"}, pins={"org.db": ["1.0.0"]})

    assert found["org.db"] == ["1.0.0"]


def test_pre_releases_count_by_default(glare: Client, publish: Callable[..., Any]) -> None:
    for version in ("1.0.0", "1.1.0-rc.1"):
        publish("org.db", version)

    assert _closure(glare, requirements={"org.db": "1"})["org.db"] == ["1.1.0-rc.1"]
    without = _closure(glare, requirements={"org.db": "1"}, prereleases=False)
    assert without["org.db"] == ["1.0.0"]


def test_a_pre_release_that_is_not_wanted_serves_a_pin_and_its_exact_range(
    glare: Client, publish: Callable[..., Any]
) -> None:
    for version in ("1.0.0", "1.1.0-rc.1"):
        publish("org.db", version)
    publish("org.wiki", org__db="==1.1.0-rc.1")
    publish("org.shop", org__db="1")
    both = {"org.wiki": "1", "org.shop": "1"}
    thing = {"class": "org.db.Thing"}

    def versions(**query: Any) -> list[str]:
        return _closure(glare, prereleases=False, **query)["org.db"]

    assert versions(requirements=both) == ["1.1.0-rc.1", "1.0.0"]
    assert versions(requirements={"org.shop": "1"}, pins={"org.db": ["1.1.0-rc.1"]}) == [
        "1.1.0-rc.1"
    ]
    assert versions(objects=[{**thing, "version": "1"}]) == ["1.0.0"]
    assert versions(objects=[{**thing, "version": "1.1.0-rc.1"}]) == ["1.1.0-rc.1"]


def test_objects_ask_for_their_classes_in_the_range_of_their_headers(
    glare: Client, publish: Callable[..., Any]
) -> None:
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        publish("org.db", version)
    wanted = [{"class": "org.db.Thing", "version": "1.2.7"}, {"class": "org.db.Thing"}]

    answer = glare.resolve(objects=wanted).json()

    assert [r["version"] for r in answer["releases"] if r["name"] == "org.db"] == ["1.2.0"]
    (missing,) = answer["undefined"]
    assert missing["class"] == "org.db.Thing"
    assert missing["range"] == "0"
    assert missing["available"] == ["org.db 2.0.0", "org.db 1.2.0", "org.db 1.0.0"]


def test_the_range_of_an_object_joins_those_upon_its_package(
    glare: Client, publish: Callable[..., Any]
) -> None:
    for version in ("1.0.0", "1.2.0", "1.3.0"):
        publish("org.db", version)
    other = packages.package("org.db", "1.4.0", Classes={"org.db.Other": "Thing.yaml"})
    glare.publish("org.db", "1.4.0", other)
    publish("org.wiki", org__db="<1.3")

    def versions(thing: str, **more: Any) -> list[str]:
        return _closure(glare, objects=[{"class": thing, "version": "1"}], **more)["org.db"]

    assert versions("org.db.Thing") == ["1.3.0"]
    assert versions("org.db.Thing", requirements={"org.wiki": "1"}) == ["1.2.0"]
    # Another version defines this class alone.
    assert versions("org.db.Other", requirements={"org.wiki": "1"}) == ["1.4.0", "1.2.0"]


def test_the_answer_says_why_newer_versions_were_passed_over(
    glare: Client, publish: Callable[..., Any]
) -> None:
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        publish("org.db", version)
    publish("org.wiki", org__db="<1.2")

    def reasons(**query: Any) -> Any:
        releases = glare.resolve(requirements={"org.wiki": "1"}, **query).json()["releases"]
        return {release["name"]: release.get("why") for release in releases}

    assert reasons(why=True) == {
        "io.murano": {"kept": [], "passed_over": []},
        "org.wiki": {"kept": [], "passed_over": []},
        "org.db": {
            "kept": [],
            "passed_over": [
                {
                    "versions": ["2.0.0", "1.2.0"],
                    "reason": "range",
                    "requirements": [
                        {
                            "name": "org.db",
                            "range": "<1.2",
                            "requirer": {"name": "org.wiki", "version": "1.0.0"},
                        }
                    ],
                }
            ],
        },
    }
    assert set(reasons().values()) == {None}


def test_a_draft_is_asked_about_by_its_id(
    glare: Client, as_user: Callable[[str], Client], publish: Callable[..., Any]
) -> None:
    publish("org.db", "1.2.0")
    draft = glare.create("org.wiki", "2.0.0").json()["id"]

    assert "org.wiki 2.0.0 has no archive yet" in refusal(glare.resolve(package=draft), 409)
    assert glare.set(draft, "requirements", {"org.db": "no range"}).status_code == 200
    assert glare.resolve(package=draft).status_code == 409
    assert glare.set(draft, "requirements", {}).status_code == 200

    data = packages.package("org.wiki", "2.0.0", Require={"org.db": "1"})
    assert glare.upload(draft, data).status_code == 200
    assert _closure(glare, package=draft) == {
        "io.murano": [CORE_VERSION],
        "org.db": ["1.2.0"],
        "org.wiki": ["2.0.0"],
    }
    # Only a query for the draft itself finds it.
    assert glare.resolve(requirements={"org.wiki": "2"}).json()["releases"] == []
    assert as_user("strangers").resolve(package=draft).status_code == 404


def test_just_the_package_that_is_asked_about_is_taken(
    glare: Client, admin: Client, publish: Callable[..., Any], name: str
) -> None:
    public = admin.publish(name, "1.0.0-rc.1", packages.package(name, "1.0.0-rc.1"), public=True)
    publish(name, "1.0.0-rc.1")
    publish(name, "1.0.0")

    answer = glare.resolve(package=public["id"], prereleases=False).json()

    taken = [release["id"] for release in answer["releases"] if release["name"] == name]
    assert taken == [public["id"]]
    assert answer["unsatisfied"] == []


def test_an_administrator_asks_about_a_package_for_another_project(
    admin: Client, publish: Callable[..., Any], name: str
) -> None:
    """What it requires is found as for that project."""
    publish(f"{name}.db", "1.0.0")
    private = publish(name, "1.0.0", **{f"{name}.db".replace(".", "__"): "1"})

    answer = admin.resolve(package=private["id"], project_id="strangers").json()

    assert private["id"] in [release["id"] for release in answer["releases"]]
    assert [missing["name"] for missing in answer["unsatisfied"]] == [f"{name}.db"]


@pytest.mark.parametrize("text", ["org..db", "1.a", "x" * 5000])
def test_no_class_has_a_name_that_is_not_valid(glare: Client, text: str) -> None:
    answer = glare.resolve(objects=[{"class": text}])

    assert answer.status_code == 200, answer.text
    assert [missing["class"] for missing in answer.json()["undefined"]] == [text]


@pytest.mark.parametrize("package", ["", "nonsense", "0" * 8])
def test_a_missing_package_is_not_found(glare: Client, package: str) -> None:
    assert "not found" in refusal(glare.resolve(package=package), 404)


def test_an_unsatisfied_range_has_its_requirer(
    glare: Client, publish: Callable[..., Any], set_option: Callable[[str, str], None]
) -> None:
    set_option("check_requirements", "off")
    publish("org.db", "1.0.0")
    publish("org.wiki", org__db=">=3")

    (missing,) = glare.resolve(requirements={"org.wiki": "*"}).json()["unsatisfied"]

    assert (missing["name"], missing["range"]) == ("org.db", ">=3")
    assert missing["available"] == ["1.0.0"]
    assert missing["requirer"] == {"name": "org.wiki", "version": "1.0.0"}


def test_the_versions_of_a_missing_package_are_listed_once(
    glare: Client, publish: Callable[..., Any], set_option: Callable[[str, str], None]
) -> None:
    """Many packages may require a package with many versions."""
    set_option("check_requirements", "off")
    publish("org.db", "1.0.0")
    publish("org.db", "1.1.0")
    publish("org.log", "1.0.0")
    for letter in "abc":
        publish(f"org.{letter}", org__db=">=3", org__log="2")

    wanted = {f"org.{letter}": "*" for letter in "abc"}
    answer = glare.resolve(requirements=wanted).json()

    available = [(each["name"], each.get("available")) for each in answer["unsatisfied"]]
    assert available == [
        ("org.db", ["1.1.0", "1.0.0"]),
        ("org.log", ["1.0.0"]),
        *[("org.db", None), ("org.log", None)] * 2,
    ]
    missing = wire.answer_from_json(answer).unsatisfied
    read = [list(map(str, each.available)) for each in missing]
    assert read == [["1.1.0", "1.0.0"], ["1.0.0"]] * 3


def test_the_newest_releases_that_define_a_class_are_listed_for_each_object(
    glare: Client, publish: Callable[..., Any]
) -> None:
    """Many objects may have a class that many releases define."""
    for minor in range(22):
        publish("org.db", f"1.{minor}.0")

    objects = [{"class": "org.db.Thing", "version": f">={major}"} for major in range(2, 5)]
    answer = glare.resolve(objects=objects).json()

    newest = [f"org.db 1.{minor}.0" for minor in range(21, 1, -1)]
    assert [each["available"] for each in answer["undefined"]] == [newest] * 3


def test_a_caller_sees_what_a_list_call_would_show(
    glare: Client, admin: Client, as_user: Callable[[str], Client], name: str
) -> None:
    glare.publish(name, "1.0.0", packages.package(name))

    def versions(client: Client, **more: Any) -> list[str]:
        releases = client.resolve(requirements={name: "1"}, **more).json()["releases"]
        return [release["version"] for release in releases if release["name"] == name]

    assert versions(glare) == ["1.0.0"]
    assert versions(as_user("strangers")) == []
    assert versions(admin) == ["1.0.0"]
    assert versions(admin, project_id="strangers") == []


def test_the_policy_of_a_list_call_rules_queries(
    glare: Client, as_user: Callable[[str], Client], name: str, policy: Callable[[str, str], None]
) -> None:
    glare.publish(name, "1.0.0", packages.package(name))
    auditor = as_user("auditors")

    policy("artifact:list_all_artifacts", "project_id:auditors")
    assert [found for found, _ in auditor.names(name=name)] == [name]
    assert _closure(auditor, requirements={name: "1"})[name] == ["1.0.0"]

    policy("artifact:list", "not project_id:auditors")
    assert auditor.request("GET", "").status_code == 403
    assert auditor.resolve(requirements={name: "1"}).status_code == 403
    assert auditor.query(SUBCLASSES, {"class": name}).status_code == 403
    assert glare.resolve(requirements={name: "1"}).status_code == 200


def test_the_project_own_package_comes_before_a_public_one(
    glare: Client, admin: Client, name: str
) -> None:
    admin.publish(name, "1.0.0", packages.package(name, Author="public"), public=True)
    own = glare.publish(name, "1.0.0", packages.package(name, Author="own"))

    releases = glare.resolve(requirements={name: "1"}).json()["releases"]

    assert [r["id"] for r in releases if r["name"] == name] == [own["id"]]


def test_an_object_gets_a_release_that_defines_its_class(
    glare: Client, admin: Client, name: str
) -> None:
    """Although the project's own package, which lacks the class, hides a public one."""
    thing, extra = f"{name}.Thing", f"{name}.Extra"
    both = {"Classes": {thing: "Thing.yaml", extra: "Extra.yaml"}}
    for version in ("1.0.0", "1.1.0"):
        admin.publish(name, version, packages.package(name, version, **both), public=True)
    glare.publish(name, "1.1.0", packages.package(name, "1.1.0"))

    def found(class_name: str) -> list[str]:
        releases = glare.resolve(objects=[{"class": class_name, "version": "1"}]).json()["releases"]
        return [release["version"] for release in releases if release["name"] == name]

    assert found(extra) == ["1.0.0"]
    assert found(thing) == ["1.1.0"]


@pytest.mark.parametrize(
    "body",
    [
        {"requirements": {"a": ">>1"}},
        {"requirements": {"a": 1}},
        {"requirements": {"x" * 900_000: 1}},
        {"requirements": {"x" * 900_000: ">>1"}},
        {"requirements": []},
        {"pins": {"a": ["x"]}},
        {"pins": {"a": ["1.0.0"] * 101}},
        {"objects": [{"version": "1"}]},
        {"nonsense": True},
        [],
        "text",
        None,
    ],
)
def test_a_bad_query_is_refused(glare: Client, body: Any) -> None:
    answer = requests.post(
        glare.url + DEPENDENCIES, json=body, headers={"X-Auth-Token": glare.token}, timeout=60
    )

    assert 0 < len(refusal(answer, 400)) < 1000


def test_an_invalid_range_is_reported_with_its_package(glare: Client) -> None:
    answer = glare.resolve(requirements={"org.one": "1", "org.two": "two"})

    assert message(answer).startswith("requirements: org.two: 'two' is not a valid range")


def test_without_a_token_nothing_is_answered(glare_url: str) -> None:
    assert requests.post(glare_url + DEPENDENCIES, json={}, timeout=60).status_code == 401


def test_a_release_is_the_artifact_that_is_chosen_in_the_end(
    glare: Client, admin: Client, name: str, publish: Callable[..., Any]
) -> None:
    """A public one is found by its class, and the project's own of the same version later."""
    both, one, other, root = (f"{name}.{part}" for part in ("both", "one", "other", "root"))
    shared = f"{name}.Shared"
    defining = {"Classes": {shared: "Thing.yaml"}}
    admin.publish(both, "1.0.0", packages.package(both, **defining), public=True)
    own = publish(both)
    publish(one, "1.0.0", **{both: "1"})
    publish(one, "2.0.0")
    publish(other, **{one: "<2"})
    requiring = packages.package(root, "2.0.0", Require={one: ">=1", other: "1"}, **defining)
    glare.publish(root, "2.0.0", requiring)

    releases = glare.resolve(objects=[{"class": shared, "version": ">=1"}]).json()["releases"]

    (chosen,) = [release for release in releases if release["name"] == both]
    assert chosen["id"] == own["id"]
    assert chosen["sha256"] == own["archive"]["sha256"]
    assert chosen["class_definitions"] == [f"{both}.Thing"]


def test_a_query_past_its_time_is_refused_with_the_step_where_it_stopped(
    glare: Client, chain: str, set_option: Callable[[str, object], None]
) -> None:
    set_option("plan_seconds", 0.001)

    refused = refusal(glare.resolve(requirements={chain: "1"}), 400)

    stopped = re.compile(
        r"\w.* stopped( at .+)?, after 0\.001 seconds; request fewer packages, or raise the option "
        r"plan_seconds"
    )
    assert stopped.fullmatch(refused)
    objects = [{"class": f"{chain}.Thing", "version": f"77.{number}.0"} for number in range(1000)]
    assert stopped.fullmatch(refusal(glare.resolve(objects=objects), 400))
    set_option("plan_seconds", 60)
    assert glare.resolve(requirements={chain: "1"}, objects=objects).status_code == 200


def _statements(client: Client, **body: Any) -> list[statements.Statement]:
    """The SQL statements that a query takes in a process that has read nothing before."""
    METADATA_CACHE.clear()
    with statements.recorded() as found:
        assert client.resolve(**body).status_code == 200
    return found


def test_the_statements_grow_with_the_depth_alone(
    glare: Client, publish: Callable[..., Any]
) -> None:
    for number in range(12):
        publish(f"org.leaf{number}")
        publish(f"org.leaf{number}", "1.1.0")
    publish("org.narrow", org__leaf0="1")
    publish("org.wide", **{f"org__leaf{number}": "1" for number in range(12)})
    publish("org.deep", org__wide="1")

    narrow = len(_statements(glare, requirements={"org.narrow": "1"}))

    assert len(_statements(glare, requirements={"org.wide": "1"})) == narrow
    assert len(_statements(glare, requirements={"org.deep": "1"})) == narrow + 3


def test_the_statements_do_not_grow_with_the_choices_that_change(
    glare: Client, publish: Callable[..., Any]
) -> None:
    """Each package rules out the newest version of the next, which then does the same."""

    def count(length: int) -> int:
        names = [f"org.row{length}.p{number}" for number in range(length)]
        publish(names[-1])
        for following, name in itertools.pairwise(reversed(names)):
            publish(name, **{following.replace(".", "__"): "<2"})
            publish(following, "2.0.0")
        return len(_statements(glare, requirements=dict.fromkeys(names, "*")))

    assert count(4) == count(10)


@pytest.fixture
def artifacts_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of artifacts whose metadata is read, a level each."""
    counts: list[int] = []

    def count(database: GlareDatabase, ids: Collection[str]) -> Any:
        if ids:
            counts.append(len(ids))
        return find_metadata(database, ids)

    find_metadata = GlareDatabase.find_metadata
    monkeypatch.setattr(GlareDatabase, "find_metadata", count)
    METADATA_CACHE.clear()
    return counts


def test_a_level_reads_the_metadata_of_the_versions_chosen(
    glare: Client, publish: Callable[..., Any], artifacts_read: list[int]
) -> None:
    for number in range(5):
        publish("org.db", f"1.{number}.0")
        publish("org.log", f"1.{number}.0")
    publish("org.wiki", org__db="1", org__log="<1.2")

    assert _closure(glare, requirements={"org.wiki": "1"})["org.log"] == ["1.1.0"]

    # The wiki; then a version of each package that it requires, one of them io.murano.
    assert artifacts_read == [1, 3]


def test_once_a_choice_has_changed_the_metadata_of_all_versions_is_read(
    glare: Client, publish: Callable[..., Any], artifacts_read: list[int]
) -> None:
    for version in ("1.0.0", "1.1.0", "2.0.0"):
        publish("org.db", version)
        publish("org.log", version)
    publish("org.wiki", org__db="<2")

    found = _closure(glare, requirements=dict.fromkeys(("org.db", "org.log", "org.wiki"), "*"))

    assert (found["org.db"], found["org.log"]) == (["1.1.0"], ["2.0.0"])
    # The newest of the roots; then, as org.db has changed, all others: two of org.db, two of
    # org.log, and one of io.murano.
    assert artifacts_read == [3, 5]


def test_only_what_is_asked_for_is_looked_up(glare: Client, publish: Callable[..., Any]) -> None:
    """Never all that is active, or all properties of a name, of which a large Glare has many."""
    for number in range(12):
        publish(f"org.leaf{number}")
    publish("org.wide", **{f"org__leaf{number}": "1" for number in range(12)})
    plans = statements.plans(_statements(glare, requirements={"org.wide": "1"}))

    # Versions, those that are yanked, which are few, archives, and what these say.
    assert len(plans) == 2 * 4
    for plan in plans:
        assert re.search("_name_and_version|_artifact_id |_properties_name ", plan), plan


def test_more_can_be_asked_for_than_a_statement_holds(publish: Callable[..., Any]) -> None:
    found = publish("org.one")
    session = database.get_session()
    with session.begin():
        # What SQLite has by itself; Debian's takes more.
        connection = session.connection()
        raw = connection.connection.dbapi_connection
        raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)
        viewer = Viewer(found["owner"], is_admin=False)
        asked = CatalogSource(GlareDatabase(connection, viewer, Budget(60, "")), Query())

        versions = asked.versions(["org.one", *(f"org.none{number}" for number in range(70_000))])

    assert {fqn: list(map(str, of)) for fqn, of in versions.items()} == {"org.one": ["1.0.0"]}


def _publish(client: Client, fqn: str, version: str = "1.0.0", **requirements: str) -> Any:
    data = packages.package(fqn, version, Require=requirements)
    return client.publish(fqn, version, data)


@pytest.fixture
def chain(glare: Client, name: str) -> str:
    """An application that requires a library, which requires another, and so on."""
    names = [name, *(f"{name}.library{number}" for number in range(5))]
    _publish(glare, names[-1])
    for required, fqn in itertools.pairwise(reversed(names)):
        _publish(glare, fqn, **{required: "1"})
    return name


def _queries(name: str) -> list[dict[str, Any]]:
    return [
        {"requirements": {name: ">=1", f"{name}.missing": "1"}},
        {"objects": [{"class": f"{name}.Thing", "version": ">=1"}]},
        {"requirements": {name: ">=1"}, "pins": {name: ["1.0.0"]}},
        {"requirements": {name: ">=1"}, "prereleases": False},
    ]


def _answer(client: Client, query: dict[str, Any]) -> Any:
    answer = client.resolve(**query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _publish_newer(client: Client, admin: Client, name: str) -> None:
    _publish(client, name, "1.1.0")


def _publish_newer_below(client: Client, admin: Client, name: str) -> None:
    _publish(client, f"{name}.library4", "1.1.0-rc.1")
    _publish(client, f"{name}.library4", "1.0.1")


def _publish_for_all(client: Client, admin: Client, name: str) -> None:
    admin.publish(name, "1.2.0", packages.package(name, "1.2.0"), public=True)


def _publish_missing(client: Client, admin: Client, name: str) -> None:
    _publish(client, f"{name}.missing")


def _define_elsewhere(client: Client, admin: Client, name: str) -> None:
    data = packages.package(f"{name}.other", "3.0.0", Classes={f"{name}.Thing": "Thing.yaml"})
    client.publish(f"{name}.other", "3.0.0", data)


def _delete(client: Client, admin: Client, name: str) -> None:
    (artifact,) = _ids(client, name)
    assert client.delete(artifact).ok


def _deactivate(client: Client, admin: Client, name: str) -> None:
    (artifact,) = _ids(client, name)
    assert admin.set(artifact, "status", "deactivated").ok


def _make_public(client: Client, admin: Client, name: str) -> None:
    (artifact,) = _ids(client, f"{name}.library4")
    assert admin.set(artifact, "visibility", "public").ok


def _ids(client: Client, name: str) -> list[str]:
    found = client.request("GET", "", params={"name": name}).json()["artifacts"]
    return [artifact["id"] for artifact in found]


_CHANGES: list[tuple[Callable[[Client, Client, str], None], set[int]]] = [
    (_publish_newer, {0, 1, 3}),
    (_publish_newer_below, {0, 1, 2, 3}),
    (_publish_for_all, {0, 1, 3}),
    (_publish_missing, {0}),
    (_define_elsewhere, {1}),
    (_delete, {0, 1, 2, 3}),
    (_deactivate, {0, 1, 2, 3}),
    (_make_public, {0, 1, 2, 3}),
]


@pytest.mark.parametrize(("change", "changed"), _CHANGES)
def test_each_change_is_seen(
    glare: Client,
    admin: Client,
    chain: str,
    change: Callable[[Client, Client, str], None],
    changed: set[int],
) -> None:
    queries = _queries(chain)
    before = [_answer(glare, query) for query in queries]

    change(glare, admin, chain)

    after = [_answer(glare, query) for query in queries]
    assert {number for number in range(len(queries)) if after[number] != before[number]} == changed


def test_nobody_gets_the_answer_of_another(
    glare: Client, admin: Client, as_user: Callable[[str], Client], project: str, chain: str
) -> None:
    others = as_user("others")
    for query in _queries(chain):
        found = _answer(glare, query)
        assert len(found["releases"]) == 7
        for client in (others, admin, glare):
            for of_project in ({}, {"project_id": project}, {"project_id": ""}):
                asked = query | of_project
                assert _answer(client, asked) == _answer(client, asked)
        assert chain not in str(_answer(others, query)["releases"])
        assert _answer(glare, query) == found


def test_of_two_who_see_all_each_prefers_the_own_project(
    glare: Client, admin: Client, project: str, name: str
) -> None:
    data = packages.package(name)
    public = admin.publish(name, "1.0.0", data, public=True)["id"]
    own = glare.publish(name, "1.0.0", data)["id"]
    boss = Client(glare.url, f"boss:{project}:admin")

    for client, expected in ((admin, public), (boss, own)):
        releases = _answer(client, {"requirements": {name: "1"}})["releases"]
        assert [r["id"] for r in releases if r["name"] == name] == [expected]
