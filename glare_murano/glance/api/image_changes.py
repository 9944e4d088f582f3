# SPDX-License-Identifier: Apache-2.0

"""Check changes of packages, and make the changes in transactions.

Before a transaction changes a package, it locks all packages that the checks depend on; see
``service.package_locks``. Glance's own functions change the visibility, the status and the members
of an image. They run inside a transaction of this module, so that every request and every task of
Glance passes the checks.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from sqlalchemy.engine import Connection

from glare_murano import images, preconditions
from glare_murano.glance import internals
from glare_murano.glance.api import callers
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.glance_database import GlanceDatabase
from glare_murano.glance.db.image_queries import SHARED
from glare_murano.glance.db.image_rows import ImageRow
from glare_murano.glance.db.image_tables import ACCEPTED
from glare_murano.glance.options import SETTINGS
from glare_murano.service import budgets, package_locks, release_changes
from glare_murano.service.database import Viewer
from glare_murano.service.package_locks import PackageLocks
from glare_murano.service.refusals import RefusedRequest, conflict
from glare_murano.service.release_changes import ReleaseChange

# A function that takes a connection, reads packages, and returns their changes.
Find = Callable[[Connection], Sequence[ReleaseChange]]


class Transaction:
    """A transaction that changes packages. The changes are checked before and after it takes locks.

    The constructor makes the first checks, which also find the packages that must be locked.

    :param caller: the caller of the request.
    :param changes: the changes, from packages that were read without locks.
    :param find: a function that reads the packages again after they are locked, and returns the
        changes. It may raise ``internals.ImagesBusy`` if another request has changed the packages
        after they were first read.
    :param problems: problems that were found earlier. The request is refused for these problems,
        and for the problems that the checks find.
    :ivar warning: a warning for the caller of a request that succeeds; may be empty.
    :raises RefusedRequest: if there are problems. The message has a line for each.
    """

    def __init__(
        self,
        caller: callers.Caller,
        changes: Sequence[ReleaseChange],
        find: Find,
        problems: Collection[RefusedRequest] = (),
    ) -> None:
        self.warning = ""
        self._caller = caller
        self._changes = changes
        self._find = find
        self._problems = problems
        self._lock_and_check = package_locks.prepare(
            self._check, internals.reading, image_rows.lock, internals.ImagesBusy
        )

    def _check(self, connection: Connection, locked: frozenset[str]) -> PackageLocks:
        database = GlanceDatabase(connection, self._caller.viewer, budgets.of_look_ups(SETTINGS))
        changes = self._find(connection) if locked else self._changes
        checked = release_changes.check(changes, database, SETTINGS, self._caller.overrides, locked)
        if problems := [*self._problems, *checked.problems]:
            raise RefusedRequest(problems[0].status, "\n".join(map(str, problems)))
        self.warning = checked.warning
        return checked.locks

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """Lock the packages, check the changes again, and run the body of the ``with`` statement.

        :returns: the connection of the transaction.
        :raises RefusedRequest: if there are problems. The message has a line for each.
        :raises internals.ImagesBusy: if other requests have changed packages after the first
            checks, so that other locks are needed, or if ``find`` raises this error. The calling
            function then has to begin again with a new ``Transaction``.
        """
        with internals.writing() as connection:
            self._lock_and_check(connection)
            yield connection


def save(
    context: Any, image_id: str, attributes: Mapping[str, Any], write: Callable[[], None]
) -> None:
    """Save new attributes of a package, if the checks pass; see ``internals.CheckedSave``.

    :param attributes: the changed attributes, with their new values.
    :param write: Glance's function that saves the image.
    :raises RefusedRequest: if a check fails, or if another request has changed a list, such as the
        tags, after the client has read the list; see ``preconditions``.
    """
    unchanged = internals.unchanged(context)

    def change(connection: Connection, row: ImageRow) -> ReleaseChange:
        if changed := preconditions.find_changed(unchanged, images.stored_fields(row.properties)):
            raise conflict(
                f"another request has changed {changed} of {row}; read the package again, and "
                f"repeat the change"
            )
        after = dataclasses.replace(row, attributes={**row.attributes, **attributes})
        is_hidden = after.visibility not in ("public", row.visibility)
        members = _members(connection, row.id) if after.visibility == SHARED else ()
        keeping = members if is_hidden else None
        return ReleaseChange(row, after, row.state, after.state, keeping)

    _write(context, image_id, change, write)


def change_member(
    context: Any, image_id: str, member: str, status: str, write: Callable[[], None]
) -> None:
    """Change a member of a package, if the checks pass; see ``internals.CheckedMember``.

    A member is a project with which the package is shared.

    :param member: the id of the project.
    :param status: the member's new status; empty if the member is removed.
    :param write: Glance's function that changes the member.
    :raises RefusedRequest: if the member could no longer see the package, and only this package
        satisfies requirements of the member's packages.
    """

    def change(connection: Connection, row: ImageRow) -> ReleaseChange:
        members = _members(connection, row.id)
        is_hidden = row.visibility == SHARED and member in members and status != ACCEPTED
        keeping = members - {member} if is_hidden else None
        return ReleaseChange(row, row, row.state, row.state, keeping)

    _write(context, image_id, change, write)


def _write(
    context: Any,
    image_id: str,
    change: Callable[[Connection, ImageRow], ReleaseChange],
    write: Callable[[], None],
) -> None:
    """Change a package in a ``Transaction``. Try again while other requests block the change.

    :param change: a function that takes a connection and a package, and returns the change.
    :param write: Glance's function that makes the change.
    """
    caller = callers.in_context(context)

    def find(connection: Connection) -> list[ReleaseChange]:
        rows = image_rows.find(connection, [image_id], caller.viewer.project_id)
        return [change(connection, row) for row in rows]

    def attempt() -> None:
        with internals.reading() as connection:
            changes = find(connection)
        for each in changes:
            if each.is_added or each.becomes_public:
                # Policies are checked before the lock, since their rules may query other services.
                caller.check_names(cast(ImageRow, each.after))
        with Transaction(caller, changes, find).begin():
            write()

    internals.retry(attempt)


def _members(connection: Connection, image_id: str) -> set[str]:
    """Return the projects with which a package is shared, and which have accepted the package."""
    database = GlanceDatabase(connection, Viewer(None, False), budgets.of_look_ups(SETTINGS))
    return set(database.find_members([image_id]).get(image_id, ()))
