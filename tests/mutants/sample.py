# SPDX-License-Identifier: Apache-2.0

"""The mutants that are tried of an area: a sample, drawn with a fixed seed."""

import ast
import functools
import pathlib
import random
from collections.abc import Iterable, Sequence

from cosmic_ray import commands
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec, WorkItem

# How many mutants are tried of each area.
SIZE = 300
_SEED = 1
# Cosmic Ray's operators that change nothing, or only what a caller imports.
_LEFT_OUT = ("core/NoOp", "core/RemoveDecorator")


def draw(database: WorkDB, modules: Sequence[str]) -> None:
    """Write the drawn mutants of some modules into an empty database.

    First the places in the code are drawn, and then a change at each of them: of one operator, such
    as ``+``, there are many more mutants than of another.
    """
    commands.init(map(pathlib.Path, modules), database, {})
    places: dict[tuple[str, tuple[int, int]], list[WorkItem]] = {}
    for item in sorted(_with_effect(database.work_items), key=_order):
        (change,) = item.mutations
        places.setdefault((str(change.module_path), change.start_pos), []).append(item)
    dice = random.Random(_SEED)
    drawn = dice.sample(sorted(places), min(SIZE, len(places)))
    database.clear()
    database.add_work_items([dice.choice(places[place]) for place in drawn])


def _order(item: WorkItem) -> tuple[str, str, int]:
    (change,) = item.mutations
    return str(change.module_path), change.operator_name, change.occurrence


def _with_effect(items: Iterable[WorkItem]) -> Iterable[WorkItem]:
    """Yield the mutants that a test can see.

    Nothing reads annotations while the code runs. And the ``*`` before keyword-only parameters is
    no operator, though Cosmic Ray replaces it by ``/``.
    """
    annotations: dict[pathlib.Path, list[ast.expr]] = {}
    for item in items:
        (change,) = item.mutations
        found = annotations.setdefault(change.module_path, _annotations(change.module_path))
        is_left_out = change.operator_name in _LEFT_OUT or _is_separator(change)
        if not is_left_out and not _is_in(found, change):
            yield item


def _is_separator(change: MutationSpec) -> bool:
    line, column = change.start_pos
    return _lines(change.module_path)[line - 1][column:].startswith("*,")


@functools.cache
def _lines(module: pathlib.Path) -> list[str]:
    return module.read_text().splitlines()


def _annotations(module: pathlib.Path) -> list[ast.expr]:
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
    return [node for node in found if node is not None]


def _is_in(nodes: Iterable[ast.expr], change: MutationSpec) -> bool:
    return any(
        (node.lineno, node.col_offset)
        <= change.start_pos
        < (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        for node in nodes
    )
