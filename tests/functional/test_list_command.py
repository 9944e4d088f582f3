# SPDX-License-Identifier: Apache-2.0

"""``openstack murano package list``: searches of people."""

import xml.etree.ElementTree
from typing import Any

import pytest

from tests import packages, svg
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


@pytest.fixture(scope="module")
def project() -> str:
    """The project of all tests here."""
    return "listed"


@pytest.fixture(scope="module")
def published(glare_url: str, project: str) -> str:
    """The beginning of the names of two packages, one with three versions."""
    glare = Client(glare_url, f"user:{project}:member")
    start = f"org.{project}"
    for version in ("1.0.0", "1.10.0", "1.9.0"):
        code = f"Name: {start}.db.Thing\n"
        database = packages.package(f"{start}.db", version, code, Tags=["store"])
        glare.publish(f"{start}.db", version, database)
    require = {f"{start}.db": "1"}
    wiki = packages.extending(f"{start}.wiki", f"{start}.db.Thing", Require=require)
    glare.publish(f"{start}.wiki", "1.0.0", wiki)
    return start


def _listed(openstack: OpenStack, *arguments: str) -> list[tuple[str, str]]:
    rows: list[dict[str, Any]] = openstack.json("package", "list", *arguments)
    return [(row["Name"], row["Version"]) for row in rows]


def test_the_newest_version_of_each_package_is_listed(openstack: OpenStack, published: str) -> None:
    both = [(f"{published}.db", "1.10.0"), (f"{published}.wiki", "1.0.0")]
    assert _listed(openstack, f"{published}.*") == both
    versions = _listed(openstack, f"{published}.*", "--all-versions")
    assert [v for _, v in versions] == ["1.10.0", "1.9.0", "1.0.0", "1.0.0"]
    assert _listed(openstack, f"{published}.*", "--sort", "name:desc") == both[::-1]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["{0}.db@<1.10"], [("db", "1.9.0")]),
        (["{0}.db@<1.10", "--all-versions"], [("db", "1.9.0"), ("db", "1.0.0")]),
        (["--class", "{0}.db.Thing"], [("db", "1.10.0")]),
        (["--subclass-of", "{0}.db.Thing"], [("wiki", "1.0.0")]),
        (["--requirement", "{0}.db"], [("wiki", "1.0.0")]),
        (["{0}.*", "--tag", "store"], [("db", "1.10.0")]),
        (["{0}.*", "--type", "Library"], [("db", "1.10.0"), ("wiki", "1.0.0")]),
        (["{0}.*", "--status", "drafted"], []),
        (["{0}.*", "--yanked"], []),
    ],
)
def test_filters(
    openstack: OpenStack, published: str, arguments: list[str], found: list[tuple[str, str]]
) -> None:
    listed = _listed(openstack, *(argument.format(published) for argument in arguments))
    assert listed == [(f"{published}.{name}", version) for name, version in found]


def test_yanked_packages_are_listed_only_on_request(openstack: OpenStack, published: str) -> None:
    openstack.ok("package", "yank", f"{published}.db@1.10.0", "--reason", "loses data")
    assert _listed(openstack, f"{published}.db") == [(f"{published}.db", "1.9.0")]
    assert _listed(openstack, f"{published}.db", "--yanked") == [(f"{published}.db", "1.10.0")]
    openstack.ok("package", "unyank", f"{published}.db@1.10.0")


def test_more_than_a_page_is_listed(
    openstack: OpenStack, published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.catalogs.openstack.PAGE", 2)
    assert len(_listed(openstack, f"{published}.*", "--all-versions")) == 4


@pytest.mark.parametrize("pattern", ["a b", "org.db@", "org.db@x", "a,b"])
def test_an_invalid_pattern_is_misused(openstack: OpenStack, pattern: str) -> None:
    openstack.fails("package", "list", pattern, code=2)


def test_classes_are_listed_with_their_base_classes(openstack: OpenStack, published: str) -> None:
    rows = openstack.json("class", "list", f"{published}.*")
    db, wiki = f"{published}.db", f"{published}.wiki"
    assert rows == [
        {"Class": f"{db}.Thing", "Extends": [], "Package": db, "Version": "1.10.0"},
        {"Class": f"{wiki}.Thing", "Extends": [f"{db}.Thing"], "Package": wiki, "Version": "1.0.0"},
    ]


def test_all_definitions_of_a_class_are_shown(openstack: OpenStack, published: str) -> None:
    rows = openstack.json("class", "show", f"{published}.db.Thing")
    assert [row["Version"] for row in rows] == ["1.10.0", "1.9.0", "1.0.0"]
    openstack.fails("class", "show", f"{published}.db.None", code=3)


@pytest.mark.parametrize("of", ["db", "wiki"])
def test_base_classes_and_subclasses_are_drawn(
    openstack: OpenStack, published: str, of: str
) -> None:
    drawn = openstack.ok("class", "show", f"{published}.{of}.Thing", "-f", "svg").out
    assert svg.forms(drawn) == {
        (f"{published}.db.Thing", f"{published}.db 1.10.0"): "first" if of == "db" else "",
        (f"{published}.wiki.Thing", f"{published}.wiki 1.0.0"): "first" if of == "wiki" else "",
    }
    arrows = svg.arrows(xml.etree.ElementTree.fromstring(drawn))
    assert [[text.text for text in arrow.iter() if text.text] for arrow in arrows] == [
        [f"{published}.wiki.Thing extends {published}.db.Thing", "1"]
    ]
    refused = openstack.fails("class", "show", f"{published}.db.Thing", "-f", "svg", "-c", "Class")
    assert "leave out -c" in refused.err
    openstack.fails("class", "show", f"{published}.db.None", "-f", "svg", code=3)
