# SPDX-License-Identifier: Apache-2.0

"""The tests that run a statement, by coverage. It does not run tests, and changes no code."""

import ast
import pathlib
from collections.abc import Iterator

from coverage import CoverageData


def tests(module: pathlib.Path, line: int) -> frozenset[str]:
    """Return the tests that run the statement at a line of a module, without their parameters.

    :returns: node identifiers of pytest. They are empty if no test is known to run the statement,
        or if an import has run it as well: then any test may depend on it.
    """
    data = CoverageData()
    data.read()
    by_line = data.contexts_by_lineno(str(module.resolve()))
    contexts = {context for each in _lines(module, line) for context in by_line.get(each, [])}
    # The empty context is that of imports.
    return frozenset() if "" in contexts else frozenset(each.partition("[")[0] for each in contexts)


def _lines(module: pathlib.Path, line: int) -> range:
    """Return the lines of the innermost statement at a line, without the statements in it."""
    found = [each for each in _statements(module) if line in each]
    return max(found, key=lambda each: (each.start, -each.stop), default=range(line, line + 1))


def _statements(module: pathlib.Path) -> Iterator[range]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield _header(node)


def _header(node: ast.stmt | ast.ExceptHandler | ast.match_case) -> range:
    """Return the lines of a statement, up to the first statement in it."""
    first = node.pattern if isinstance(node, ast.match_case) else node
    starts = [first.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]
    body = getattr(node, "body", [])
    end = body[0].lineno if body else (first.end_lineno or first.lineno) + 1
    return range(min(starts), max(end, first.lineno + 1))
