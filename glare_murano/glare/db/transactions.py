# SPDX-License-Identifier: Apache-2.0

"""Transactions to change or delete artifacts.

Glare reads an artifact in one transaction and writes it in another. Its own lock, held
in between, expires after five seconds, and its deletions do not take this lock. Therefore each
transaction begins with ``lock_artifact``, and then checks the artifact's state again.

A transaction waits for nothing but the database. During any other wait, another request of
the same process could run and wait for the same lock. PostgreSQL's driver blocks all green
threads during a wait, so the first transaction would never end.
"""

import contextlib
import copy
import datetime
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

import sqlalchemy as sa
from glare.common import exception
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_db import api as oslo_db
from oslo_db import exception as db_exception
from oslo_utils import timeutils, uuidutils
from sqlalchemy import orm
from sqlalchemy.engine import Connection, Engine, Row

from glare_murano import fields
from glare_murano.glare.interfaces import RequestContext

Result = TypeVar("Result")
# A function that refuses an artifact, given its row, with an exception. It may also write.
Check = Callable[[Connection, Row], object]

_artifacts = models.Artifact.__table__.c
_blobs = models.ArtifactBlob.__table__.c
_locks = models.ArtifactLock.__table__
# The age at which Glare takes a lock over: its process was probably killed.
_LOCK_AGE = datetime.timedelta(seconds=5)


class Busy(exception.Conflict):  # type: ignore[misc]
    """Other requests are changing the same packages; see ``retry``."""

    message = "other requests are changing these packages; try again"


# Calls a function again, for up to about ten seconds, after ``Busy`` and deadlocks.
retry = oslo_db.wrap_db_retry(
    retry_interval=0.1,
    max_retry_interval=1,
    retry_on_deadlock=True,
    exception_checker=lambda error: isinstance(error, Busy),
    jitter=True,
)


def lock_artifact(connection: Connection, artifact_id: str) -> Row:
    """Lock the row of an artifact until the end of the transaction.

    Call this before any other statement of the transaction: then the transaction
    sees the artifact as the last transaction has left it. Lock several artifacts in the order
    of their ids.

    :returns: the artifact's ``id``, ``status``, ``visibility`` and ``updated_at``.
    :raises glare.common.exception.ArtifactNotFound: if the artifact was deleted.
    """
    row = connection.execute(
        sa.select(_artifacts.id, _artifacts.status, _artifacts.visibility, _artifacts.updated_at)
        .where(_artifacts.id == artifact_id, _artifacts.type_name == fields.TYPE_NAME)
        .with_for_update()
    ).one_or_none()
    if row is None:
        raise exception.ArtifactNotFound(f"Artifact with id={artifact_id} not found.")
    return row


def changed(artifact: Row) -> exception.Conflict:
    """Return the refusal of a request whose artifact has changed since it was read."""
    return exception.Conflict(
        f"another request has changed artifact {artifact.id} at the same time; it is "
        f"{artifact.status} and {artifact.visibility} now"
    )


@retry  # type: ignore[untyped-decorator]
def change(artifact_id: str, work: Callable[[Connection, Row], Result]) -> Result:
    """Call a function in a transaction that has locked an artifact.

    :param work: the function; it gets the connection and the result of ``lock_artifact``.
    """
    session = database.get_session()
    with session.begin():
        connection = session.connection()
        return work(connection, lock_artifact(connection, artifact_id))


def update(
    context: RequestContext, artifact_id: str, values: dict[str, Any], check: Check
) -> dict[str, Any]:
    """Update an artifact as Glare does, if a check passes in the same transaction.

    :param values: the changed values, in the form of Glare's ``create_or_update``.
    :returns: all values of the artifact.
    """
    remaining = copy.deepcopy(values)

    def begin(_session: orm.Session, _transaction: Any, connection: Connection) -> None:
        check(connection, lock_artifact(connection, artifact_id))
        # Glare removes values while it saves them, and repeats a save after a deadlock.
        remaining.update(copy.deepcopy(values))

    session = database.get_session()
    sa.event.listen(session, "after_begin", begin)
    sa.event.listen(session, "before_flush", _set_ids)
    updated: dict[str, Any] = database.create_or_update(context, artifact_id, remaining, session)
    return updated


def _set_ids(session: orm.Session, *_: Any) -> None:
    """Set the ids of new rows, so a single statement inserts all rows of a table.

    For rows without ids, SQLAlchemy would need a statement for each row.
    """
    for row in session.new:
        if row.id is None:
            row.id = uuidutils.generate_uuid()


def delete(artifact_id: str, check: Check) -> list[str]:
    """Delete all rows of an artifact, if a check passes in the same transaction.

    :returns: the URLs of its blobs, which are still in the store.
    """

    def work(connection: Connection, row: Row) -> list[str]:
        check(connection, row)
        is_stored = sa.and_(_blobs.artifact_id == artifact_id, _blobs.url.is_not(None))
        urls = list(connection.execute(sa.select(_blobs.url).where(is_stored)).scalars())
        for model in (models.ArtifactProperty, models.ArtifactTag, models.ArtifactBlob):
            connection.execute(sa.delete(model).where(model.artifact_id == artifact_id))
        connection.execute(sa.delete(models.Artifact).where(_artifacts.id == artifact_id))
        return urls

    deleted: list[str] = change(artifact_id, work)
    return deleted


def lock_artifacts(session: orm.Session, ids: Collection[str]) -> list[models.Artifact]:
    """Lock several artifacts until the end of the transaction.

    :returns: the artifacts in the order of the ids.
    :raises Busy: if an artifact was deleted.
    """
    for artifact_id in sorted(ids):
        try:
            lock_artifact(session.connection(), artifact_id)
        except exception.ArtifactNotFound as error:
            raise Busy from error
    found = read_artifacts(session, ids)
    return [found[artifact_id] for artifact_id in ids]


def read_artifacts(session: orm.Session, ids: Collection[str]) -> dict[str, models.Artifact]:
    """Return the artifacts that exist, of any owner, by id; the number of statements is fixed."""
    parts = (models.Artifact.properties, models.Artifact.tags, models.Artifact.blobs)
    query = session.query(models.Artifact).options(*map(orm.selectinload, parts))
    is_named = sa.and_(models.Artifact.id.in_(ids), _artifacts.type_name == fields.TYPE_NAME)
    return {row.id: row for row in query.filter(is_named)}


@contextlib.contextmanager
def public_names_locked(
    connection: Connection, packages: Collection[tuple[str, str]]
) -> Iterator[None]:
    """Take Glare's locks of public names and versions, until the end of the transaction.

    The rows of the locks are deleted in the same transaction. No other request sees the rows,
    but a request that takes such a lock waits.

    :raises Busy: if another request has a lock.
    """
    keys = _keys(packages)
    rows = [{"id": key, "acquired_at": timeutils.utcnow()} for key in keys]
    try:
        if rows:
            connection.execute(sa.insert(_locks), rows)
    except db_exception.DBDuplicateEntry as error:
        raise Busy from error
    yield
    connection.execute(sa.delete(_locks).where(_locks.c.id.in_(keys)))


def remove_expired_locks(packages: Collection[tuple[str, str]]) -> None:
    """Remove Glare's locks of public names and versions that killed processes have left."""
    has_expired = _locks.c.acquired_at < timeutils.utcnow() - _LOCK_AGE
    session = database.get_session()
    with session.begin():
        session.execute(sa.delete(_locks).where(_locks.c.id.in_(_keys(packages)), has_expired))


def _keys(packages: Collection[tuple[str, str]]) -> list[str]:
    return sorted(f"{fields.TYPE_NAME}:{name}:{version}" for name, version in packages)


def begin_immediately(engine: Engine) -> None:
    """Let the transactions of SQLite lock the database at their beginning.

    SQLite cannot lock rows. A transaction that has read already does not wait for the lock of
    the database, but fails.
    """
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "before_cursor_execute", _begin_immediately, retval=True)


def _begin_immediately(
    connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
) -> tuple[str, Any]:
    return "BEGIN IMMEDIATE" if statement == "BEGIN" else statement, parameters
