# SPDX-License-Identifier: Apache-2.0

"""The YAQL of each version of MuranoPL, in the real engine."""

import pathlib
from typing import Any

import pytest
import yaml

from tests import packages
from tests.integration import tasks
from tests.integration.test_plugins import folder

__all__ = ["folder"]

REFUSED = "refused"

# Expression -> its value in MuranoPL 1.0 and 1.1, 1.2 and 1.3, and 1.4: Murano 16 has three
# dialects of YAQL.
VALUES = {
    # Functions that later became methods.
    "toUpper(abc)": ("ABC", REFUSED, REFUSED),
    "list(1, 2).firstOrDefault()": (1, REFUSED, REFUSED),
    # In the first dialect, an endless range from 3.
    "range(3).toList()": (REFUSED, [0, 1, 2], [0, 1, 2]),
    # The name of a type, later the type.
    "type($object).substring(0, 8)": ("org.test", "org.test", REFUSED),
    "isString(type($object))": (True, True, False),
}

NAME = "org.test.format"

OLD = b"""\
Name: org.test.old.Thing
Methods:
  value:
    Body:
      - Return: toUpper(abc)
"""
NEW = b"""\
Name: org.test.new.Thing
Methods:
  value:
    Usage: Static
    Scope: Public
    Body:
      - $old: new('org.test.old.Thing')
      - Return:
          - $old.value()
          - isString(type($old))
"""


def _package(written: str) -> dict[str, bytes]:
    body: list[Any] = [{"$object": f"new('{NAME}.Thing')"}]
    names = [f"$value{number}" for number in range(len(VALUES))]
    for name, expression in zip(names, VALUES, strict=True):
        refused = {"Do": [{name: REFUSED}]}
        body.append({"Try": [{name: expression}], "Catch": [refused]})
    method = {"Usage": "Static", "Scope": "Public", "Body": [*body, {"Return": names}]}
    content = packages.content(NAME, Format=written)
    thing = {"Name": f"{NAME}.Thing", "Methods": {"values": method}}
    return {**content, "Classes/Thing.yaml": yaml.safe_dump(thing).encode()}


@pytest.mark.parametrize(
    ("written", "dialect"), [("1.0", 0), ("1.1", 0), ("1.2", 1), ("1.3", 1), ("MuranoPL/1.4", 2)]
)
def test_each_version_has_its_own_yaql(folder: pathlib.Path, written: str, dialect: int) -> None:
    packages.write(folder / "package", _package(written))

    found = tasks.call_static(f"{NAME}.Thing", "values")

    assert dict(zip(VALUES, found, strict=True)) == {
        expression: values[dialect] for expression, values in VALUES.items()
    }


def test_a_class_keeps_the_yaql_of_its_own_package(folder: pathlib.Path) -> None:
    for name, text, keys in (
        ("org.test.old", OLD, {"Format": "1.0"}),
        ("org.test.new", NEW, {"Format": "1.4", "Require": {"org.test.old": "1"}}),
    ):
        content = packages.content(name, **keys)
        packages.write(folder / name, {**content, "Classes/Thing.yaml": text})

    assert tasks.call_static("org.test.new.Thing", "value") == ["ABC", False]
