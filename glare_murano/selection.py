# SPDX-License-Identifier: Apache-2.0

"""Conditions for the packages of a list, as the parameters of its URL.

The loader writes these parameters, and services read them. A service finds the packages.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeVar

from glare_murano.package import GlareMuranoError, VersionSpec
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_fqn

Distinct = Literal["", "name", "version"]

DRAFTED, ACTIVE, DEACTIVATED = "drafted", "active", "deactivated"
# Conditions whose values are known -> these values.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "status": (DRAFTED, ACTIVE, DEACTIVATED),
    "visibility": ("private", "public", "shared", "community"),
    "type": ("Application", "Library"),
}
# Attributes of a package that have one value.
_ATTRIBUTES = ("id", "name", "owner", *CHOICES)
# Fields that a service has to read, since publishers may change them, or since they are lists.
READ_FIELDS = (
    *("class_definitions", "inherits", "requirements", "categories", "tags", "keywords"),
    "display_name",
)
# Each of these parameters may be given several times.
CONDITIONS = (*_ATTRIBUTES, *READ_FIELDS)
PARAMETERS = (
    *CONDITIONS,
    *("search", "version", "yanked", "subclass_of", "project_id", "distinct"),
)

# In a name, this stands for any characters.
ANY = "*"

# The most values of a condition that a service compares with a text one by one.
MAX_PATTERNS = 20
MAX_WORDS = 20

_T = TypeVar("_T")


class InvalidParameter(GlareMuranoError, ValueError):
    """A parameter of a list is not valid; the message names the parameter."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """Conditions; a package has to meet all of them.

    :param values: condition -> values, of which a package has to have one; in ``READ_FIELDS``, no
        values stand for any value. In a name, ``*`` stands for any characters. A requirement on
        the package itself does not count. Without a condition for the status, only active packages
        are selected.
    :param words: strings; a package has to contain one of them, see ``package_order.relevance``.
    :param version: the range of the version.
    :param yanked: whether to select only yanked packages, or only the others; by default both.
    :param subclass_of: a class; the package has to define a direct or indirect subclass of it.
    :param project_id: a project that has to be able to use the package.
    :param distinct: ``name`` to select, of the packages with the same name that meet all
        conditions, only the one with the newest version; ``version`` to select one of the packages
        with the same name and version. The own package comes before others, and then a public one.
    """

    values: Mapping[str, Collection[str]] = dataclasses.field(default_factory=dict)
    words: Collection[str] = ()
    version: VersionSpec | None = None
    yanked: bool | None = None
    subclass_of: str | None = None
    project_id: str | None = None
    distinct: Distinct = ""

    @property
    def statuses(self) -> Collection[str]:
        """The statuses of the selected packages."""
        return self.values.get("status", (ACTIVE,))

    def parameters(self) -> list[tuple[str, str]]:
        """Return the conditions as parameters of a URL."""
        single = {
            "version": None if self.version is None else self.version.text,
            "yanked": None if self.yanked is None else str(self.yanked).lower(),
            "subclass_of": self.subclass_of,
            "project_id": self.project_id,
            "distinct": self.distinct or None,
        }
        return [
            *((name, value) for name, values in self.values.items() for value in values),
            *(("search", word) for word in self.words),
            *((name, value) for name, value in single.items() if value is not None),
        ]


def read_selection(parameters: Mapping[str, Collection[str]]) -> Selection:
    """Read the conditions in the parameters of a URL.

    :param parameters: name -> all its values.
    :raises InvalidParameter: if a value is not valid, or if there are too many values.
    """
    values = {name: parameters[name] for name in CONDITIONS if name in parameters}
    for name, allowed in CHOICES.items():
        for value in values.get(name, ()):
            _read(name, value, choice(*allowed))
    patterns = [name for name in values.get("name", ()) if ANY in name]
    _check_number("name", patterns, MAX_PATTERNS, f"names with {ANY}")
    words = [word for word in parameters.get("search", ()) if word]
    _check_number("search", words, MAX_WORDS, "values")
    distinct: Any = read_one(parameters, "distinct", choice("name", "version"))
    yanked = read_one(parameters, "yanked", choice("true", "false"))
    return Selection(
        values,
        words,
        version=read_one(parameters, "version", VersionSpec.of),
        yanked=None if yanked is None else yanked == "true",
        subclass_of=read_one(parameters, "subclass_of", check_fqn),
        project_id=read_one(parameters, "project_id", str),
        distinct=distinct or "",
    )


def read_one(
    parameters: Mapping[str, Collection[str]], name: str, read: Callable[[str], _T]
) -> _T | None:
    """Read a parameter that may be given once; return None if it is missing.

    :param read: a function that raises ``ValueError`` for a value that is not valid.
    :raises InvalidParameter: if the value is not valid, or given twice.
    """
    texts = parameters.get(name, ())
    _check_number(name, texts, 1, "value")
    return next((_read(name, text, read) for text in texts), None)


def choice(*allowed: str) -> Callable[[str], str]:
    """Return a function that refuses all other values than the allowed ones."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"expected {' or '.join(allowed)}, found {quoted(text)}")
        return text

    return read


def _read(name: str, text: str, read: Callable[[str], _T]) -> _T:
    try:
        return read(text)
    except ValueError as error:
        raise InvalidParameter(f"{name}: {error}") from error


def _check_number(name: str, values: Collection[str], most: int, kind: str) -> None:
    if len(values) > most:
        raise InvalidParameter(f"{name}: expected at most {most} {kind}, found {len(values)}")
