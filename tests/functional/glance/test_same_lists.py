# SPDX-License-Identifier: Apache-2.0

"""The same packages in Glance and in Glare give the same lists, as a plain search finds them."""

import datetime
import fnmatch
import itertools
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import hypothesis
import pytest
import sqlalchemy as sa
from glare.db.sqlalchemy import models
from hypothesis import strategies as st

from benchmarks import catalogue
from glare_murano import images as form
from glare_murano.glare.db.artifact_queries import version_of
from glare_murano.package import Version, VersionSpec
from glare_murano.package_order import SEARCHED
from tests import effort, packages
from tests.functional.client import CATEGORIES, PACKAGES, Client, message, refusal
from tests.functional.glance import stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance
from tests.unit.published import VERSIONS

# Of the project itself, and of another one.
OWNERS = ("own", "other")
NAMES = ("a", "B", "c_c", "cxc")
TITLES = ("Wiki", "wiki", "Übung", "A shop")
WORDS = ("WIKI", "shop", "übung", "日本", "thing", "%", '"q', "nothing")
TAGS = ("web", "Web", "a_b", "日本 x", '"q"')
STATUSES = ("drafted", "active", "deactivated")

_counter = itertools.count()

Get = Callable[[str, list[tuple[str, str]]], Any]


class Made(NamedTuple):
    """A version of a package; its name lacks the prefix of the example."""

    name: str
    version: str
    owner: str
    is_public: bool
    status: str
    is_yanked: bool
    title: str
    tags: tuple[str, ...]
    categories: tuple[str, ...]
    requires: str
    hour: int

    @property
    def created(self) -> datetime.datetime:
        return stored.NOW + datetime.timedelta(hours=self.hour)

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.version

    def archive(self, prefix: str) -> bytes:
        require = {prefix + self.requires: "*"}
        return packages.package(
            prefix + self.name, self.version, Name=self.title, Tags=[*self.tags], Require=require
        )


_made = st.builds(
    Made,
    st.sampled_from(NAMES),
    st.sampled_from(VERSIONS),
    st.sampled_from(OWNERS),
    st.booleans(),
    st.sampled_from(STATUSES),
    st.booleans(),
    st.sampled_from(TITLES),
    st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
    st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
    st.sampled_from(NAMES),
    st.integers(0, 3),
)


def _some(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "name": _some("a", "b", "c_c", "c*", "*", "*x*", "*c_c"),
        "owner": _some(*OWNERS),
        "status": _some(*STATUSES),
        "visibility": _some("private", "public"),
        "type": _some("Application", "Library"),
        "class_definitions": _some("a.Thing", "b.Thing", "c_c.Thing"),
        "requirements": _some(*NAMES),
        "tags": _some(*TAGS),
        "categories": _some(*TAGS),
        "display_name": _some(*TITLES),
        "search": _some(*WORDS),
        "version": st.sampled_from([["*"], [">=1"], ["1.0.0"]]),
        "yanked": st.sampled_from([["true"], ["false"]]),
        "project_id": st.sampled_from([[owner] for owner in OWNERS]),
        "distinct": st.sampled_from([["name"], ["version"]]),
    },
)
KEYS = ("name", "version", "display_name", "created_at", "owner", "status", "relevance")
ORDERS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(["asc", "desc"])),
    min_size=1,
    max_size=3,
    unique_by=lambda key: key[0],
)


def expected(found: list[Made], conditions: dict[str, list[str]], order: Any) -> list[Made]:
    """The list of the project ``own``, by comparing each package with each condition."""
    listed = [
        made
        for made in found
        if (made.is_public or made.owner == "own") and _meets(made, conditions)
    ]
    best: dict[Any, Made] = {}
    distinct = conditions.get("distinct", ["no"])[0]
    project = conditions.get("project_id", ["own"])[0]
    for made in sorted(
        listed, key=lambda m: (_newness(m), m.owner == project, m.is_public), reverse=True
    ):
        key = {"name": made.name, "version": made.key, "no": made}[distinct]
        best.setdefault(key, made)
    listed = list(best.values())
    names = [name for name, _ in order]
    last = [key for key in (("name", "asc"), ("version", "desc")) if key[0] not in names]
    for name, direction in reversed([*order, *last]):
        listed.sort(key=lambda m: _value(m, name, conditions), reverse=direction == "desc")
    return listed


def _newness(made: Made) -> Any:
    version = Version(made.version)
    return version.precedence_key, version.build


def _value(made: Made, key: str, conditions: dict[str, list[str]]) -> Any:
    return {
        "name": made.name,
        "version": _newness(made),
        "display_name": made.title.casefold(),
        "created_at": made.hour,
        "owner": made.owner,
        "status": made.status,
        "relevance": _place(made, conditions.get("search")),
    }[key]


def _place(made: Made, words: list[str] | None) -> int | None:
    if words is None:
        return 0
    texts: dict[str, Sequence[str]] = {
        "display_name": [made.title],
        "name": [made.name],
        "description": [],
        "categories": made.categories,
        "tags": made.tags,
        "class_definitions": [f"{made.name}.Thing"],
        "author": ["Somebody"],
    }
    for place, name in enumerate(SEARCHED):
        if any(word.lower() in text.lower() for text in texts[name] for word in words):
            return place
    return None


def _meets(made: Made, conditions: dict[str, list[str]]) -> bool:
    def among(name: str, values: Sequence[str]) -> bool:
        return name not in conditions or bool(set(conditions[name]) & set(values))

    spec = VersionSpec.of(conditions.get("version", ["*"])[0])
    project = conditions.get("project_id", [made.owner])[0]
    return (
        any(fnmatch.fnmatchcase(made.name, each) for each in conditions.get("name", ["*"]))
        and made.status in conditions.get("status", ["active"])
        and among("owner", [made.owner])
        and among("visibility", ["public" if made.is_public else "private"])
        and among("type", ["Library"])
        and among("class_definitions", [f"{made.name}.Thing"])
        and among("requirements", [name for name in [made.requires] if name != made.name])
        and among("tags", made.tags)
        and among("categories", made.categories)
        and among("display_name", [made.title])
        and spec.match(Version(made.version))
        and conditions.get("yanked", [str(made.is_yanked).lower()])[0]
        == str(made.is_yanked).lower()
        and (made.is_public or made.owner == project)
        and _place(made, conditions.get("search")) is not None
    )


def _store(found: list[Made], prefix: str, glance: Glance, database: pathlib.Path) -> None:
    """Write packages into both services."""
    of_made = {
        (prefix + made.name, made.version, made.owner + prefix): (made, made.archive(prefix))
        for made in found
    }
    rows = []
    for (_, _, owner), (made, archive) in of_made.items():
        properties = {form.YANKED: "old"} if made.is_yanked else {}
        properties |= {} if made.status != "drafted" else {form.PUBLISHED: ""}
        if made.categories:
            properties |= form.own_properties(categories=[*made.categories])
        status = "deactivated" if made.status == "deactivated" else "active"
        changed = {"status": status, "created_at": made.created}
        visibility = "public" if made.is_public else "private"
        rows.append(
            stored.package(archive, owner, visibility, properties=properties, changed=changed)
        )
    stored.store(glance, rows)
    catalogue.load(
        database, [catalogue.Artifact(row.contents, row.owner, row.visibility) for row in rows]
    )
    _change(database, of_made)


def _change(database: pathlib.Path, of_made: dict[tuple[str, str, str], Any]) -> None:
    """Write into Glare what a catalogue of benchmarks does not have."""
    engine = sa.create_engine(f"sqlite:///{database}?timeout=60")
    artifacts, properties = models.Artifact.__table__, models.ArtifactProperty.__table__
    with engine.begin() as connection:
        names = {name for name, _, _ in of_made}
        found = connection.execute(sa.select(artifacts).where(artifacts.c.name.in_(names))).all()
        for row in found:
            made: Made = of_made[row.name, str(version_of(row)), row.owner][0]
            changed = {"status": made.status, "created_at": made.created}
            is_row = artifacts.c.id == row.id
            connection.execute(sa.update(artifacts).where(is_row).values(changed))
            own = [("categories", i, each) for i, each in enumerate(made.categories)]
            own += [("yanked", None, "old")] if made.is_yanked else []
            for name, position, value in own:
                values = {"name": name, "position": position, "string_value": value}
                values |= {"id": f"{row.id[:-6]}{next(_counter):06}", "artifact_id": row.id}
                connection.execute(sa.insert(properties).values(values))
    engine.dispose()


def _pages(get: Get, query: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """All packages, from all pages of a service."""
    limit = int(dict(query)["limit"])
    answer = get(PACKAGES, query).json()
    while "next" in answer:
        assert len(answer["packages"]) == limit
        yield from answer["packages"]
        answer = get(answer["next"], []).json()
    yield from answer["packages"]


@hypothesis.settings(
    max_examples=effort.CLOSURES * 3,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    found=st.lists(_made, max_size=10, unique_by=lambda made: made[:3]),
    conditions=CONDITIONS,
    order=ORDERS,
    limit=st.integers(1, 4),
)
def test_glance_and_glare_give_the_same_lists(
    glance: Glance,
    as_user: Callable[[str], Client],
    images_of: Callable[..., ImageClient],
    state_dir: pathlib.Path,
    found: list[Made],
    conditions: dict[str, list[str]],
    order: list[tuple[str, str]],
    limit: int,
) -> None:
    prefix = f"l{next(_counter)}."
    _store(found, prefix, glance, state_dir / "glare.sqlite")
    query = [(name, value) for name, values in conditions.items() for value in values]
    query.append(("sort", ",".join(f"{name}:{direction}" for name, direction in order)))
    sent = [(name, _sent(name, value, prefix)) for name, value in query]
    if "name" not in conditions:
        sent.append(("name", f"{prefix}*"))
    sent.append(("limit", str(limit)))
    listed = expected(found, conditions, order)
    project = f"own{prefix}"

    for get in (as_user(project).query, images_of(project).read):
        shown = [
            (each["name"].removeprefix(prefix), each["version"], each["owner"].split("l")[0])
            for each in _pages(get, sent)
        ]
        assert sorted(shown) == sorted((*made.key, made.owner) for made in listed)
        assert [key[:2] for key in shown] == [made.key for made in listed]


def _sent(name: str, value: str, prefix: str) -> str:
    """Put the prefix of an example into a condition."""
    if name in ("name", "class_definitions", "requirements"):
        return prefix + value
    return value + prefix if name in ("owner", "project_id") else value


# What belongs to whom, and who sees it in lists: the project (P), an administrator (A).
HIDDEN: dict[str, tuple[dict[str, Any], str]] = {
    "private": ({}, "A"),
    "public": ({"visibility": "public"}, "PA"),
    "accepted": ({"visibility": "shared", "members": {"P": "accepted"}}, "PA"),
    "pending": ({"visibility": "shared", "members": {"P": "pending"}}, "A"),
    "rejected": ({"visibility": "shared", "members": {"P": "rejected"}}, "A"),
    "with others": ({"visibility": "shared", "members": {"X": "accepted"}}, "A"),
    "no more shared": ({"visibility": "private", "members": {"P": "accepted"}}, "A"),
    "community": ({"visibility": "community"}, ""),
    "deactivated": ({"visibility": "public", "changed": {"status": "deactivated"}}, "PA"),
    "a draft": ({"properties": {form.PUBLISHED: ""}}, "A"),
    "a public draft": ({"visibility": "public", "properties": {form.PUBLISHED: ""}}, "PA"),
    "importing": ({"changed": {"status": "importing"}}, "A"),
    "renamed": ({"visibility": "public", "changed": {"name": "org.renamed"}}, ""),
    "given away": ({"visibility": "public", "changed": {"owner": "X"}}, ""),
    "a server": ({"visibility": "public", "changed": {"container_format": "bare"}}, ""),
    "shown": ({"visibility": "public", "changed": {"os_hidden": False}}, "PA"),
    "no version": ({"visibility": "public", "properties": {form.VERSION: "one"}}, ""),
    "unreadable": ({"visibility": "public", "properties": {form.REQUIREMENTS: "{"}}, ""),
}
EVERY = [("status", status) for status in STATUSES]


@pytest.mark.parametrize("case", HIDDEN)
def test_packages_are_listed_as_glance_lists_them(
    glance: Glance, images: ImageClient, image_admin: ImageClient, package_name: str, case: str
) -> None:
    kept, seen = HIDDEN[case]
    members = {images.project if m == "P" else m: s for m, s in kept.get("members", {}).items()}
    data = packages.package(package_name)
    package = stored.package(data, f"{images.project}-other", **{**kept, "members": members})
    stored.store(glance, [package])
    name = package.changed.get("name", package_name)

    for query in (
        [("name", name)],
        [("class_definitions", f"{package_name}.Thing")],
        [("id", package.id)],
        [("id", package.id), ("search", "thing"), ("sort", "relevance,created_at")],
    ):
        found = ""
        for letter, client in (("P", images), ("A", image_admin)):
            listed = client.read(PACKAGES, [*EVERY, *query]).json()["packages"]
            found += letter * (package.id in [each["id"] for each in listed])
        assert found == seen, query


# What a stranger could try to learn of private packages.
QUESTIONS: list[list[tuple[str, str]]] = [
    [*EVERY],
    [*EVERY, ("name", "{0}*"), ("limit", "1")],
    [*EVERY, ("name", "{0}"), ("distinct", "name")],
    [*EVERY, ("name", "{0}"), ("distinct", "version")],
    [("owner", "{1}")],
    [("project_id", "{1}"), ("name", "{0}*")],
    [("id", "{2}")],
    [("tags", "secret")],
    [("search", "secret")],
    [("class_definitions", "{0}.Thing")],
    [("subclass_of", "{0}.Thing")],
    [("requirements", "io.murano"), ("name", "{0}*")],
    [("name", "{0}*"), ("sort", "display_name:desc"), ("limit", "1")],
    [("name", "{0}*"), ("marker", '{{"id":"{2}","name":"{0}","version":"9.0.0"}}')],
    [("name", "{0}*"), ("marker", '{{"id":"{2}","name":"{0}","version":"0.0.1"}}')],
]


@pytest.mark.parametrize("service", ["glare", "glance"])
def test_no_list_depends_on_private_packages_of_others(
    glance: Glance,
    as_user: Callable[[str], Client],
    images: ImageClient,
    package_name: str,
    service: str,
) -> None:
    fqn, stranger, owner = package_name, images.project, f"{images.project}-other"
    shown = packages.package(fqn, "1.0.0", Tags=["shown"])
    secret = packages.package(fqn, "9.0.0", Tags=["secret"], Name="A secret")
    if service == "glare":
        client: Any = as_user(stranger)
        client.publish(fqn, "1.0.0", shown)
    else:
        client = images
        stored.store(glance, [stored.package(shown, stranger)])
    get = client.query if service == "glare" else client.read

    def answers(secret_id: str) -> list[Any]:
        sent = (
            [(name, value.format(fqn, owner, secret_id)) for name, value in query]
            for query in QUESTIONS
        )
        return [get(PACKAGES, query).json() for query in sent] + [
            get(CATEGORIES, EVERY).json()["categories"]
        ]

    package = stored.package(secret, owner, properties=form.own_properties(categories=["Secret"]))
    before = answers(package.id)
    if service == "glare":
        other = as_user(owner)
        secret_id = other.publish(fqn, "9.0.0", secret)["id"]
        assert other.set(secret_id, "categories", ["Secret"]).ok
        other.draft(f"{fqn}.draft", "1.0.0", packages.package(f"{fqn}.draft"))
    else:
        secret_id = package.id
        stored.store(glance, [package])
    after = answers(secret_id)

    def plain(found: list[Any]) -> str:
        return json.dumps(found).replace(secret_id, "ID").replace(package.id, "ID")

    assert plain(after) == plain(before)
    assert [len(each["packages"]) for each in before[1:4]] == [1, 1, 1]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("owner=a&size=1", "'size' is not a parameter; the parameters are id, name, owner, "),
        ("status=gone", "status: expected drafted or active or deactivated, found 'gone'"),
        ("sort=size", "sort: cannot sort by 'size'; the keys are name, version, display_name, "),
        ("limit=0", "limit: expected a number from 1 to 1000, found '0'"),
        ("limit=1001", "limit: expected a number from 1 to 1000, found '1001'"),
        ("limit=1&limit=2", "limit: expected at most 1 value, found 2"),
        ("marker=1", "marker: '1' is not a marker of a list in the order name:asc,version:desc; "),
        ("version=x1", "version: 'x1' is not a valid range of versions"),
        ("subclass_of=a..b", "subclass_of: 'a..b' is not a valid name"),
        ("distinct=id", "distinct: expected name or version, found 'id'"),
        ("yanked=1", "yanked: expected true or false, found '1'"),
        ("name=%00", "the request has a character that the service cannot store"),
        ("name=%ff", "the URL is not in UTF-8"),
        ("name=" + 9000 * "a", "the query is longer than 8192 characters"),
    ],
)
def test_invalid_parameters_are_named_with_what_is_allowed(
    as_user: Callable[[str], Client], images: ImageClient, query: str, reason: str
) -> None:
    for get in (as_user(images.project).query, images.read):
        refused = refusal(get(f"{PACKAGES}?{query}"), 400)
        assert refused.startswith(reason), refused
    answer = images.read(CATEGORIES, [("status", "gone")])
    assert message(answer).startswith("status: expected drafted or active or deactivated")


def test_a_draft_has_a_name_that_a_package_can_have(images: ImageClient, package_name: str) -> None:
    for name in (f"{package_name}..a", f"{package_name} a", f"{package_name}\u00e9", ""):
        assert "the name of a package is its FullName" in refusal(images.create(name), 403)
    assert images.create(package_name).status_code == 201

    listed = images.read(PACKAGES, [*EVERY, ("owner", images.project)]).json()["packages"]

    assert [(each["name"], each["status"]) for each in listed] == [(package_name, "drafted")]
