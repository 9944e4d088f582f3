# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How rows of Glare's tables are looked up, and what is read from them.

What is looked for, and in which tables, is up to who asks.
"""

import contextlib
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from glare.common import semver_db
from glare.db.sqlalchemy import models

from glare_murano.package import Version

# SQLite takes 32,766 values in one statement, PostgreSQL 65,535.
_MAX_VALUES = 30_000
_VALUES = "values"


@contextlib.contextmanager
def snapshot(session: Any) -> Iterator[None]:
    """A transaction in which a session sees the database as it is at its first statement."""
    with session.begin():
        if session.get_bind().dialect.name == "postgresql":
            # The others do so by themselves.
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        yield


# What tells the version of an artifact.
VERSION = (
    models.Artifact.version_prefix,
    models.Artifact.version_suffix,
    models.Artifact.version_meta,
)


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
    session: Any, statement: Any, values: Iterable[str], **parameters: str | None
) -> Iterator[Any]:
    """The rows of a statement with a column that is ``among`` the values.

    :param parameters: others of the statement.
    """
    ordered = sorted(values)
    for start in range(0, len(ordered), _MAX_VALUES):
        share = {_VALUES: ordered[start : start + _MAX_VALUES]}
        yield from session.execute(statement, share | parameters)


def checked(condition: Any) -> Any:
    """A condition that rows are checked by, but never looked up by.

    SQLite does not know how many rows a value has: it would rather look up all
    that is active, or all requirements that there are, than fifty artifacts.
    """
    return sa.case((condition, 1), else_=0) == 1
