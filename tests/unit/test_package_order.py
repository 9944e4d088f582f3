# SPDX-License-Identifier: Apache-2.0

"""The orders of lists, the markers of their pages, and the relevance of a match."""

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from glare_murano.package import Version
from glare_murano.package_order import BY_NAME, KEYS, SEARCHED, Key, Order, relevance
from glare_murano.selection import InvalidParameter

_orders = st.builds(
    lambda names, directions: Order(tuple(map(Key, names, directions))),
    st.lists(st.sampled_from(KEYS), min_size=1, unique=True),
    st.lists(st.booleans(), min_size=len(KEYS), max_size=len(KEYS)),
)
VALUES = {name: f"{name} é" for name in KEYS} | {
    "id": "1",
    "name": "org.a",
    "version": "1.2.0-rc.1",
    "relevance": 3,
}


@hypothesis.given(_orders)
def test_an_order_is_read_as_it_is_written(order: Order) -> None:
    assert Order.of(str(order)) == order


@hypothesis.given(_orders)
def test_a_marker_has_the_values_of_its_order(order: Order) -> None:
    names = {key.name for key in order.keys} | {"id", "name", "version"}

    read = order.read_marker(order.marker(VALUES))

    assert read == {**{n: VALUES[n] for n in names}, "version": Version("1.2.0-rc.1")}


def test_names_and_versions_decide_between_equal_packages() -> None:
    assert Order.of("owner").complete == (Key("owner"), *BY_NAME.keys)
    assert Order.of("version:asc,name:desc").complete == (Key("version"), Key("name", True))


@pytest.mark.parametrize("text", ["", "size", "name:up", "name,,version", "name:asc:asc"])
def test_an_unknown_key_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(InvalidParameter, match=r"the keys are name, version, .*, with :asc or"):
        Order.of(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "[]",
        "{",
        "5a4b5c5e-0000-4000-8000-000000000000",
        json.dumps({"id": "1", "name": "a"}),
        json.dumps({"id": "1", "name": "a", "version": "x"}),
        json.dumps({"id": 1, "name": "a", "version": "1.0.0"}),
        json.dumps({"id": "1", "name": "\0", "version": "1.0.0"}),
        json.dumps({"id": "1", "name": "\ud800", "version": "1.0.0"}),
        "[" * 100_000,
    ],
)
def test_another_marker_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="is not a marker of a list in the order name:asc"):
        BY_NAME.read_marker(text)


def test_a_number_is_expected_as_a_relevance() -> None:
    order = Order.of("relevance")
    with pytest.raises(InvalidParameter):
        order.read_marker(order.marker({**VALUES, "relevance": "3"}))


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["wiki"], "display_name"),
        (["ORG.WIKI"], "name"),
        (["pages"], "description"),
        (["big d"], "categories"),
        (["db", "nothing"], "tags"),
        (["main"], "class_definitions"),
        (["über"], "author"),
        (["somebody", "pages"], "description"),
    ],
)
def test_the_most_important_field_with_a_word_counts(words: list[str], place: str) -> None:
    fields = {
        "display_name": "A Wiki",
        "name": "org.wiki.notes",
        "description": "Pages.",
        "categories": ["Web", "Big Data"],
        "tags": ["DB"],
        "class_definitions": ["org.Main"],
        "author": "Über Somebody",
    }
    assert relevance(fields, words) == SEARCHED.index(place)
    assert relevance({}, words) is relevance(fields, ["nothing"]) is None
