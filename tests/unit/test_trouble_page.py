# SPDX-License-Identifier: Apache-2.0

"""The pages that explain messages and log lines show them as the code writes them."""

import pathlib
import re

import pytest

from tests import code_texts

PAGES = pathlib.Path(__file__).parents[2] / "doc" / "source" / "guides" / "operators"
TROUBLE, MONITORING = ((PAGES / name).read_text() for name in ("trouble.rst", "monitoring.rst"))
_BLOCK = r"^\.\. code-block:: text\n\n((?:    .*\n)+)"
# On the page, a word in capital letters stands for a value.
_PLACEHOLDER = re.compile(r"\b(?!DEFAULT\b)[A-Z]{2,}\b(?!-\d)")

# Message -> its fixed parts.
MESSAGES = {
    text: code_texts.fixed_parts(_PLACEHOLDER.split(text))
    for text in (" ".join(block.split()) for block in re.findall(_BLOCK, TROUBLE, re.M))
}
# The third column of the table.
LINES = {
    text: code_texts.fixed_parts(text.split("..."))
    for text in re.findall(r"^     - (?:ERROR|WARNING|INFO)\n     - ``(.*)``$", MONITORING, re.M)
}


def test_there_are_messages_of_every_part() -> None:
    assert len(re.findall(_BLOCK, TROUBLE, re.M)) == len(MESSAGES) >= 40
    assert len(LINES) == MONITORING.count("   * - ") - 1 >= 15


@pytest.mark.parametrize("text", [*MESSAGES, *LINES])
def test_a_module_writes_the_message(text: str) -> None:
    parts = (MESSAGES | LINES)[text]

    assert code_texts.find_writers(parts, code_texts.read_modules())
    # A single word could be anywhere.
    assert max(len(part.split()) for part in parts) > 1


@pytest.mark.parametrize("text", [*MESSAGES, *LINES])
def test_a_changed_message_is_noticed(text: str) -> None:
    parts = (MESSAGES | LINES)[text]
    longest = max(parts, key=len)
    changed = longest.replace(" ", " not ", 1)
    modules = {
        path: content.replace(longest, changed)
        for path, content in code_texts.read_modules().items()
    }

    assert not code_texts.find_writers(parts, modules)


def test_each_message_is_explained() -> None:
    _, *explained = re.split(rf"{_BLOCK}\n", TROUBLE, flags=re.M)
    assert len(explained) == 2 * len(MESSAGES)
    # No other message and no title.
    assert all(re.match(r"(?!\.\. )\S.*[\w,;:.]\n(?!==)", text) for text in explained[1::2])
