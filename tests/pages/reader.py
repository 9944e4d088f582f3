# SPDX-License-Identifier: Apache-2.0

"""A reader of a page, who writes its files, runs its commands and compares their outputs."""

import difflib
import pathlib
import re
from collections.abc import Mapping, Sequence

from tests import processes
from tests.pages import page
from tests.pages.terminal import Terminal

# What differs from one run to the next, with a text of the same length, since tables are aligned.
_VARYING = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), None),
    (re.compile(r"\b[0-9a-f]{32}\b"), None),
    (re.compile(r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?)?"), None),
    (re.compile(r"\d+\.\d seconds"), "0.0 seconds"),
)
_ANY = "..."


class Reader:
    """What a reader has when following a page.

    :param names: the names of this host for those in the page, such as ports and directories.
    """

    def __init__(
        self, terminal: Terminal, directory: pathlib.Path, names: Mapping[str, str]
    ) -> None:
        self._terminal = terminal
        self._directory = directory
        self._names = names
        self._output: list[str] = []

    def follow(self, path: pathlib.Path, blocks: Sequence[page.Block]) -> None:
        """Follow a page, as far as these blocks."""
        for block in blocks:
            place = f"{path.relative_to(processes.ROOT)}:{block.line}"
            if block.note.startswith("not run") or block.language == "none":
                continue
            if block.caption:
                self._write(block)
            elif block.language == "console":
                self._run(block, place)
            else:
                self._look_up(block, place)

    def _write(self, block: page.Block) -> None:
        path = self._directory / self._named(block.caption)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._named(block.text))

    def _run(self, block: page.Block, place: str) -> None:
        commands = list(page.commands(block))
        assert commands, f"{place}: no line begins with '$ '"
        for command in commands:
            if block.note == "in background":
                self._start(command)
            else:
                fails = block.note == "fails" and command is commands[-1]
                status, self._output = self._terminal.run(self._named(command.text))
                assert (status != 0) == fails, (
                    f"{place}: {command.text}: exit status {status}\n" + "\n".join(self._output)
                )
            _compare(f"{place}: {command.text}", command.output, self._shown(self._output))

    def _start(self, command: page.Command) -> None:
        """Start a command that goes on, and wait until it has written what the page shows."""
        output = self._directory / "background.out"
        # Otherwise an earlier output could be read, before the shell empties the file.
        output.unlink(missing_ok=True)
        self._terminal.run(f"{self._named(command.text)} > {output} 2>&1 &")

        def is_written() -> bool:
            self._output = output.read_text().splitlines() if output.exists() else []
            return len(self._output) >= len(command.output)

        processes.wait_until(is_written, command.text)

    def _look_up(self, block: page.Block, place: str) -> None:
        """Find the lines of a block in the last output, in their order."""
        assert block.language == "text", f"{place}: a reader does not know what to do with it"
        lines = [line.strip() for line in map(_fixed, block.text.splitlines()) if line.strip()]
        output = iter([line.strip() for line in self._shown(self._output)])
        for line in lines:
            assert line == _ANY or line in output, f"{place}: not in the output: {line}\n" + (
                "\n".join(self._output)
            )

    def _named(self, text: str) -> str:
        """Return a text of the page with the names of this host."""
        return _replace(text, self._names)

    def _shown(self, lines: Sequence[str]) -> list[str]:
        """Return the lines of an output with the names that the page has."""
        names = {ours: shown for shown, ours in self._names.items()}
        return [_fixed(_replace(line, names)) for line in lines]


def _replace(text: str, names: Mapping[str, str]) -> str:
    if not names:
        return text
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)


def _fixed(line: str) -> str:
    """Return a line without what varies from one run to the next."""
    for pattern, fixed in _VARYING:
        line = pattern.sub(
            lambda found, fixed=fixed: fixed or re.sub("[0-9a-f]", "0", found[0]),  # type: ignore[misc]
            line,
        )
    return line


def _compare(place: str, shown: Sequence[str], written: Sequence[str]) -> None:
    """Compare the output in the page with what a command wrote."""
    expected = [_fixed(line.rstrip()) for line in shown]
    if not expected:
        return
    pattern = "".join(
        r"(?:.*\n)*" if line == _ANY else re.escape(line) + r"\n" for line in expected
    )
    written = [line.rstrip() for line in written]
    while written and not written[-1]:
        written.pop()
    text = "".join(f"{line}\n" for line in written)
    difference = "\n".join(difflib.unified_diff(expected, written, "page", "output", lineterm=""))
    assert re.fullmatch(pattern, text), f"{place}\n{difference}"
