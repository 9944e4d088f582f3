# SPDX-License-Identifier: Apache-2.0

"""Lock packages in one order, so that simultaneous requests see each other's changes.

A package is activated only if active packages satisfy its requirements. An active package is
removed only if other active packages satisfy the requirements on this package. Two simultaneous
requests could both pass their checks, although one request removes a package that the other request
relies on. Therefore each request that publishes, removes, hides or yanks packages takes these steps
in both services:

1. It reads the packages, and runs its checks. A refused request takes no lock.
2. It begins a transaction, and locks packages before any other statement:

   * exclusively, the packages that it changes. If a package becomes public, the request also locks
     the packages of all projects with the same name and version.
   * shared, the packages that it relies on. It relies on one package for each requirement of a
     published package, and on one for each requirement that a removed package has satisfied.

   The lock of a package is the lock of its row in the service's database. Rows are locked in the
   order of their ids, so no two requests wait for each other.
3. It reads the packages and runs the checks again. If it now needs locks that it does not have, it
   begins again with the first step.
4. It changes the packages, and ends the transaction.

So a removal waits for the publications that rely on the package, and then sees what they have
published. Publications do not wait for each other, although all of them rely on the core library. A
request holds these locks during one transaction, and meanwhile waits only for the database. If a
statement has to wait too long for locks, the request begins again with the first step; see
``execute``.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# The longest wait of a statement for locks, in seconds.
MAX_WAIT = 5


class PackageLocks(NamedTuple):
    """The ids of the packages that a request locks.

    :ivar exclusive: the packages that no other request may lock at the same time.
    :ivar shared: the packages that other requests may lock as well, but not exclusively.
    """

    exclusive: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all locked packages."""
        return self.exclusive | self.shared

    def include(self, others: "PackageLocks") -> bool:
        """Return whether these locks cover other locks; an exclusive lock covers a shared one.

        :param others: the locks that a request needs.
        """
        return others.exclusive <= self.exclusive and others.shared <= self.ids

    def in_order(self) -> Iterator[tuple[bool, list[str]]]:
        """Yield all ids in groups, in the order in which they must be locked.

        One statement can lock a whole group, since its locks are all exclusive or all shared.

        :returns: for each group, whether its locks are exclusive, and the ids of its packages.
        """
        for is_exclusive, ids in itertools.groupby(sorted(self.ids), self.exclusive.__contains__):
            yield is_exclusive, list(ids)


def lock_rows(connection: Any, table: Any, locks: PackageLocks) -> None:
    """Lock rows until the end of the transaction.

    Call this before any other statement of the transaction. In MariaDB, the first plain read of a
    transaction fixes the state of the database that the transaction sees. If this read came before
    the locks, the transaction would not see what others change while it waits for the locks.

    :param connection: the SQLAlchemy connection.
    :param table: the SQLAlchemy table of packages; its primary key is ``id``.
    :param locks: the packages whose rows are locked.
    """
    for is_exclusive, ids in locks.in_order():
        rows = table.select().where(table.c.id.in_(ids)).order_by(table.c.id)
        statement = rows.with_only_columns(table.c.id)
        for dialect in ("mysql", "mariadb"):
            # Without the hint, MariaDB may lock all rows of a small table.
            statement = statement.with_hint(table, "FORCE INDEX (PRIMARY)", dialect)
        locking = statement.with_for_update(read=not is_exclusive, key_share=is_exclusive)
        execute(connection, locking).all()


def execute(connection: Any, locking: Any) -> Any:
    """Execute a statement that locks rows, and wait for the locks.

    In PostgreSQL and MariaDB, the statement fails after ``MAX_WAIT`` seconds. SQLite and MySQL have
    one limit for all statements, and this function does not change the limit. In MySQL, the limit
    is 50 seconds by default.

    :param connection: the SQLAlchemy connection.
    :param locking: the statement.
    :returns: SQLAlchemy's result.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{MAX_WAIT}s'")
    elif getattr(connection.dialect, "is_mariadb", False):
        locking = locking.suffix_with(f"WAIT {MAX_WAIT}")
    return connection.execute(locking)


# A function that checks a request. It takes a connection to the database, and the ids of the locked
# packages. It raises an exception to refuse the request, or returns the locks that the request
# needs.
Check = Callable[[Any, frozenset[str]], PackageLocks]


def prepare(
    check: Check,
    reading: Callable[[], contextlib.AbstractContextManager[Any]],
    lock: Callable[[Any, PackageLocks], object],
    busy: Callable[[], Exception],
) -> Callable[[Any], None]:
    """Check a request without locks: step 1 in the docstring of this module.

    :param check: a function that checks the request, and returns the locks that it needs.
    :param reading: a function that opens a transaction on a snapshot of the database.
    :param lock: a function that takes a connection, and locks packages until the end of its
        transaction.
    :param busy: a function that returns the exception to raise if the second check needs other
        locks. The caller then begins the request again.
    :returns: a function for steps 2 and 3. It takes the connection of a new transaction, locks the
        packages, and checks the request again.
    """
    with reading() as connection:
        locks = check(connection, frozenset())

    def lock_and_check(connection: Any) -> None:
        lock(connection, locks)
        if not locks.include(check(connection, locks.ids)):
            raise busy()

    return lock_and_check
