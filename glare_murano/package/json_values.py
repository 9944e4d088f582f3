# SPDX-License-Identifier: Apache-2.0

"""Count the values in JSON before it is parsed.

Whoever sends JSON chooses how long the parser takes, and how much memory: a list of two characters
takes a hundred bytes. Meanwhile no other thread of the process runs.
"""

import dataclasses
import re
from typing import Self

# A string, after backslashes and what follows them were removed.
_STRING = re.compile(rb'"[^"]*"')
# All other bytes do not matter to the counts.
_OTHERS = bytes(set(range(256)) - set(b'"[{,'))


@dataclasses.dataclass(frozen=True)
class Counts:
    """How many values a JSON document has, or may have.

    :param lists: the number of lists and mappings.
    :param commas: the number of commas; in a list or a mapping, it is one less than the number of
        elements.
    """

    lists: int
    commas: int

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Count brackets and commas, those in strings included."""
        return cls(data.count(b"[") + data.count(b"{"), data.count(b","))

    def find_excess(self, data: bytes) -> str:
        """Return what a JSON document has too many of; an empty string if it has few enough values.

        :param data: the document.
        """
        if not self._excess(Counts.of(data)):
            return ""
        return self._excess(Counts.of(self._without_strings(data)))

    def _excess(self, found: "Counts") -> str:
        if found.lists > self.lists:
            return f"more than {self.lists} lists and mappings"
        return f"more than {self.commas} values" if found.commas > self.commas else ""

    def _without_strings(self, data: bytes) -> bytes:
        """Return a document without its strings, for ``Counts.of``.

        Strings are kept if there are more strings than values are allowed, since it takes time to
        remove them. They are also kept in UTF-16 and UTF-32, where the byte of a quotation mark may
        be a part of another character.
        """
        if b"\0" in data:
            return data
        plain = data.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _OTHERS)
        has_few = plain.count(b'"') <= 2 * (self.lists + self.commas)
        return _STRING.sub(b"", plain) if has_few else plain
