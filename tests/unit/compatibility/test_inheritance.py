# SPDX-License-Identifier: Apache-2.0

"""Inherited members and base classes count, also those in required packages."""

import io
import pathlib
from typing import Any

from glare_murano.package import Archive, VersionSpec
from loader import DirectoryCatalog, PackageLoader
from loader.compatibility import Comparison, Requirements, Rule, compare
from loader.compatibility.hierarchy import Hierarchy, RequiredPackages
from loader.compatibility.interface import read_interface
from tests.unit.compatibility.packages import package

BASE = {"FullName": "org.b"}
REQUIRE = {"Require": {"org.b": "1"}}


def _requirements(**versions: io.BytesIO) -> Requirements:
    """The packages of org.b, by the first digit of the range."""
    return lambda fqn, spec: versions.get(f"v{spec.text[:1]}") if fqn == "org.b" else None


def _rules(comparison: Comparison) -> set[Rule]:
    return {change.rule for change in comparison.changes}


def test_a_member_that_moved_to_a_base_class_of_a_required_package_is_not_removed() -> None:
    found = package("Properties: {p: {Contract: $}}\nMethods: {m: {}}", **BASE)
    old = "Extends: other:Thing\nProperties: {p: {Contract: $}}\nMethods: {m: {}}"
    new = "Extends: other:Thing"
    requirements = _requirements(v1=found)

    comparison = compare(package(old, **REQUIRE), package(new, **REQUIRE), requirements)

    assert comparison.changes == ()


def test_without_the_required_package_the_member_counts_as_removed_and_the_package_is_named() -> (
    None
):
    old = "Extends: other:Thing\nMethods: {m: {}}"

    comparison = compare(package(old, **REQUIRE), package("Extends: other:Thing", **REQUIRE))

    assert _rules(comparison) == {Rule.METHOD_REMOVED}
    assert "package org.b 1: no package was given for it" in comparison.unseen
    assert "org.b 1" in comparison.report()


def test_a_method_that_overrides_an_inherited_one_is_compared_with_it() -> None:
    found = package("Methods: {m: {Arguments: [a: {Contract: $}]}}", **BASE)
    new = "Extends: other:Thing\nMethods: {m: {Arguments: [a: {Contract: $.int()}]}}"

    comparison = compare(
        package("Extends: other:Thing", **REQUIRE),
        package(new, **REQUIRE),
        _requirements(v1=found),
    )

    assert _rules(comparison) == {Rule.ARGUMENT_NARROWED}


def test_what_another_version_of_a_required_package_lacks_is_removed_once() -> None:
    one = package("Methods: {m: {}}", Version="1.0.0", **BASE)
    two = package("Methods: {n: {}}", Version="2.0.0", **BASE)
    classes = "Extends: other:Thing\n---\nName: Sub\nExtends: Thing"
    requirements = _requirements(v1=one, v2=two)

    comparison = compare(
        package(classes, Require={"org.b": "1"}),
        package(classes, Require={"org.b": "2"}),
        requirements,
    )

    removed = [change for change in comparison.changes if change.rule is Rule.METHOD_REMOVED]
    assert [change.class_name for change in removed] == ["org.a.Thing"]
    assert "inherited from org.b.Thing of org.b 1.0.0" in removed[0].message
    assert (removed[0].file, removed[0].line) == ("Classes/all.yaml", 2)


def test_the_members_of_all_versions_of_a_base_class_are_inherited() -> None:
    one = package("Methods: {m: {}}", Version="1.0.0", **BASE)
    two = package("Methods: {n: {}}", Version="2.0.0", **BASE)
    first, second = (
        package("Extends: other:Thing", FullName=fqn, Require={"org.b": number})
        for fqn, number in (("org.c", "1"), ("org.d", "2"))
    )
    found = {"org.c": first, "org.d": second}
    required = {"Require": {"org.c": "1", "org.d": "1"}}
    extends = "Extends: [org.c.Thing, org.d.Thing]"

    comparison = compare(
        package(f"{extends}\nMethods: {{m: {{}}, n: {{}}}}", **required),
        package(extends, **required),
        lambda fqn, spec: found.get(fqn) or _requirements(v1=one, v2=two)(fqn, spec),
    )

    assert comparison.changes == ()


def test_a_base_class_in_a_required_older_version_of_the_package_is_found() -> None:
    older = package("---\nName: Old\nMethods: {m: {}}", Version="1.0.0")
    required = {"Version": "2.0.0", "Require": {"org.a": "1"}}

    def compared(**keys: Any) -> Comparison:
        old = package("Extends: Old\nMethods: {m: {}}", **keys)
        new = package("Extends: Old", **{**keys, "Version": "2.0.1"})
        return compare(old, new, lambda fqn, spec: older if fqn == "org.a" else None)

    assert compared(**required).changes == ()
    # Without the requirement, the engine does not search the other version.
    assert _rules(compared(Version="2.0.0")) == {Rule.METHOD_REMOVED}


def test_a_range_with_the_same_package_changes_no_inherited_member() -> None:
    one = package("Methods: {m: {}}", **BASE)
    requirements = _requirements(v1=one)

    comparison = compare(
        package("Extends: other:Thing", Require={"org.b": "1"}),
        package("Extends: other:Thing", Require={"org.b": "1.0"}),
        requirements,
    )

    assert _rules(comparison) == {Rule.REQUIREMENT_CHANGED}


def test_a_contract_may_widen_to_a_base_class_in_a_required_package() -> None:
    found = package("---\nName: Sub\nExtends: Thing", **BASE)
    old, new = (
        f"Properties: {{p: {{Contract: $.class(other:{name})}}}}" for name in ("Sub", "Thing")
    )
    requirements = _requirements(v1=found)

    wider = compare(package(old, **REQUIRE), package(new, **REQUIRE), requirements)
    narrower = compare(package(new, **REQUIRE), package(old, **REQUIRE), requirements)
    unknown = compare(package(old, **REQUIRE), package(new, **REQUIRE))

    assert _rules(wider) == {Rule.PROPERTY_WIDENED}
    assert _rules(narrower) == {Rule.PROPERTY_NARROWED}
    assert _rules(unknown) == {Rule.CONTRACT_UNKNOWN}


def test_a_base_class_of_a_base_class_is_found_in_its_own_requirements() -> None:
    far = package("Methods: {m: {}}", FullName="org.c")
    near = package("Extends: org.c.Thing", Require={"org.c": "1"}, **BASE)
    old = "Extends: other:Thing\nMethods: {m: {}}"

    comparison = compare(
        package(old, **REQUIRE),
        package("Extends: other:Thing", **REQUIRE),
        lambda fqn, spec: {"org.b": near, "org.c": far}.get(fqn),
    )

    assert comparison.changes == ()


def test_a_change_of_a_base_class_is_reported_for_the_base_class_only() -> None:
    old = "Extends: Base\n---\nName: Base\nMethods: {m: {}}\nProperties: {p: {Contract: $}}"
    new = "Extends: Base\n---\nName: Base\nProperties: {p: {Contract: $.notNull()}, q: {}}"

    comparison = compare(package(old), package(new))

    assert {change.class_name for change in comparison.changes} == {"org.a.Base"}
    assert len(comparison.changes) == 3


def test_a_lost_base_class_counts_once_for_all_its_members() -> None:
    old = "Extends: Base\n---\nName: Base\nMethods: {m: {}, n: {}}\nProperties: {p: {}}"
    new = "---\nName: Base\nMethods: {m: {}, n: {}}\nProperties: {p: {}}"

    assert [each.rule for each in compare(package(old), package(new)).changes] == [
        Rule.BASE_REMOVED
    ]


def test_a_base_class_that_a_base_class_lost_counts_once() -> None:
    classes = "Extends: Middle\n---\nName: Middle\n{}\n---\nName: Base"

    comparison = compare(package(classes.format("Extends: Base")), package(classes.format("")))

    assert [(each.rule, each.class_name) for each in comparison.changes] == [
        (Rule.BASE_REMOVED, "org.a.Middle")
    ]


def test_a_new_base_class_with_a_required_property_breaks_users() -> None:
    base = "\n---\nName: Base\nProperties: {p: {Contract: $.notNull()}, q: {Contract: $}}"

    comparison = compare(package(base), package(f"Extends: Base{base}"))

    assert _rules(comparison) == {Rule.PROPERTY_REQUIRED, Rule.EXTENDS_CHANGED}


def test_an_argument_of_initialize_may_become_a_property() -> None:
    old = "Methods: {initialize: {Arguments: [a: {Contract: $.int()}]}}"

    same = compare(package(old), package("Properties: {a: {Contract: $.int()}}"))
    narrower = compare(package(old), package("Properties: {a: {Contract: $.notNull()}}"))

    assert _rules(same) == {Rule.PROPERTY_ADDED}
    assert Rule.ARGUMENT_NARROWED in _rules(narrower)


def test_a_property_that_initialize_takes_instead_is_not_required() -> None:
    argument = "Methods: {initialize: {Arguments: [a: {Contract: $}]}}"
    new = f"{argument}\nProperties: {{a: {{Contract: $.notNull()}}}}"

    assert _rules(compare(package(argument), package(new))) == {Rule.PROPERTY_ADDED}


def test_a_far_base_class_is_not_lost_if_the_nearer_one_was_not_read() -> None:
    far = package("", FullName="org.c")
    near = package("Extends: org.c.Thing", Require={"org.c": "1"}, **BASE)
    versions = {("org.b", "1"): near, ("org.c", "1"): far}

    comparison = compare(
        package("Extends: other:Thing", Require={"org.b": "1"}),
        package("Extends: other:Thing", Require={"org.b": "1.5"}),
        lambda fqn, spec: versions.get((fqn, spec.text)),
    )

    assert _rules(comparison) == {Rule.REQUIREMENT_CHANGED}
    assert any("org.b 1.5" in each for each in comparison.unseen)


def test_the_package_itself_is_not_looked_for() -> None:
    asked = []
    classes = "Extends: Missing"

    compare(package(classes), package(classes), lambda fqn, spec: asked.append(fqn))

    assert set(asked) == {"io.murano"}


def test_classes_that_extend_each_other_in_a_circle_are_compared() -> None:
    classes = "Extends: Other\n---\nName: Other\nExtends: Thing\nMethods: {m: {}}"

    assert compare(package(classes), package(classes)).changes == ()


def test_a_long_chain_of_classes_takes_little_memory_for_each_member() -> None:
    classes = "\n---\n".join(
        f"Name: C{number}\nExtends: C{max(number - 1, 0)}\nMethods: {{m{number}: {{}}}}"
        for number in range(50)
    )
    hierarchy = Hierarchy(read_interface(package(classes)), RequiredPackages(None))

    seen = {
        id(member)
        for number in range(50)
        for member in hierarchy.members(f"org.a.C{number}", "methods").values()
    }

    assert len(hierarchy.members("org.a.C49", "methods")) == 50
    assert len(seen) == 50


def test_the_loader_finds_the_required_packages(tmp_path: pathlib.Path) -> None:
    (tmp_path / "packages").mkdir()
    with Archive.open(package("Methods: {m: {}}", **BASE)) as archive:
        archive.unpack(tmp_path / "packages" / "b")
    old = package("Extends: other:Thing\nMethods: {m: {}}", Require={"org.b": "1"})
    new = package("Extends: other:Thing", Require={"org.b": "1", "org.c": "1"})
    catalog = DirectoryCatalog(tmp_path / "packages")
    with PackageLoader(catalog, tmp_path / "cache") as packages:

        def find(fqn: str, spec: VersionSpec) -> str:
            return packages.load(fqn, spec).source_directory

        found = compare(old, new, find)
        missing = compare(package(""), package("Extends: org.c.Thing", Require={"org.c": 1}), find)

    assert found.changes == ()
    assert found.unseen == ()
    assert any("org.c in the range 1 was not found" in each for each in missing.unseen)
