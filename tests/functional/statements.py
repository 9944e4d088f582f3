# SPDX-License-Identifier: Apache-2.0

"""The SQL statements that Glare makes, and how SQLite would answer them."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from glare.db.sqlalchemy import api as database
from sqlalchemy import event

Statement = tuple[str, Any]


@contextlib.contextmanager
def recorded() -> Iterator[list[Statement]]:
    """The statements that are made meanwhile, with their parameters."""
    statements: list[Statement] = []

    def remember(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        statements.append((statement, parameters))

    event.listen(database.get_engine(), "before_cursor_execute", remember)
    try:
        yield statements
    finally:
        event.remove(database.get_engine(), "before_cursor_execute", remember)


def of_artifacts(statements: Iterable[Statement]) -> int:
    """Return how many of the statements read artifacts or their fields."""
    return sum("glare_artifact" in text for text, _ in statements)


def rows(statements: Iterable[Statement]) -> int:
    """Return how many rows the statements that read artifacts or their fields return now."""
    found = 0
    with database.get_engine().connect() as connection:
        for statement, parameters in statements:
            if statement.startswith("SELECT") and "glare_artifact" in statement:
                found += len(connection.exec_driver_sql(statement, parameters).all())
    return found


def plans(statements: Iterable[Statement]) -> list[str]:
    """Which indexes the statements are answered by, a line for each table."""
    lines: list[str] = []
    with database.get_engine().connect() as connection:
        for statement, parameters in statements:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            lines += [
                row.detail
                for row in rows
                if row.detail.startswith(("SCAN g", "SEARCH g", "INDEX", "MULTI"))
            ]
    return lines
