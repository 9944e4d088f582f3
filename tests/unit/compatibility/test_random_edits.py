# SPDX-License-Identifier: Apache-2.0

"""Random edits of the example packages and of Murano's core library are classified."""

import functools
import io
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from loader.compatibility import Comparison, Part, compare
from tests import effort
from tests.unit.compatibility import edits

PATHS = edits.paths()
Edit = Callable[[edits.Draft, edits.Draw[Any]], bool]


def _examples(count: int) -> settings:
    # Without shrinking, which takes minutes: a failure lists the few edits that were drawn. The
    # edits are the same each time, so that a failure can be repeated.
    return settings(
        max_examples=count,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@functools.cache
def _original(path: pathlib.Path) -> bytes:
    return edits.Draft(path).pack().getvalue()


def _edited(data: st.DataObject, choices: Sequence[Edit]) -> tuple[Comparison, io.BytesIO, bytes]:
    """Compare a package with an edited one, and return both."""

    def draw(values: Sequence[Any]) -> Any:
        assume(values)
        return data.draw(st.sampled_from(values))

    path = draw(PATHS)
    draft = edits.Draft(path)
    applied = [draw(choices) for _ in range(draw([1, 1, 2, 4]))]
    # The other edits expect valid classes.
    applied.sort(key=lambda edit: edit is edits.break_something)
    assume(all(edit(draft, draw) for edit in applied))
    new = draft.pack()
    return compare(io.BytesIO(_original(path)), new), new, _original(path)


@_examples(effort.EDITS)
@given(st.data())
def test_every_edit_is_classified(data: st.DataObject) -> None:
    comparison, new, _ = _edited(data, edits.ALL)

    assert comparison.part is max((each.part for each in comparison.changes), default=Part.PATCH)
    assert all(each.file and each.message for each in comparison.changes)
    assert comparison.report()
    assert compare(new, new).changes == ()


@_examples(effort.EDIT_PROPERTIES)
@given(st.data())
def test_an_edit_that_only_adds_is_never_major(data: st.DataObject) -> None:
    comparison, _, _ = _edited(data, edits.ADDITIONS)

    assert comparison.part is Part.MINOR, comparison.report()


@_examples(effort.EDIT_PROPERTIES)
@given(st.data())
def test_the_reverse_of_an_addition_is_major(data: st.DataObject) -> None:
    _, new, old = _edited(data, edits.ADDITIONS)

    comparison = compare(new, io.BytesIO(old))

    assert comparison.part is Part.MAJOR, comparison.report()


@_examples(effort.EDIT_PROPERTIES)
@given(st.data())
def test_the_order_of_keys_and_the_bodies_of_methods_do_not_matter(data: st.DataObject) -> None:
    comparison, _, _ = _edited(data, edits.NEUTRAL)

    assert comparison.changes == (), comparison.report()


@_examples(effort.EDIT_PROPERTIES)
@given(st.data())
def test_the_removal_of_a_class_is_major(data: st.DataObject) -> None:
    comparison, _, _ = _edited(data, [edits.remove_class])

    assert comparison.part is Part.MAJOR, comparison.report()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_a_package_does_not_differ_from_itself(path: pathlib.Path) -> None:
    comparison = compare(path, io.BytesIO(_original(path)))

    assert comparison.changes == ()
    assert comparison.part is Part.PATCH
