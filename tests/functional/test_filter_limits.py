# SPDX-License-Identifier: Apache-2.0

"""Every filter of ``doc/source/reference/artifact.rst`` in the real Glare."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oslo_config import cfg

from glare_murano import fields
from glare_murano.package import VersionSpec, parse_version
from tests import packages
from tests.functional.client import ARTIFACTS, Client, Wire, refusal

Query = list[tuple[str, str]]

DB = "org.found.db"
WIKI = "org.found.wiki"
SHOP = "org.found.shop"
DRAFT = "org.found.draft"
OTHERS = "org.found.others"
HIDDEN = "org.found.hidden"
_CHECKS = ("check_requirements", "check_public_requirements")


@pytest.fixture(scope="module")
def reader(glare_url: str) -> Iterator[Client]:
    """A member of a project with a catalogue, which other projects add to."""
    reader = Client(glare_url, "user:found:member")
    admin = Client(glare_url, "admin:other:admin")
    # No package defines their base class.
    for option in _CHECKS:
        cfg.CONF.set_override(option, "off", f"artifact_type:{fields.TYPE_NAME}")
    for version in ("1.0.0", "1.2.0", "2.0.0-rc.1"):
        reader.publish(DB, version, _package(DB, version, Tags=["store", "sql"], Name="Base"))
    wiki = reader.publish(WIKI, "1.0.0", _package(WIKI, Require={DB: "1"}, Type="Application"))
    reader.set(wiki["id"], "categories", ["Web", "Text, rich"])
    reader.publish(SHOP, "1.0.0", _shop())
    assert reader.create(DRAFT, metadata={"stage": "idea"}).status_code == 201
    others = admin.publish(OTHERS, "1.0.0", _package(OTHERS), public=True)
    admin.publish(HIDDEN, "1.0.0", _package(HIDDEN))
    for option in _CHECKS:
        cfg.CONF.clear_override(option, f"artifact_type:{fields.TYPE_NAME}")
    yield reader
    # Other tests would see it.
    admin.delete(others["id"])


def _shop() -> bytes:
    supplier = {"Name": "A Supplier"}
    return _package(SHOP, Author="Alice", Tags=["web", "sql"], Supplier=supplier)


def _package(name: str, version: str = "1.0.0", **keys: Any) -> bytes:
    content = packages.content(name, version, **{"Name": "Thing", **keys})
    content["Classes/Thing.yaml"] += f"Extends: {name.rsplit('.', 1)[0]}.Base\n".encode()
    return packages.zipped(content)


def _found(client: Client, query: Query) -> list[str]:
    """What is found, in order, the core library aside."""
    answer = client.request("GET", "", params=[*query, ("limit", "100")])
    assert answer.status_code == 200, answer.text
    found = [f"{one['name']} {one['version']}" for one in answer.json()["artifacts"]]
    total = answer.json()["total_count"]
    assert total == len(found)
    return [one.removeprefix("org.found.") for one in found if not one.startswith("io.murano")]


DBS = ["db 1.0.0", "db 1.2.0", "db 2.0.0-rc.1"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("name=org.found.wiki", ["wiki 1.0.0"]),
        ("name=org.found", []),
        ("name=like:org.found.d%", [*DBS, "draft 1.0.0"]),
        ("name=like:org.lost%", []),
        ("name=in:org.found.shop,org.found.wiki", ["shop 1.0.0", "wiki 1.0.0"]),
        ("name=in:org.lost.a,org.lost.b", []),
        ("name=like:org.found%&name=neq:org.found.db&type=Library", ["others 1.0.0", "shop 1.0.0"]),
        ("version=gte:1.1&version=lt:2.0.0-0", ["db 1.2.0"]),
        ("version=gte:1.1", ["db 1.2.0", "db 2.0.0-rc.1"]),
        ("version=gt:3", []),
        ("name=org.found.db&version=in:1.0.0,1.2", ["db 1.0.0", "db 1.2.0"]),
        ("name=org.found.db&version=latest", ["db 2.0.0-rc.1"]),
        ("name=org.found.db&version=stable", ["db 1.0.0", "db 1.2.0"]),
        ("name=org.found.db&version=stable&version=gte:1.1", ["db 1.2.0"]),
        ("name=org.found.db&version=stable&version=latest", ["db 1.2.0"]),
        ("name=org.lost&version=latest", []),
        ("class_definitions=org.found.wiki.Thing", ["wiki 1.0.0"]),
        ("class_definitions=org.found.wiki", []),
        (
            "class_definitions=in:org.found.wiki.Thing,org.found.shop.Thing",
            ["shop 1.0.0", "wiki 1.0.0"],
        ),
        ("inherits=org.found.Base", [*DBS, "others 1.0.0", "shop 1.0.0", "wiki 1.0.0"]),
        ("inherits=io.murano.Application", []),
        # Not the package itself, which requires itself.
        ("requirements=org.found.db", ["wiki 1.0.0"]),
        ("requirements=in:org.found.db,org.found.wiki", ["wiki 1.0.0"]),
        ("requirements=org.found.db&requirements=io.murano", ["wiki 1.0.0"]),
        ("requirements=or:org.found.db&keywords=or:web", ["shop 1.0.0", "wiki 1.0.0"]),
        ("requirements=io.murano&keywords=web&tags=sql", ["shop 1.0.0"]),
        ("requirements=org.found.db&type=Application", ["wiki 1.0.0"]),
        ("requirements=org.found.wiki&type=Library", []),
        ("tags=store", DBS),
        ("tags=web,sql", ["shop 1.0.0"]),
        ("tags=web,store", []),
        ("tags-any=web,store", [*DBS, "shop 1.0.0"]),
        ("tags-any=lost,found", []),
        ("categories=Web", ["wiki 1.0.0"]),
        ('categories=in:"Text, rich",Lost', ["wiki 1.0.0"]),
        ("categories=Lost", []),
        ("keywords=base", DBS),
        ("keywords=web", ["shop 1.0.0"]),
        ("keywords=lost", []),
        ("keywords=or:web&keywords=or:store", [*DBS, "shop 1.0.0"]),
        ("type=Application", ["wiki 1.0.0"]),
        ("type=Library&tags=web", ["shop 1.0.0"]),
        ("type=Theme", []),
        ("owner=found&type=Application", ["wiki 1.0.0"]),
        ("owner=other", ["others 1.0.0"]),
        ("owner=nobody", []),
        ("visibility=public&name=like:org.found%", ["others 1.0.0"]),
        ("visibility=private&type=Application", ["wiki 1.0.0"]),
        ("visibility=public&type=Application", []),
        ("status=drafted", ["draft 1.0.0"]),
        ("status=active&tags=web", ["shop 1.0.0"]),
        ("status=deactivated", []),
        ("display_name=Base", DBS),
        ("display_name=Lost", []),
        ("author=Alice", ["shop 1.0.0"]),
        ("author=Mallory", []),
        ("format=MuranoPL/1.4.0&tags=web", ["shop 1.0.0"]),
        ("format=MuranoPL/1.0.0", []),
        ("supplier=Name", ["shop 1.0.0"]),
        ("supplier=Lost", []),
        ("metadata=stage", ["draft 1.0.0"]),
        ("metadata=lost", []),
        ("metadata.stage=idea", ["draft 1.0.0"]),
        ("metadata.stage=lost", []),
        ("created_at=gt:2020-01-01T00:00:00Z&tags=web", ["shop 1.0.0"]),
        ("created_at=lt:2020-01-01T00:00:00Z", []),
        ("name=like:org.found%&sort=name:asc&owner=neq:found", ["others 1.0.0"]),
    ],
)
def test_a_filter_finds_what_it_says(reader: Client, query: str, found: list[str]) -> None:
    # Other tests leave public packages.
    pairs = [
        ("name", "like:org.found.%"),
        *(tuple(part.split("=", 1)) for part in query.split("&")),
    ]
    assert sorted(_found(reader, pairs)) == found  # type: ignore[arg-type]


# Range -> the filters in the documentation.
RANGES: dict[str, list[str]] = {
    "1": ["gte:1.0.0", "lt:2.0.0-0"],
    "1.2": ["gte:1.2.0", "lt:1.3.0-0"],
    "1.2.3": ["gte:1.2.3", "lte:1.2.3"],
    "==1.2.3": ["gte:1.2.3", "lte:1.2.3"],
    "==1.2": ["gte:1.2.0", "lt:1.3.0-0"],
    ">=1.2.3": ["gte:1.2.3"],
    ">=1.2": ["gte:1.2.0"],
    ">1.2.3": ["gt:1.2.3"],
    ">1.2": ["gte:1.3.0"],
    "<1.2.3": ["lt:1.2.3-0"],
    "<2": ["lt:2.0.0-0"],
    "<=1.2.3": ["lte:1.2.3"],
    "<=1.2": ["lt:1.3.0-0"],
    ">=1.2,<2": ["gte:1.2.0", "lt:2.0.0-0"],
    ">=1.2.0-rc.1,<1.2.3-rc.2": ["gte:1.2.0-rc.1", "lt:1.2.3-rc.2"],
    "<=1.2.3-rc.1": ["lte:1.2.3-rc.1"],
    "1.2.3-rc.1": ["gte:1.2.3-rc.1", "lte:1.2.3-rc.1"],
    "*": [],
}

# fmt: off
VERSIONS = [
    "0.9.0", "1.0.0-0", "1.0.0-alpha", "1.0.0", "1.0.1-rc.1", "1.0.1", "1.2.0-rc.1", "1.2.0",
    "1.2.3-0", "1.2.3-rc.1", "1.2.3-rc.2", "1.2.3-rc.10", "1.2.3", "1.2.3+build", "1.2.4-0",
    "1.2.4", "1.3.0-0", "1.3.0-rc.1", "1.3.0", "1.10.0", "2.0.0-0", "2.0.0-rc.1", "2.0.0", "2.1.0",
]
# fmt: on


def test_what_is_deactivated_is_found_by_its_status(
    glare: Client, admin: Client, name: str
) -> None:
    artifact = glare.publish(name, "1.0.0", packages.package(name))
    assert admin.set(artifact["id"], "status", "deactivated").status_code == 200

    assert glare.names(name=name, status="deactivated") == [(name, "1.0.0")]
    assert glare.names(name=name, status="active") == []


@pytest.fixture(scope="module")
def versions(reader: Client) -> list[str]:
    for version in VERSIONS:
        assert reader.create("org.found.versions", version).status_code == 201
    return VERSIONS


@pytest.mark.parametrize("text", RANGES)
def test_the_filters_of_a_range_find_what_is_in_it(
    reader: Client, versions: list[str], text: str
) -> None:
    spec = VersionSpec.of(text)
    expected = {version for version in versions if spec.match(parse_version(version))}

    query = [("name", "org.found.versions"), *(("version", bound) for bound in RANGES[text])]

    assert {found.split()[1] for found in _found(reader, query)} == expected


def test_an_exact_version_is_without_build_metadata(reader: Client, versions: list[str]) -> None:
    name = ("name", "org.found.versions")

    assert _found(reader, [name, ("version", "1.2.3")]) == ["versions 1.2.3"]
    assert _found(reader, [name, ("version", "1.2.3+build")]) == ["versions 1.2.3+build"]


def test_a_version_that_is_left_out_leaves_the_others_of_its_number(
    reader: Client, versions: list[str]
) -> None:
    """The range ``!=1.2.3`` leaves out more."""
    query = [("name", "org.found.versions"), ("version", "neq:1.2.3")]

    left = {found.split()[1] for found in _found(reader, query)}

    assert left == set(versions) - {"1.2.3"}
    assert not VersionSpec.of("!=1.2.3").match(parse_version("1.2.3-rc.1"))


def test_versions_are_sorted_as_semver_sorts_them(reader: Client, versions: list[str]) -> None:
    found = _found(reader, [("name", "org.found.versions"), ("sort", "version:asc")])

    listed = [parse_version(one.split()[1]) for one in found]
    assert listed == sorted(listed)


@pytest.mark.parametrize("order", ["name:asc,version:desc", "version:asc", "created_at:desc"])
@pytest.mark.usefixtures("versions")
def test_the_link_next_leads_to_all_pages_of_both_bounds(reader: Client, order: str) -> None:
    query = [("name", "org.found.versions"), ("version", "gte:1.0.0"), ("version", "lt:1.3.0-0")]
    query.append(("sort", order))
    whole = _found(reader, query)

    paged: list[str] = []
    answer = reader.request("GET", "", params=[*query, ("limit", "4")]).json()
    while True:
        paged += [f"versions {one['version']}" for one in answer["artifacts"]]
        if "next" not in answer:
            break
        answer = reader.request("GET", answer["next"].removeprefix(ARTIFACTS)).json()

    assert len(whole) > 8
    assert paged == whole


def test_the_newest_stable_active_version_is_found(glare: Client, name: str) -> None:
    for version in ("1.9.0", "1.10.0", "1.11.0-rc.1"):
        glare.publish(name, version, packages.package(name, version))
    glare.create(name, "1.12.0")
    query = [("name", name), ("version", "latest")]

    def found(*more: tuple[str, str]) -> list[str]:
        return [one.removeprefix(f"{name} ") for one in _found(glare, [*query, *more])]

    assert found() == ["1.12.0"]
    assert found(("status", "active")) == ["1.11.0-rc.1"]
    assert found(("status", "active"), ("version", "stable")) == ["1.10.0"]


def test_a_marker_that_is_none_is_refused(reader: Client) -> None:
    assert "nothing" in refusal(reader.request("GET", "?marker=nothing"), 404)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("nonsense=1", "nonsense"),
        ("version=gte:abc", "'abc' is not a valid version"),
        ("version=1.2.3.4", "'1.2.3.4' is not a valid version"),
        ("version=like:1%25", "Unsupported filter type 'like'"),
        ("status=open", "drafted, active"),
        ("inherits=neq:a", "eq, in"),
        ("inherits.io.murano.Object=a", "inherits.io.murano is not Dict"),
        ("description=a", "Unsupported filter type"),
        ("archive=a", "Unsupported filter type"),
        ('name=in:"a', "quote"),
        ("tags=gt:a", "without operator"),
        ("sort=tags", "tags"),
        ("sort=name:up", "direction"),
        ("sort=name,created_at,name:asc", "sort names a field twice"),
        ("limit=-1", "Limit"),
        ("limit=many", "Limit"),
        ("created_at=gt:yesterday", "yesterday"),
    ],
)
def test_a_filter_that_is_none_is_refused_in_plain_words(
    reader: Client, query: str, words: str
) -> None:
    assert words in refusal(reader.request("GET", f"?{query}"), 400)


def test_pages_are_not_sorted_by_what_drafts_lack(reader: Client) -> None:
    marker = reader.request("GET", "").json()["artifacts"][0]["id"]

    refused = refusal(reader.request("GET", f"?sort=activated_at&marker={marker}"), 400)

    assert "activated_at, which drafts lack" in refused
    assert reader.request("GET", "?sort=activated_at").status_code == 200


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("&".join(["name=a"] * 301), "more than 300 values"),
        (f"version=in:{','.join(['1'] * 301)}", "more than 300 values"),
        ("&".join(["keywords=a"] * 21), "more than 20 filters"),
        (f"tags={','.join('abcdefghijklmnopqrstu')}", "more than 20 filters"),
        ("keywords=neq:a&keywords=neq:b", "too many combinations"),
        ("keywords=neq:a&tags-any=a,b", "too many combinations"),
        ("keywords=or:a&categories=neq:b", "too many combinations"),
        ("tags=or:a,b", "too many combinations"),
        ("tags-any=or:a&tags-any=or:b", "too many combinations"),
        ("keywords=neq:a&keywords=neq:b&keywords=in:", "too many combinations"),
        ("&".join([f"keywords=in:{','.join('abcdefghij')}"] * 4), "too many combinations"),
        ("&".join([f"metadata=in:{','.join('abcdefghij')}"] * 4), "too many combinations"),
        ("&".join([f"inherits=in:{','.join('abcdefghij')}"] * 4), "too many combinations"),
        (f"supplier=in:{','.join(['a'] * 301)}", "more than 300 values"),
    ],
)
def test_filters_that_are_too_much_for_a_database_are_refused(
    wire: Wire, query: str, words: str
) -> None:
    assert words in refusal(wire.send("GET", f"/artifacts/murano?{query}"), 400)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("&".join(["name=a"] * 301), "more than 300 values"),
        ("&".join([f"metadata.k{number}=a" for number in range(21)]), "more than 20 filters"),
        ("&".join([f"metadata=in:{','.join('abcdefghij')}"] * 4), "too many combinations"),
        # For a package with 60 tags, the database would join a row for each pair of them.
        ("name=or:a&tags=or:a,b", "too many combinations"),
        ("sort=name,created_at,name:asc", "sort names a field twice"),
        ("sort=activated_at&marker=x", "activated_at, which drafts lack"),
    ],
)
def test_lists_of_all_types_have_the_same_limits(wire: Wire, query: str, words: str) -> None:
    assert words in refusal(wire.send("GET", f"/artifacts/all?{query}"), 400)


@pytest.mark.parametrize("artifact_type", ["murano", "all"])
@pytest.mark.parametrize("operator", ["", "neq:", "gt:", "lte:", "in:1.0.0,"])
@pytest.mark.parametrize(
    "version", ["32768.0.0", "1.65536.0", "99999999999999999999", "1.0.0-999999999"]
)
def test_filters_by_versions_that_no_artifact_can_have_are_refused(
    wire: Wire, artifact_type: str, operator: str, version: str
) -> None:
    answer = wire.send("GET", f"/artifacts/{artifact_type}?version={operator}{version}")

    assert "services store a first number up to 32767" in refusal(answer, 400)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("name=like:org.found.%25&type_name=murano&metadata=stage", [(DRAFT, "1.0.0")]),
        ("name=like:org.found.%25&metadata.stage=idea", [(DRAFT, "1.0.0")]),
        ("name=like:org.found.%25&metadata.stage=lost", []),
        ("name=org.found.db&tags=store,sql&version=latest", [(DB, "2.0.0-rc.1")]),
        ("version=or:in:", []),
        # As Glare reads it: artifacts of other types may have such a version.
        ("name=org.found.db&version=gte:1.2.0.0", [(DB, "2.0.0-rc.1"), (DB, "1.2.0")]),
        ("name=org.found.db&version=lt:32767.65535.65535&version=gt:1.2", [(DB, "2.0.0-rc.1")]),
        ("type_name=images", []),
    ],
)
def test_a_filter_of_all_types_finds_what_it_says(
    reader: Client, query: str, found: list[tuple[str, str]]
) -> None:
    answer = Client(reader.url, reader.token, "all").request("GET", f"?{query}")
    assert answer.status_code == 200, answer.text
    assert [(one["name"], one["version"]) for one in answer.json()["artifacts"]] == found


@pytest.mark.parametrize(
    "query",
    [
        "&".join(["name=a"] * 299),
        f"version=in:{','.join(['1'] * 299)}",
        "&".join(["keywords=a"] * 20),
        "&".join(["keywords=a", "class_definitions=a", "requirements=a", "tags=a,b"] * 4),
        "keywords=neq:a&type=neq:a&author=neq:a&supplier.Name=neq:a",
        "&".join([f"metadata=in:{','.join('abcdefghij')}"] * 3),
        "&".join(["supplier.Name=in:a,b,c,d,e", "inherits=a"] * 7),
        "&".join(["keywords=or:a", "categories=or:a", "type=or:a"] * 5),
        f"tags-any={','.join('abcdefghij' * 20)}&version=latest",
        f"name=like:{'%25a' * 70}",
    ],
)
def test_filters_that_a_database_can_bear_are_answered(
    reader: Client, wire: Wire, name: str, query: str
) -> None:
    """With a package among those looked at that has much in its lists."""
    many = [f"k{number}" for number in range(400)]
    created = reader.create(name, keywords=many, categories=many)
    try:
        assert wire.send("GET", f"/artifacts/murano?{query}").status_code == 200
        assert reader.request("GET", f"?{query}").status_code == 200
    finally:
        reader.delete(created.json()["id"])


def test_a_list_keeps_each_element_once(glare: Client, name: str) -> None:
    """So that a filter finds one of them at most."""
    created = glare.create(name, categories=["b", "a", "b"]).json()
    assert created["categories"] == ["b", "a"]

    changed = glare.set(created["id"], "categories", ["c", "c", "a"]).json()
    assert changed["categories"] == ["c", "a"]
    assert glare.names(categories="c") == [(name, "1.0.0")]


def test_of_others_only_public_packages_are_found(
    reader: Client, as_user: Callable[[str], Client]
) -> None:
    assert _found(reader, [("name", HIDDEN)]) == []
    assert _found(as_user("strangers"), [("name", "like:org.found%")]) == ["others 1.0.0"]


@pytest.mark.parametrize("prefix", ["in:", "or:in:", "and:in:"])
def test_an_empty_list_of_versions_contains_no_version(reader: Client, prefix: str) -> None:
    assert reader.names(version=prefix) == []
    assert reader.names(version=f"{prefix}1.0.0")
