# SPDX-License-Identifier: Apache-2.0

"""What package types generate, for a loader: built-in ones here, others in a child process."""

import logging

import pytest

from glare_murano.package import Archive, Description, InvalidPackage, Rule, read_contents
from glare_murano.package.classes import ClassDefinition
from glare_murano.package.manifest import FUNCTION_NAMESPACE
from tests import packages
from tests.plugins import site

__all__ = ["site"]

NAME = "org.app"

# The rest of each plug-in: what it does before it describes a package with one class.
PLUGIN = """
import json, os, sys
from glare_murano.package import Description, InvalidPackage, Problem

def describe(manifest, archive):
    {does}
    return Description({{manifest.fqn: []}}, {{}})
"""

pytestmark = pytest.mark.usefixtures("temporary")


@pytest.fixture
def folder(tmp_path):
    """A package of the format ``Test.Made``."""
    content = packages.manifest(NAME, "1.2.0", Format="Test.Made/1.0", Classes=None)
    return packages.write(tmp_path / "package", {**packages.files(content), "a/b.txt": b"text"})


@pytest.fixture
def read(site, folder):
    """Read a package whose plug-in does something."""

    def read(does):
        code = PLUGIN.format(does="\n    ".join(does.splitlines()))
        point = {"Test.Made/1.0": "made_plugin:describe"}
        site.install("made", "1.0", {FUNCTION_NAMESPACE: point}, {"made_plugin": code})
        with Archive.open(folder) as archive:
            return read_contents(archive)

    return read


def test_a_plug_in_describes_classes_requirements_and_the_form(read):
    found = read(
        "text = archive.read('a/b.txt', 10).decode()\n"
        "classes = {f'{manifest.fqn}.{n}': ('x.Base', 'x.Other') for n in range(2)}\n"
        "return Description(classes, {'io.murano': '>=1', 'org.db': None}, ui=f'Version: {text}')"
    )
    bases = ("x.Base", "x.Other")
    assert found.classes == (
        ClassDefinition("org.app.0", bases),
        ClassDefinition("org.app.1", bases),
    )
    assert found.inherits == dict.fromkeys(bases, ("org.app.0", "org.app.1"))
    ranges = {fqn: spec.text for fqn, spec in found.requirements.items()}
    assert ranges == {"io.murano": ">=1", "org.db": "0", NAME: "1"}
    assert found.ui == b"Version: text"


PNG = b"\x89PNG\r\n\x1a\n..."


def test_a_plug_in_computes_keys_of_the_manifest_and_the_logo(read):
    keys = {
        "Name": "Made",
        "Description": "by hand",
        "Type": "Library",
        "Author": "Somebody",
        "Supplier": {"Name": "A shop"},
        "Tags": ["one", "two"],
        "FullName": NAME,
        "Version": "1.2",
    }
    found = read(f"return Description({{NAME: []}}, {{}}, manifest={keys}, logo={PNG!r})".replace(
        "NAME", repr(NAME)))  # fmt: skip
    manifest = found.manifest
    assert (manifest.display_name, manifest.description) == ("Made", "by hand")
    assert (manifest.package_type, manifest.author) == ("Library", "Somebody")
    assert (manifest.supplier, manifest.tags) == ({"Name": "A shop"}, ("one", "two"))
    assert (manifest.fqn, str(manifest.version)) == (NAME, "1.2.0")
    assert found.logo == PNG


def test_a_plug_in_runs_in_another_process(read):
    found = read("import sys\nsys.modules['left_by_plug_in'] = sys")
    assert found.classes == (ClassDefinition(NAME, ()),)
    import sys

    assert "left_by_plug_in" not in sys.modules
    assert "made_plugin" not in sys.modules


@pytest.mark.parametrize(
    "does",
    [
        "raise RuntimeError('its own trouble')",
        "sys.exit()",
        "return None",
        "return Description({'a.B': 'c.D'}, {})",
        "return Description({'a.B': [1]}, {})",
        "return Description({'a.B': 1}, {})",
        "return Description({1: []}, {})",
        "return Description({}, {'a.B': 1})",
        "return Description({}, {}, ui=b'x')",
        "return Description({}, {}, logo='x')",
        "return Description({}, {}, manifest=[])",
        "return Description({}, {}, manifest={'Name': b'x'})",
    ],
)
def test_a_failure_of_a_plug_in_is_for_the_log_alone(read, caplog, does):
    with caplog.at_level(logging.ERROR), pytest.raises(InvalidPackage) as refusal:
        read(does)
    assert str(refusal.value) == (
        "Format: the package type Test.Made/1.0.0 failed; see the log [reading-failure]"
    )
    (record,) = caplog.records
    first, *lines = record.getMessage().split("\n")
    assert first == "The package type of org.app 1.2.0 failed:"
    assert lines[0].startswith("    Traceback")


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        "[]",
        '{"result": null}',
        '{"result": {"classes": [], "requirements": {}, "ui": null}}',
        '{"result": {"classes": {"a.B": "c.D"}, "requirements": {}, "ui": null}}',
        '{"result": {"classes": {}, "requirements": {"a": 1}, "ui": null}}',
        '{"problems": [], "warnings": []}',
        '{"problems": [["x", "", "", 0]], "warnings": []}',
        '{"problems": [["form-field", "", "", ""]], "warnings": []}',
        '{"problems": [["form-field", "", "", 0]], "warnings": null}',
        '{"problems": [["form-field", "", "", 0]]}',
    ],
)
def test_an_answer_that_a_plug_in_forges_is_a_failure(read, caplog, answer):
    with caplog.at_level(logging.ERROR), pytest.raises(InvalidPackage) as refusal:
        read(f"os.write(3, {answer.encode()!r}); os._exit(0)")
    assert str(refusal.value).endswith("could not be read; see the log of the service "
                                       "[reading-failure]")  # fmt: skip
    assert caplog.records[0].getMessage().startswith("The child that read the archive of org.app")


def test_a_plug_in_refuses_a_package_with_problems_of_its_own(read):
    with pytest.raises(InvalidPackage) as refusal:
        read("raise InvalidPackage([Problem('package-type-result', 'a/b.txt', 'is empty', 3)])")
    assert str(refusal.value) == "a/b.txt, line 3: is empty [package-type-result]"


@pytest.mark.parametrize(
    ("classes", "requirements", "ui", "where"),
    [
        ({"no name": []}, {}, None, "class no name"),
        ({"a.B": ["x;y"]}, {}, None, "class a.B"),
        ({"a.B": ["x.Y"] * 65}, {}, None, "class a.B"),
        ({}, {"a b": "1"}, None, "requirement a b"),
        ({}, {"a.b": ">>1"}, None, "requirement a.b"),
        ({}, {f"a.b{n}": "1" for n in range(257)}, None, "requirements"),
        ({}, {}, "x" * (1024**2 + 1), "form"),
        # Half of a pair of UTF-16, which JSON carries.
        ({}, {}, "\ud800", "form"),
    ],
)
def test_a_description_is_checked_as_a_manifest_is(folder, classes, requirements, ui, where, site):
    point = {FUNCTION_NAMESPACE: {"Test.Made/1.0": "no.such:function"}}
    site.install("made", "1.0", point, {})
    description = Description(classes, requirements, ui)
    with Archive.open(folder) as archive, pytest.raises(InvalidPackage) as refusal:
        read_contents(archive, lambda *_: description)
    (problem,) = refusal.value.problems
    assert (problem.rule, problem.where) == (Rule.PACKAGE_TYPE_RESULT, where)


@pytest.mark.parametrize(
    ("manifest", "logo", "where", "words"),
    [
        ({"FullName": "org.other"}, None, "FullName", "computes org.other 1.2.0; name and "),
        ({"Version": "2.0.0"}, None, "FullName", "computes org.app 2.0.0; name and version "),
        ({"Type": "Plugin"}, None, "Type", "'Plugin' is unknown"),
        ({"Tags": "one"}, None, "Tags", "expected a list, found a string"),
        ({"Require": {}}, None, "Require", "a package type cannot compute this key"),
        ({}, b"GIF", "Logo", "the generated logo is not a PNG, JPEG or GIF image"),
        ({}, PNG + bytes(500 * 1024), "Logo", "has 512011 bytes, at most 512000 are allowed"),
    ],
)
def test_what_is_computed_is_checked_as_a_manifest_is(folder, manifest, logo, where, words, site):
    point = {FUNCTION_NAMESPACE: {"Test.Made/1.0": "no.such:function"}}
    site.install("made", "1.0", point, {})
    description = Description({}, {}, None, manifest, logo)
    with Archive.open(folder) as archive, pytest.raises(InvalidPackage) as refusal:
        read_contents(archive, lambda *_: description)
    (problem,) = refusal.value.problems
    assert problem.where == where
    assert words in problem.message
