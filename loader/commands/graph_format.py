# SPDX-License-Identifier: Apache-2.0

"""Output formats that draw the rows of a command as a graph; each row is an edge."""

import abc
import argparse
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, TextIO

from cliff.formatters import base as formatters

from glare_murano.package.errors import escaped
from loader import errors


class GraphFormat(formatters.ListFormatter):
    """An output format that draws a graph.

    :cvar columns: the columns of the command, all of which a drawing needs.
    """

    columns: ClassVar[Sequence[str]]

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        pass

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        if tuple(column_names) != self.columns:
            raise errors.LoaderError("a drawing needs all columns; leave out -c, or use -f table")
        rows = [[escaped(str(value)) for value in row] for row in data]
        stdout.write(f"{self.drawn(rows, stdout, parsed_args)}\n")

    @abc.abstractmethod
    def drawn(
        self, rows: Sequence[Sequence[str]], stdout: TextIO, parsed_args: argparse.Namespace
    ) -> str:
        """Return a drawing of the rows.

        :param rows: the rows of the table, in which control characters are already escaped.
        :param stdout: the stream for the drawing; its encoding may lack some characters.
        """
