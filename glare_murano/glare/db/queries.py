# SPDX-License-Identifier: Apache-2.0

"""How rows of Glare's tables are looked up, and what is read from them.

What is looked for, and in which tables, is up to who asks.
"""

import contextlib
import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa
from glare.common import semver_db
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models

from glare_murano import fields
from glare_murano.package import Version

# SQLite takes 32,766 values in one statement, PostgreSQL 65,535.
_MAX_VALUES = 30_000
_VALUES = "values"


@contextlib.contextmanager
def snapshot(session: Any) -> Iterator[Any]:
    """A session's connection, which sees the database as it is at its first statement."""
    with session.begin():
        is_postgresql = session.get_bind().dialect.name == "postgresql"
        # The others do so by themselves.
        options = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        yield session.connection(execution_options=options)


# The table, since rows of mapped classes take longer.
_artifacts = models.Artifact.__table__.c

# What tells the version of an artifact.
VERSION = (_artifacts.version_prefix, _artifacts.version_suffix, _artifacts.version_meta)


def version_of(row: Any) -> Version:
    """The version in a row with the columns ``VERSION``."""
    return _version(row.version_prefix, row.version_suffix, row.version_meta)


# Most packages have the same versions, and each of them is asked for often.
@functools.lru_cache(maxsize=4096)
def _version(prefix: int, suffix: str | None, meta: str | None) -> Version:
    version: Version = semver_db.DBVersion(prefix, suffix, meta).version
    return version


def among(column: Any) -> Any:
    """The condition that a column has one of the values that ``looked_up`` is given.

    They are not part of the statement, so that one that is asked again, of other
    values, need not be worked out again, which takes longer than to run it.
    """
    return column.in_(sa.bindparam(_VALUES, expanding=True))


def looked_up(
    connection: Any, statement: Any, values: Iterable[str], **parameters: str | None
) -> Iterator[Any]:
    """The rows of a statement with a column that is ``among`` the values.

    :param parameters: others of the statement.
    """
    ordered = sorted(values)
    for start in range(0, len(ordered), _MAX_VALUES):
        share = {_VALUES: ordered[start : start + _MAX_VALUES]}
        yield from connection.execute(statement, share | parameters).all()


def usable(
    connection: Any,
    context: Any,
    sees_all: bool,
    column: str,
    values: Iterable[str],
    given: str | None = None,
) -> Iterator[Any]:
    """The artifacts that can be used, of those that the caller sees.

    Rows have the columns ``id``, ``name``, ``owner``, ``visibility`` and ``VERSION``.

    :param sees_all: whether the caller sees those of all projects, as an
        administrator does.
    :param column: what they are looked up by.
    :param given: the id of an artifact that can be used even as a draft.
    """
    project = context.project_id
    statement = _usable(column, sees_all or context.is_admin, project is not None)
    yield from looked_up(connection, statement, values, given=given, project=project)


def checked(condition: Any) -> Any:
    """A condition that rows are checked by, but never looked up by.

    SQLite does not know how many rows a value has: it would rather look up all
    that is active, or all requirements that there are, than fifty artifacts.
    """
    return sa.case((condition, 1), else_=0) == 1


class _Viewer(NamedTuple):
    """As much of a context as Glare's rule of what a caller can list asks for."""

    is_admin: bool
    project_id: Any


@functools.lru_cache
def _usable(column: str, sees_all: bool, has_project: bool) -> Any:
    """The statement that gives artifacts which can be used, and the caller sees.

    It is the same for all callers of a kind, so that it is worked out once.

    :param column: what they are looked up by.
    """
    condition = sa.select(models.Artifact.id).where(
        models.Artifact.type_name == fields.TYPE_NAME,
        sa.or_(
            models.Artifact.status == "active",
            sa.and_(
                models.Artifact.id == sa.bindparam("given"), models.Artifact.status != "deleted"
            ),
        ),
    )
    viewer = _Viewer(sees_all, sa.bindparam("project") if has_project else None)
    # Glare's own rule of what a caller can list.
    condition = database._apply_query_base_filters(condition, viewer)
    return sa.select(
        _artifacts.id, _artifacts.name, *VERSION, _artifacts.owner, _artifacts.visibility
    ).where(among(_artifacts[column]), checked(condition.whereclause))
