# SPDX-License-Identifier: Apache-2.0

"""The command that shows the requirements of packages, and its output formats."""

import argparse
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TextIO

from loader.catalogs import stored_package
from loader.commands import base, dependency_graph, drawings, parsing
from loader.commands.dependency_graph import Requirement
from loader.commands.graph_format import GraphFormat

_COLUMNS = ("Name", "Version", "Range", "Required By", "Passed Over", "Yanked")


class ShowTree(base.Lister):
    """Show the requirements of a package, with the versions that would be chosen now.

    If a package is repeated, it has (*) instead of its requirements. For example::

        $ openstack murano package tree org.example.wiki
        $ openstack murano package tree --reverse org.example.db@1.2.0
        $ openstack murano package tree org.example.wiki --why org.example.db
        $ openstack murano package tree org.example.wiki -f svg > wiki.svg
    """

    @property
    def formatter_namespace(self) -> str:
        """The group of entry points in which the output formats are registered."""
        return "glare_murano.tree_formats"

    @property
    def formatter_default(self) -> str:
        """The output format without ``-f``."""
        return "tree"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package(parser)
        kind = parser.add_mutually_exclusive_group()
        kind.add_argument(
            "--reverse", action="store_true", help="Show the packages that require the package."
        )
        kind.add_argument(
            "--why",
            metavar="<name>",
            help="Show which packages require this package, and why newer versions were not "
            "chosen; for a missing package, why no version was chosen.",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        reference = parsed_args.package
        if parsed_args.reverse:
            package = self.repository.find(reference, stored_package.ACTIVE)[0]
            graph = dependency_graph.dependents_of(self.repository, package)
        else:
            fqn, spec = self.repository.name_and_range(reference)
            graph = dependency_graph.closure(self.catalog, fqn, spec)
            if parsed_args.why:
                graph = dependency_graph.paths_to(graph, parsed_args.why)
            else:
                graph = [dataclasses.replace(edge, passed_over="") for edge in graph]
        return _COLUMNS, [dataclasses.astuple(edge) for edge in graph]


class _Tree(GraphFormat):
    """The output format that draws a tree in plain text, with the root in the first line."""

    columns = _COLUMNS

    def drawn(
        self, rows: Sequence[Sequence[str]], stdout: TextIO, parsed_args: argparse.Namespace
    ) -> str:
        drawing = drawings.tree([Requirement(*row) for row in rows])
        try:
            drawing.encode(stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            return drawings.in_ascii(drawing)
        return drawing


class _Picture(GraphFormat):
    """An output format with arrows that lead from the requiring to the required packages."""

    columns = _COLUMNS

    def __init__(self, draw: Callable[[Sequence[Requirement]], str]) -> None:
        self._draw = draw

    def drawn(
        self, rows: Sequence[Sequence[str]], stdout: TextIO, parsed_args: argparse.Namespace
    ) -> str:
        graph = [Requirement(*row) for row in rows]
        return self._draw(dependency_graph.turned(graph) if parsed_args.reverse else graph)


# These are the entry points of the output formats.
tree = _Tree
dot = functools.partial(_Picture, drawings.dot)
mermaid = functools.partial(_Picture, drawings.mermaid)
svg = functools.partial(_Picture, drawings.svg)
