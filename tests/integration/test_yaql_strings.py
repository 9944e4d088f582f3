# SPDX-License-Identifier: Apache-2.0

"""Functions of YAQL that the engine replaces: their results are those of YAQL's own."""

import random
import string
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies
from murano.engine.system import yaql_functions
from yaql.standard_library import strings

from tests.integration.test_yaql_format import evaluate

# The engine of these tests has the patches.
pytestmark = pytest.mark.usefixtures("engine_conf")

_texts = strategies.text(alphabet="ab ", max_size=12)
_numbers = strategies.integers(-14, 14)


@hypothesis.given(_texts, _texts, _numbers, _numbers)
def test_the_last_index(text: str, part: str, start: int, length: int) -> None:
    given = {"x": text, "part": part, "start": start, "length": length}
    assert evaluate("$x.lastIndexOf($part)", **given) == text.rfind(part)
    assert evaluate("$x.lastIndexOf($part, $start)", **given) == text.rfind(part, start)
    found = evaluate("$x.lastIndexOf($part, $start, $length)", **given)
    assert found == strings.last_index_of_(text, part, start, length)


@hypothesis.given(_texts, _texts | strategies.none(), _numbers)
def test_splits_from_the_right(text: str, separator: str | None, most: int) -> None:
    given = {"x": text, "separator": separator, "most": most}
    try:
        expected = tuple(text.rsplit(separator, most))
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)):
            evaluate("$x.rightSplit($separator, $most)", **given)
    else:
        assert evaluate("$x.rightSplit($separator, $most)", **given) == expected


@hypothesis.given(_texts, _texts | strategies.none())
def test_trims(text: str, characters: str | None) -> None:
    given = {"x": text, "characters": characters}
    assert evaluate("$x.trim($characters)", **given) == text.strip(characters)
    assert evaluate("$x.trimLeft($characters)", **given) == text.lstrip(characters)
    assert evaluate("$x.trimRight($characters)", **given) == text.rstrip(characters)
    assert evaluate("norm($x, $characters)", **given) == (text.strip(characters) or None)
    assert evaluate("isEmpty($x, true, $characters)", **given) == (not text.strip(characters))
    assert evaluate("isEmpty($x, false, $characters)", **given) == (not text)


def test_nulls_and_spaces() -> None:
    assert evaluate("norm(null)") is None
    assert evaluate("isEmpty(null)") is True
    assert evaluate("isEmpty($x)", x=string.whitespace) is True
    assert evaluate("$x.trim()", x=f"{string.whitespace}a{string.whitespace}") == "a"


def test_formats_of_times() -> None:
    assert evaluate("datetime(2015, 8, 29).format('%d. %m %Y')") == "29. 08 2015"
    assert evaluate("datetime(2015, 8, 29).format($x)", x="x" * 1000) == "x" * 1000
    with pytest.raises(ValueError, match="has 1001 characters, at most 1000 are allowed"):
        evaluate("datetime(2015, 8, 29).format($x)", x="x" * 1001)


def test_texts_of_times() -> None:
    assert evaluate("datetime('2015-08-29').day") == 29
    assert evaluate("datetime('29.8?2015', '%d.%m?%Y').day") == 29
    with pytest.raises(ValueError, match="has 1001 characters, at most 1000 are allowed"):
        evaluate("datetime($x)", x="1" * 1001)


def test_random_values_do_not_follow_from_others() -> None:
    random.seed(1)
    first = _draw()
    random.seed(1)
    assert not set(_draw()).intersection(first)


def _draw() -> list[Any]:
    # The rest of a name is the time and a counter.
    name = yaql_functions.random_name()[:5]
    return [evaluate("random()"), evaluate("random(0, 1000000000)"), name]
