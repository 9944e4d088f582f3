# SPDX-License-Identifier: Apache-2.0

"""Draw dependency graphs: as trees in plain text, and as DOT, Mermaid and SVG.

Names and ranges come from users, so they are escaped by the rules of each format.
"""

import html
from collections.abc import Sequence

from loader.commands.dependency_graph import Requirement, by_requirer

_REPEATED = " (*)"
# The characters in front of a package, and in front of the lines below it.
_INNER = ("├── ", "│   ")
_LAST = ("└── ", "    ")
_ASCII = str.maketrans("├─└│", "|-`|")

# The size of a package and the gaps, in pixels.
_WIDTH = 260
_HEIGHT = 30
_GAP = 60


def tree(graph: Sequence[Requirement]) -> str:
    """Draw a tree in plain text; a package that is repeated has ``(*)`` instead of branches."""
    edges, shown = by_requirer(graph), set[str]()
    lines: list[str] = []
    # For a long chain of requirements, a recursion could exceed Python's limit of nested calls.
    waiting = [(edge, "", "", "") for edge in reversed(edges.get("", ()))]
    while waiting:
        edge, indent, branch, more = waiting.pop()
        label = f"{edge.package}  [{edge.range}]" if edge.range else edge.package
        is_repeated = edge.package in shown and edge.package in edges
        lines.append(f"{indent}{branch}{label}{_REPEATED if is_repeated else ''}")
        if edge.passed_over:
            lines.append(f"{indent}{more}passed over: {edge.passed_over}")
        if edge.package not in shown:
            shown.add(edge.package)
            below = list(reversed(edges.get(edge.package, ())))
            waiting += [
                (each, indent + more, *(_INNER if number else _LAST))
                for number, each in enumerate(below)
            ]
    return "\n".join(lines)


def in_ascii(text: str) -> str:
    """Replace the lines of a tree by ASCII characters, for terminals that have no others."""
    return text.translate(_ASCII)


def dot(graph: Sequence[Requirement]) -> str:
    """Draw a graph in DOT, the language of Graphviz."""
    nodes = (f"  {_dot(package)};" for package in _packages(graph))
    edges = (
        f"  {_dot(edge.required_by)} -> {_dot(edge.package)} [label={_dot(edge.range)}];"
        for edge in graph
        if edge.required_by
    )
    return "\n".join(["digraph requirements {", *nodes, *edges, "}"])


def mermaid(graph: Sequence[Requirement]) -> str:
    """Draw a graph in the language of Mermaid, which many sites show in Markdown."""
    ids = {package: f"p{number}" for number, package in enumerate(_packages(graph))}
    nodes = (f'  {ids[package]}["{_mermaid(package)}"]' for package in ids)
    edges = (
        f'  {ids[edge.required_by]} -->|"{_mermaid(edge.range)}"| {ids[edge.package]}'
        for edge in graph
        if edge.required_by
    )
    return "\n".join(["graph LR", *nodes, *edges])


def svg(graph: Sequence[Requirement]) -> str:
    """Draw a graph as an SVG picture; each package is on the right of one that requires it."""
    places = _places(graph)
    width = (max(column for column, _ in places.values()) + 1) * (_WIDTH + _GAP)
    height = (max(row for _, row in places.values()) + 1) * (_HEIGHT + _GAP // 2)
    drawn = []
    for edge in graph:
        if edge.required_by:
            (x1, y1), (x2, y2) = _point(places[edge.required_by]), _point(places[edge.package])
            title = html.escape(f"{edge.required_by} requires {edge.fqn} {edge.range}")
            drawn.append(
                f'<line x1="{x1 + _WIDTH}" y1="{y1 + _HEIGHT // 2}" x2="{x2}" '
                f'y2="{y2 + _HEIGHT // 2}" stroke="gray"><title>{title}</title></line>'
            )
    for package, place in places.items():
        x, y = _point(place)
        drawn.append(
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="white" '
            f'stroke="black"/><text x="{x + _WIDTH // 2}" y="{y + _HEIGHT // 2}" '
            f'text-anchor="middle" dominant-baseline="central" font-family="sans-serif" '
            f'font-size="12">{html.escape(package)}</text>'
        )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
    return "\n".join([head, *drawn, "</svg>"])


def _packages(graph: Sequence[Requirement]) -> list[str]:
    return list(dict.fromkeys(edge.package for edge in graph))


def _places(graph: Sequence[Requirement]) -> dict[str, tuple[int, int]]:
    """Return the column and the row of each package, by its name and version."""
    edges, places = by_requirer(graph), dict[str, tuple[int, int]]()
    column, level = 0, [""]
    while level:
        following = [edge.package for package in level for edge in edges.get(package, ())]
        level = [package for package in dict.fromkeys(following) if package not in places]
        places |= {package: (column, row) for row, package in enumerate(level)}
        column += 1
    return places


def _point(place: tuple[int, int]) -> tuple[int, int]:
    column, row = place
    return column * (_WIDTH + _GAP) + _GAP // 2, row * (_HEIGHT + _GAP // 2) + _GAP // 4


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _mermaid(text: str) -> str:
    return "".join(c if c.isalnum() or c in " ._-,=*" else f"#{ord(c)};" for c in text)
