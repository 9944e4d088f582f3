# SPDX-License-Identifier: Apache-2.0

"""Limits for the filters of a list request.

Glare joins a table for every filter by tags, lists or dicts. Databases can join only
some dozens of tables, and each join multiplies the rows: a handful of filters could
keep a database busy for days.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from glare.common import exception
from glare.db.sqlalchemy import api as database

from glare_murano import fields

# Databases join some sixty tables; Glare needs a few itself.
MAX_JOINS = 20
# SQLite allows a thousand terms in an expression.
MAX_TERMS = 300
# The largest number of elements in a list, and of tags.
ELEMENTS = 4096
TAGS = 255

_STRINGS = frozenset(field.name for field in fields.FIELDS if field.kind == "string")


class _Filter(NamedTuple):
    """A filter in the form of Glare's parser."""

    name: str
    key: str | None
    operator: str | None
    field_type: str | None
    value: Any
    combiner: str

    @property
    def is_tags(self) -> bool:
        return self.name in ("tags", "tags-any")

    @property
    def terms(self) -> int:
        """Number of values."""
        if self.is_tags:
            return int(self.value.count(",")) + 1
        return len(self.value) if isinstance(self.value, list) else 1

    @property
    def is_alternative(self) -> bool:
        """Whether Glare joins all rows of the field, once for all such filters."""
        return self.combiner == "or" and not self.is_tags

    @property
    def max_rows(self) -> int:
        """Largest number of rows for an artifact."""
        if self.is_alternative or self.key is not None or self.name in _STRINGS:
            return 1
        if self.name == "tags":
            return 1 if self.combiner == "and" else int(TAGS**self.terms)
        return ELEMENTS if self.operator == "neq" else self.terms


def check(filters: Sequence[tuple[Any, ...]]) -> None:
    """Refuse filters that exceed a limit.

    :param filters: as Glare parses them.
    :raises glare.common.exception.BadRequest: naming the limit.
    """
    parsed = [_Filter(*each) for each in filters]
    if sum(each.terms for each in parsed) > MAX_TERMS:
        raise exception.BadRequest(
            f"the filters have more than {MAX_TERMS} values; send fewer at once"
        )
    joined = [each for each in parsed if each.name not in database.BASE_ARTIFACT_PROPERTIES]
    if sum(each.terms if each.name == "tags" else 1 for each in joined) > MAX_JOINS:
        raise exception.BadRequest(
            f"more than {MAX_JOINS} filters by tags, lists and dicts; send fewer at once"
        )
    alternatives = ELEMENTS if any(each.is_alternative for each in joined) else 1
    if alternatives * math.prod(each.max_rows for each in joined) > ELEMENTS:
        raise exception.BadRequest(
            "the filters by tags, lists and dicts have too many combinations; use fewer "
            "of them that have several values, neq: or or:"
        )
