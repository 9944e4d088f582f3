# SPDX-License-Identifier: Apache-2.0

"""The tests that run a statement, by coverage. It does not run tests, and changes no code."""

import ast
import pathlib
from collections.abc import Iterator

from coverage import CoverageData

_Statement = ast.stmt | ast.ExceptHandler | ast.match_case
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def tests(module: pathlib.Path, line: int) -> frozenset[str]:
    """Return the tests that run the statement at a line of a module, without their parameters.

    An import runs the statements outside of functions, before anything is measured. If such a
    statement sets a private name, or begins a function, its tests are those of the statements that
    have the name, or of the function. Otherwise they are the tests of all functions in the module.

    :returns: node identifiers of pytest; none if only programs that tests start can have run the
        statement.
    """
    data = CoverageData()
    data.read()
    contexts = data.contexts_by_lineno(str(module.resolve()))
    tree = ast.parse(module.read_text())
    inside = {each for function in _functions(tree) for each in _inner(function)}
    found: set[str] = set()
    seen: set[_Statement] = set()
    waiting = [_find(tree, line)]
    while waiting:
        statement = waiting.pop()
        if statement in seen:
            continue
        seen.add(statement)
        ran = {each for line in _header(statement) for each in contexts.get(line, [])}
        # Outside of tests, the context is empty.
        if statement in inside and ran != {""}:
            found |= ran - {""}
        else:
            waiting += list(_dependents(tree, statement)) or inside
    return frozenset(each.partition("[")[0] for each in found)


def _find(tree: ast.Module, line: int) -> _Statement:
    """Return the innermost statement at a line."""
    found = [each for each in _statements(tree) if line in _header(each)]
    return max(found, key=lambda each: _header(each).start)


def _functions(tree: ast.Module) -> Iterator[_Function]:
    return (each for each in ast.walk(tree) if isinstance(each, _Function))


def _inner(function: _Function) -> Iterator[_Statement]:
    """Yield the statements in a function."""
    for each in function.body:
        yield from _statements(each)


def _statements(tree: ast.AST) -> Iterator[_Statement]:
    for node in ast.walk(tree):
        if isinstance(node, _Statement):
            yield node


def _header(node: _Statement) -> range:
    """Return the lines of a statement, up to the first statement in it."""
    first = node.pattern if isinstance(node, ast.match_case) else node
    starts = [first.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]
    body = getattr(node, "body", [])
    end = body[0].lineno if body else (first.end_lineno or first.lineno) + 1
    return range(min(starts), max(end, first.lineno + 1))


def _dependents(tree: ast.Module, statement: _Statement) -> Iterator[_Statement]:
    """Yield the statements that depend on one outside of functions, as far as they are known."""
    if isinstance(statement, _Function):
        yield from _inner(statement)
    if statement not in tree.body or not isinstance(statement, ast.Assign | ast.AnnAssign):
        return
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    if len(names) == len(targets) and all(each.startswith("_") for each in names):
        for found in _statements(tree):
            if found is not statement and names & _names(found):
                yield found


def _names(statement: _Statement) -> set[str]:
    """Return the names in a statement, without those in the statements in it."""
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        waiting += [e for e in ast.iter_child_nodes(node) if not isinstance(e, _Statement)]
    return found
