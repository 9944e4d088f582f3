# SPDX-License-Identifier: Apache-2.0

"""The limits of ``fields.find_excess``, compared with those of Glare's own fields."""

from collections.abc import Callable
from typing import Any

import pytest
from glare.common import exception

from glare_murano import fields
from glare_murano.glare.artifact import MuranoPackageArtifact

# Glare declares the fields at its start.
pytestmark = pytest.mark.usefixtures("application")

LENGTHS = {field.name: field.max_length for field in fields.FIELDS} | fields.COMMON
KINDS = {field.name: field.kind for field in fields.FIELDS} | {
    "description": "string",
    "tags": "list",
}
OF_KIND: dict[str, Callable[[str], Any]] = {
    "string": lambda text: text,
    "list": lambda text: [text],
    "dict": lambda text: {"key": text},
}
DICTS = sorted(name for name, kind in KINDS.items() if kind == "dict")


def _is_refused_by_glare(name: str, value: Any) -> bool:
    try:
        setattr(MuranoPackageArtifact(None), name, value)
    except (exception.GlareException, ValueError):
        return True
    return False


def _is_refused(name: str, value: Any) -> bool:
    return bool(fields.find_excess({name: value}))


@pytest.mark.parametrize("name", sorted(LENGTHS))
@pytest.mark.parametrize("excess", [0, 1])
def test_a_string_is_as_long_as_glare_allows(name: str, excess: int) -> None:
    value = OF_KIND[KINDS[name]]("a" * (LENGTHS[name] + excess))

    assert (_is_refused(name, value), _is_refused_by_glare(name, value)) == (excess, excess)


@pytest.mark.parametrize("name", DICTS)
@pytest.mark.parametrize("length", [0, 1, fields.MAX_KEY, fields.MAX_KEY + 1])
def test_a_key_is_as_long_as_glare_allows(name: str, length: int) -> None:
    value = {"a" * length: "value"}

    is_wrong = not 1 <= length <= fields.MAX_KEY
    assert (_is_refused(name, value), _is_refused_by_glare(name, value)) == (is_wrong, is_wrong)


@pytest.mark.parametrize("name", sorted(name for name in KINDS if KINDS[name] != "string"))
@pytest.mark.parametrize("excess", [0, 1])
def test_there_are_as_many_elements_as_glare_allows(name: str, excess: int) -> None:
    most = fields.MAX_TAGS if name == "tags" else fields.MAX_ELEMENTS
    names = [f"a{number}" for number in range(most + excess)]
    value = names if KINDS[name] == "list" else dict.fromkeys(names, "value")

    assert (_is_refused(name, value), _is_refused_by_glare(name, value)) == (excess, excess)


@pytest.mark.parametrize("text", ["\0", "\U0001f600", "\ud800"], ids=ascii)
@pytest.mark.parametrize("name", DICTS)
def test_no_key_has_a_character_that_a_database_cannot_store(name: str, text: str) -> None:
    assert _is_refused(name, {text: "value"})
    assert _is_refused(name, {"key": text})
