# SPDX-License-Identifier: Apache-2.0

"""Parts of the SQL statements for lists, which are the same in both services.

They are written with the methods of SQLAlchemy's objects, which each service makes.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from glare_murano.selection import ANY

# The most characters of a string that a database finds in texts.
_MAX_LITERAL = 32


def sort_names(
    statement: Any, name: Any, *, is_descending: bool, first: str | None, after: str | None
) -> Any:
    """Return a statement for names with an order, from the beginning of a page on.

    :param name: the column with the names.
    :param first: the name at which the names begin; None for all names.
    :param after: the name after which the names begin; None for all names.
    """
    if first is not None:
        statement = statement.where(name <= first if is_descending else name >= first)
    if after is not None:
        statement = statement.where(name < after if is_descending else name > after)
    return statement.order_by(name.desc() if is_descending else name)


def like(column: Any, pattern: str) -> Any:
    """Return the condition for names that may fit a pattern.

    A condition with several wildcards could take a database very long.
    """
    begin, *others = pattern.split(ANY)
    if begin:
        return column.startswith(begin, autoescape=True)
    return column.contains(max(others, key=len), autoescape=True)


def literals_of(words: Iterable[str]) -> Collection[str]:
    """Return strings, of which a text in lower case contains one if it contains one of some words.

    :returns: no strings if one of the words has only letters whose case some databases ignore.
    """
    parts = [max(_comparable(word), key=len, default="") for word in words]
    return forms_of(parts) if all(parts) else ()


def _comparable(text: str) -> Iterator[str]:
    """Yield the parts of a string, in lower case, that every database can compare."""
    for is_comparable, part in itertools.groupby(text, _is_comparable):
        if is_comparable:
            yield "".join(part).lower()


def _is_comparable(character: str) -> bool:
    # SQLite only knows the case of letters in ASCII. Other letters can become one in ASCII.
    return character.isascii() or character.upper() == character.lower()


def forms_of(texts: Iterable[str]) -> Collection[str]:
    """Return the beginnings of strings, as they are and as they are in JSON.

    A text that contains a string contains its beginning. To find a long string in long texts takes
    a database very long, and it cannot be interrupted meanwhile.
    """
    begins = (text[:_MAX_LITERAL] for text in texts)
    return {form for text in begins for form in (text, json.dumps(text)[1:-1])}
