# SPDX-License-Identifier: Apache-2.0

"""Edit INI files line by line, so that comments and the order of lines are preserved."""

import pathlib
import re
from collections.abc import Iterator

_SECTION = re.compile(r"\[(.+)\]\s*$")


class IniFile:
    """A configuration file of oslo.config or Paste. A missing file is treated as empty.

    >>> conf = IniFile(pathlib.Path("/etc/glance/glance-api.conf"))
    >>> conf.set("paste_deploy", "flavor", "keystone")
    >>> conf.path.write_text(conf.text)
    """

    def __init__(self, path: pathlib.Path) -> None:
        """Read a configuration file, if it exists."""
        self.path = path
        self._lines = path.read_text().splitlines() if path.exists() else []

    @property
    def text(self) -> str:
        """The content of the edited file."""
        return "".join(f"{line}\n" for line in self._lines)

    def sections(self) -> list[str]:
        """Return the names of all sections, in order."""
        return [found[1] for line in self._lines if (found := _SECTION.match(line))]

    def section(self, name: str) -> str:
        """Return the lines of a section, from its header to its last option."""
        ends = [self._lines.index(f"[{name}]") + 1, *(end for _, end, *_ in self._found(name))]
        return "\n".join(self._lines[ends[0] - 1 : ends[-1]])

    def options(self, section: str) -> dict[str, str]:
        """Return the values of a section's options.

        If an option is repeated, its last value is returned.
        """
        return {
            name: " ".join([first, *(line.strip() for line in self._lines[start + 1 : end])])
            for start, end, name, first in self._found(section)
        }

    def get(self, section: str, option: str) -> str | None:
        """Return the value of an option; None if the option is missing."""
        return self.options(section).get(option)

    def set(self, section: str, option: str, value: str) -> None:
        """Set an option. All lines that already set this option are replaced."""
        found = [(start, end) for start, end, name, _ in self._found(section) if name == option]
        for start, end in reversed(found):
            del self._lines[start:end]
        if section not in self.sections():
            self.add("\n" * bool(self._lines) + f"[{section}]")
        header = next(i for i, line in enumerate(self._lines) if _is_header(line, section))
        self._lines.insert(found[0][0] if found else header + 1, f"{option} = {value}")

    def add(self, text: str) -> None:
        """Add lines at the end of the file."""
        self._lines += text.split("\n")

    def add_before_sections(self, text: str) -> None:
        """Add lines before the first section and its comments."""
        start = next(i for i, line in enumerate(self._lines) if _SECTION.match(line))
        while start and self._lines[start - 1].startswith("#"):
            start -= 1
        self._lines[start:start] = [*text.split("\n"), ""]

    def _found(self, section: str) -> Iterator[tuple[int, int, str, str]]:
        """Yield the options of a section.

        :returns: for each option, the index of its first line, the index of the line after its last
            line, its name, and the value in its first line.
        """
        inside = False
        for start, line in enumerate(self._lines):
            if _SECTION.match(line):
                inside = _is_header(line, section)
            elif inside and (option := re.match(r"([^#;\s=:][^=:]*?)\s*[=:]\s*(.*)$", line)):
                end = start + 1
                while end < len(self._lines) and re.match(r"\s+\S", self._lines[end]):
                    end += 1
                yield start, end, option[1], option[2].strip()


def _is_header(line: str, section: str) -> bool:
    found = _SECTION.match(line)
    return found is not None and found[1] == section
