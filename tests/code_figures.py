# SPDX-License-Identifier: Apache-2.0

"""Figures of the code itself: its size, its imports, and docstrings to be read by a stranger.

``python -m tests.code_figures`` prints the size of each part, and the imports between its
directories. ``python -m tests.code_figures loader 80`` prints 80 docstrings of a part, drawn with
a fixed seed.
"""

import ast
import io
import pathlib
import random
import sys
import tokenize
from collections.abc import Iterable, Iterator

ROOT = pathlib.Path(__file__).parents[1]
PARTS = ("glare_murano", "loader", "examples", "benchmarks", "tests")

_SEED = 23
# Tokens that are not code.
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def modules(part: str) -> list[pathlib.Path]:
    """Return the modules of a part, sorted by their paths."""
    return sorted((ROOT / part).rglob("*.py"))


def count_lines(source: str) -> int:
    """Return the number of lines with code: without docstrings, comments and empty lines."""
    documentation = {
        line
        for _, docstring in _docstrings(ast.parse(source))
        for line in range(docstring.lineno, (docstring.end_lineno or 0) + 1)
    }
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - documentation)


def find_imports(part: str) -> set[tuple[str, str]]:
    """Return the imports between the directories and top-level modules of a part.

    :returns: pairs of the importing one and the imported one.
    """
    found = set()
    for path in modules(part):
        importer = _room(part, path.relative_to(ROOT).with_suffix("").parts)
        for name in _imported(ast.parse(path.read_text())):
            names = tuple(name.split("."))
            if names[0] == part and len(names) > 1 and _exists(names[:2]):
                found.add((importer, _room(part, names)))
    return {(importer, imported) for importer, imported in found if importer != imported}


def draw_docstrings(part: str, count: int) -> list[tuple[str, str]]:
    """Draw docstrings of a part at random, with a fixed seed.

    :returns: pairs of a place (path, and the name of the class or function) and a docstring.
    """
    found = [
        (f"{path.relative_to(ROOT)} {getattr(node, 'name', '')}".strip(), docstring.value)
        for path in modules(part)
        for node, docstring in _docstrings(ast.parse(path.read_text()))
    ]
    return random.Random(_SEED).sample(found, min(count, len(found)))


def _docstrings(tree: ast.Module) -> Iterator[tuple[_DOCUMENTED, ast.Constant]]:
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            statement = node.body[0]
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield node, statement.value


def _imported(tree: ast.Module) -> Iterable[str]:
    """Yield the full names that a module imports; of modules and of what is in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _exists(names: tuple[str, ...]) -> bool:
    path = ROOT.joinpath(*names)
    return path.is_dir() or path.with_suffix(".py").is_file()


def _room(part: str, names: tuple[str, ...]) -> str:
    """Return the directory or top-level module that a module belongs to."""
    return names[1] if len(names) > 1 else part


def _print_figures() -> None:
    print(f"{'part':<14}{'modules':>9}{'lines':>9}{'rooms':>7}{'imports':>9}")
    for part in PARTS:
        paths = modules(part)
        lines = sum(count_lines(path.read_text()) for path in paths)
        rooms = {_room(part, path.relative_to(ROOT).with_suffix("").parts) for path in paths}
        imports = find_imports(part)
        rooms.discard("__init__")
        print(f"{part:<14}{len(paths):>9}{lines:>9}{len(rooms):>7}{len(imports):>9}")


def _print_docstrings(part: str, count: int) -> None:
    for place, docstring in draw_docstrings(part, count):
        print(f"--- {place}\n{docstring.strip()}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _print_docstrings(sys.argv[1], int(sys.argv[2]))
    else:
        _print_figures()
