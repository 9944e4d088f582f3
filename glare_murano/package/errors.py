# SPDX-License-Identifier: Apache-2.0

"""Define errors about packages, and the base class of all errors of this project.

Errors about networks, disks and catalogues are in ``loader.errors``.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from glare_murano.package.rules import Rule

_MAX_QUOTED = 80
_MAX_WHERE = 120
_MAX_SHOWN = 400
# The largest number of problems in a message.
_MAX_LISTED = 50


def quoted(text: str | None) -> str:
    """Quote a string of unknown origin for a message, and shorten it if it is long."""
    return repr(text if text is None or len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}...")


def shown(text: str) -> str:
    """Prepare a string of unknown origin for a message.

    Long strings are shortened, and strings that are not printable are quoted.
    """
    if text.isprintable():
        return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    return quoted(text)


def escaped(text: str, keep: str = "") -> str:
    """Escape unprintable characters in a string of unknown origin.

    Such characters could control the terminal of the user.

    :param keep: unprintable characters that are not escaped, such as a line break.
    """
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


class GlareMuranoError(Exception):
    """The base class of all errors of glare_murano and loader."""


class InvalidVersion(GlareMuranoError, ValueError):
    """A string is not a valid SemVer version."""


class InvalidName(GlareMuranoError, ValueError):
    """A string is not a valid name of a package or a class."""


class InvalidRange(GlareMuranoError, ValueError):
    """A string is not a valid range of versions."""


class Unplannable(GlareMuranoError):
    """The planning of requirements exceeds a limit, such as the time limit.

    Usual packages do not cause this error. Malicious requirements or a very slow catalogue can
    cause it.
    """


class TooManyVersions(Unplannable):
    """The search for the fewest versions of a package that satisfy all ranges takes too long."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """A mistake in a package. The package is refused for it, or only a warning is logged.

    :param rule: the broken rule, or the code of the rule.
    :param where: where the mistake is: a key of the manifest, or a file of the archive.
    :param message: what is wrong, such as the value and what was expected.
    :param line: the line of the mistake in its file, counted from 1; 0 if unknown.
    :raises ValueError: if the code of the rule is unknown.
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


def listed(problems: Sequence[Problem]) -> str:
    """Join problems to one string. A long list ends with the number of the problems left out."""
    texts = [str(problem) for problem in problems[:_MAX_LISTED]]
    if len(problems) > _MAX_LISTED:
        texts.append(f"and {len(problems) - _MAX_LISTED} more")
    return "; ".join(texts)


class InvalidPackage(GlareMuranoError, ValueError):
    """A package breaks rules.

    :ivar problems: all problems, in the order in which they were found.
    :ivar warnings: mistakes for which a package is not refused, but which may explain a problem.
        For example, an unknown key can be a required key that is misspelt.
    """

    def __init__(self, problems: Iterable[Problem], warnings: Iterable[Problem] = ()) -> None:
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        super().__init__(listed(self.everything))

    @property
    def everything(self) -> tuple[Problem, ...]:
        """All problems, followed by all warnings."""
        return self.problems + self.warnings


class InvalidManifest(InvalidPackage):
    """A manifest is missing, unreadable or wrong, or disagrees with its artifact or image."""


class InvalidArchive(InvalidPackage):
    """An archive is not a ZIP file, is damaged, or breaks a safety rule."""
