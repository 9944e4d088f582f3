# SPDX-License-Identifier: Apache-2.0

"""Parameters and outputs of Heat templates are properties of the generated class."""

import io

import pytest

from glare_murano.package import InvalidPackage
from loader.compatibility import Part, Rule, compare
from tests import packages

HEADER = "heat_template_version: 2013-05-23\nresources: {}\n"


def _package(template: str, *files: str) -> io.BytesIO:
    manifest = packages.manifest("org.a", Format="Heat.HOT/1.0", Classes=None)
    content = packages.files(manifest)
    content["template.yaml"] = (HEADER + template).encode()
    content |= dict.fromkeys(files, b"")
    return io.BytesIO(packages.zipped(content))


def _parameter(*lines: str) -> str:
    return "\n    ".join(["parameters:\n  size:", "type: number", *lines])


RANGE = "constraints: [{range: {min: 1, max: 8}}]"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("", _parameter(), Rule.PROPERTY_REQUIRED),
        ("", _parameter("default: 1"), Rule.PROPERTY_ADDED),
        (_parameter(), "", Rule.PROPERTY_REMOVED),
        (_parameter(), "parameters:\n  size: {type: string}", Rule.PROPERTY_NARROWED),
        (_parameter(), _parameter(RANGE), Rule.PROPERTY_NARROWED),
        (_parameter(RANGE), _parameter(RANGE.replace("8", "4")), Rule.PROPERTY_NARROWED),
        (_parameter(RANGE), _parameter(RANGE.replace("8", "9")), Rule.PROPERTY_WIDENED),
        (_parameter(RANGE), _parameter("description: text", RANGE), None),
        (_parameter("default: 1"), _parameter("default: 2"), Rule.DEFAULT_CHANGED),
        (_parameter("default: 1"), _parameter(), Rule.PROPERTY_NARROWED),
        ("outputs: {a: {value: 1}}", "", Rule.PROPERTY_REMOVED),
        ("outputs: {a: {value: 1}}", "outputs: {a: {value: 2}}", None),
        ("", "outputs: {a: {value: 1}}", Rule.PROPERTY_ADDED),
    ],
)
def test_parameters_and_outputs(old: str, new: str, rule: Rule | None) -> None:
    found = [change.rule for change in compare(_package(old), _package(new)).changes]

    if rule in (None, Rule.DEFAULT_CHANGED):
        assert found == ([rule] if rule else [])
    else:
        assert rule in found


def test_a_change_names_the_parameter_and_its_line() -> None:
    (change,) = compare(_package(_parameter("default: 1")), _package("")).changes

    assert (change.class_name, change.member) == ("org.a", "templateParameters.size")
    assert (change.file, change.line, change.place.is_old) == ("template.yaml", 4, True)


def test_a_parameter_that_an_environment_may_set_can_be_omitted() -> None:
    environment = "Resources/HotEnvironments/small.yaml"

    changes = compare(_package("", environment), _package(_parameter(), environment)).changes

    assert [change.rule for change in changes] == [Rule.PROPERTY_ADDED]
    assert changes[0].part is Part.MINOR


def test_a_package_without_a_template_is_refused() -> None:
    manifest = packages.manifest("org.a", Format="Heat.HOT/1.0", Classes=None)
    broken = io.BytesIO(packages.zipped(packages.files(manifest)))

    with pytest.raises(InvalidPackage, match="template-missing"):
        compare(_package(""), broken)
