# SPDX-License-Identifier: Apache-2.0

"""The conditions of a list, and their form in a URL."""

import collections
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from glare_murano.package import VersionSpec
from glare_murano.selection import (
    CHOICES,
    CONDITIONS,
    MAX_PATTERNS,
    MAX_WORDS,
    InvalidParameter,
    Selection,
    read_selection,
)

_texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
_values = st.dictionaries(
    st.sampled_from([name for name in CONDITIONS if name not in CHOICES]),
    st.lists(_texts, min_size=1, max_size=3),
)
_selections = st.builds(
    Selection,
    _values,
    st.lists(_texts, max_size=3),
    version=st.none() | st.sampled_from(["1", ">=1.2,<2", "*", "1.0.0-rc.1"]).map(VersionSpec.of),
    yanked=st.none() | st.booleans(),
    subclass_of=st.none() | st.just("org.a.B"),
    project_id=st.none() | st.text("ab", max_size=2),
    distinct=st.sampled_from(["", "name", "version"]),
)


def _read(parameters: list[tuple[str, str]]) -> Selection:
    values = collections.defaultdict(list)
    for name, value in parameters:
        values[name].append(value)
    return read_selection(values)


@hypothesis.given(_selections)
def test_conditions_are_read_as_they_are_written(selection: Selection) -> None:
    assert _read(selection.parameters()) == selection


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"status": ["gone"]}, "status: expected drafted or active or deactivated, found 'gone'"),
        ({"visibility": ["x"]}, "visibility: expected private or public or shared or community"),
        ({"type": ["library"]}, "type: expected Application or Library, found 'library'"),
        ({"yanked": ["yes"]}, "yanked: expected true or false, found 'yes'"),
        ({"distinct": ["id"]}, "distinct: expected name or version, found 'id'"),
        ({"version": ["x1"]}, "version: 'x1' is not a valid range"),
        ({"subclass_of": ["a..b"]}, "subclass_of: 'a..b'"),
        ({"version": ["1", "2"]}, "version: expected at most 1 value, found 2"),
        ({"name": ["a*"] * (MAX_PATTERNS + 1)}, r"name: expected at most 20 names with \*"),
        ({"search": ["a"] * (MAX_WORDS + 1)}, "search: expected at most 20 values, found 21"),
    ],
)
def test_a_parameter_that_is_not_valid_is_named(parameters: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        read_selection(parameters)


def test_only_active_packages_are_selected_by_default() -> None:
    assert Selection().statuses == ("active",)
    assert read_selection({"status": ["drafted"]}).statuses == ["drafted"]
