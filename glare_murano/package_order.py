# SPDX-License-Identifier: Apache-2.0

"""Define how a list of packages is sorted, and the markers of its pages.

A marker says where a page begins. It contains the values by which the last package of the previous
page was sorted. So a service can find the page even if that package was deleted or replaced
meanwhile.
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
# The number of characters of a display name by which packages are sorted. A marker contains them,
# and a marker is part of a URL.
MAX_SORTED = 64
# How well a package matches a search, see ``relevance``. Without a search, all packages have the
# same value.
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
    """A field by which packages are sorted, and the direction."""

    name: str
    is_descending: bool = False

    def __str__(self) -> str:
        return f"{self.name}:{_DESCENDING if self.is_descending else _ASCENDING}"


# Packages with equal keys are sorted by these keys, and finally by their ids.
_LAST_KEYS = (Key("name"), Key("version", is_descending=True))


@dataclasses.dataclass(frozen=True)
class Order:
    """The keys by which packages are sorted, the most important first."""

    keys: tuple[Key, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse an order: keys with directions, such as ``name:asc,version:desc``.

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
        """The keys of this order, and then the name and the version, if the order lacks them.

        The added keys sort packages that have equal values for the keys of this order. The newest
        version comes first.
        """
        names = {key.name for key in self.keys}
        return (*self.keys, *(key for key in _LAST_KEYS if key.name not in names))

    def marker(self, values: Mapping[str, Any]) -> str:
        """Return the marker for the page that begins after a package.

        :param values: the values of the package: name of a key -> value, and ``id`` -> the id.
        """
        names = ("id", *(key.name for key in self.complete))
        chosen = {name: values[name] for name in names}
        if DISPLAY_NAME in chosen:
            chosen[DISPLAY_NAME] = chosen[DISPLAY_NAME][:MAX_SORTED]
        return json.dumps(chosen, separators=(",", ":"))

    def read_marker(self, text: str) -> dict[str, Any]:
        """Parse a marker that ``marker`` has returned.

        :returns: name of a key -> value, and ``id`` -> the id of the package.
        :raises InvalidParameter: if the text is not a marker of this order.
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
    """Return how well a package matches a search for words; a smaller number is better.

    :param fields: the fields of the package, including its name: name of a field -> value.
    :param words: strings, compared without regard to case.
    :returns: the index in ``SEARCHED`` of the first field that contains one of the words, where 0
        is the best match; None if no field contains any of them.
    """
    lowered = [word.lower() for word in words]
    for place, name in enumerate(SEARCHED):
        value = fields.get(name) or ""
        texts = [value] if isinstance(value, str) else value
        if any(word in text.lower() for text in texts for word in lowered):
            return place
    return None
