# SPDX-License-Identifier: Apache-2.0

"""Pictures of graphs, small and large: what their geometry must hold."""

import itertools
import random
import re
import xml.etree.ElementTree
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest

from loader.drawing import pictures
from loader.drawing.pictures import Box, Line
from tests import svg

SVG = svg.NAMESPACE
# No text is smaller, in pixels.
SMALLEST = 10
Graph = tuple[Mapping[str, Box], Sequence[Line]]


class Rectangle(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Rectangle") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def _graph(packages: int, cycles: int, seed: int) -> Graph:
    """Return packages that require others before them, and some arrows that close cycles."""
    drawn = random.Random(seed)
    boxes = {
        str(number): Box(
            f"org.example.{'name' * drawn.randint(1, 9)}{number}",
            ["1.0.0"] * drawn.randint(1, 3),
            frozenset(drawn.sample(("first", "dashed", "dotted", "double"), drawn.randint(0, 2))),
        )
        for number in range(packages)
    }
    pairs = [
        (other, number)
        for number in range(1, packages)
        for other in sorted({drawn.randrange(max(0, number - 30), number) for _ in range(2)})
    ]
    for _ in range(cycles):
        first, second = sorted(drawn.sample(range(packages), 2))
        pairs.append((second, first))
    ranges = (">=1.2,<2", "1", "")
    lines = [Line(str(a), str(b), drawn.choice(ranges), f"{a} requires {b}") for a, b in pairs]
    return boxes, lines


GRAPHS = {
    "one package": _graph(1, 0, 0),
    "two packages": _graph(2, 1, 0),
    "a dozen": _graph(12, 2, 1),
    "fifty": _graph(50, 10, 2),
    "two hundred": _graph(200, 0, 3),
    "two hundred in cycles": _graph(200, 20, 4),
}


@pytest.fixture(scope="module", params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> Graph:
    found: Graph = GRAPHS[request.param]
    return found


@pytest.fixture(scope="module")
def picture(graph: Graph) -> xml.etree.ElementTree.Element:
    return xml.etree.ElementTree.fromstring(pictures.draw("A graph", *graph))


def _borders(picture: xml.etree.ElementTree.Element) -> Iterator[Rectangle]:
    """The outer borders of the boxes."""
    for box in svg.boxes(picture):
        yield _rectangle(next(box.iter(f"{SVG}rect")))


def _rectangle(rect: xml.etree.ElementTree.Element) -> Rectangle:
    x, y, width, height = (float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
    return Rectangle(x, y, x + width, y + height)


def _texts(picture: xml.etree.ElementTree.Element, sizes: Mapping[str, float]) -> list[Rectangle]:
    found = []
    for text in picture.iter(f"{SVG}text"):
        x, y, width = (float(text.attrib[name]) for name in ("x", "y", "textLength"))
        size = sizes[text.attrib["class"]]
        found.append(Rectangle(x, y - 0.75 * size, x + width, y + 0.25 * size))
    return found


def _points(path: str) -> list[tuple[float, float]]:
    """Return points on an arrow, along its horizontal lines and curves."""
    found: list[tuple[float, float]] = []
    for step, text in re.findall(r"([MHC])([^MHC]*)", path):
        numbers = [float(number) for number in re.split("[ ,]", text)]
        if step == "M":
            found.append((numbers[0], numbers[1]))
        elif step == "H":
            found.append((numbers[0], found[-1][1]))
        else:
            found += _curve(found[-1], numbers)
    return found


def _curve(start: tuple[float, float], numbers: Sequence[float]) -> Iterator[tuple[float, float]]:
    x1, y1, x2, y2, x3, y3 = numbers
    for step in range(1, 9):
        t = step / 8
        parts = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
        yield (
            sum(part * x for part, x in zip(parts, (start[0], x1, x2, x3), strict=True)),
            sum(part * y for part, y in zip(parts, (start[1], y1, y2, y3), strict=True)),
        )


def _sizes() -> dict[str, float]:
    """Return the size of the font by the class of a text, from the rules of style."""
    default = re.findall(r"graph text\{[^}]*font-size:(\d+)px", pictures.STYLE)
    own = re.findall(r"graph text\.(\w+)\{font-size:(\d+)px", pictures.STYLE)
    return {"text": float(default[0])} | {name: float(size) for name, size in own}


def test_nothing_overlaps(picture: xml.etree.ElementTree.Element) -> None:
    texts, borders = _texts(picture, _sizes()), [*_borders(picture)]
    for first, second in itertools.combinations(texts, 2):
        assert not first.meets(second)
    for first, second in itertools.combinations(borders, 2):
        assert not first.meets(second)


def test_everything_is_inside(graph: Graph, picture: xml.etree.ElementTree.Element) -> None:
    paper = Rectangle(0, 0, float(picture.attrib["width"]), float(picture.attrib["height"]))
    everything = [*_texts(picture, _sizes()), *_borders(picture)]
    labels = [line.label for line in graph[1] if line.label]
    assert len(everything) == sum(2 + len(box.lines) for box in graph[0].values()) + len(labels)
    for each in everything:
        assert paper.left <= each.left < each.right <= paper.right
        assert paper.top <= each.top < each.bottom <= paper.bottom


def test_texts_are_large_enough_to_be_read() -> None:
    assert set(_sizes()) == {"title", "text", "label"}
    assert min(_sizes().values()) >= SMALLEST


def test_arrows_run_one_way_but_those_that_close_a_cycle(
    graph: Graph, picture: xml.etree.ElementTree.Element
) -> None:
    arrows = [p.attrib for p in picture.iter(f"{SVG}path") if p.attrib["class"] != "head"]
    assert len(arrows) == len(graph[1])
    borders = dict(zip(graph[0], _borders(picture), strict=True))
    for line, arrow in zip(graph[1], arrows, strict=True):
        points = _points(arrow["d"])
        assert all(first[0] <= second[0] for first, second in itertools.pairwise(points))
        ends = [borders[line.start], borders[line.end]]
        if arrow["class"] == "arrow back":
            ends.reverse()
        assert points[0][0] == pytest.approx(ends[0].right, abs=0.2)
        assert points[-1][0] == pytest.approx(ends[1].left, abs=0.2)
        assert ends[0].top < points[0][1] < ends[0].bottom
        assert ends[1].top < points[-1][1] < ends[1].bottom


def test_arrows_cross_no_box(picture: xml.etree.ElementTree.Element) -> None:
    # An arrow begins and ends on a border, and coordinates are rounded.
    insides = [
        Rectangle(each.left + 1, each.top + 1, each.right - 1, each.bottom - 1)
        for each in _borders(picture)
    ]
    for path in picture.iter(f"{SVG}path"):
        if path.attrib["class"] == "head":
            continue
        for (x1, y1), (x2, y2) in itertools.pairwise(_points(path.attrib["d"])):
            step = Rectangle(x1, min(y1, y2), x2, max(y1, y2) + 0.01)
            assert not any(step.meets(inside) for inside in insides)


def test_only_cycles_have_arrows_back(graph: Graph) -> None:
    boxes, lines = graph
    forward = [line for line in lines if int(line.start) < int(line.end)]
    assert "arrow back" not in pictures.draw("A graph", boxes, forward)
    cycle = [Line(a, b, "", "") for a, b in itertools.pairwise([*boxes, *boxes][: len(boxes) + 1])]
    assert pictures.draw("A graph", boxes, cycle).count("arrow back") == (len(boxes) > 1)


def test_a_picture_is_the_same_each_time(graph: Graph) -> None:
    assert pictures.draw("A graph", *graph) == pictures.draw("A graph", *graph)


def test_texts_are_escaped() -> None:
    hostile = "</title><script>alert(1)</script>&\"'"
    boxes = {"a": Box(hostile, [hostile], link=hostile), "b": Box("b")}
    drawn = pictures.draw(hostile, boxes, [Line("a", "b", hostile, hostile)])
    assert "<script" not in drawn
    root = xml.etree.ElementTree.fromstring(drawn)
    assert [each.text for each in root.iter()].count(hostile) == 5
    assert next(root.iter(f"{SVG}a")).get("href") == hostile


def test_a_picture_inside_a_page_has_no_style_of_its_own() -> None:
    boxes = {"a": Box("a")}
    assert "<style>" not in pictures.draw_inside("A graph", boxes, [])
    assert "prefers-color-scheme:dark" in pictures.draw("A graph", boxes, [])
