# SPDX-License-Identifier: Apache-2.0

"""Build the parts of SQL statements that the package lists of Glare and Glance have in common.

Each service passes SQLAlchemy objects for its own tables. This module only calls the methods of
these objects.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from glare_murano.selection import ANY

# The largest number of characters of a string that a database searches for in texts.
_MAX_LITERAL = 32


class NameRange(NamedTuple):
    """The order of the names in a list, and where a page of the list begins.

    :ivar is_descending: whether the names are sorted from Z to A.
    :ivar first: names that come before this name are left out; None to keep them.
    :ivar after: this name and names that come before it are left out; None to keep them.
    """

    is_descending: bool
    first: str | None = None
    after: str | None = None


def sort_names(statement: Any, name: Any, names: NameRange) -> Any:
    """Make a statement sort the names that it finds, and leave out the names before a page.

    :param statement: a statement that finds names.
    :param name: the column with the names.
    :param names: the order of the names, and where the page begins.
    :returns: the new statement.
    """
    is_descending, first, after = names
    if first is not None:
        statement = statement.where(name <= first if is_descending else name >= first)
    if after is not None:
        statement = statement.where(name < after if is_descending else name > after)
    return statement.order_by(name.desc() if is_descending else name)


def like(column: Any, pattern: str) -> Any:
    """Return a condition for the names that match a pattern.

    All these names meet the condition. Other names may meet it as well: only a part of the pattern
    is compared, since a condition with several wildcards could take a database very long.

    :param column: the column with the names.
    :param pattern: a name in which ``*`` stands for any characters.
    """
    begin, *others = pattern.split(ANY)
    if begin:
        return column.startswith(begin, autoescape=True)
    return column.contains(max(others, key=len), autoescape=True)


def literals_of(words: Iterable[str]) -> Collection[str]:
    """Convert the words of a search to strings that a database can search for.

    The strings are parts of the words, in lower case. The database searches for the strings in
    texts that it has converted to lower case. So it finds every text that contains one of the
    words, but may also find other texts.

    :returns: the strings; empty if a word has no part that every database can compare without
        regard to case. Some databases cannot do so for letters outside ASCII.
    """
    parts = [max(_comparable(word), key=len, default="") for word in words]
    return forms_of(parts) if all(parts) else ()


def _comparable(text: str) -> Iterator[str]:
    """Yield the parts of a string that every database can compare without regard to case.

    The parts are in lower case.
    """
    for is_comparable, part in itertools.groupby(text, _is_comparable):
        if is_comparable:
            yield "".join(part).lower()


def _is_comparable(character: str) -> bool:
    # SQLite changes the case of ASCII letters only. Some other letters become ASCII letters when
    # their case is changed.
    return character.isascii() or character.upper() == character.lower()


def forms_of(texts: Iterable[str]) -> Collection[str]:
    """Return the beginning of each string in two forms: as it is, and as JSON writes it.

    A text that contains a string also contains the beginning of this string. Only the beginning is
    searched for, since a database takes very long to search for a long string in long texts, and
    cannot be interrupted meanwhile.
    """
    begins = (text[:_MAX_LITERAL] for text in texts)
    return {form for text in begins for form in (text, json.dumps(text)[1:-1])}
