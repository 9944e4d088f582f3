# SPDX-License-Identifier: Apache-2.0

"""Parse the filters of a list request. Add three filters that Glare lacks, and limit all filters.

* ``version=stable`` excludes pre-releases.
* ``requirements=FQN`` finds the packages that require the package FQN. Glare's own filter would
  also find the package FQN itself, since each package requires itself.
* ``yanked=`` finds packages that are not yanked. Glare's own filter would find none, since these
  packages have no row for the field.

For every filter by tags, lists or dicts, Glare joins a table. Databases can join only some dozens
of tables, and each join multiplies the rows. A few filters could keep a database busy for days.

The same checks apply to lists of Glare's type ``all``, which contain packages as well.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from glare.common import exception
from glare.db.sqlalchemy import api as database

from glare_murano import fields
from glare_murano.glare.db import artifact_queries

# Databases can join about sixty tables, and Glare needs a few itself.
_MAX_JOINS = 20
# SQLite allows a thousand terms in an expression.
_MAX_TERMS = 300
# The largest number of combinations of rows that the filters may join for an artifact.
_MAX_COMBINATIONS = 4096

_STABLE = ("version", "stable")
_STRINGS = frozenset(field.name for field in fields.FIELDS if field.kind == "string")


class _Filter(NamedTuple):
    """A parsed filter, with the fields of the tuples that Glare's parser returns."""

    name: str
    key: Any
    operator: str | None
    field_type: str | None
    value: Any
    combiner: str

    @property
    def is_tags(self) -> bool:
        return self.name in ("tags", "tags-any")

    @property
    def terms(self) -> int:
        """The number of values or keys that the filter compares."""
        if self.is_tags:
            return int(self.value.count(",")) + 1
        values = self.key if self.is_by_key else self.value
        return len(values) if isinstance(values, list) else 1

    @property
    def is_by_key(self) -> bool:
        """Whether the filter finds a dict by its keys. Then Glare's parser returns no value."""
        return self.key is not None and self.value is None

    @property
    def is_alternative(self) -> bool:
        """Whether the filter has the prefix ``or:``, and is not a filter by tags.

        Glare joins the table of properties once for each filter by properties without ``or:``. For
        all filters by properties with ``or:``, it joins the table once in total. This one join has
        a row for every property of an artifact.
        """
        return self.combiner == "or" and not self.is_tags

    @property
    def max_rows(self) -> int:
        """The largest number of rows for one artifact in the table that this filter joins.

        It is 1 if ``is_alternative`` is true: ``_check`` counts the table of all such filters once.
        """
        has_key = self.key is not None and not self.is_by_key
        if self.is_alternative or has_key or self.name in _STRINGS:
            return 1
        if self.is_tags and self.combiner == "or":
            # Glare joins all tags of the artifact: once for each value, or once for ``tags-any``.
            return int(fields.MAX_TAGS ** (self.terms if self.name == "tags" else 1))
        if self.name == "tags":
            return 1
        # Without a value, this join has no row, but the database reads those of the others first.
        return _MAX_COMBINATIONS if self.operator == "neq" else max(self.terms, 1)


def parse(
    filters: Sequence[tuple[str, str]], parse_by_glare: Callable[[Any], Sequence[tuple[Any, ...]]]
) -> list[_Filter]:
    """Parse the filters of a list request.

    :param filters: the filters, each as name and value.
    :param parse_by_glare: Glare's own parser.
    :returns: the filters in the form of Glare's parser.
    :raises glare.common.exception.BadRequest: if a filter is not valid, or if the filters exceed a
        limit.
    """
    of_glare = [each for each in filters if each != _STABLE]
    parsed = [_Filter(*each) for each in parse_by_glare(of_glare)]
    _check(parsed)
    replaced = list(map(_replace, parsed))
    if len(of_glare) < len(filters):
        replaced.append(_by_id(artifact_queries.stable(), "and"))
    return replaced


def check_sorting(sort: Sequence[tuple[str, str]] | None, marker: str | None) -> None:
    """Check the sorting of a list request.

    :param sort: the fields and directions; None if the request does not choose them.
    :param marker: the id of the artifact before the page; None for the first page.
    :raises glare.common.exception.BadRequest: if a field is named twice, or if a page after the
        first is sorted by ``activated_at``, which drafts do not have.
    """
    keys = [key for key, _ in sort or ()]
    # For a page after the first, Glare makes a condition for each pair of keys.
    if len(set(keys)) < len(keys):
        raise exception.BadRequest("sort names a field twice; name each field once")
    if marker is not None and "activated_at" in keys:
        raise exception.BadRequest(
            "pages cannot be sorted by activated_at, which drafts lack; sort by "
            "created_at or updated_at"
        )


def _replace(each: _Filter) -> _Filter:
    if each.name == "requirements" and each.value is None:
        names = each.key if each.operator == "in" else [each.key]
        return _by_id(artifact_queries.requiring(names), each.combiner)
    if (each.name, each.operator, each.value) == ("yanked", "eq", ""):
        return _by_id(artifact_queries.not_yanked(), each.combiner)
    if (each.name, each.operator, each.value) == ("version", "in", []):
        # Glare would ignore the filter, or fail with an SQL statement that is not valid.
        return _by_id([], each.combiner)
    return each


def _by_id(statement: Any, combiner: str) -> _Filter:
    return _Filter("id", None, "in", None, statement, combiner)


def _check(filters: Sequence[_Filter]) -> None:
    """Refuse filters that exceed a limit."""
    if sum(each.terms for each in filters) > _MAX_TERMS:
        raise exception.BadRequest(
            f"the filters have more than {_MAX_TERMS} values; send fewer at once"
        )
    joined = [each for each in filters if each.name not in database.BASE_ARTIFACT_PROPERTIES]
    if sum(each.terms if each.name == "tags" else 1 for each in joined) > _MAX_JOINS:
        raise exception.BadRequest(
            f"more than {_MAX_JOINS} filters by tags, lists and dicts; send fewer at once"
        )
    alternatives = _MAX_COMBINATIONS if any(each.is_alternative for each in joined) else 1
    if alternatives * math.prod(each.max_rows for each in joined) > _MAX_COMBINATIONS:
        raise exception.BadRequest(
            "the filters by tags, lists and dicts have too many combinations; use fewer "
            "of them that have several values, neq: or or:"
        )
