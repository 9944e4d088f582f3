# SPDX-License-Identifier: Apache-2.0

"""Databases of a test's own, in the servers that run on this host.

Each is created as the documentation describes, under a unique name, and
dropped at the end.
"""

import contextlib
import pathlib
import sqlite3
import uuid
from collections.abc import Iterator

import sqlalchemy

from tests import prerequisites
from tests.functional import installation

# Dialect -> the statements for Glare's new tables.
_STATEMENTS = {
    "mysql": installation.ETC / "mariadb.sql",
    "postgresql": installation.ETC / "postgresql.sql",
}


@contextlib.contextmanager
def sqlite(folder: pathlib.Path) -> Iterator[str]:
    """A file, and its SQLAlchemy URL."""
    yield f"sqlite:///{folder / 'glare.sqlite'}?timeout=60"


@contextlib.contextmanager
def sqlite_with_log(folder: pathlib.Path) -> Iterator[str]:
    """A file with a write-ahead log: a request that reads does not block one that writes."""
    with sqlite(folder) as url:
        path = sqlalchemy.engine.make_url(url).database
        with contextlib.closing(sqlite3.connect(str(path))) as connection:
            connection.execute("PRAGMA journal_mode = wal")
        yield url


@contextlib.contextmanager
def mariadb(folder: pathlib.Path) -> Iterator[str]:
    """A database in MariaDB, and its SQLAlchemy URL."""
    server = prerequisites.mariadb()
    with _created(server, "CREATE DATABASE {name}", "DROP DATABASE {name}") as url:
        yield f"{url}?charset=utf8"


@contextlib.contextmanager
def postgresql(folder: pathlib.Path) -> Iterator[str]:
    """A database in PostgreSQL, and its SQLAlchemy URL."""
    create = "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
    drop = "DROP DATABASE {name} WITH (FORCE)"
    with _created(prerequisites.postgresql(), create, drop) as url:
        yield url


def settle(url: str) -> None:
    """Change Glare's new tables as the documentation describes."""
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    if file := _STATEMENTS.get(engine.dialect.name):
        with engine.connect() as connection:
            for statement in file.read_text().split(";\n"):
                if statement.strip():
                    connection.exec_driver_sql(statement)
    engine.dispose()


@contextlib.contextmanager
def _created(server: sqlalchemy.engine.Engine, create: str, drop: str) -> Iterator[str]:
    name = f"glare_{uuid.uuid4().hex}"
    with server.connect() as connection:
        connection.exec_driver_sql(create.format(name=name))
        try:
            yield str(server.url.set(database=name))
        finally:
            connection.exec_driver_sql(drop.format(name=name))
    server.dispose()
