# SPDX-License-Identifier: Apache-2.0

"""The door: places, order, reports, errors, and what the manifest changes."""

import io
import pathlib
import re
import subprocess
import sys
import unicodedata

import pytest

from glare_murano.package import (
    Archive,
    Contents,
    InvalidPackage,
    Version,
    VersionSpec,
    read_manifest,
)
from glare_murano.package.classes import ClassDefinition
from loader.compatibility import Change, DifferentPackages, Part, Place, Rule, compare
from tests import packages
from tests.unit.compatibility.packages import package

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "packages"


def _rules(old: io.BytesIO, new: io.BytesIO) -> list[Rule]:
    return [change.rule for change in compare(old, new).changes]


def test_a_change_has_its_place_in_the_new_version_or_in_the_old_one_if_removed() -> None:
    old = package("Properties:\n  gone:\n    Contract: $\n  kept:\n    Contract: $\n")
    new = package("# a comment\nProperties:\n  kept:\n    Contract: $.int()\n")

    removed, narrowed = compare(old, new).changes

    assert narrowed == Change(
        Rule.PROPERTY_NARROWED,
        "org.a.Thing",
        "kept",
        "the contract of property kept was changed from $ to $.int(), "
        "which does not accept all previous values",
        Place("Classes/all.yaml", 5),
    )
    assert removed.place == Place("Classes/all.yaml", 4, is_old=True)
    assert (removed.file, removed.line, removed.part) == ("Classes/all.yaml", 4, Part.MAJOR)
    assert "line 4 of the old version" in str(removed)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [("1.0.0", "1.2.0", "minor"), ("1.2.0", "1.3.0", "minor"), ("1.3.0", "2.0.0", "major")],
)
def test_the_example_packages_follow_the_rules(old: str, new: str, part: str) -> None:
    root = EXAMPLES / "org.example.db"

    comparison = compare(root / old, root / new)

    assert str(comparison.part) == part
    assert comparison.verdict.is_enough
    assert comparison.unseen == ()


def test_a_report_lists_changes_by_part_and_ends_with_the_verdict() -> None:
    old = package("Methods: {m: {}}\nProperties: {p: {Contract: $.int()}}", Version="1.2.0")
    new = package("Methods: {n: {}}\nProperties: {p: {Contract: $}}", Version="1.3.0")

    lines = compare(old, new).report().splitlines()

    assert lines[0] == "org.a 1.2.0 -> 1.3.0: major"
    assert [line for line in lines if not line.startswith(" ")][1:3] == ["major:", "minor:"]
    assert lines[-1] == (
        "version 1.3.0 is not enough: after 1.2.0, the changes need a new major version; "
        "use 2.0.0 or newer"
    )
    assert any(line.endswith("[method-removed]") for line in lines)


def test_the_required_version_after_any_other_version() -> None:
    comparison = compare(package("", Version="0.0.0"), package("Methods: {m: {}}"))

    assert comparison.part is Part.MINOR
    assert comparison.required_version(Version("3.1.4")) == Version("3.2.0")


def test_control_characters_of_a_package_do_not_reach_a_terminal() -> None:
    name = '"m\\u001b[31m"'

    report = compare(package(f"Methods: {{{name}: {{}}}}"), package("")).report()

    assert "method-removed" in report
    assert all(unicodedata.category(each) != "Cc" for each in report.replace("\n", ""))


def test_two_packages_are_not_compared() -> None:
    with pytest.raises(DifferentPackages, match=r"org\.a 1\.0\.0 and org\.b 1\.0\.0 are different"):
        compare(package(""), package("", FullName="org.b"))


def test_a_package_that_breaks_a_rule_is_refused() -> None:
    content = packages.content("org.a", code="Name: [")

    with pytest.raises(InvalidPackage, match="yaml-syntax"):
        compare(package(""), io.BytesIO(packages.zipped(content)))


@pytest.mark.parametrize(
    "classes",
    [
        "Methods: 1\nProperties: []",
        "Methods: {m: 1, n: [], [a]: {}}",
        "Methods: {m: {Arguments: 1, Usage: [], Scope: {}}}",
        "Methods: {m: {Arguments: [1, [], {a: 1, b: {}}, {c: }]}}",
        "Properties: {p: , q: 1, r: [], s: {Contract: {<<: 1, a: $}}}",
        "Properties: {p: {Contract: {$: $, $.int(): $}}, q: {Contract: [1, 2, 3]}}",
        "Properties: {p: {Contract: [], Default: {[a]: b}}}",
        "Usage: Meta\nApplies: {}\nCardinality: []\nInherited: 3",
        "Meta: [[], {a: {}}, 1]\nProperties: {p: {Meta: {'b:c:d': {}}}}",
    ],
)
def test_what_the_engine_refuses_is_compared_without_an_error(classes: str) -> None:
    odd, plain = package(classes), package("Properties: {p: {Contract: $.int()}}")

    assert compare(odd, odd).changes == ()
    assert compare(odd, plain).report()
    assert compare(plain, odd).report()


def test_merged_keys_count() -> None:
    old = package("x: &x {Contract: $.int(), Default: 1}\nProperties: {p: {<<: *x}}")

    assert _rules(old, package("Properties: {p: {Contract: $.int(), Default: 1}}")) == []


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        ({"Type": "Application"}, {"Type": "Library"}, [Rule.APPLICATION_REMOVED]),
        ({"Type": "Library"}, {"Type": "Application"}, []),
        ({"Format": "1.3"}, {"Format": "1.4"}, [Rule.FORMAT_CHANGED]),
        ({"Format": "1.0"}, {"Format": "MuranoPL/1"}, []),
        ({"Meta": {"org.a.M": {"a": 1}}}, {"Meta": {"org.a.M": {"a": 2}}}, [Rule.METADATA_CHANGED]),
        ({"Meta": {"org.a.M": {}, "org.a.N": {}}}, {"Meta": {"org.a.N": {}, "org.a.M": {}}}, []),
        ({"Description": "a", "Tags": ["a"], "Author": "a"}, {}, []),
    ],
)
def test_the_manifest(old: dict[str, str], new: dict[str, str], rules: list[Rule]) -> None:
    assert _rules(package("", **old), package("", **new)) == rules


BASE = "Extends: other:Thing"
INPUT = "Properties: {p: {Contract: $.class(other:Thing)}}"
OUTPUT = "Properties: {p: {Contract: [$.class(other:Thing)], Usage: Out}}"
BODY = "Methods: {m: {Body: {Return: new(other:Thing)}}}"
REQUIRED = [
    (BASE, "1", "2", Rule.REQUIREMENT_NARROWED),
    (BASE, ">=1,<3", "2", Rule.REQUIREMENT_NARROWED),
    (BASE, "1", ">=1,<3", Rule.REQUIREMENT_WIDENED),
    (BASE, "1", "1.2", Rule.REQUIREMENT_CHANGED),
    (BASE, "1", "==1", None),
    (BASE, ">=1,<2.5", ">=1,<2.6", Rule.REQUIREMENT_CHANGED),
    (OUTPUT, ">=1,<1.5", ">=1", Rule.REQUIREMENT_WIDENED),
    (INPUT, ">=1,<3", "2", Rule.REQUIREMENT_NARROWED),
    (INPUT, "*", "<9", Rule.REQUIREMENT_NARROWED),
    (INPUT, ">=1,!=2", ">=1", Rule.REQUIREMENT_CHANGED),
    (INPUT, "1", ">=1,<3", Rule.REQUIREMENT_CHANGED),
    (INPUT, ">=1.2,<2", ">=1.3,<2", Rule.REQUIREMENT_CHANGED),
    (OUTPUT, "1", ">=1,<3", Rule.REQUIREMENT_WIDENED),
    (OUTPUT, "1", ">=1", Rule.REQUIREMENT_WIDENED),
    (OUTPUT, ">=1,<3", "1", Rule.REQUIREMENT_CHANGED),
    (OUTPUT, ">=1,<3", ">=1.5,<3", Rule.REQUIREMENT_CHANGED),
    (BODY, "1", "2", None),
    # No version is in either of them.
    (BASE, ">=2,<1", ">=3,<1", Rule.REQUIREMENT_CHANGED),
]


@pytest.mark.parametrize(("classes", "old", "new", "rule"), REQUIRED)
def test_the_range_of_a_required_package(
    classes: str, old: str, new: str, rule: Rule | None
) -> None:
    before, after = (package(classes, Require={"org.b": spec}) for spec in (old, new))

    changes = compare(before, after).changes

    assert [change.rule for change in changes] == ([rule] if rule else [])
    if changes:
        assert changes[0].file == "manifest.yaml"
        assert changes[0].line > 1
        assert old in changes[0].message
        assert new in changes[0].message


def test_the_implicit_range_of_the_package_itself_does_not_count() -> None:
    classes = "Extends: Base\n---\nName: Base"

    assert _rules(package(classes, Version="1.0.0"), package(classes, Version="2.0.0")) == []


def test_every_rule_of_manifests_has_a_case() -> None:
    from tests.unit.compatibility.test_rules import OF_MANIFESTS

    tested = {rule for *_, rule in REQUIRED if rule}
    assert tested | {Rule.APPLICATION_REMOVED, Rule.FORMAT_CHANGED} == OF_MANIFESTS


def test_every_rule_has_a_code_and_a_text_and_is_in_the_documentation() -> None:
    source = (ROOT / "loader/compatibility/changes.py").read_text()
    page = (ROOT / "doc/source/reference/compatibility.rst").read_text()
    listed = re.findall(r"^\.\. compatibility-rules:: (.*)$", page, re.MULTILINE)
    prefixes = [prefix for line in listed for prefix in line.split()]

    for rule in Rule:
        assert rule == rule.name.lower().replace("_", "-")
        assert f'{rule.name} = "{rule}", Part.{rule.part.name}\n    """' in source
    assert sorted(prefixes) == sorted({rule.split("-")[0] for rule in Rule})


def test_the_guideline_names_rules_of_the_part_that_it_describes() -> None:
    page = (ROOT / "doc/source/guides/authors/versioning.rst").read_text()
    sections = re.split(r"^(Major|Minor|Patch): .*$", page, flags=re.MULTILINE)
    named = {
        part: re.findall(r"``([a-z]+-[a-z-]+)``", text)
        for part, text in zip(sections[1::2], sections[2::2], strict=True)
    }
    assert list(map(bool, named.values())) == [True, True, False]
    for part, codes in named.items():
        assert {Rule(code).part.name for code in codes} <= {part.upper()}


def test_yaql_is_imported_for_changed_contracts_only_and_named_if_missing() -> None:
    code = """
import sys
sys.modules["yaql"] = None
from loader.compatibility import YaqlMissing, compare
from tests.unit.compatibility.packages import package
contract = "Properties: {p: {Contract: $.int()}}"
print(compare(package(contract), package(contract + "\\nMethods: {m: {}}")).part)
try:
    compare(package(contract), package(contract.replace("int", "bool")))
except YaqlMissing as error:
    print(error)
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert printed.startswith("minor\n")
    assert "install glare-murano[cli]" in printed


def test_the_members_of_another_package_type_are_reported_as_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(_: object) -> Contents:
        return Contents(manifest, (ClassDefinition("org.a.Thing", ("org.b.Base",)),), {})

    with Archive.open(package("")) as archive:
        manifest = read_manifest(archive)
    monkeypatch.setattr("loader.compatibility.interface.MURANO_PL", "Another")
    monkeypatch.setattr("loader.compatibility.interface.read_contents", read)

    comparison = compare(package("Methods: {m: {}}"), package(""))

    assert comparison.changes == ()
    assert "the members of classes of the format MuranoPL/1.4.0" in comparison.unseen


def test_edges_of_ranges_separate_what_they_hold() -> None:
    spec = VersionSpec.of(">=1.2,<3,!=2.1")

    assert sorted(map(str, spec.edges)) == ["1.2.0", "2.1.0", "2.2.0", "3.0.0"]
