# SPDX-License-Identifier: Apache-2.0

"""What can be wrong with a package, told to whoever made it.

These are the errors of bad input, and the root of every error that this
project raises. Failures of a network, a disk or a catalogue are not here:
see ``loader.errors``.
"""

import dataclasses
from collections.abc import Iterable

from glare_murano.package.rules import Rule

_MAX_QUOTED = 80
_MAX_WHERE = 120
_MAX_SHOWN = 400
# How many problems one message tells; the error itself keeps them all.
_MAX_TOLD = 50


def quoted(text: str | None) -> str:
    """A text of unknown origin as a message quotes it: on one line, and short."""
    return repr(text if text is None or len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}...")


def shown(text: str) -> str:
    """A text of unknown origin as a message holds it: quoted only if it must be."""
    if text.isprintable():
        return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    return quoted(text)


class GlareMuranoError(Exception):
    """The root of every error that glare_murano and loader raise."""


class InvalidVersion(GlareMuranoError, ValueError):
    """A text that is no SemVer version."""


class InvalidName(GlareMuranoError, ValueError):
    """A text that can name neither a package nor a class."""


class InvalidRange(GlareMuranoError, ValueError):
    """A text that is no range of versions."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a package.

    :param rule: the rule that is broken; another code raises ValueError.
    :param where: what it is about: a key of the manifest, or a file of the
        archive.
    :param message: what was found and what was expected.
    :param line: the line in the manifest, counted from 1; 0 where there is
        none.
    """

    rule: Rule
    where: str
    message: str
    line: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", Rule(self.rule))

    def __str__(self) -> str:
        where = quoted(self.where) if len(self.where) > _MAX_WHERE else shown(self.where)
        place = f"{where}, line {self.line}" if self.line else where
        return f"{place}: {shown(self.message)} [{self.rule}]"


class InvalidPackage(GlareMuranoError, ValueError):
    """A package that cannot be used.

    :ivar problems: everything that was found wrong, in the order found.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        told = [str(problem) for problem in self.problems[:_MAX_TOLD]]
        if len(self.problems) > _MAX_TOLD:
            told.append(f"and {len(self.problems) - _MAX_TOLD} more")
        super().__init__("; ".join(told))


class InvalidManifest(InvalidPackage):
    """A manifest that is missing, unreadable, or says what it must not."""


class InvalidArchive(InvalidPackage):
    """An archive that is none, or that breaks a rule of safety."""
