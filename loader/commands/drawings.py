# SPDX-License-Identifier: Apache-2.0

"""Draw dependency graphs: as trees in plain text, and as DOT, Mermaid and SVG.

Names and ranges come from users, so they are escaped by the rules of each format.
"""

import collections
import textwrap
from collections.abc import Sequence

from loader.commands.dependency_graph import MISSING, Requirement, by_requirer
from loader.drawing import pictures
from loader.drawing.pictures import Box, Line

_REPEATED = " (*)"
# The characters in front of a package, and in front of the lines below it.
_INNER = ("├── ", "│   ")
_LAST = ("└── ", "    ")
# The most characters of a reason in a picture.
_LONGEST = 40
_ASCII = str.maketrans("├─└│", "|-`|")


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
    """Replace the lines of a tree by ASCII characters, for terminals that show only ASCII."""
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
    """Draw a graph as an SVG picture; a package is to the right of the packages that require it."""
    chosen = {edge.package: edge for edge in reversed(graph)}
    versions = collections.Counter(edge.fqn for edge in chosen.values())
    roots = {edge.package for edge in graph if not edge.required_by}
    boxes = {
        package: _box(chosen[package], versions[chosen[package].fqn], package in roots)
        for package in _packages(graph)
    }
    lines = [
        Line(
            edge.required_by,
            edge.package,
            edge.range,
            f"{edge.required_by} requires {edge.fqn} {edge.range}",
        )
        for edge in graph
        if edge.required_by
    ]
    return pictures.draw(f"The requirements of {', '.join(sorted(roots))}", boxes, lines)


def _box(package: Requirement, versions: int, is_root: bool) -> Box:
    """Return the box of a package.

    :param versions: how many versions of the package are in the picture.
    :param is_root: whether no other package of the picture requires it.
    """
    lines, forms = [package.version], {"first"} if is_root else set()
    if versions > 1:
        lines.append(f"one of {versions} versions")
        forms.add("double")
    if package.version == MISSING:
        forms.add("dotted")
    if package.yanked:
        lines.append(textwrap.shorten(f"yanked: {package.yanked}", _LONGEST, placeholder="..."))
        forms.add("dashed")
    return Box(package.fqn, lines, frozenset(forms))


def _packages(graph: Sequence[Requirement]) -> list[str]:
    return list(dict.fromkeys(edge.package for edge in graph))


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _mermaid(text: str) -> str:
    return "".join(c if c.isalnum() or c in " ._-,=*" else f"#{ord(c)};" for c in text)
