# SPDX-License-Identifier: Apache-2.0

"""The texts in the code of this project, with which pages of the documentation are compared."""

import ast
import functools
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence

_ROOT = pathlib.Path(__file__).parents[1]
_FIELD = re.compile(r"%(?:\(\w+\))?[.\d]*[a-z]")
# These may end the text between two values.
_ENDS = " \n:;,.()[]'\"="


def fixed_parts(texts: Sequence[str]) -> list[str]:
    """Return texts without spaces and punctuation at their ends; empty ones are left out."""
    stripped = (" ".join(text.split()).strip(_ENDS) for text in texts)
    return [text for text in stripped if text]


@functools.cache
def read_modules() -> Mapping[pathlib.Path, str]:
    """Return the texts of each module, joined, with the character NUL in place of each value.

    A value is a field of an f-string or of a log message. Docstrings are left out.
    """
    files = [path for name in ("glare_murano", "loader") for path in (_ROOT / name).rglob("*.py")]
    return {
        path: " ".join("\0".join(_strings(ast.parse(path.read_text()))).split()) for path in files
    }


def find_writers(parts: Sequence[str], modules: Mapping[pathlib.Path, str]) -> list[pathlib.Path]:
    """Return the modules that contain all fixed parts of a message."""
    return [path for path, text in modules.items() if all(part in text for part in parts)]


def _strings(tree: ast.AST) -> Iterator[str]:
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (
                str(each.value) if isinstance(each, ast.Constant) else "\0" for each in node.values
            )
            yield "".join(parts)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node not in docstrings
        ):
            yield _FIELD.sub("\0", node.value)
