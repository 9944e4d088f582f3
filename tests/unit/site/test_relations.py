# SPDX-License-Identifier: Apache-2.0

"""Who requires whom, and which class extends which."""

from typing import Any

from loader.site.relations import Base, Dependent, Relations, Subclass


def _release(version: str, classes: dict[str, list[str]], **requirements: str) -> dict[str, Any]:
    required = {f"org.{name}": written for name, written in requirements.items()}
    return {
        **{"version": version, "classes": classes, "requirements": required},
    }


DB1 = _release("1.0.0", {"org.db.Db": []})
DB2 = _release("2.0.0", {"org.db.Db": [], "org.db.New": ["org.db.Db"]})
WIKI1 = _release("1.0.0", {"org.wiki.Wiki": []}, db="1")
WIKI2 = _release("1.10.0", {"org.wiki.Wiki": ["org.db.Db"]}, db=">=1")
SHOP = _release("3.0.0", {"org.shop.Shop": ["org.db.Db"]}, db="1", other="2")
FOUND = Relations(
    {
        "org.db": {"1.0.0": DB1, "2.0.0": DB2},
        "org.wiki": {"1.0.0": WIKI1, "1.10.0": WIKI2},
        "org.shop": {"3.0.0": SHOP},
    },
    {"org.db": "2.0.0", "org.wiki": "1.10.0", "org.shop": "3.0.0"},
)


def test_the_newest_version_is_by_number() -> None:
    assert FOUND.newest("org.wiki") == "1.10.0"
    assert FOUND.newest("org.other") is None


def test_a_version_has_all_versions_of_the_packages_that_require_it() -> None:
    assert [*FOUND.dependents("org.db", "1.0.0")] == [
        Dependent("org.shop", ["3.0.0"], "1", []),
        Dependent("org.wiki", ["1.10.0", "1.0.0"], ">=1", ["2.0.0"]),
    ]
    assert [*FOUND.dependents("org.db", "2.0.0")] == [
        Dependent("org.wiki", ["1.10.0"], ">=1", ["1.0.0"])
    ]


def test_a_package_has_all_packages_that_require_any_version() -> None:
    assert [*FOUND.requirers("org.db")] == ["org.shop", "org.wiki"]
    assert [*FOUND.requirers("org.shop")] == []


def test_a_class_is_looked_up_as_the_engine_does_it() -> None:
    assert FOUND.owner(WIKI2, "org.wiki", "org.wiki.Wiki") == ("org.wiki", "1.10.0")
    assert FOUND.owner(WIKI2, "org.wiki", "org.db.Db") == ("org.db", "2.0.0")
    assert FOUND.owner(SHOP, "org.shop", "org.db.Db") == ("org.db", "1.0.0")
    # A class that the required version does not have, and one of a package that is not required.
    assert FOUND.owner(SHOP, "org.shop", "org.db.New") is None
    assert FOUND.owner(DB1, "org.db", "org.wiki.Wiki") is None


def test_base_classes_are_those_of_the_version_that_is_required() -> None:
    assert [*FOUND.bases(WIKI2, "org.wiki", "org.wiki.Wiki")] == [
        Base("org.db.Db", "org.db", "2.0.0")
    ]
    assert [*FOUND.bases(SHOP, "org.shop", "org.shop.Shop")] == [
        Base("org.db.Db", "org.db", "1.0.0")
    ]
    assert [*FOUND.bases(DB1, "org.db", "org.db.Db")] == []


def test_subclasses_are_those_of_the_newest_releases() -> None:
    assert FOUND.subclasses("org.db.Db") == [
        Subclass("org.db.New", "org.db"),
        Subclass("org.shop.Shop", "org.shop"),
        Subclass("org.wiki.Wiki", "org.wiki"),
    ]
