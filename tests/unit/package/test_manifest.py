# SPDX-License-Identifier: Apache-2.0

"""The manifest: the text as written, every problem at once, and hostile YAML."""

import importlib.metadata
import json
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glare_murano.package import (
    InvalidManifest,
    InvalidPackage,
    Manifest,
    Problem,
    Version,
    VersionSpec,
    manifest,
)
from glare_murano.package.manifest import Format, with_ranges, with_version
from tests import effort

MINIMAL = "FullName: org.app\nType: Application\n"

COMPLETE = """\
Format: MuranoPL/1.3
Type: Library
FullName: org.db.Postgres
Version: 1.10
Name: PostgreSQL
Description: |
  A database.
  It keeps data.
Author: Jane Doe
Supplier:
  Name: Example Ltd
  Summary: Makes databases
  CompanyUrl:
    Link: https://example.org
    Text: Example
Tags: [database, sql, database]
Classes:
  org.db.Postgres: Postgres.yaml
  org.db.Node: nodes/Node.yaml
Require:
  org.base: 1.10
  org.net: '>=1.2,<2'
  io.murano: 0
UI: ui.yaml
Scalable: true
Ratio: 1.10
"""


def parse(text):
    return Manifest.parse(text.encode())


def parse_with(lines):
    return parse(MINIMAL + lines)


def outcome(data):
    """The manifest, or None and what is wrong with it."""
    try:
        return Manifest.parse(data), ()
    except InvalidManifest as error:
        return None, error.problems


def problems_of(text):
    with pytest.raises(InvalidManifest) as caught:
        parse(text)
    return caught.value.problems


def found_in(text):
    """What was found wrong, without the messages."""
    return [(problem.rule, problem.where, problem.line) for problem in problems_of(text)]


class TestComplete:
    def test_every_key_is_read(self):
        found = parse(COMPLETE)
        assert found.fqn == "org.db.Postgres"
        assert found.version == Version("1.10.0")
        assert found.format == Format("MuranoPL", Version("1.3.0"))
        assert found.package_type == "Library"
        assert found.display_name == "PostgreSQL"
        assert found.description == "A database.\nIt keeps data.\n"
        assert found.author == "Jane Doe"
        assert found.tags == ("database", "sql")
        assert dict(found.classes) == {
            "org.db.Postgres": "Postgres.yaml",
            "org.db.Node": "nodes/Node.yaml",
        }
        assert {name: str(spec) for name, spec in found.requirements.items()} == {
            "org.base": "1.10",
            "org.net": ">=1.2,<2",
            "io.murano": "0",
            "org.db.Postgres": "1",
        }

    def test_what_is_left_out_has_a_default(self):
        found = parse(MINIMAL)
        assert found.version == Version("0.0.0")
        assert str(found.format) == "MuranoPL/1.0.0"
        assert found.display_name == "org.app"
        assert (found.description, found.author) == ("", "")
        assert dict(found.supplier) == {}
        assert found.tags == ()
        assert dict(found.classes) == {}

    @pytest.mark.parametrize(
        "key",
        [
            "Version",
            "Format",
            "Name",
            "Description",
            "Author",
            "Supplier",
            "Tags",
            "Classes",
            "Require",
        ],
    )
    @pytest.mark.parametrize("null", ["", "~", "null", "Null"])
    def test_null_is_as_if_left_out(self, key, null):
        left_out, found = parse(MINIMAL), parse_with(f"{key}: {null}\n")
        for field in ("version", "format", "display_name", "description", "author", "tags"):
            assert getattr(found, field) == getattr(left_out, field)
        for field in ("supplier", "classes", "requirements"):
            assert dict(getattr(found, field)) == dict(getattr(left_out, field))

    def test_an_empty_name_is_as_if_left_out(self):
        assert parse_with("Name: ''\n").display_name == "org.app"

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_every_encoding_of_yaml_is_read(self, encoding):
        data = f"{MINIMAL}Author: J\u00f6rg\n".encode(encoding)
        assert Manifest.parse(data).author == "J\u00f6rg"

    @pytest.mark.parametrize(
        ("key", "hint"),
        [("Whatever", "known are Author, "), ("Requires", "did you mean Require?")],
    )
    def test_unknown_keys_are_left_alone_with_a_warning(self, key, hint):
        found = parse_with(f"{key}: {{a: [1, 2]}}\n")
        assert found.fqn == "org.app"
        assert f"is unknown; {hint}" in str(found.warnings[0])

    def test_only_the_first_of_many_unknown_keys_are_listed(self):
        start = time.process_time()
        keys = "".join(f"Requires{number}: 1\n" for number in range(40_000))
        listed = [problem.message for problem in parse_with(keys).warnings]
        assert time.process_time() - start < 5
        assert [message.startswith("is unknown") for message in listed] == [True] * 20 + [False]
        assert listed[-1] == "39980 more keys are unknown"
        assert len(parse_with("".join(f"A{number}: 1\n" for number in range(20))).warnings) == 20

    def test_a_misspelt_required_key_is_named_beside_the_missing_one(self):
        with pytest.raises(InvalidManifest) as refused:
            Manifest.parse(b"FullName: org.app\nTyp: Library\n")
        assert [problem.where for problem in refused.value.problems] == ["Type"]
        assert [problem.where for problem in refused.value.warnings] == ["'Typ'"]
        assert "Type: is missing" in str(refused.value)
        assert "'Typ', line 2: is unknown; did you mean Type?" in str(refused.value)

    def test_mappings_cannot_be_changed(self):
        found = parse(COMPLETE)
        for mapping in (found.classes, found.requirements, found.supplier, found.document):
            with pytest.raises(TypeError):
                mapping["new"] = None


class TestTextAsWritten:
    @pytest.mark.parametrize(
        ("written", "expected"),
        [
            ("1.10", "1.10.0"),
            ("'1.10'", "1.10.0"),
            ("1", "1.0.0"),
            ("1_0", None),
            ("0x10", None),
            ("1e3", None),
            ("1.10.0", "1.10.0"),
            ("1.0.0-rc.1+build", "1.0.0-rc.1+build"),
            ("''", "0.0.0"),
        ],
    )
    def test_version(self, written, expected):
        text = f"{MINIMAL}Version: {written}\n"
        if expected is None:
            assert found_in(text) == [("manifest-version", "Version", 3)]
        else:
            assert str(parse(text).version) == expected

    @pytest.mark.parametrize(
        ("written", "expected"),
        [
            ("1.10", "1.10"),
            ("0", "0"),
            ("1", "1"),
            ("1.2.3", "1.2.3"),
            ("'>=1.2,<2'", ">=1.2,<2"),
            ("'*'", "*"),
            ("''", "0"),
            ("~", "0"),
            ("", "0"),
        ],
    )
    def test_range(self, written, expected):
        found = parse_with(f"Require:\n  org.other: {written}\n")
        assert str(found.requirements["org.other"]) == expected

    @pytest.mark.parametrize(
        ("written", "expected"),
        [
            ("1", "MuranoPL/1.0.0"),
            ("1.0", "MuranoPL/1.0.0"),
            ("1.0.0", "MuranoPL/1.0.0"),
            ("1.3", "MuranoPL/1.3.0"),
            ("MuranoPL/1.4", "MuranoPL/1.4.0"),
            ("' MuranoPL / 1.4 '", "MuranoPL/1.4.0"),
            ("Heat.HOT/1.0", "Heat.HOT/1.0.0"),
            ("Heat.HOT/1", "Heat.HOT/1.0.0"),
            ("''", "MuranoPL/1.0.0"),
        ],
    )
    def test_format(self, written, expected):
        assert str(parse_with(f"Format: {written}\n").format) == expected

    @pytest.mark.parametrize("written", ["1.10", "yes", "2001-01-01", "0x10"])
    def test_other_texts(self, written):
        found = parse_with(f"Name: {written}\nAuthor: {written}\nTags: [{written}]\n")
        assert (found.display_name, found.author, found.tags) == (written, written, (written,))


class TestNames:
    @pytest.mark.parametrize(
        "name", ["a", "a.b", "io.murano.apps.A_1", "1.5", "_", "A.b.C", "x" * 255]
    )
    def test_a_name_is_letters_digits_and_underscores_joined_by_dots(self, name):
        assert parse(f"FullName: {name}\nType: Library\n").fqn == name

    @pytest.mark.parametrize(
        "name",
        [
            "''",
            "' '",
            "a..b",
            ".a",
            "a.",
            "a b",
            "a-b",
            "a/b",
            "../a",
            "\u00e4.b",
            "\u0661",
            '"a\\n"',
            '"a\\0"',
            "x" * 256,
        ],
    )
    def test_any_other_name_is_refused(self, name):
        assert found_in(f"FullName: {name}\nType: Library\n") == [("manifest-name", "FullName", 1)]

    @pytest.mark.parametrize(
        ("name", "remark"),
        [
            ("org.\u0421lass", "; '\u0421' is U+0421, CYRILLIC CAPITAL LETTER ES"),
            ("org.a\u200b", "; '\\u200b' is U+200B, ZERO WIDTH SPACE"),
            ("org.a-b", ""),
        ],
    )
    def test_a_character_that_only_looks_right_is_named(self, name, remark):
        (problem,) = problems_of(f"FullName: {name}\nType: Library\n")
        assert problem.message == (
            f"{name!r} is not a valid name: expected ASCII letters, digits and underscores joined "
            f"by single dots, at most 255 characters{remark}"
        )

    def test_a_requirement_may_hold_hyphens(self):
        found = parse_with("Require: {my-plugin.x: 1}\n")
        assert "my-plugin.x" in found.requirements

    @pytest.mark.parametrize("name", ["a b", "a..b", "'a/b'", "''"])
    def test_an_odd_name_of_a_class_or_a_requirement_is_refused(self, name):
        assert found_in(f"{MINIMAL}Classes:\n  {name}: x.yaml\nRequire:\n  {name}: 1\n") == [
            ("manifest-classes", "Classes", 4),
            ("manifest-require", "Require", 6),
        ]

    def test_a_key_that_yaml_takes_for_another_type_is_its_text(self):
        found = parse_with("Classes: {on: On.yaml, 1.10: One.yaml}\nRequire: {yes: 1}\n")
        assert dict(found.classes) == {"on": "On.yaml", "1.10": "One.yaml"}
        assert "yes" in found.requirements


class TestImplicitRequirements:
    @pytest.mark.parametrize(
        ("lines", "expected"),
        [
            ("", {"io.murano": "0", "org.app": "0"}),
            ("Version: 2.3.4\n", {"io.murano": "0", "org.app": "2"}),
            ("Version: 2.0.0-rc.1\n", {"io.murano": "0", "org.app": "2"}),
            ("Require: {io.murano: '>=1'}\n", {"io.murano": ">=1", "org.app": "0"}),
            ("Version: 1\nRequire: {org.app: '>=0'}\n", {"io.murano": "0", "org.app": ">=0"}),
            ("Require: {b: 1}\n", {"b": "1", "io.murano": "0", "org.app": "0"}),
        ],
    )
    def test_are_added_unless_written_out(self, lines, expected):
        found = parse_with(lines).requirements
        assert {name: str(spec) for name, spec in found.items()} == expected

    @pytest.mark.parametrize(
        ("require", "expected"),
        [
            ("", {}),
            ("Require: {org.b: 1}\n", {"org.b": "1"}),
            ("Require: {io.murano: 0}\n", {"io.murano": "0"}),
        ],
    )
    def test_the_core_library_requires_what_it_says_alone(self, require, expected):
        found = parse(f"FullName: io.murano\nType: Library\n{require}").requirements
        assert {name: str(spec) for name, spec in found.items()} == expected

    def test_a_range_is_what_the_grammar_makes_of_it(self):
        assert parse(MINIMAL).requirements["io.murano"] == VersionSpec.of(None)


class TestSupplier:
    def test_a_mapping_in_it_is_flattened(self):
        assert dict(parse(COMPLETE).supplier) == {
            "Name": "Example Ltd",
            "Summary": "Makes databases",
            "CompanyUrl.Link": "https://example.org",
            "CompanyUrl.Text": "Example",
        }

    def test_null_values_are_left_out(self):
        found = parse_with("Supplier: {Name: ~, Logo: x.png, CompanyUrl: {Link: , Text: T}}\n")
        assert dict(found.supplier) == {"Logo": "x.png", "CompanyUrl.Text": "T"}

    @pytest.mark.parametrize(
        ("supplier", "where"),
        [
            ("[a]", "Supplier"),
            ("text", "Supplier"),
            ("{Name: [a]}", "Supplier.Name"),
            ("{CompanyUrl: {Link: [a]}}", "Supplier.CompanyUrl.Link"),
            ("{CompanyUrl: {Link: {a: b}}}", "Supplier.CompanyUrl.Link"),
        ],
    )
    def test_anything_that_is_no_text_is_refused(self, supplier, where):
        assert found_in(f"{MINIMAL}Supplier: {supplier}\n") == [("manifest-supplier", where, 3)]


class TestTags:
    def test_null_is_no_tag(self):
        assert parse_with("Tags: [a, ~, null, b, '']\n").tags in (("a", "b"), ("a", "b", ""))

    @pytest.mark.parametrize("tags", ["a", "{a: b}", "[[a]]", "[{a: b}]"])
    def test_anything_but_a_list_of_texts_is_refused(self, tags):
        assert found_in(f"{MINIMAL}Tags: {tags}\n") == [("manifest-tags", "Tags", 3)]


class TestClasses:
    @pytest.mark.parametrize(
        "file",
        [
            "''",
            "~",
            "/x.yaml",
            "../x.yaml",
            "a/../x.yaml",
            "./x.yaml",
            "a//x.yaml",
            "a/",
            "'a\\x.yaml'",
        ],
    )
    def test_a_file_stays_below_its_directory(self, file):
        assert found_in(f"{MINIMAL}Classes:\n  org.A: {file}\n") == [
            ("manifest-classes", "Classes.org.A", 4)
        ]

    @pytest.mark.parametrize("classes", ["[a]", "a", "{org.A: [a]}", "{org.A: {b: c}}"])
    def test_anything_but_a_mapping_to_files_is_refused(self, classes):
        (problem,) = problems_of(f"{MINIMAL}Classes: {classes}\n")
        assert (problem.rule, problem.line) == ("manifest-classes", 3)


class TestFormats:
    @pytest.mark.parametrize(
        "written",
        [
            "2.0",
            "1.5",
            "1.0.1",
            "MuranoPL/2",
            "muranopl/1.0",
            "Heat.HOT/2.0",
            "Cloudify.TOSCA/1.0",
            "/1.0",
        ],
    )
    def test_an_unknown_one_is_refused_with_those_known(self, written):
        (problem,) = problems_of(f"{MINIMAL}Format: {written}\n")
        assert (problem.rule, problem.where, problem.line) == ("manifest-format", "Format", 3)
        assert written in problem.message
        assert "MuranoPL/1.4.0" in problem.message

    @pytest.mark.parametrize(
        ("written", "hint"),
        [
            ("muranopl/1.0", "unknown; did you mean MuranoPL/1.0.0?"),
            ("heat.hot/1", "unknown; did you mean Heat.HOT/1.0.0?"),
            ("1.5", "newer than MuranoPL/1.4.0, the newest version of this package type that is"),
            ("muranopl/2.0", "newer than MuranoPL/1.4.0, "),
            ("Heat.HOT/2.0", "newer than Heat.HOT/1.0.0, "),
            ("1.0.1", "unknown; installed are Heat.HOT/1.0.0, MuranoPL/1.0.0, "),
        ],
    )
    def test_the_right_one_is_hinted_at(self, written, hint):
        (problem,) = problems_of(f"{MINIMAL}Format: {written}\n")
        assert problem.message.startswith(f"{written!r} is {hint}")

    @pytest.mark.parametrize("written", ["x", "MuranoPL/x", "MuranoPL/1.x", "MuranoPL/1/0/x"])
    def test_one_without_a_version_is_refused(self, written):
        assert found_in(f"{MINIMAL}Format: {written}\n") == [("manifest-format", "Format", 3)]

    @pytest.fixture
    def registered(self, monkeypatch):
        """Entry points of installed plug-ins, which is a list to be filled."""
        points = []
        monkeypatch.setattr(manifest.importlib.metadata, "entry_points", lambda group: points)
        manifest.registered_formats.cache_clear()
        yield points
        manifest.registered_formats.cache_clear()

    def test_a_plug_in_adds_its_format_without_being_imported(self, registered):
        registered.append(
            importlib.metadata.EntryPoint(
                "Cloudify.TOSCA/1.0", "no.such:Class", manifest.PLUGIN_NAMESPACE
            )
        )
        assert str(parse_with("Format: Cloudify.TOSCA/1\n").format) == "Cloudify.TOSCA/1.0.0"

    def test_a_plug_in_with_a_name_that_is_no_format_does_no_harm(self, registered):
        registered.append(
            importlib.metadata.EntryPoint("X/y", "no.such:Class", manifest.PLUGIN_NAMESPACE)
        )
        assert manifest.registered_formats(manifest.PLUGIN_NAMESPACE) == {}


class TestProblems:
    def test_all_are_collected_with_key_line_and_rule(self):
        assert found_in(
            "Version: 1.x\n"
            "Format: 9.9\n"
            "FullName: a b\n"
            "Type: Plugin\n"
            "Name: [a]\n"
            "Tags: sql\n"
            "Classes:\n"
            "  org.A: ../A.yaml\n"
            "Require:\n"
            "  org.b: latest\n"
            "  org.c: [1]\n"
            "Supplier: none\n"
        ) == [
            ("manifest-name", "FullName", 3),
            ("manifest-version", "Version", 1),
            ("manifest-format", "Format", 2),
            ("manifest-type", "Type", 4),
            ("manifest-text", "Name", 5),
            ("manifest-supplier", "Supplier", 12),
            ("manifest-tags", "Tags", 6),
            ("manifest-classes", "Classes.org.A", 8),
            ("manifest-require", "Require.org.b", 10),
            ("manifest-require", "Require.org.c", 11),
        ]

    def test_what_is_missing_has_no_line(self):
        assert found_in("Name: x\n") == [
            ("manifest-name", "FullName", 0),
            ("manifest-type", "Type", 0),
        ]

    def test_what_must_not_be_null_is_missing_in_its_line(self):
        assert problems_of("Type: ~\nFullName:\n") == (
            Problem("manifest-name", "FullName", "is missing", 2),
            Problem("manifest-type", "Type", "is missing", 1),
        )

    @pytest.mark.parametrize("value", ["[a]", "{a: b}"])
    @pytest.mark.parametrize(
        ("key", "rule"),
        [
            ("FullName", "manifest-name"),
            ("Type", "manifest-type"),
            ("Version", "manifest-version"),
            ("Format", "manifest-format"),
            ("Name", "manifest-text"),
            ("Description", "manifest-text"),
            ("Author", "manifest-text"),
        ],
    )
    def test_a_list_or_a_mapping_is_no_text(self, key, rule, value):
        lines = {"FullName": "a", "Type": "Library", key: value}
        text = "".join(f"{name}: {lines[name]}\n" for name in lines)
        (problem,) = problems_of(text)
        assert (problem.rule, problem.where) == (rule, key)
        assert problem.message.startswith("expected a string, found a ")

    @pytest.mark.parametrize("type_", ["application", "Plugin", "''"])
    def test_a_type_is_an_application_or_a_library(self, type_):
        (problem,) = problems_of(f"FullName: a\nType: {type_}\n")
        assert problem.rule == "manifest-type"
        assert problem.message.endswith("expected Application or Library")

    @pytest.mark.parametrize(
        ("lines", "where", "line"),
        [
            ("Version: 1\nVersion: 2\n", "manifest.yaml", 4),
            ("Other: 1\nOther: 1\n", "manifest.yaml", 4),
            ("Require:\n  org.b: 1\n  org.b: 2\n", "Require", 5),
            ("Classes:\n  A: a.yaml\n  A: b.yaml\n", "Classes", 5),
            ("Supplier:\n  Name: a\n  Name: b\n", "Supplier", 5),
            ("Supplier:\n  Url:\n    Link: a\n    Link: b\n", "Supplier.Url", 6),
            ("Meta:\n  a.B: {c: 1}\n  a.B: {c: 2}\n", "Meta", 5),
            ("Meta:\n- a.B:\n    c: 1\n    c: 1\n", "Meta", 6),
            ("Meta: {1: a, 0x1: b}\n", "Meta", 3),
            ("Other: {a: [{b: 1, b: 2}]}\n", "Other", 3),
        ],
    )
    def test_a_key_that_stands_twice_is_reported_once(self, lines, where, line):
        (problem,) = problems_of(MINIMAL + lines)
        assert (problem.rule, problem.where, problem.line) == ("manifest-key", where, line)
        assert problem.message.endswith("is repeated")

    @pytest.mark.parametrize(
        ("lines", "where"),
        [
            ("? [a]\n: 1\n", "manifest.yaml"),
            ("Classes: {? [a] : b}\n", "Classes"),
            ("Require: {? {a: b} : 1}\n", "Require"),
        ],
    )
    def test_a_key_that_is_no_text_is_reported(self, lines, where):
        assert ("manifest-key", where, 3) in found_in(MINIMAL + lines)

    def test_the_error_reads_as_one_sentence_a_problem(self):
        with pytest.raises(InvalidManifest) as caught:
            parse("FullName: a\nType: Plugin\nTags: x\n")
        assert str(caught.value) == (
            "Type, line 2: 'Plugin' is unknown: expected Application or Library [manifest-type]; "
            "Tags, line 3: expected a list, found a string [manifest-tags]"
        )

    def test_the_error_is_that_of_a_package(self):
        with pytest.raises(InvalidPackage):
            parse("")


class TestNoMapping:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", "nothing"),
            ("\n\n", "nothing"),
            ("# only a comment\n", "nothing"),
            ("---\n", "nothing"),
            ("text", "a string"),
            ("1", "a string"),
            ("[a, b]", "a sequence"),
            ("- a\n", "a sequence"),
        ],
    )
    def test_names_what_was_found(self, text, found):
        (problem,) = problems_of(text)
        assert (problem.rule, problem.where) == ("manifest-mapping", "manifest.yaml")
        assert problem.message == f"expected a mapping, found {found}"

    @pytest.mark.parametrize(
        "data",
        [
            b"\x00",
            b"\xff\xfe\x00",
            b"\x80abc",
            b"PK\x03\x04",
            b"\x7fELF\x02\x01\x01\x00",
            b"FullName: \xff\n",
            b"FullName: a\nType: \x01\n",
            b"FullName: a: b\n",
            b"FullName: [a\n",
            b"FullName: 'a\n",
            b"FullName: *unknown\n",
            b"FullName: a\n\tType: b\n",
            b"FullName: a\n--- \nType: Library\n",
            b"%YAML 9.9\n---\na: b\n",
            b'FullName: "\\ud800"\n',
        ],
    )
    def test_what_is_no_yaml_is_refused(self, data):
        with pytest.raises(InvalidManifest) as caught:
            Manifest.parse(data)
        (problem,) = caught.value.problems
        assert (problem.rule, problem.where) == ("yaml-syntax", "manifest.yaml")

    def test_the_line_of_a_mistake_is_reported(self):
        assert found_in("FullName: a\nType: b: c\n") == [("yaml-syntax", "manifest.yaml", 2)]


class TestHostileYaml:
    def test_more_than_a_mebibyte_is_refused(self):
        filled = MINIMAL + "#" * (1024**2 - len(MINIMAL))
        assert parse(filled).fqn == "org.app"
        assert found_in(filled + "#") == [("yaml-size", "manifest.yaml", 0)]

    @pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}")])
    def test_64_levels_are_read_and_65_refused(self, opening, closing):
        def nested(levels):
            # The mapping of the manifest itself is a level.
            return f"{MINIMAL}Deep: {opening * (levels - 1)}{closing * (levels - 1)}\n"

        assert parse(nested(64)).fqn == "org.app"
        assert found_in(nested(65)) == [("yaml-depth", "manifest.yaml", 3)]

    @pytest.mark.parametrize(
        "value",
        [
            "!custom text",
            "!custom {a: b}",
            "!custom [a]",
            "!!python/object/apply:os.system ['exit 1']",
            "!!python/name:os.system",
            "!!python/tuple [a]",
            "!!int ''",
            "!!int x",
            "!!float ''",
            "!!float x",
            "!!bool maybe",
            "!!timestamp tomorrow",
            "!!binary abc",
            "!!null x",
            "!!map [a]",
            "!!seq {a: b}",
            "!!set [a]",
            "!!omap {a: b}",
            "!!pairs [a]",
            "!!merge x",
            "2001-99-99",
            "2001-01-01T00:00:00+99:99",
            pytest.param("9" * 5000, id="integer of 5000 digits"),
            pytest.param("1" + ":59" * 300 + ".5", id="sexagesimal of 300 places"),
            "{[a]: b}",
            "{{a: b}: c}",
        ],
    )
    def test_a_value_that_is_none_is_refused_or_left_as_written(self, value):
        found, problems = outcome(f"{MINIMAL}Other: {value}\n".encode())
        if found is None:
            assert [problem.where for problem in problems] in (["manifest.yaml"], ["Other"])
        else:
            other = found.document.get("Other")
            assert other in (None, ["a"], {"a": "b"}) or isinstance(other, str)

    @pytest.mark.parametrize(
        "tag", ["!custom", "!!set", "!!str", "!!int", "!!null", "!!seq", "!!omap", "!!python/dict"]
    )
    @pytest.mark.parametrize("lines", ["", "Version: 1\n", "=: 5\n"])
    def test_a_tag_on_the_whole_does_no_harm(self, tag, lines):
        found, _ = outcome(f"--- {tag}\n{MINIMAL}{lines}".encode())
        assert found is None or found.document["FullName"] == "org.app"

    @pytest.mark.parametrize(
        "lines",
        [
            "Other: &a [*a]\n",
            "Other: &a {k: *a}\n",
            "Other: &a {k: [*a, *a]}\n",
            "Other: &a {? [*a] : 1}\n",
            "Other: &a {<<: *a}\n",
            "Tags: &a [*a]\n",
            "Classes: &a {A: *a}\n",
            "Supplier: &a {A: *a}\n",
            "Supplier: &a {A: {B: *a}}\n",
            "Require: &a {b: *a}\n",
        ],
    )
    def test_no_alias_makes_the_document_endless(self, lines):
        found, _ = outcome((MINIMAL + lines).encode())
        if found is not None:
            json.dumps(dict(found.document))

    def test_a_whole_that_holds_itself_is_refused(self):
        assert found_in(f"--- &a\n{MINIMAL}Other: *a\n") != []

    def test_a_plain_alias_is_read(self):
        found = parse_with("Name: &name The App\nDescription: *name\n")
        assert found.description == "The App"

    @pytest.mark.parametrize(
        "lines",
        [
            pytest.param("Version: '" + "9" * 4300 + "'\n", id="version"),
            pytest.param("Require: {b: '" + "9" * 4300 + "'}\n", id="require"),
            pytest.param("Format: '" + "9" * 4300 + "'\n", id="format"),
        ],
    )
    def test_a_number_that_python_cannot_hold_is_refused(self, lines):
        with pytest.raises(InvalidManifest):
            parse_with(lines)


CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
from glare_murano.package import InvalidManifest, Manifest
try:
    Manifest.parse(sys.stdin.buffer.read())
except InvalidManifest as error:
    print(*(problem.rule for problem in error.problems))
else:
    print("read")
"""


def parsed_apart(text, encoding="utf-8"):
    """Parse in a process of its own, with bounded memory and time.

    :returns: the rules that are broken, or "read".
    """
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=text.encode(encoding),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == 0, child.stderr.decode()[-300:]
    return child.stdout.decode().strip()


def growing(levels, width):
    """Aliases that stand for ``width ** levels`` values."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


def growing_by_merges(levels, width):
    """Merge keys that copy one pair ``width ** levels`` times."""
    lines = ["a0: &a0 {x: y}"]
    lines += [
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * width)}]}}" for n in range(1, levels)
    ]
    return "\n".join(lines) + "\n"


def chained_merges(length):
    lines = ["a0: &a0 {x: y}"]
    lines += [f"a{n}: &a{n} {{<<: *a{n - 1}}}" for n in range(1, length)]
    return "\n".join(lines) + f"\n<<: *a{length - 1}\n"


class TestHostileYamlApart:
    """What could end the process, or fill the machine."""

    @pytest.mark.parametrize("piece", ["[", "{a: ", "- ", "? ", "[? ", "&a ["])
    def test_200_000_levels_are_refused(self, piece):
        assert parsed_apart(piece * 200_000) in ("yaml-depth", "yaml-syntax")

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize(
        "start", ["", "a:\n", "\u3042:\n", "a:\r", "a:\x85", "a:\u2028", "--- ", "# a\u2029"]
    )
    def test_200_000_levels_are_refused_wherever_they_start(self, start, encoding):
        assert parsed_apart(start + "- ? " * 100_000, encoding) in ("yaml-depth", "yaml-syntax")

    @pytest.mark.parametrize(
        ("opening", "closing"), [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("[{a: ", "}]")]
    )
    def test_a_deep_manifest_is_refused_for_its_depth(self, opening, closing):
        text = opening * 500 + closing * 500
        assert found_in(text) == [("yaml-depth", "manifest.yaml", 1)]

    def test_aliases_that_grow_are_refused(self):
        assert parsed_apart(MINIMAL + growing(levels=10, width=9)) != "read"

    def test_merge_keys_that_grow_are_refused(self):
        assert parsed_apart(MINIMAL + growing_by_merges(levels=10, width=9)) != "read"

    def test_a_long_chain_of_merge_keys_does_no_harm(self):
        parsed_apart(MINIMAL + chained_merges(2_000))

    def test_a_long_sexagesimal_number_does_no_harm(self):
        parsed_apart(MINIMAL + "Other: 1" + ":0" * 500_000 + "\n")


class TestDocument:
    def test_holds_plain_values(self):
        found = parse(COMPLETE).document
        assert found["Scalable"] is True
        assert found["Ratio"] == 1.1
        assert found["Tags"] == ["database", "sql", "database"]
        assert found["UI"] == "ui.yaml"
        assert found["Supplier"]["CompanyUrl"]["Link"] == "https://example.org"

    def test_holds_version_format_and_require_as_written(self):
        found = parse_with(
            "Version: 1.10\nFormat: 1.3\nRequire: {b: 1.10, c: , d: '>=1'}\n"
        ).document
        assert found["Version"] == "1.10"
        assert found["Format"] == "1.3"
        assert found["Require"] == {"b": "1.10", "c": None, "d": ">=1"}

    def test_holds_what_is_written_alone(self):
        found = parse(MINIMAL).document
        assert dict(found) == {"FullName": "org.app", "Type": "Application"}

    def test_texts_are_as_they_are_written(self):
        found = parse_with(
            "Name: 1.10\nAuthor: yes\nTags: [1, 1.10, ~]\nUI: 2.0\nSupplier: {Name: on}\n"
        )
        expected = {"Name": "1.10", "Author": "yes", "Tags": ["1", "1.10"], "UI": "2.0"}
        assert {key: found.document[key] for key in expected} == expected
        assert found.document["Supplier"] == {"Name": "on"}

    @pytest.mark.parametrize(
        "lines",
        ["x: &x {Version: 2}\n<<: *x\n", "Require: {<<: {a.b: 1}}\n", "Meta: {<<: {a: 1}}\n"],
    )
    def test_merge_keys_are_refused_since_they_would_be_lost(self, lines):
        found, problems = outcome(f"{MINIMAL}{lines}".encode())
        assert found is None
        assert "merge keys" in problems[0].message

    def test_null_is_left_out(self):
        found = parse_with("Version:\nFormat: ~\nRequire:\n").document
        assert dict(found) == {"FullName": "org.app", "Type": "Application"}

    def test_holds_a_date_as_it_is_written(self):
        assert parse_with("Released: 2016-03-01\n").document["Released"] == "2016-03-01"


def parses_or_is_refused(data):
    found, problems = outcome(data)
    if found is None:
        assert problems
        assert all(problem.rule and problem.where and problem.message for problem in problems)
    else:
        assert found.fqn in found.requirements or found.fqn == "io.murano"


TOKENS = [
    *(
        "[",
        "]",
        "{",
        "}",
        ": ",
        ", ",
        "- ",
        "? ",
        "\n",
        "\n  ",
        " ",
        "'",
        '"',
        "|\n",
        ">\n",
        "#",
        "%",
        "=",
    ),
    *("&a ", "*a", "<<: ", "---\n", "...\n", "\t", "\x00", "\u00a0", "\ufeff", "~", "null", "yes"),
    *("!x ", "!!int ", "!!float ", "!!bool ", "!!timestamp ", "!!binary ", "!!set ", "!!omap "),
    *(
        "!!pairs ",
        "!!str ",
        "!!null ",
        "!!merge ",
        "1.10",
        "1:59",
        "0x",
        "2001-01-01",
        ".inf",
        "a",
        "a.b",
    ),
    *("Version", "Require", "Classes", "Supplier", "Tags", "Format", "Type", "Name"),
]


@st.composite
def mutations(draw):
    """The complete manifest with a few pieces replaced."""
    data = COMPLETE.encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 12))
        piece = draw(st.binary(max_size=4) | st.sampled_from([t.encode() for t in TOKENS]))
        data = data[:start] + piece + data[start + length :]
    return data


class TestFuzz:
    @settings(max_examples=effort.FILES)
    @given(st.binary(max_size=200))
    def test_random_bytes(self, data):
        parses_or_is_refused(data)

    @settings(max_examples=effort.FILES)
    @given(mutations())
    def test_a_manifest_with_mistakes(self, data):
        parses_or_is_refused(data)

    @settings(max_examples=effort.FILES)
    @given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
    def test_random_yaml_after_a_manifest(self, text):
        parses_or_is_refused(f"{MINIMAL}Other: {text}\n".encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("FullName: org.a\n", "Version: 0.16.0\nFullName: org.a\n"),
        (
            "---\n  FullName: a # x\n  Type: b",
            "---\n  Version: 0.16.0\n  FullName: a # x\n  Type: b",
        ),
        (
            "# ä😀\nFullName: org.a\nVersion: 1.10 # x\n",
            "# ä😀\nFullName: org.a\nVersion: 0.16.0 # x\n",
        ),
        ("Version: '1'\r\nFullName: a\r\n", "Version: 0.16.0\r\nFullName: a\r\n"),
        ("Version:\nFullName: org.a\n", "Version: 0.16.0\nFullName: org.a\n"),
        ("Version: ~\nFullName: org.a\n", "Version: 0.16.0\nFullName: org.a\n"),
        ('{"FullName": "org.a"}', '{Version: 0.16.0, "FullName": "org.a"}'),
        ('{"FullName": "org.a", "Version": "1"}', '{"FullName": "org.a", "Version": 0.16.0}'),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_version_is_set_and_everything_else_stays(before: str, after: str, encoding: str) -> None:
    assert with_version(before.encode(encoding), Version("0.16.0")).decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "Require:\n  a:\n  b: 0 # x\n  c: '1'\n",
            "Require:\n  a: '>=1'\n  b: '<2' # x\n  c: '1'\n",
        ),
        ("Require:\n  b: ~\n  a: '0'\n", "Require:\n  b: '<2'\n  a: '>=1'\n"),
        ("# ä😀\nRequire: {b: '*', a: 0}\n", "# ä😀\nRequire: {b: '<2', a: '>=1'}\n"),
        ("Require: {a: , b: }\n", "Require: {a:  '>=1', b:  '<2'}\n"),
    ],
)
def test_ranges_are_set_and_everything_else_stays(before: str, after: str) -> None:
    start = "FullName: org.a\nType: Library\n"
    changed = with_ranges((start + before).encode("utf-16"), {"a": ">=1", "b": "<2"})
    assert Manifest.parse(changed).requirements["b"] == VersionSpec.of("<2")
    assert " ".join(changed.decode().split()) == " ".join((start + after).split())
    assert with_ranges(changed, {}) == changed
