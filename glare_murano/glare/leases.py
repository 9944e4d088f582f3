# SPDX-License-Identifier: Apache-2.0

"""Manage the leases of uploads. A lease shows other requests that an upload is running.

An upload has a lease from its beginning to its end, and renews the lease while it makes progress.
If the process of the upload is killed, the lease is not renewed. The lease expires
``upload_timeout`` seconds after its last renewal. Then another request to the artifact can cancel
the upload. A lease is a row in Glare's table of locks.
"""

import datetime
import time
from typing import Any

import sqlalchemy as sa
from glare.common import exception
from glare.db.sqlalchemy import models
from oslo_utils import timeutils, uuidutils
from sqlalchemy.engine import Connection, Row

from glare_murano import fields
from glare_murano.glare.db import transactions
from glare_murano.glare.options import SETTINGS

_locks = models.ArtifactLock.__table__
# The fraction of upload_timeout after which a lease is renewed.
_RENEWAL = 0.25


class Lease:
    """The lease of an upload to an artifact."""

    def __init__(self, artifact_id: str) -> None:
        self._artifact_id = artifact_id
        self._id = f"{_prefix(artifact_id)}{uuidutils.generate_uuid()}"
        self._renewed = time.monotonic()

    def begin(self, connection: Connection) -> None:
        """Begin the lease, in a transaction that has locked the artifact."""
        connection.execute(sa.insert(_locks).values(id=self._id, acquired_at=timeutils.utcnow()))

    def renew(self) -> None:
        """Renew the lease, if a quarter of ``upload_timeout`` has passed since the last renewal.

        :raises glare.common.exception.GlareException: if another request has cancelled
            the upload, or has deleted the artifact.
        """
        now = time.monotonic()
        if now < self._renewed + _RENEWAL * _timeout().total_seconds():
            return
        transactions.change(self._artifact_id, self._renew)
        self._renewed = now

    def _renew(self, connection: Connection, _artifact: Row) -> None:
        values = {"acquired_at": timeutils.utcnow()}
        self._execute(connection, sa.update(_locks).values(values))

    def end(self, connection: Connection) -> None:
        """End the lease, in a transaction that has locked the artifact.

        :raises glare.common.exception.Conflict: if another request has cancelled the upload.
        """
        self._execute(connection, sa.delete(_locks))

    def _execute(self, connection: Connection, statement: Any) -> None:
        if not connection.execute(statement.where(_locks.c.id == self._id)).rowcount:
            raise exception.Conflict(
                f"the upload has expired, since it made no progress for "
                f"{_timeout().total_seconds():.0f} seconds; upload the archive again"
            )


def find_end(connection: Connection, artifact_id: str) -> datetime.datetime | None:
    """Return the time at which the upload to an artifact expires, if it makes no more progress.

    :returns: the time in UTC, which may be in the past; None if the artifact has no upload.
    """
    found = sa.select(sa.func.max(_locks.c.acquired_at)).where(_is_of(artifact_id))
    renewed: datetime.datetime | None = connection.execute(found).scalar()
    return None if renewed is None else renewed + _timeout()


def is_running(connection: Connection, artifact_id: str, now: datetime.datetime) -> bool:
    """Return whether an upload to an artifact is running, and has not expired.

    :param now: a time in UTC. A lease that ends at this time, or earlier, has expired.
    """
    end = find_end(connection, artifact_id)
    return end is not None and end > now


def delete(connection: Connection, artifact_id: str) -> None:
    """Delete the lease of the upload to an artifact, if there is an upload."""
    connection.execute(sa.delete(_locks).where(_is_of(artifact_id)))


def _is_of(artifact_id: str) -> sa.sql.ColumnElement[bool]:
    return _locks.c.id.startswith(_prefix(artifact_id))


def _prefix(artifact_id: str) -> str:
    # Glare's own locks begin with the name of an artifact type and a colon.
    return f"{fields.TYPE_NAME}-upload:{artifact_id}:"


def _timeout() -> datetime.timedelta:
    return datetime.timedelta(seconds=SETTINGS["upload_timeout"])
