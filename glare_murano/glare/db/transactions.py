# SPDX-License-Identifier: Apache-2.0

"""Change or delete artifacts in transactions.

Glare reads an artifact in one transaction, and writes it in another transaction. In between, Glare
holds a lock, but this lock expires after five seconds, and a deletion does not take it. Therefore
each transaction of this module begins with ``lock_artifact`` or ``lock``, and then checks the state
of the artifact again. Several artifacts are locked in the order of ``service.package_locks``.

A transaction waits only for the database. During any other wait, another request of the same
process could run and wait for the same lock. PostgreSQL's driver blocks all green threads during a
wait, so the first transaction would never end.
"""

import copy
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import sqlalchemy as sa
from glare.common import exception
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_utils import uuidutils
from sqlalchemy import orm
from sqlalchemy.engine import Connection, Engine, Row

from glare_murano import fields
from glare_murano.glare.db import artifact_reads
from glare_murano.glare.db.glare_database import snapshot
from glare_murano.glare.interfaces import RequestContext
from glare_murano.service import busy_transactions, package_locks
from glare_murano.service.package_locks import PackageLocks

Result = TypeVar("Result")
# A function that locks artifacts, and raises an exception to refuse a change. It may also write.
Begin = Callable[[Connection], object]

_artifacts = models.Artifact.__table__.c
_blobs = models.ArtifactBlob.__table__.c


class Busy(exception.Conflict):  # type: ignore[misc]
    """Other requests are changing the packages of this request; see ``retry``."""

    message = "other requests are changing these packages; try again"


# A decorator that repeats calls of a function while other requests change the same packages.
retry = busy_transactions.while_busy(Busy)


def lock_artifact(connection: Connection, artifact_id: str) -> Row:
    """Lock the row of an artifact until the end of the transaction.

    Call this before any other statement of the transaction. Then the transaction sees all changes
    of earlier transactions to the artifact.

    :returns: the artifact's ``id``, ``status``, ``visibility`` and ``updated_at``.
    :raises glare.common.exception.ArtifactNotFound: if the artifact is missing, or has another type
        than ``murano``.
    """
    return _found(artifact_id, package_locks.execute(connection, _locking(artifact_id)))


def _state(artifact_id: str) -> Any:
    columns = (_artifacts.id, _artifacts.status, _artifacts.visibility, _artifacts.updated_at)
    return sa.select(*columns).where(
        _artifacts.id == artifact_id, _artifacts.type_name == fields.TYPE_NAME
    )


def _locking(artifact_id: str) -> Any:
    return _state(artifact_id).with_for_update()


def _found(artifact_id: str, result: Any) -> Row:
    row: Row | None = result.one_or_none()
    if row is None:
        raise exception.ArtifactNotFound(f"Artifact with id={artifact_id} not found.")
    return row


def lock(connection: Connection, locks: PackageLocks) -> None:
    """Lock the rows of artifacts until the end of the transaction; see ``package_locks.lock_rows``.

    In SQLite, the transaction has already locked the whole database; see ``begin_immediately``.
    """
    package_locks.lock_rows(connection, models.Artifact.__table__, locks)


def prepare(check: package_locks.Check) -> Callable[[Connection], None]:
    """Check a change before its transaction, and find the artifacts to lock.

    :param check: a function that checks the change; see ``package_locks.prepare``.
    :returns: a function that locks the artifacts and checks the change again. Call it first in the
        transaction. It raises ``Busy`` if the change must be prepared again.
    """
    return package_locks.prepare(check, snapshot, lock, Busy)


def read_state(connection: Connection, artifact_id: str) -> Row:
    """Return the ``id``, ``status``, ``visibility`` and ``updated_at`` of a package.

    :raises glare.common.exception.ArtifactNotFound: if the package is missing.
    """
    return _found(artifact_id, connection.execute(_state(artifact_id)))


def changed(artifact: Row) -> exception.Conflict:
    """Return the error for a request whose artifact another request has changed.

    :param artifact: the artifact as it is after the change.
    """
    return exception.Conflict(
        f"another request has changed artifact {artifact.id} at the same time; it is "
        f"{artifact.status} and {artifact.visibility} now"
    )


@retry
def change(artifact_id: str, work: Callable[[Connection, Row], Result]) -> Result:
    """Lock an artifact in a new transaction, and call a function in this transaction.

    :param work: the function. It takes the connection and the result of ``lock_artifact``.
    :returns: the result of the function.
    """
    session = database.get_session()
    with session.begin():
        connection = session.connection()
        return work(connection, lock_artifact(connection, artifact_id))


def update(
    context: RequestContext, artifact_id: str, values: dict[str, Any], lock_and_check: Begin
) -> dict[str, Any]:
    """Update an artifact as Glare does, in a transaction that first calls ``lock_and_check``.

    If other requests change the same packages, this function fails. It does not repeat the
    transaction; use ``retry`` to repeat the call.

    :param values: the changed values, in the form of Glare's ``create_or_update``.
    :param lock_and_check: a function that is called at the beginning of the transaction.
    :returns: all values of the artifact.
    """
    # Glare removes values from this mapping while it saves them.
    remaining = copy.deepcopy(values)

    def begin(_session: orm.Session, _transaction: Any, connection: Connection) -> None:
        lock_and_check(connection)

    session = database.get_session()
    sa.event.listen(session, "after_begin", begin)
    sa.event.listen(session, "before_flush", _set_ids)
    # Glare's wrapper of this function is left out: it would repeat the call 50 times, and would not
    # prepare ``lock_and_check`` again.
    save = database.create_or_update.__wrapped__
    updated: dict[str, Any] = save(context, artifact_id, remaining, session)
    return updated


def _set_ids(session: orm.Session, *_: Any) -> None:
    """Set the ids of the new rows in a session, so that one statement can insert all of them.

    For rows without ids, SQLAlchemy would need a statement for each row. SQLAlchemy calls this
    function before it writes the session.
    """
    for row in session.new:
        if row.id is None:
            row.id = uuidutils.generate_uuid()


@retry
def delete(artifact_id: str, check: package_locks.Check, work: Begin) -> list[str]:
    """Delete all rows of an artifact, if a check passes.

    :param check: a function that checks the deletion; see ``prepare``.
    :param work: a function that is called in the same transaction, before the deletion.
    :returns: the URLs of the artifact's blobs, which are still in the stores.
    """
    lock_and_check = prepare(check)
    session = database.get_session()
    with session.begin():
        connection = session.connection()
        lock_and_check(connection)
        work(connection)
        is_stored = sa.and_(_blobs.artifact_id == artifact_id, _blobs.url.is_not(None))
        urls = list(connection.execute(sa.select(_blobs.url).where(is_stored)).scalars())
        for model in (models.ArtifactProperty, models.ArtifactTag, models.ArtifactBlob):
            connection.execute(sa.delete(model).where(model.artifact_id == artifact_id))
        connection.execute(sa.delete(models.Artifact).where(_artifacts.id == artifact_id))
    return urls


def read_artifacts(session: orm.Session, ids: Collection[str]) -> dict[str, models.Artifact]:
    """Return packages of any owner, by the ids of their artifacts. All other ids are left out.

    The number of SQL statements does not depend on the number of ids.
    """
    query = artifact_reads.with_parts(session.query(models.Artifact))
    is_named = sa.and_(models.Artifact.id.in_(ids), _artifacts.type_name == fields.TYPE_NAME)
    return {row.id: row for row in query.filter(is_named)}


def begin_immediately(engine: Engine) -> None:
    """Make each transaction of SQLite lock the database at its beginning.

    SQLite cannot lock rows. Without this function, a transaction that reads first and writes later
    could fail, instead of waiting for the lock of the database.
    """
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "before_cursor_execute", _begin_immediately, retval=True)


def _begin_immediately(
    connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
) -> tuple[str, Any]:
    return "BEGIN IMMEDIATE" if statement == "BEGIN" else statement, parameters
