# SPDX-License-Identifier: Apache-2.0

"""Draw boxes and arrows as an SVG picture, for light and dark pages.

Colors alone carry no information: a text or the style of a line shows it as well. All texts are
escaped. Their widths are known, since the font is monospaced and each text has its ``textLength``.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from loader.drawing import layers
from loader.drawing.layers import Arrow, Place, Route, Size

# Sizes of fonts and lines, in pixels.
_TITLE, _TEXT, _LABEL = 13, 11, 11
# The width of a character in a monospaced font, as a fraction of the font size.
_CHARACTER = 0.6
_LINE_HEIGHT = 17
_PADDING = 9
# The distance between the two borders of a box, if it has two.
_SECOND_BORDER = 3

_LIGHT = {
    "paper": "#ffffff",
    "box": "#f3f6fa",
    "first": "#dcebdd",
    "line": "#5d6875",
    "text": "#1c2530",
    "faint": "#46515e",
}
_DARK = {
    "paper": "#131416",
    "box": "#202a35",
    "first": "#1f3d2a",
    "line": "#93a1b0",
    "text": "#e8edf2",
    "faint": "#b9c4cf",
}
_RULES = """\
.graph .paper{{fill:{paper}}}
.graph rect.box{{fill:{box};stroke:{line}}}
.graph .first rect.box{{fill:{first}}}
.graph .dashed rect.box{{stroke-dasharray:6 4}}
.graph .dotted rect.box{{stroke-dasharray:1 4;stroke-linecap:round;stroke-width:2}}
.graph text{{font-family:monospace;font-size:{text_size}px;fill:{text}}}
.graph text.title{{font-size:{title_size}px;font-weight:bold}}
.graph text.label{{font-size:{label_size}px;fill:{faint}}}
.graph path.arrow{{fill:none;stroke:{line}}}
.graph path.back{{stroke-dasharray:6 4}}
.graph path.head{{fill:{line}}}
"""


def _rules(colors: Mapping[str, str]) -> str:
    return _RULES.format(text_size=_TEXT, title_size=_TITLE, label_size=_LABEL, **colors)


# The CSS rules for pictures. A page with pictures can include them in its own style sheet.
STYLE = f"{_rules(_LIGHT)}@media (prefers-color-scheme:dark){{{_rules(_DARK)}}}"


class Box(NamedTuple):
    """A box with texts.

    :ivar title: the first line.
    :ivar lines: more lines, in a smaller font.
    :ivar forms: how the box is drawn: ``first`` for another color, ``dashed`` or ``dotted`` for the
        border, and ``double`` for a second border.
    :ivar link: the URL that a click on the box opens; empty if the box is no link.
    """

    title: str
    lines: Sequence[str] = ()
    forms: frozenset[str] = frozenset()
    link: str = ""


class Line(NamedTuple):
    """An arrow between two boxes.

    :ivar start: the key of the box where the arrow begins.
    :ivar end: the key of the box to which the arrow leads.
    :ivar label: the text on the arrow; may be empty.
    :ivar description: what the arrow means, as a sentence.
    """

    start: str
    end: str
    label: str
    description: str


def draw(title: str, boxes: Mapping[str, Box], lines: Sequence[Line]) -> str:
    """Draw a picture for a separate file; the picture contains its CSS rules.

    :param title: what the picture shows, for readers who do not see it.
    :param boxes: a mapping of keys to boxes. If the arrows form a cycle, the order of the boxes
        decides which arrow leads back.
    :param lines: the arrows; an arrow from a box to itself is left out.
    """
    return _draw(title, boxes, lines, f"<style>{STYLE}</style>")


def draw_inside(title: str, boxes: Mapping[str, Box], lines: Sequence[Line]) -> str:
    """Draw a picture for a page whose style sheet has ``STYLE``.

    The parameters are those of ``draw``.
    """
    return _draw(title, boxes, lines, "")


def _draw(title: str, boxes: Mapping[str, Box], lines: Sequence[Line], style: str) -> str:
    lines = [line for line in lines if line.start != line.end]
    arrows = [Arrow(line.start, line.end, _label_size(line.label)) for line in lines]
    layout = layers.arrange({key: _box_size(box) for key, box in boxes.items()}, arrows)
    width, height = map(round, layout.size)
    # An element with the role ``img`` hides its links from screen readers.
    role = "group" if any(box.link for box in boxes.values()) else "img"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="{role}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(title)}</title>{style}",
        f'<rect class="paper" width="{width}" height="{height}"/>',
    ]
    for line, route in zip(lines, layout.routes, strict=True):
        parts += _arrow(line, route)
    for key, box in boxes.items():
        parts += _box(box, layout.boxes[key])
    return "\n".join([*parts, "</svg>"])


def _text_width(text: str, size: int) -> float:
    return len(text) * size * _CHARACTER


def _box_size(box: Box) -> Size:
    widths = [_text_width(box.title, _TITLE), *(_text_width(line, _TEXT) for line in box.lines)]
    return Size(max(widths) + 2 * _PADDING, (1 + len(box.lines)) * _LINE_HEIGHT + 2 * _PADDING - 4)


def _label_size(label: str) -> Size:
    return Size(_text_width(label, _LABEL) + 8 if label else 0, _LINE_HEIGHT)


def _box(box: Box, place: Place) -> Iterator[str]:
    yield f'<g class="{" ".join(sorted(box.forms))}">'
    if box.link:
        yield f"<a href={quoteattr(box.link)}>"
    yield _border(place, 0)
    if "double" in box.forms:
        yield _border(place, _SECOND_BORDER)
    x, y = place.x + _PADDING, place.y + _PADDING + _TITLE - 3
    yield _text("title", box.title, _TITLE, x, y)
    for number, line in enumerate(box.lines, 1):
        yield _text("text", line, _TEXT, x, y + number * _LINE_HEIGHT)
    if box.link:
        yield "</a>"
    yield "</g>"


def _border(place: Place, inside: int) -> str:
    fill = ' fill-opacity="0"' if inside else ""
    return (
        f'<rect class="box" x="{place.x + inside:.1f}" y="{place.y + inside:.1f}" '
        f'width="{place.width - 2 * inside:.1f}" height="{place.height - 2 * inside:.1f}" '
        f'rx="5"{fill}/>'
    )


def _text(kind: str, text: str, size: int, x: float, y: float) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" textLength="{_text_width(text, size):.1f}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )


def _arrow(line: Line, route: Route) -> Iterator[str]:
    """Draw an arrow with its head and its label; the background of the label hides the arrow."""
    points = [*route.points]
    kind = "arrow back" if route.is_back else "arrow"
    yield f"<g><title>{escape(line.description)}</title>"
    way = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        way += _step(x1, y1, x2, y2)
    yield f'<path class="{kind}" d="{way}"/>'
    # The head is a triangle at the box to which the arrow leads.
    x, y = points[0] if route.is_back else points[-1]
    back = 8 if route.is_back else -8
    yield f'<path class="head" d="M{x:.1f},{y:.1f}l{back},-4v8z"/>'
    if line.label:
        place = route.label
        yield (
            f'<rect class="paper" x="{place.x:.1f}" y="{place.y:.1f}" '
            f'width="{place.width:.1f}" height="{place.height:.1f}"/>'
        )
        yield _text("label", line.label, _LABEL, place.x + 4, place.middle + 4)
    yield "</g>"


def _step(x1: float, y1: float, x2: float, y2: float) -> str:
    if y1 == y2:
        return f"H{x2:.1f}"
    middle = (x1 + x2) / 2
    return f"C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
