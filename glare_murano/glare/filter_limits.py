# SPDX-License-Identifier: Apache-2.0

"""How much the filters of one list request may ask of Glare's database.

Glare joins a table for every filter by tags, or by a field that is a list or a
dict, and each join multiplies what the others found of an artifact. A handful
of filters could keep a database busy for days, and a few dozen are more than
it can join. What a filter means is Glare's affair.
"""

import math
from collections.abc import Sequence
from typing import Any

from glare.common import exception
from glare.db.sqlalchemy import api as database

from glare_murano import fields

# Databases join some sixty tables; Glare needs a few itself.
MAX_JOINS = 20
# SQLite takes expressions of a thousand terms.
MAX_TERMS = 300
# What a filter that names no value can find of one artifact: all elements of
# the largest list, or all tags.
ELEMENTS = 4096
TAGS = 255

_SINGLE = frozenset(field.name for field in fields.FIELDS if field.kind == "string")

# Name, key, operator, type, value, and how it is combined with the others.
_Filter = tuple[str, str | None, str | None, str | None, Any, str]


def check(filters: Sequence[_Filter]) -> None:
    """Refuse filters that are more than a database can bear.

    :param filters: as Glare parses them.
    :raises glare.common.exception.BadRequest: telling what is too much.
    """
    if sum(map(_terms, filters)) > MAX_TERMS:
        raise exception.BadRequest(
            message=f"the filters have more than {MAX_TERMS} values; ask for fewer at once"
        )
    joined = [one for one in filters if one[0] not in database.BASE_ARTIFACT_PROPERTIES]
    if sum(_terms(one) if one[0] == "tags" else 1 for one in joined) > MAX_JOINS:
        raise exception.BadRequest(
            message=f"more than {MAX_JOINS} filters by tags, lists and dicts; ask for fewer at once"
        )
    alternatives = ELEMENTS if any(_is_alternative(one) for one in joined) else 1
    if alternatives * math.prod(map(_found, joined)) > ELEMENTS:
        raise exception.BadRequest(
            message="the filters by tags, lists and dicts have too many combinations; use fewer "
            "of them that have several values, neq: or or:"
        )


def _terms(one: _Filter) -> int:
    name, _, _, _, value, _ = one
    if name in ("tags", "tags-any"):
        return int(value.count(",")) + 1
    return len(value) if isinstance(value, list) else 1


def _is_alternative(one: _Filter) -> bool:
    """Whether Glare joins all of a field's rows, once for all such filters."""
    name, *_, combiner = one
    return combiner == "or" and name not in ("tags", "tags-any")


def _found(one: _Filter) -> int:
    """How many rows of one artifact a filter can find."""
    name, key, operator, _, _, combiner = one
    if _is_alternative(one) or key is not None or name in _SINGLE:
        return 1
    if name == "tags":
        return 1 if combiner == "and" else int(TAGS ** _terms(one))
    return ELEMENTS if operator == "neq" else _terms(one)
