# SPDX-License-Identifier: Apache-2.0

"""The page that explains messages shows them as the code writes them."""

import ast
import functools
import pathlib
import re
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "doc" / "source" / "guides" / "operators" / "trouble.rst"
# What stands for a value: a word in capital letters on the page, and in the code a field of an
# f-string or of a log message.
_PLACEHOLDER = re.compile(r"\b(?!DEFAULT\b)[A-Z]{2,}\b(?!-\d)")
_FIELD = re.compile(r"%(?:\(\w+\))?[.\d]*[a-z]")
# These may end the text between two values.
_ENDS = " \n:;,.()[]'\"="


def _messages() -> list[str]:
    found = re.findall(r"^\.\. code-block:: text\n\n((?:    .*\n)+)", PAGE.read_text(), re.M)
    return [" ".join(text.split()) for text in found]


def _fixed(texts: list[str]) -> list[str]:
    """Return texts without their ends; none that is empty."""
    stripped = (" ".join(text.split()).strip(_ENDS) for text in texts)
    return [text for text in stripped if text]


def _strings(tree: ast.AST) -> Iterator[str]:
    """Yield the texts in the code, with the character NUL in place of each value."""
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


@functools.cache
def _code() -> dict[pathlib.Path, str]:
    """Return the texts of each module, as one string with the character NUL between them."""
    files = [path for name in ("glare_murano", "loader") for path in (ROOT / name).rglob("*.py")]
    return {
        path: " ".join("\0".join(_strings(ast.parse(path.read_text()))).split()) for path in files
    }


def _writers(message: str, code: dict[pathlib.Path, str]) -> list[pathlib.Path]:
    """Return the modules that have all fixed parts of a message."""
    parts = _fixed(_PLACEHOLDER.split(message))
    return [path for path, text in code.items() if all(part in text for part in parts)]


@pytest.mark.parametrize("message", _messages())
def test_a_module_writes_the_message(message: str) -> None:
    assert _writers(message, _code())
    # A few words could be anywhere.
    assert max(len(part.split()) for part in _fixed(_PLACEHOLDER.split(message))) >= 2


def test_there_are_messages_of_every_part() -> None:
    assert len(_messages()) == len(set(_messages())) >= 40


@pytest.mark.parametrize("message", _messages())
def test_a_changed_message_is_noticed(message: str) -> None:
    longest = max(_fixed(_PLACEHOLDER.split(message)), key=len)
    changed = longest.replace(" ", " not ", 1)
    code = {path: text.replace(longest, changed) for path, text in _code().items()}

    assert not _writers(message, code)


def test_each_message_is_explained() -> None:
    blocks = re.split(r"^\.\. code-block:: text\n\n(?:    .*\n)+\n", PAGE.read_text(), flags=re.M)
    assert len(blocks) == len(_messages()) + 1
    assert all(re.match(r"[A-Z`:A-Za-z]", block) for block in blocks[1:])
