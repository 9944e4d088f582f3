# SPDX-License-Identifier: Apache-2.0

"""Read and write the conditions for a list of packages, which are parameters of the list's URL.

The loader writes these parameters, and services read them. ``service.listed_packages`` finds the
packages that meet the conditions.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeVar

from glare_murano.package import GlareMuranoError, VersionSpec
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_fqn

Distinct = Literal["", "name", "version"]

DRAFTED, ACTIVE, DEACTIVATED = "drafted", "active", "deactivated"
# Condition -> its allowed values, if only some values are allowed.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "status": (DRAFTED, ACTIVE, DEACTIVATED),
    "visibility": ("private", "public", "shared", "community"),
    "type": ("Application", "Library"),
}
# Attributes of a package that have one value.
_ATTRIBUTES = ("id", "name", "owner", *CHOICES)
# Fields that a service has to read to compare a package with conditions: fields that are lists, and
# fields that publishers may change.
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

# In a name, this stands for any number of characters.
ANY = "*"

# The largest number of names with ``ANY``. A service compares each of them with each package.
MAX_PATTERNS = 20
MAX_WORDS = 20

_T = TypeVar("_T")


class InvalidParameter(GlareMuranoError, ValueError):
    """A parameter of the URL of a list is not valid; the message names the parameter."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """Conditions for the packages of a list. A package has to meet all of them.

    :param values: name of a field, such as ``owner`` or ``tags`` -> values. A package has to have
        one of these values in the field. A field of ``READ_FIELDS`` may be given without values;
        then the field of a package must not be empty. In a value of ``name``, ``*`` stands for any
        characters. In ``requirements``, a package's requirement on itself does not count. Without
        the field ``status``, only active packages are selected.
    :param words: strings; a package has to contain one of them, see ``package_order.relevance``.
    :param version: the range of the version.
    :param yanked: True to select only yanked packages, False to select only others; None for both.
    :param subclass_of: a class; the package has to define a direct or indirect subclass of this
        class.
    :param project_id: a project that has to be able to use the package.
    :param distinct: ``name`` to select one package of each name, with the newest version that meets
        the conditions; ``version`` to select one package of each name and version. If several
        projects have packages with the same name and version, the package of ``project_id`` (or of
        the client's project) is preferred, then a public package.
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
        """The statuses that a selected package may have."""
        return self.values.get("status", (ACTIVE,))

    def parameters(self) -> list[tuple[str, str]]:
        """Return the conditions as parameters of a URL: names and values."""
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

    :param parameters: name of a parameter -> all its values.
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
    """Read a parameter of a URL that may be given only once.

    :param parameters: name of a parameter -> all its values.
    :param name: the name of the parameter.
    :param read: a function that converts the value, or raises ``ValueError`` for a wrong value.
    :returns: the converted value; None if the parameter is missing.
    :raises InvalidParameter: if the value is not valid, or if there are several values.
    """
    texts = parameters.get(name, ())
    _check_number(name, texts, 1, "value")
    return next((_read(name, text, read) for text in texts), None)


def choice(*allowed: str) -> Callable[[str], str]:
    """Return a function that accepts only the allowed values.

    The function returns an allowed value, and raises ``ValueError`` for any other value.
    """

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
