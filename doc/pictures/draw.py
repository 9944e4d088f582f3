# SPDX-License-Identifier: Apache-2.0

"""Draws the pictures of the documentation as SVG from their descriptions in YAML.

Each picture is written for a light page, for a dark one, and for a page of which only the browser
knows whether it is light or dark, such as the README.
"""

import argparse
import pathlib
from typing import Any
from xml.sax.saxutils import escape

import yaml

HERE = pathlib.Path(__file__).parent
PICTURES = HERE.parent / "source" / "pictures"

_LIGHT = {
    "paper": "#ffffff",
    "box": "#f3f6fa",
    "strong": "#dcebdd",
    "line": "#6b7785",
    "text": "#1c2530",
    "faint": "#4d5967",
}
_DARK = {
    "paper": "#131416",
    "box": "#202a35",
    "strong": "#1f3d2a",
    "line": "#8593a3",
    "text": "#e8edf2",
    "faint": "#b3bfcb",
}
_LINE_HEIGHT = 20


def _colors(colors: dict[str, str]) -> str:
    return "".join(
        (
            f".paper{{fill:{colors['paper']}}}",
            f".box{{fill:{colors['box']};stroke:{colors['line']}}}",
            f".strong{{fill:{colors['strong']};stroke:{colors['line']}}}",
            f".title{{fill:{colors['text']};font-weight:bold}}",
            f".text{{fill:{colors['text']}}}",
            f".label{{fill:{colors['faint']};font-style:italic}}",
            f".arrow{{stroke:{colors['line']};fill:none;stroke-width:2}}",
            f".head{{fill:{colors['line']}}}",
        )
    )


STYLES = {
    "": f"{_colors(_LIGHT)}@media (prefers-color-scheme:dark){{{_colors(_DARK)}}}",
    "-light": _colors(_LIGHT),
    "-dark": _colors(_DARK),
}


def _box(box: dict[str, Any]) -> list[str]:
    x, y, width, height = box["at"]
    kind = "strong" if box.get("strong") else "box"
    drawn = [f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>']
    row = y + 23
    if title := box.get("title"):
        drawn.append(f'<text class="title" x="{x + 12}" y="{row}">{escape(title)}</text>')
        row += _LINE_HEIGHT + 4
    for line in box["lines"]:
        if line:
            drawn.append(f'<text class="text" x="{x + 12}" y="{row}">{escape(line)}</text>')
        row += _LINE_HEIGHT if line else _LINE_HEIGHT // 2
    return drawn


def _arrow(arrow: dict[str, Any]) -> str:
    (x1, y1), (x2, y2) = arrow["from"], arrow["to"]
    return f'<path class="arrow" d="M{x1},{y1} L{x2},{y2}" marker-end="url(#head)"/>'


def _label(label: dict[str, Any]) -> str:
    x, y = label["at"]
    text = escape(label["text"])
    return f'<text class="label" x="{x}" y="{y}" text-anchor="middle">{text}</text>'


def draw(picture: dict[str, Any], style: str) -> str:
    """Return the SVG of a picture.

    :param picture: its description, as in the YAML files of this directory.
    :param style: a style of :data:`STYLES`.
    """
    width, height = picture["size"]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="14">',
        f"<title>{escape(picture['title'])}</title>",
        f"<desc>{escape(picture['description'])}</desc>",
        f"<style>{style}</style>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        'markerHeight="7" orient="auto">'
        '<path class="head" d="M0,0 L10,5 L0,10 z"/></marker></defs>',
        f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
        *(line for box in picture["boxes"] for line in _box(box)),
        *map(_arrow, picture["arrows"]),
        *map(_label, picture["labels"]),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def drawings() -> dict[pathlib.Path, str]:
    """Return the SVG files of all pictures with their content."""
    return {
        PICTURES / f"{source.stem}{name}.svg": draw(yaml.safe_load(source.read_text()), style)
        for source in sorted(HERE.glob("*.yaml"))
        for name, style in STYLES.items()
    }


def main() -> None:
    """Write the files."""
    argparse.ArgumentParser(description=main.__doc__).parse_args()
    PICTURES.mkdir(exist_ok=True)
    for path, text in drawings().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
