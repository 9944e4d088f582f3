# SPDX-License-Identifier: Apache-2.0

"""The examples of a page: files that a reader writes, and commands with their outputs.

A code block is one of these:

- ``console`` has commands after ``$ `` (the next lines of one after ``> ``), each with its
  output. A line ``...`` stands for any lines. A command without an output may print anything.
- A block of any language with ``:caption:`` is a file of that name.
- ``text`` has some lines of the output of the command before.
- ``none`` is a drawing, such as a tree of directories.
- ``sh`` is a script that a test of its own takes from the page.

A comment directly before a block says what differs: ``.. fails``, if the last command of the block
must fail; ``.. in background``, if its command goes on; ``.. not run: REASON``.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterable, Iterator

from sybil import Document, Example, Region
from sybil.parsers.rest.lexers import DirectiveLexer

_BLOCKS = DirectiveLexer("code-block")
_NOTE = re.compile(r"(?:^|\n) *\.\. (fails|in background|not run: .+(?:\n {3,}.+)*)\n\n\Z")


@dataclasses.dataclass(frozen=True)
class Block:
    """A code block.

    :param line: its line in the page.
    :param note: the comment before it, or an empty text.
    :param caption: the name of a file, or an empty text.
    """

    line: int
    language: str
    note: str
    caption: str
    text: str


@dataclasses.dataclass(frozen=True)
class Command:
    """A command, with the lines of the output that the page shows."""

    text: str
    output: tuple[str, ...]


def blocks(path: pathlib.Path, first: str = "", end: str = "") -> list[Block]:
    """Return the code blocks of a page, in their order.

    :param first: the title of the first section, by default all.
    :param end: the title of the section where they end.
    """
    document = Document.parse(str(path), _parse)
    lines = document.text.splitlines()
    start = lines.index(first) if first else 0
    stop = lines.index(end) if end else len(lines)
    found = [example.parsed for example in document.examples()]
    return [block for block in found if start < block.line <= stop]


def _parse(document: Document) -> Iterable[Region]:
    for region in _BLOCKS(document):
        note = _NOTE.search(document.text[: region.start])
        block = Block(
            line=document.text.count("\n", 0, region.start) + 1,
            language=region.lexemes["arguments"],
            note=" ".join(note[1].split()) if note else "",
            caption=region.lexemes["options"].get("caption", ""),
            text=region.lexemes["source"],
        )
        yield Region(region.start, region.end, block, _not_evaluated)


def _not_evaluated(example: Example) -> None:
    raise AssertionError(f"{example.path}:{example.line}: Sybil only parses the pages")


def commands(block: Block) -> Iterator[Command]:
    """Return the commands of a block of a console."""
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        first, *rest = part.rstrip("\n").split("\n")
        text = [first]
        while rest and rest[0].startswith("> "):
            text.append(rest.pop(0)[2:])
        while rest and not rest[-1].strip():
            rest.pop()
        yield Command("\n".join(text), tuple(rest))
