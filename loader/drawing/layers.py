# SPDX-License-Identifier: Apache-2.0

"""Place the boxes of a directed graph in layers from left to right.

Each arrow leads from a layer to a later layer; only an arrow that closes a cycle leads back. Boxes
and labels do not overlap, and no arrow crosses a box. The library grandalf chooses the layer of
each box and the place of the box in its layer.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout

# Gaps in pixels: between two layers, between two boxes of a layer, and at the border.
_LAYER_GAP = 44
_BOX_GAP = 16
_BORDER = 16
# The height that an arrow takes in a layer that it passes.
_ARROW_HEIGHT = 4
# How often grandalf sorts the boxes of all layers, forward and backward, so that few arrows cross.
# More rounds change little.
_ROUNDS = 3


class Size(NamedTuple):
    """A size in pixels."""

    width: float
    height: float


class Place(NamedTuple):
    """A rectangle in pixels; ``x`` and ``y`` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The ``y`` of the rectangle's center."""
        return self.y + self.height / 2


class Arrow(NamedTuple):
    """An arrow from one box to another.

    :ivar start: the key of the box where the arrow begins.
    :ivar end: the key of the box to which the arrow leads.
    :ivar label: the size of the label.
    """

    start: str
    end: str
    label: Size


class Route(NamedTuple):
    """The path of an arrow.

    :ivar points: the ends of the arrow's horizontal lines, from left to right: two points for each
        line. Between two of these lines, the arrow goes up or down.
    :ivar label: the place of the label, on one of the horizontal lines.
    :ivar is_back: whether the arrow leads from right to left, since it closes a cycle.
    """

    points: Sequence[tuple[float, float]]
    label: Place
    is_back: bool


class Layout(NamedTuple):
    """The size of a picture, and the places of the boxes and arrows in it.

    :ivar boxes: a mapping of keys to the places of the boxes.
    :ivar routes: the paths of the arrows, in the order in which ``arrange`` got the arrows.
    """

    size: Size
    boxes: Mapping[str, Place]
    routes: Sequence[Route]


class _View:
    """The size and the place of a vertex for grandalf.

    grandalf draws from top to bottom, so width and height are exchanged.
    """

    def __init__(self, size: Size) -> None:
        self.w, self.h = size.height, size.width
        self.xy = (0.0, 0.0)


class _Layered:
    """The layers of a component: a part of the graph in which all boxes are connected."""

    def __init__(self, part: Any, top: float) -> None:
        """Place the boxes and the labels of the component.

        :param part: the component: a ``graph_core`` of grandalf without cycles.
        :param top: the upper border of the component in the picture.
        """
        layout = SugiyamaLayout(part)
        layout.xspace = _BOX_GAP
        layout.dw, layout.dh = _ARROW_HEIGHT, 0
        layout.init_all(inverted_edges=[])
        layout.draw(_ROUNDS)
        self._passing = layout.ctrls
        self._ranks = {vertex: layout.grx[vertex].rank for vertex in part.sV}
        views = [vertex.view for layer in layout.layers for vertex in layer]
        self._shift = top - min(view.xy[0] - view.w / 2 for view in views)
        self.bottom = self._shift + max(view.xy[0] + view.w / 2 for view in views)
        self._layers = []
        x = float(_BORDER)
        for layer in layout.layers:
            width = max(vertex.view.h for vertex in layer)
            self._layers.append((x, x + width))
            x += width + _LAYER_GAP
        self.right = x - _LAYER_GAP

    def place(self, vertex: Any) -> Place:
        """Return the place of a box or a label, which is centered between the layer's borders."""
        left, right = self._layers[self._ranks[vertex]]
        width, height = vertex.view.h, vertex.view.w
        y = vertex.view.xy[0] + self._shift - height / 2
        return Place((left + right - width) / 2, y, width, height)

    def passed(self, edge: Any) -> Iterator[tuple[float, float]]:
        """Yield the two ends of a horizontal line for each layer that an edge passes."""
        controls = self._passing.get(edge, {})
        for rank in range(self._ranks[edge.v[0]] + 1, self._ranks[edge.v[1]]):
            left, right = self._layers[rank]
            y = controls[rank].view.xy[0] + self._shift
            yield from ((left, y), (right, y))

    def line(self, vertex: Any, *, is_start: bool) -> tuple[tuple[float, float], ...]:
        """Return the horizontal line between a box and a border of its layer, from left to right.

        :param is_start: whether the line begins at the box, and ends at the right border of its
            layer. Otherwise, the line begins at the left border, and ends at the box.
        """
        left, right = self._layers[self._ranks[vertex]]
        place = self.place(vertex)
        if is_start:
            return (place.x + place.width, place.middle), (right, place.middle)
        return (left, place.middle), (place.x, place.middle)


def arrange(boxes: Mapping[str, Size], arrows: Sequence[Arrow]) -> Layout:
    """Place boxes and arrows.

    :param boxes: a mapping of keys to the sizes of the boxes. If the arrows form a cycle, the order
        of the boxes decides which arrow closes the cycle.
    :param arrows: the arrows; none may lead from a box to itself.
    """
    back = _closing(boxes, arrows)
    vertices = {key: Vertex(key) for key in boxes}
    for key, size in boxes.items():
        vertices[key].view = _View(size)
    # Each label is in a layer of its own between two boxes, so that nothing overlaps it.
    labels, edges = [], []
    for arrow, is_back in zip(arrows, back, strict=True):
        ends = (arrow.end, arrow.start) if is_back else (arrow.start, arrow.end)
        label = Vertex(arrow)
        label.view = _View(arrow.label)
        labels.append(label)
        edges.append((Edge(vertices[ends[0]], label), Edge(label, vertices[ends[1]])))
    graph = Graph([*vertices.values(), *labels], [edge for pair in edges for edge in pair])
    part_of: dict[Any, _Layered] = {}
    right, bottom = 0.0, float(_BORDER)
    for part in graph.C:
        layered = _Layered(part, bottom)
        part_of |= dict.fromkeys(part.sV, layered)
        right, bottom = max(right, layered.right), layered.bottom + _BOX_GAP
    places = {key: part_of[vertex].place(vertex) for key, vertex in vertices.items()}
    routes = [
        _route(part_of[label], label, *pair, is_back=is_back)
        for label, pair, is_back in zip(labels, edges, back, strict=True)
    ]
    return Layout(Size(right + _BORDER, bottom - _BOX_GAP + _BORDER), places, routes)


def _route(layered: _Layered, label: Any, before: Any, after: Any, *, is_back: bool) -> Route:
    place = layered.place(label)
    start, end = layered.line(label, is_start=False)[0], layered.line(label, is_start=True)[1]
    points = (
        *layered.line(before.v[0], is_start=True),
        *layered.passed(before),
        *(start, end),
        *layered.passed(after),
        *layered.line(after.v[1], is_start=False),
    )
    return Route(points, place, is_back)


def _closing(boxes: Mapping[str, Size], arrows: Sequence[Arrow]) -> list[bool]:
    """Return for each arrow whether it closes a cycle; the other arrows form no cycle.

    The graph is searched depth-first, from the first box on. An arrow closes a cycle if it leads to
    a box on the path by which the search reached the arrow's start.
    """
    leaving: dict[str, list[int]] = {key: [] for key in boxes}
    for number, arrow in enumerate(arrows):
        leaving[arrow.start].append(number)
    is_back = [False] * len(arrows)
    done: set[str] = set()
    for first in boxes:
        # The boxes on the current path, each with an iterator of the arrows still to be followed.
        way = {} if first in done else {first: iter(leaving[first])}
        while way:
            key, rest = next(reversed(way.items()))
            number = next(rest, -1)
            if number < 0:
                done.add(key)
                way.popitem()
            elif (end := arrows[number].end) in way:
                is_back[number] = True
            elif end not in done:
                way[end] = iter(leaving[end])
    return is_back
