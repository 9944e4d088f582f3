# SPDX-License-Identifier: Apache-2.0

"""The order of a list of packages, and the places in it at which its pages begin.

A marker has the values by which the last package of a page was sorted. So a service looks up no
package for a marker, and a list goes on after its last package was deleted or replaced.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

from glare_murano.package import parse_version
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_fqn
from glare_murano.selection import InvalidParameter

DISPLAY_NAME = "display_name"
# The most characters of a display name by which packages are sorted. A marker is part of a URL.
MAX_SORTED = 64
# The place of the best match of a search; the same for all packages without a search.
RELEVANCE = "relevance"
KEYS = (
    *("name", "version", DISPLAY_NAME, "created_at", "updated_at"),
    *("owner", "status", "visibility", RELEVANCE),
)
# The fields that a search reads, the most important first.
SEARCHED = (
    *(DISPLAY_NAME, "name", "description", "categories"),
    *("tags", "class_definitions", "author"),
)
_ASCENDING, _DESCENDING = "asc", "desc"


class Key(NamedTuple):
    """A value by which packages are sorted."""

    name: str
    is_descending: bool = False

    def __str__(self) -> str:
        return f"{self.name}:{_DESCENDING if self.is_descending else _ASCENDING}"


# Packages with equal keys are sorted by these, and at last by their ids.
_LAST_KEYS = (Key("name"), Key("version", is_descending=True))


@dataclasses.dataclass(frozen=True)
class Order:
    """The keys by which packages are sorted, the most important first."""

    keys: tuple[Key, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Read keys with directions, such as ``name:asc,version:desc``.

        :raises InvalidParameter: if a key or a direction is unknown.
        """
        keys = []
        for written in text.split(","):
            name, _, direction = written.strip().partition(":")
            if name not in KEYS or direction not in ("", _ASCENDING, _DESCENDING):
                raise InvalidParameter(
                    f"cannot sort by {quoted(written)}; the keys are {', '.join(KEYS)}, "
                    f"with :asc or :desc"
                )
            keys.append(Key(name, direction == _DESCENDING))
        return cls(tuple(keys))

    def __str__(self) -> str:
        return ",".join(map(str, self.keys))

    @property
    def complete(self) -> tuple[Key, ...]:
        """All keys, also those that the order leaves out."""
        names = {key.name for key in self.keys}
        return (*self.keys, *(key for key in _LAST_KEYS if key.name not in names))

    def marker(self, values: Mapping[str, Any]) -> str:
        """Return the marker of the packages after a package.

        :param values: the package's id and its values by the names of the keys.
        """
        names = ("id", *(key.name for key in self.complete))
        chosen = {name: values[name] for name in names}
        if DISPLAY_NAME in chosen:
            chosen[DISPLAY_NAME] = chosen[DISPLAY_NAME][:MAX_SORTED]
        return json.dumps(chosen, separators=(",", ":"))

    def read_marker(self, text: str) -> dict[str, Any]:
        """Read a marker.

        :returns: the values by the names of the keys, with ``id``.
        :raises InvalidParameter: if it is not a marker of this order.
        """
        try:
            found = json.loads(text)
            return {
                name: _READ.get(name, _string)(found[name])
                for name in ("id", *(key.name for key in self.complete))
            }
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise InvalidParameter(
                f"{quoted(text)} is not a marker of a list in the order {self}; use the "
                f"one in the link to the next page"
            ) from error


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _name(value: object) -> str:
    return check_fqn(_string(value))


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


_READ: Mapping[str, Callable[[object], Any]] = {
    "name": _name,
    "version": lambda value: parse_version(_string(value)),
    RELEVANCE: _number,
}

BY_NAME = Order.of("name:asc,version:desc")


def relevance(fields: Mapping[str, Any], words: Iterable[str]) -> int | None:
    """Return the place in ``SEARCHED`` of the first field that contains one of some words.

    :param fields: the fields of a package, and its name.
    :param words: strings, compared without regard to case.
    :returns: None if no field contains any of them.
    """
    lowered = [word.lower() for word in words]
    for place, name in enumerate(SEARCHED):
        value = fields.get(name) or ""
        texts = [value] if isinstance(value, str) else value
        if any(word in text.lower() for text in texts for word in lowered):
            return place
    return None
