# SPDX-License-Identifier: Apache-2.0

"""Lists of packages that some databases take for equal: they ignore case and accents."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests import packages
from tests.functional.client import PACKAGES

# Name -> its versions; the tags, the display name and the category have the case of the name.
NAMES: Mapping[str, tuple[str, ...]] = {
    "a": ("1.0.0", "1.0.0-rc.1"),
    "A": ("1.0.0", "2.0.0"),
    "b": ("1.0.0-alpha-1", "1.0.0-alpha.1"),
    "B": ("1.10.0", "1.9.0"),
    "c_d": ("1.0.0",),
    "cxd": ("1.0.0",),
}
TITLES = {"a": "Wiki", "A": "wiki", "b": "Übung", "B": "Ubung", "c_d": "Cafe", "cxd": "Café"}
# A word -> the packages that have it.
WORDS = {
    "WIKI": {"a", "A"},
    "übung": {"b"},
    "ubung": {"B"},
    "é": {"cxd"},
    "c_d": {"c_d"},
    "%": set(),
}

Get = Callable[[str, list[tuple[str, str]]], Any]


def archives(prefix: str) -> Iterator[tuple[str, str, bytes]]:
    """The packages ``NAMES``: name, version and archive."""
    for name, versions in NAMES.items():
        for version in versions:
            fqn, title = f"{prefix}.{name}", TITLES[name]
            yield fqn, version, packages.package(fqn, version, Name=title, Tags=[title])


def check(get: Get, prefix: str) -> None:
    """Check the lists of the packages ``NAMES``, whose names have a prefix."""

    def listed(**conditions: str) -> list[tuple[str, str]]:
        query = [*{"name": f"{prefix}.*", **conditions}.items()]
        return [
            (each["name"].removeprefix(f"{prefix}."), each["version"])
            for each in _pages(get, query)
        ]

    newest = {"a": "1.0.0", "A": "2.0.0", "b": "1.0.0-alpha-1", "B": "1.10.0"}
    newest |= dict.fromkeys(("c_d", "cxd"), "1.0.0")
    every = sorted((name, version) for name, versions in NAMES.items() for version in versions)
    for sort in ("name", "name:desc,version", "display_name", "version:desc", "created_at,name"):
        for limit in ("1", "3", "100"):
            assert sorted(listed(sort=sort, limit=limit)) == every
            assert dict(listed(sort=sort, limit=limit, distinct="name")) == newest
    ascending = listed(sort="name:asc,version:desc", limit="1")
    assert listed(sort="name:desc,version:asc", limit="2") == ascending[::-1]
    assert [key for key in ascending if key[0] == "b"] == [
        ("b", "1.0.0-alpha-1"),
        ("b", "1.0.0-alpha.1"),
    ]
    for name, title in TITLES.items():
        only = {(name, version) for version in NAMES[name]}
        for found in (
            listed(name=f"{prefix}.{name}"),
            listed(name=f"*{prefix[1:]}.{name}*"),
            listed(tags=title),
            listed(display_name=title),
            listed(class_definitions=f"{prefix}.{name}.Thing"),
        ):
            assert set(found) == only
    for word, expected in WORDS.items():
        assert {name for name, _ in listed(search=word, sort="relevance")} == expected


def _pages(get: Get, query: list[tuple[str, str]]) -> Iterator[Any]:
    answer = get(PACKAGES, query).json()
    while "next" in answer:
        yield from answer["packages"]
        answer = get(answer["next"], []).json()
    yield from answer["packages"]


def check_owner(get: Get, prefix: str) -> None:
    """Check that a project whose name differs in case does not see the packages."""
    if listed := get(PACKAGES, [("name", f"{prefix}.*")]).json()["packages"]:
        pytest.fail(f"a stranger sees {listed[0]}")
