# SPDX-License-Identifier: Apache-2.0

"""Races: two requests that begin at once, in two processes of a service, many times.

Each round must end in a state, and with answers, that one of the two orders of the requests
explains. ``RACE_ROUNDS`` in the environment is the number of rounds; ``make races`` sets it.
"""

import collections
import concurrent.futures
import contextlib
import functools
import os
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import requests
import sqlalchemy

from glare_murano.package import Manifest
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage

ROUNDS = int(os.environ.get("RACE_ROUNDS") or 10)
# The longest time for the rounds of a test, in seconds.
SECONDS = 60 + ROUNDS
# By how much earlier a refused request begins in the next round, in seconds.
_STEP_SECONDS = 0.01
# From this number of rounds on, each order is expected to occur.
_MANY = 100

DONE, WARNED, REFUSED = "done", "done with a warning", "refused"

# Sends the request of the round with a number.
Send = Callable[[int], requests.Response]


class End(NamedTuple):
    """How a round ends: both answers, and the state that both requests leave."""

    first: str
    second: str
    state: Any


def run(first: Send, second: Send) -> list[tuple[str, str]]:
    """Send both requests of each round at once; return the answers by round.

    A request that was refused begins earlier in the next round, so that both orders occur.
    """
    # How much earlier the first request begins, in seconds.
    ahead = 0.0
    found = []
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        for number in range(ROUNDS):
            sent = (
                executor.submit(_send_after, max(0, delay), send, number)
                for send, delay in ((first, -ahead), (second, ahead))
            )
            answer, other = (each.result() for each in list(sent))
            ahead += _STEP_SECONDS * ((answer == REFUSED) - (other == REFUSED))
            found.append((answer, other))
    return found


def _send_after(delay: float, send: Send, number: int) -> str:
    time.sleep(delay + random.uniform(0, _STEP_SECONDS))
    return _read(send(number))


def check(ends: Collection[End], explained: Collection[End]) -> None:
    """Check that each round ended as explained, and that many rounds ended in each way."""
    found = collections.Counter(ends)
    unexplained = {end: count for end, count in found.items() if end not in explained}
    assert not unexplained, f"{sum(unexplained.values())} of {len(ends)}: {found}"
    if len(ends) >= _MANY:
        assert found.keys() == set(explained), found


# The tags that ``add_tags`` adds.
TAGS = frozenset(f"tag{number}" for number in range(9))


def add_tags(repositories: Sequence[Repository], package_id: str) -> None:
    """Add ``TAGS`` to a package, by one client at a time for each tag, several at once."""
    barrier = threading.Barrier(len(repositories), timeout=60)

    def add(tag: str, before: StoredPackage) -> dict[str, list[str]]:
        return {"tags": [*(before.fields.get("tags") or []), tag]}

    def add_share(number: int) -> None:
        repository = repositories[number]
        for tag in sorted(TAGS)[number :: len(repositories)]:
            barrier.wait()
            repository.edit(repository.get(package_id), functools.partial(add, tag))

    with concurrent.futures.ThreadPoolExecutor(len(repositories)) as executor:
        list(executor.map(add_share, range(len(repositories))))


def storm(sends: Sequence[Callable[[random.Random], requests.Response]]) -> None:
    """Send random requests from several clients at once; each must succeed, or be refused."""

    def send_all(number: int) -> set[str]:
        dice = random.Random(number)
        return {_read(sends[number](dice)) for _ in range(2 * ROUNDS)}

    with concurrent.futures.ThreadPoolExecutor(len(sends)) as executor:
        answers = set().union(*executor.map(send_all, range(len(sends))))
    assert answers <= {DONE, REFUSED}, answers


def check_satisfied(active: Sequence[Manifest], names: Collection[str]) -> None:
    """Check that active packages satisfy the requirements of active packages.

    :param names: the names of required packages to consider.
    """
    for manifest in active:
        for fqn, spec in manifest.requirements.items():
            if fqn in names and fqn != manifest.fqn:
                versions = [each.version for each in active if each.fqn == fqn]
                assert any(map(spec.match, versions)), (manifest.fqn, fqn, spec.text, versions)


@contextlib.contextmanager
def locked(
    database: sqlalchemy.engine.Engine, table: str, id_: str, is_shared: bool
) -> Iterator[None]:
    """Lock a row, as another request would."""
    column: sqlalchemy.sql.ColumnClause[str] = sqlalchemy.column("id")
    rows = sqlalchemy.select(column).select_from(sqlalchemy.table(table, column))
    with database.begin() as connection:
        statement = rows.where(column == id_).with_for_update(read=is_shared)
        assert connection.execute(statement).all()
        yield


def _read(answer: requests.Response) -> str:
    if answer.status_code == requests.codes.conflict:
        return REFUSED
    if not answer.ok:
        return f"{answer.status_code} {answer.text}"
    return WARNED if "Warning" in answer.headers else DONE
