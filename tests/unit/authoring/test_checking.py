# SPDX-License-Identifier: Apache-2.0

"""Checks of packages on this host, and their findings in all forms."""

import json
import pathlib
import re
import zipfile
from typing import Any

import jsonschema
import pytest
import yaml

from glare_murano.package import rules
from glare_murano.package.manifest import PLUGIN_NAMESPACE
from glare_murano.package.ui_form import FormCheck
from loader.authoring import building, check_rules, findings, local_packages
from loader.authoring.check_rules import CheckRule
from loader.authoring.checking import check, check_bases, check_version
from loader.authoring.findings import Finding, Level
from loader.authoring.local_packages import InvalidPackages
from loader.compatibility import DifferentPackages, changes
from tests import packages
from tests.plugins import Site, site

__all__ = ["site"]

NAME = "org.a"
THING = "Classes/Thing.yaml"
ROOT = pathlib.Path(__file__).parents[3]

# What SARIF 2.1.0 requires of what is written here (OASIS, sections 3.13 to 3.52).
SARIF = {
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "$schema": {"pattern": "^https://"},
        "runs": {
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "uniqueItems": True,
                                        "items": {
                                            "required": ["id"],
                                            "properties": {
                                                "shortDescription": {"$ref": "#/$defs/text"},
                                                "fullDescription": {"$ref": "#/$defs/text"},
                                                "help": {"$ref": "#/$defs/text"},
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "items": {
                            "required": ["message"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"$ref": "#/$defs/text"},
                                "locations": {"items": {"$ref": "#/$defs/location"}},
                            },
                            "additionalProperties": False,
                        }
                    },
                },
                "additionalProperties": False,
            }
        },
    },
    "additionalProperties": False,
    "$defs": {
        "text": {
            "required": ["text"],
            "properties": {"text": {"type": "string", "minLength": 1}},
        },
        "location": {
            "properties": {
                "physicalLocation": {
                    "required": ["artifactLocation"],
                    "properties": {
                        "artifactLocation": {
                            "required": ["uri"],
                            "properties": {"uri": {"pattern": "^[!-~]+$"}},
                        },
                        "region": {
                            "properties": {"startLine": {"type": "integer", "minimum": 1}},
                            "additionalProperties": False,
                        },
                    },
                    "additionalProperties": False,
                }
            },
            "additionalProperties": False,
        },
    },
}


def _write(folder: pathlib.Path, code: str = "Name: org.a.Thing\n", **keys: Any) -> pathlib.Path:
    content = packages.content(NAME, more={THING: code.encode()}, **keys)
    return packages.write(folder / "package", content)


def _shown(place: pathlib.Path, form_check: FormCheck = FormCheck.WARN) -> list[str]:
    return [str(each).removeprefix(f"{place}/") for each in check(place, form_check)]


def test_the_example_packages_have_no_problem() -> None:
    for manifest in (ROOT / "examples").rglob("packages/*/*/manifest.yaml"):
        assert check(manifest.parent) == []


def test_errors_have_their_file_and_line(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path, Classes={"org.a.Thing": "Thing.yaml", "org.a.Gone": "Gone.yaml"})
    (place / "Classes/Gone.yaml").unlink()
    (place / THING).write_text("Name: org.a.Thing\nExtends: [\n")
    lines = (place / "manifest.yaml").read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "Gone" in text)
    assert sorted(_shown(place)) == [
        f"{THING}:3: error: not valid YAML: did not find expected node content [yaml-syntax]",
        f"manifest.yaml:{line}: error: Classes.org.a.Gone: there is no file Classes/Gone.yaml "
        f"[class-file]",
    ]


def test_a_key_of_the_manifest_is_no_directory(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path, Classes="org.a.Thing", UI="../ui.yaml", Logo="../logo.png")
    for name in ("Classes", "UI", "Logo"):
        (place / name).mkdir(exist_ok=True)
    lines = [text.partition(":")[0] for text in (place / "manifest.yaml").read_text().splitlines()]
    assert sorted((str(each.path), each.line) for each in check(place)) == sorted(
        (f"{place}/manifest.yaml", lines.index(key) + 1) for key in ("Classes", "UI", "Logo")
    )


def test_forms_are_checked_as_by_an_upload(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path)
    form = place / "UI/ui.yaml"
    form.parent.mkdir()
    form.write_bytes(packages.FORM.replace(b"2.3", b"2.5") + b"Template: {}\n")
    version = "'2.5' is not a version from 2.0 to 2.4 [form-version]"
    warning = "UI/ui.yaml:6: warning: the section 'Template' is unknown [form-section]"
    assert _shown(place) == [f"UI/ui.yaml:1: warning: {version}", warning]
    strict = _shown(place, FormCheck.ENFORCE)
    assert strict == [f"UI/ui.yaml:1: error: {version}", warning]
    form.write_bytes(packages.FORM + b"Template: {}\n")
    assert _shown(place) == [warning]


def test_a_base_class_may_be_in_a_required_older_version(tmp_path: pathlib.Path) -> None:
    code = "Name: org.a.Thing\nExtends: org.a.Base\n"

    assert _shown(_write(tmp_path, code, Version="2.0.0", Require={"org.a": "1"})) == []


_USES = """\
Namespaces: {=: org.a, b: org.b, std: io.murano, sys: io.murano.system}
Name: Thing
Extends: std:Object
Properties:
  p:
    Contract: $.class(CONTRACT)
Methods:
  m:
    Body:
    - new(CREATED, $this)
    - $.x.select($ is b:Base)
    - new(Thing).destroy()
    - new(ClassOfTheSameFile)
    - sys:GC.isDoomed($this)
    - Throw: b:NotFound
"""


@pytest.mark.parametrize(("part", "line"), [("CONTRACT", 6), ("CREATED", 10)])
def test_a_class_of_a_package_that_is_not_required_is_a_warning(
    tmp_path: pathlib.Path, part: str, line: int
) -> None:
    """No engine finds such a class. It is not searched for without the required packages."""
    library = packages.content("org.b", Classes={"org.b.Base": "Thing.yaml"})
    library[THING] = b"Name: org.b.Base\n"
    manifest = packages.manifest("io.murano", Classes={"io.murano.Object": "Thing.yaml"})
    core = packages.files(manifest)
    core[THING] = b"Name: io.murano.Object\n"
    found = {
        "org.b": packages.write(tmp_path / "org.b", library),
        "io.murano": packages.write(tmp_path / "io.murano", core),
    }
    code = _USES.replace(part, "org.c.Other")
    for each in ("CONTRACT", "CREATED"):
        code = code.replace(each, "b:Base")
    place = _write(tmp_path / "org.a", code, Require={"org.b": None})

    (finding,) = check(place, requirements=lambda fqn, _: found.get(fqn))
    assert (finding.level, finding.rule, finding.line) == (
        Level.WARNING,
        CheckRule.CLASS_UNREQUIRED,
        line,
    )
    assert "org.c.Other, which no required package has" in finding.message
    assert check(place) == []
    # The class may be in the package that was not found.
    del found["org.b"]
    assert check(place, requirements=lambda fqn, _: found.get(fqn)) == []


def test_a_class_that_extends_itself_is_an_error(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path, "Name: org.a.Thing\nExtends: org.a.Thing\n")
    message = "a class cannot extend itself: org.a.Thing extends org.a.Thing [class-cycle]"

    assert _shown(place) == [f"{THING}:2: error: {message}"]


def test_a_version_that_yaml_reads_as_a_number_is_an_error(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path)
    form = place / "UI/ui.yaml"
    form.parent.mkdir()
    form.write_bytes(packages.FORM.replace(b"    type:", b"    classVersion: 1.10\n    type:"))
    (shown,) = _shown(place)

    assert shown.startswith("UI/ui.yaml:4: error: classVersion: YAML reads '1.10' without quotes")


def test_problems_and_mistakes_are_shown_at_once(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path, "Name: org.a.Thing\nProperties: {a: {Contract: $.(}}\n", Nmae="a")
    form = place / "UI/ui.yaml"
    form.parent.mkdir()
    form.write_text("Applications: {}\n")
    found = check(place, FormCheck.ENFORCE)
    assert [(each.path.name, each.rule, each.level) for each in found] == [
        ("ui.yaml", rules.Rule.FORM_SECTION, Level.ERROR),
        ("manifest.yaml", rules.Rule.MANIFEST_KEY, Level.WARNING),
        ("ui.yaml", rules.Rule.FORM_SECTION, Level.WARNING),
        ("Thing.yaml", CheckRule.EXPRESSION_INVALID, Level.WARNING),
    ]


FORM = """\
Application:
  ?: {type: TYPE}
  size: VALUE
Forms:
  - main:
      fields:
        - {name: size, type: integer, label: Size}
        - {name: title, type: string, label: Title, initial: $.main.nothing}
"""


@pytest.mark.parametrize(
    ("fqn", "value", "expected"),
    [
        ("org.a.Other", "1", "2: warning: the form makes a org.a.Other, which Classes does not"),
        ("org.a.Other/1.0.0@org.a", "1", "2: warning: the form makes a org.a.Other, which"),
        ("org.a.Thing", "$.main.sise", "3: warning: '$.main.sise': the page 'main' has no field"),
        ("org.a.Thing", "$.mein.size", "3: warning: '$.mein.size': Forms has no page 'mein'"),
        ("org.a.Thing", "1 + $forms.a.b", "3: warning: '1 + $forms.a.b': Forms has no page 'a'"),
        ("org.a.Thing", "[{'?': {type: org.a.B}}]", "3: warning: the form makes a org.a.B"),
        ("org.a.Thing", "$.main.size +", "3: warning: '$.main.size +' is not valid YAQL"),
    ],
)
def test_mistakes_in_a_form_are_warnings(
    tmp_path: pathlib.Path, fqn: str, value: str, expected: str
) -> None:
    place = _write(tmp_path)
    (place / "UI").mkdir()
    (place / "UI/ui.yaml").write_text(FORM.replace("TYPE", fqn).replace("VALUE", value))
    (shown,) = _shown(place)
    assert shown.startswith(f"UI/ui.yaml:{expected}")


@pytest.mark.parametrize(
    ("fqn", "value"),
    [
        ("org.a.Thing", "$.main.size + $forms.main.title"),
        ("org.a.Thing", "$.main"),
        ("org.a.Thing", "$.workflowManagement.application_name"),
        ("org.a.Thing", "'$.other.size'"),
        ("org.a.Thing", "$parameter.other"),
        # Each "$" is an item.
        ("org.a.Thing", "$.main.size.select($.other)"),
        ("org.a.Thing", "let(1) -> $.other"),
        ("org.a.lib.Thing", "1"),
        ("org.b.Thing", "1"),
        ("$.main.size", "1"),
    ],
)
def test_a_form_without_mistakes(tmp_path: pathlib.Path, fqn: str, value: str) -> None:
    place = _write(tmp_path, Require={"org.a.lib": "1"})
    (place / "UI").mkdir()
    (place / "UI/ui.yaml").write_text(FORM.replace("TYPE", fqn).replace("VALUE", value))
    assert check(place) == []


def test_forms_of_other_package_types_are_checked_as_well(tmp_path: pathlib.Path) -> None:
    manifest = packages.manifest(NAME, Format="Heat.HOT/1.0", Type="Application", Classes=None)
    form = packages.FORM.replace(b"org.example.Thing", b"!yaql $.") + b"Templates: {a: $(}\n"
    files = {"manifest.yaml": yaml.safe_dump(manifest).encode(), "UI/ui.yaml": form}
    template = b"heat_template_version: 2016-10-14\nresources: {}\n"
    place = packages.write(tmp_path / "package", {**files, "template.yaml": template})
    assert [(each.line, each.rule, each.level) for each in check(place)] == [
        (4, CheckRule.EXPRESSION_INVALID, Level.WARNING),
        (6, CheckRule.EXPRESSION_INVALID, Level.WARNING),
    ]


def test_expressions_in_forms_are_read_as_by_the_dashboard(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path)
    form = """\
Application:
  ?: {type: org.a.Thing}
  name: $.p.name.
  tags: [!yaql "(", $.p.name is Thing, "$.(", 5 (]
Forms:
  - p:
      fields:
        - {name: name, type: string, maxLength: 5 +}
      validators:
        - expr: len($.p.name) >
"""
    packages.write(place, {"UI/ui.yaml": form.encode()})
    invalid = "is not valid YAQL: Parse error: unexpected"
    assert sorted(re.sub(r"(unexpected|write) .* \[", r"\1 [", each) for each in _shown(place)) == [
        "UI/ui.yaml:10: warning: a validator of the page 'p' has no YAQL expression in 'expr'; "
        "write [form-validator]",
        f"UI/ui.yaml:3: warning: '$.p.name.' {invalid} [expression-invalid]",
        f"UI/ui.yaml:4: warning: '$.p.name is Thing' {invalid} [expression-invalid]",
        f"UI/ui.yaml:4: warning: '(' {invalid} [expression-invalid]",
        "UI/ui.yaml:8: warning: maxLength is '5 +'; expected a number [form-attribute]",
    ]


def test_a_place_that_cannot_be_read_is_an_error(tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "missing.zip"
    assert [str(each) for each in check(missing)] == [
        f"{missing}: error: No such file or directory [package-unreadable]"
    ]


def test_a_directory_of_another_version_is_an_error(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path, Nmae="Thing").rename(tmp_path / "2.0.0")
    assert [(each.rule, each.level) for each in check(place)] == [
        (CheckRule.PACKAGE_DIRECTORY, Level.ERROR),
        (rules.Rule.MANIFEST_KEY, Level.WARNING),
    ]


def test_the_current_directory_has_a_name(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_write(tmp_path, Version="1.2.0").rename(tmp_path / "1.2.0"))
    assert check(pathlib.Path()) == []


def test_a_link_is_found_at_its_path(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path)
    (place / "link").symlink_to("/etc/passwd")
    (found,) = check(place)
    assert (found.path, found.rule) == (place / "link", rules.Rule.ENTRY_TYPE)


def test_a_file_in_an_archive_is_named_in_the_message(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path, "Name: org.a.Thing\nProperties: {a: {Contract: '$(', b: $(}}\n")
    archive = building.build(place, tmp_path / "a.zip").archive
    (found,) = check(archive)
    assert (found.path, found.line) == (archive, 0)
    assert found.message.startswith(f"{THING}, line 2: '$(' is not valid YAQL")
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("../escape", "")
    (refused,) = check(archive)
    assert (refused.path, refused.rule) == (archive, rules.Rule.PATH_ESCAPE)
    assert "../escape" in refused.message


@pytest.mark.parametrize(
    ("code", "keys", "expected"),
    [
        ("Name: org.a.Thing\n", {"Nmae": "x"}, "manifest.yaml:7: warning: 'Nmae': is unknown"),
        ("Name: org.a.Thing\n", {"UI": "x.yaml"}, "manifest.yaml:8: warning: there is no file UI/"),
        (
            "Name: org.a.Thing\nExtends: org.a.Base\n",
            {},
            f"{THING}:2: warning: org.a.Thing extends org.a.Base, which Classes does not list",
        ),
        (
            "Name: org.a.Thing\nMethods:\n  run:\n    Body:\n      - $.a: $.b(\n",
            {},
            f"{THING}:5: warning: '$.b(' is not valid YAQL",
        ),
        (
            "Name: org.a.Thing\nMethods:\n  run:\n    Body:\n      - $.a): 1\n",
            {},
            f"{THING}:5: warning: '$.a)' is not valid YAQL",
        ),
        (
            "Name: org.a.Thing\nProperties:\n  a: &a {Contract: $.(}\n  b: *a\n",
            {},
            f"{THING}:3: warning: '$.(' is not valid YAQL",
        ),
        (
            "Name: org.a.Thing\nProperties:\n  a:\n    Contract: [$.string(]\n",
            {},
            f"{THING}:4: warning: '$.string(' is not valid YAQL",
        ),
    ],
)
def test_what_an_author_hardly_wants_is_a_warning(
    tmp_path: pathlib.Path, code: str, keys: dict[str, Any], expected: str
) -> None:
    (shown,) = _shown(_write(tmp_path, code, **keys))
    assert shown.startswith(expected)


def test_a_class_file_that_the_manifest_does_not_list_is_a_warning(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path)
    (place / "Classes/Other.yaml").write_text("Name: org.a.Other\n")
    assert _shown(place) == [
        "Classes/Other.yaml: warning: Classes does not list this file [file-unlisted]"
    ]


@pytest.mark.parametrize(
    ("code", "keys"),
    [
        # Quoted, so it is a string for the engine as well.
        ("Name: org.a.Thing\nMethods: {run: {Body: [{Return: '$5 ('}]}}\n", {}),
        ("Name: org.a.Thing\nMethods: {run: {Body: [{Return: 5 (}]}}\n", {}),
        # Of a required package whose name is longer.
        ("Name: org.a.Thing\nExtends: org.a.lib.Base\n", {"Require": {"org.a.lib": "1"}}),
        ("Name: org.a.Thing\nExtends: io.murano.Application\n", {}),
        (f"Name: org.a.Thing\nMethods: {{run: {{Body: [${'a' * 5000}(]}}}}\n", {}),
    ],
)
def test_what_may_be_meant_is_no_warning(
    tmp_path: pathlib.Path, code: str, keys: dict[str, Any]
) -> None:
    assert _shown(_write(tmp_path, code, **keys)) == []


def _versions(folder: pathlib.Path, old: str, new: str, code: str) -> tuple[Any, pathlib.Path]:
    before = "Name: org.a.Thing\nMethods:\n  go: {Scope: Public}\n"
    return (
        _write(folder / "old", before, Version=old),
        _write(folder / "new", code, Version=new),
    )


def test_a_version_that_is_not_enough_is_an_error_at_each_change(tmp_path: pathlib.Path) -> None:
    code = "Name: org.a.Thing\nMethods:\n  stay: {Scope: Public}\n"
    old, new = _versions(tmp_path, "1.0.0", "1.1.0", code)
    found = check_version(new, old)
    assert [(each.rule, each.path.name, each.line) for each in found] == [
        (CheckRule.VERSION_SMALL, "manifest.yaml", 8),
        (changes.Rule.METHOD_REMOVED, "manifest.yaml", 8),
    ]
    assert "use 2.0.0 or newer" in found[0].message
    assert "Classes/Thing.yaml, line 3 of the old version: class org.a.Thing: method go" in (
        found[1].message
    )
    old, new = _versions(tmp_path / "patch", "1.0.0", "1.0.1", code.replace("M", "\nM", 1))
    # Added methods need a new minor version only, which is not there either.
    assert [(each.rule, each.line) for each in check_version(new, old)][2] == (
        changes.Rule.METHOD_ADDED,
        4,
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("1.0.0", "2.0.0", []),
        ("0.1.0", "0.1.0", [CheckRule.VERSION_SMALL, changes.Rule.METHOD_REMOVED]),
        ("1.0.0", "0.0.0", [CheckRule.VERSION_MISSING]),
    ],
)
def test_versions_are_enough_or_not(
    tmp_path: pathlib.Path, old: str, new: str, expected: list[Any]
) -> None:
    before, after = _versions(tmp_path, old, new, "Name: org.a.Thing\n")
    assert [each.rule for each in check_version(after, before)] == expected


def test_the_same_version_with_the_same_files_is_enough(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path)
    archive = building.build(place, tmp_path / "same.zip").archive
    assert check_version(place, archive) == []
    (place / "new.txt").write_text("")
    assert [each.rule for each in check_version(place, archive)] == [CheckRule.VERSION_SMALL]


def test_packages_of_different_names_are_not_compared(tmp_path: pathlib.Path) -> None:
    other = packages.write(tmp_path / "other", packages.content("org.b"))
    with pytest.raises(DifferentPackages, match=r"org\.b 1\.0\.0 and org\.a 1\.0\.0"):
        check_version(_write(tmp_path), other)


def test_annotations_of_github_are_escaped() -> None:
    found = Finding(
        Level.ERROR, CheckRule.FILE_UNLISTED, pathlib.Path("a:b,c%/d"), 3, "50%\nof: it"
    )
    other = Finding(Level.WARNING, CheckRule.FILE_UNLISTED, pathlib.Path("a"), 0, "text")
    assert list(findings.annotations([found, other])) == [
        "::error file=a%3Ab%2Cc%25/d,line=3,title=file-unlisted::50%25%0Aof: it",
        "::warning file=a,title=file-unlisted::text",
    ]


def test_sarif_has_what_its_schema_requires() -> None:
    found = [
        Finding(Level.ERROR, rules.Rule.CLASS_FILE, pathlib.Path("a b/c"), 3, "first"),
        Finding(Level.WARNING, CheckRule.FILE_UNLISTED, pathlib.Path("/a/b"), 0, "second"),
        Finding(Level.ERROR, changes.Rule.CLASS_REMOVED, pathlib.Path("a"), 1, "third"),
    ]
    log = json.loads(findings.sarif(found))
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    listed = run["tool"]["driver"]["rules"]
    assert [listed[each["ruleIndex"]]["id"] for each in run["results"]] == [
        each.rule.value for each in found
    ]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert places[0] == {"artifactLocation": {"uri": "a%20b/c"}, "region": {"startLine": 3}}
    assert places[1] == {"artifactLocation": {"uri": "file:///a/b"}}
    jsonschema.validate(json.loads(findings.sarif([])), SARIF)


@pytest.mark.parametrize("enumeration", [rules.Rule, check_rules.CheckRule, changes.Rule])
def test_every_rule_has_a_remedy_or_a_reason(enumeration: Any) -> None:
    texts = findings.remedies(enumeration)
    assert texts.keys() == set(enumeration.__members__)
    assert all(text.rstrip(")").endswith(".") and "``" not in text for text in texts.values())


def test_the_same_files_are_built_into_the_same_archive(tmp_path: pathlib.Path) -> None:
    place = _write(tmp_path)
    first = building.build(place, tmp_path / "first.zip")
    (place / THING).touch()
    again = building.build(first.archive, tmp_path / "again.zip")
    assert building.build(place, tmp_path / "first.zip").digest == first.digest == again.digest
    assert first.archive.read_bytes() == again.archive.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.zip", "first.zip", "package"]


def test_an_archive_is_not_written_into_its_package(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_write(tmp_path))
    with pytest.raises(building.BuildError, match="name a file outside with --file"):
        building.build(pathlib.Path())
    with pytest.raises(InvalidPackages, match=r"^Classes: manifest\.yaml: is missing"):
        building.build(pathlib.Path("Classes"))
    built = building.build(pathlib.Path(), pathlib.Path("../out.zip"))
    assert built.archive.resolve() == tmp_path / "out.zip"


def test_a_format_without_a_function_needs_its_classes_listed(
    site: Site, tmp_path: pathlib.Path
) -> None:
    point = {PLUGIN_NAMESPACE: {"Test.Made/1.0": "no.such:Class"}}
    site.install("made", "1.0", point, {})
    manifest = packages.manifest(NAME, Format="Test.Made/1.0", Classes=None)
    place = packages.write(tmp_path / NAME, packages.files(manifest))

    (finding,) = check(place)

    assert (finding.level, finding.rule) == (Level.ERROR, rules.Rule.CLASS_UNLISTED)
    # Before an upload, which would leave an empty draft.
    for read in (
        lambda: local_packages.read_all([place], tmp_path),
        lambda: building.build(place, tmp_path / "made.zip"),
    ):
        with pytest.raises(InvalidPackages, match="class-unlisted"):
            read()
    listed = packages.manifest(NAME, Format="Test.Made/1.0", Classes={f"{NAME}.B": "made"})
    assert check(packages.write(tmp_path / "listed", packages.files(listed))) == []


def _extending(folder: pathlib.Path, base: str, **require: str) -> pathlib.Path:
    manifest = packages.manifest(NAME, Require=require)
    code = f"Name: {NAME}.Thing\nExtends: {base}\n".encode()
    return packages.write(folder / NAME, packages.files(manifest) | {THING: code})


def test_a_base_class_is_in_a_required_package(tmp_path: pathlib.Path) -> None:
    core = packages.write(tmp_path / "core", packages.content("io.murano"))
    library = packages.write(tmp_path / "b", packages.content("org.b"))
    required = {"io.murano": core, "org.b": library}
    require = {"org.b": "1"}

    for number, base in enumerate(("org.b.Thing", "io.murano.Application")):
        place = _extending(tmp_path / str(number), base, **require)
        assert check_bases(place, lambda fqn, _: required.get(fqn)) == ([], {})
    # The package has it, but does not require it.
    place = _extending(tmp_path / "unrequired", "org.b.Thing")
    (finding,), unread = check_bases(place, lambda fqn, _: required.get(fqn))
    assert (finding.level, finding.rule, finding.line, finding.path, unread) == (
        Level.ERROR,
        CheckRule.BASE_UNKNOWN,
        2,
        place / THING,
        {},
    )
    assert finding.message == (
        "org.a.Thing extends org.b.Thing, which neither the package nor one that it requires has; "
        "add the package of the class to Require"
    )


def test_base_classes_in_packages_that_are_not_at_hand_are_named(tmp_path: pathlib.Path) -> None:
    place = _extending(tmp_path, "org.b.Thing", **{"org.b": "1"})

    found, unread = check_bases(place)

    assert (found, set(unread)) == ([], {"io.murano 0", "org.b 1"})
