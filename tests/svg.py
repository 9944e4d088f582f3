# SPDX-License-Identifier: Apache-2.0

"""Read the SVG pictures of graphs."""

import xml.etree.ElementTree
from collections.abc import Iterator
from xml.etree.ElementTree import Element

NAMESPACE = "{http://www.w3.org/2000/svg}"


def boxes(picture: Element) -> Iterator[Element]:
    """Yield the elements of the boxes; their class is the form of the border."""
    for group in picture.iter(f"{NAMESPACE}g"):
        if group.get("class") is not None:
            yield group


def arrows(picture: Element) -> Iterator[Element]:
    """Yield the elements of the arrows."""
    for group in picture.iter(f"{NAMESPACE}g"):
        if group.get("class") is None:
            yield group


def forms(text: str) -> dict[tuple[str | None, ...], str | None]:
    """Return the boxes of a picture: their texts -> the form of the border."""
    picture = xml.etree.ElementTree.fromstring(text)
    return {
        tuple(each.text for each in box.iter(f"{NAMESPACE}text")): box.get("class")
        for box in boxes(picture)
    }
