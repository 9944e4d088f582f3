# SPDX-License-Identifier: Apache-2.0

"""No command of a page for readers escapes.

Each is followed by a test of pages, taken from its page by a test that is named here, or marked
with the reason why it cannot run on a test machine.
"""

import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.functional import installation, page_scripts
from tests.pages import clone, page, test_operators, test_pages

PAGES = {
    str(path.relative_to(clone.SOURCE).with_suffix("")): path
    for kind in ("start", "tutorials", "guides")
    for path in sorted((clone.SOURCE / kind).rglob("*.rst"))
}
FOLLOWED = {*test_pages.FOLLOWED, *test_operators.FOLLOWED}
_MOST_NOT_RUN = 15


def _installed() -> str:
    """Return the commands of the programs that ``installation.installed`` runs."""
    source = pathlib.Path(installation.__file__).read_text()
    programs = re.findall(r'host\.run\("(.+)"\)', source)
    lines = installation.blocks("sh").splitlines()
    return "\n".join(line for line in lines if line.partition(" ")[0] in programs)


# A page -> what another test takes from it, to run it.
TAKEN: dict[str, Callable[[], str]] = {
    "guides/operators/backup": page_scripts.backup_check,
    "guides/operators/glance": page_scripts.glance_checks,
    "guides/operators/glare": _installed,
}


def _commands(text: str) -> Iterator[str]:
    """Return the commands of a script, one a line or with continued lines."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip():
            yield line.strip()


def _escaped(blocks: list[page.Block], taken: str, *, is_followed: bool) -> list[str]:
    """Return the commands of a page that nobody runs, and that have no mark."""
    found = []
    for block in blocks:
        if block.note.startswith("not run"):
            continue
        if block.language in ("bash", "console", "sh", "shell"):
            if block.language == "console" and is_followed:
                continue
            found += [each for each in _commands(block.text) if each not in {*_commands(taken)}]
        else:
            found += [each for each in _commands(block.text) if each.startswith("$ ")]
    return found


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_a_page_is_run(name: str) -> None:
    taken = TAKEN[name]() if name in TAKEN else ""
    blocks = page.blocks(PAGES[name])

    assert _escaped(blocks, taken, is_followed=name in FOLLOWED) == []
    # Such a block has no language.
    assert not re.search(r"(?m)^(?! *\.\. ).*::$", PAGES[name].read_text())


def test_few_commands_are_not_run_and_a_shell_can_parse_them() -> None:
    marked = [
        block
        for path in PAGES.values()
        for block in page.blocks(path)
        if block.note.startswith("not run")
    ]

    assert 0 < sum(len([*_commands(block.text)]) for block in marked) <= _MOST_NOT_RUN
    for block in marked:
        assert block.language == "sh"
        subprocess.run(["bash", "-n", "-c", block.text], check=True)


def test_the_lists_name_pages_with_commands() -> None:
    for name in FOLLOWED:
        assert any(block.language == "console" for block in page.blocks(PAGES[name])), name
    for name, taken in TAKEN.items():
        assert any(block.language == "sh" for block in page.blocks(PAGES[name])), name
        assert taken()


@pytest.mark.parametrize(
    ("directive", "escaped"),
    [
        (".. code-block:: console\n\n    $ rm x\n", ["$ rm x"]),
        (".. code-block:: sh\n\n    rm x\n    rm y\n", ["rm y"]),
        (".. code-block:: text\n\n    $ rm x\n", ["$ rm x"]),
        (".. not run: it deletes\n\n.. code-block:: sh\n\n    rm y\n", []),
    ],
)
def test_a_new_page_with_commands_is_noticed(
    tmp_path: pathlib.Path, directive: str, escaped: list[str]
) -> None:
    path = tmp_path / "new.rst"
    path.write_text(f"New\n===\n\nDo this:\n\n{directive}")

    assert _escaped(page.blocks(path), "rm x", is_followed=False) == escaped
