# SPDX-License-Identifier: Apache-2.0

"""Races: two requests that begin at once, in two processes of a service, many times.

Each round must end in a state, and with answers, that one of the two orders of the requests
explains. ``RACE_ROUNDS`` in the environment is the number of rounds; ``make races`` sets it.
``Races`` has the races that both services decide in the same way.
"""

import abc
import collections
import concurrent.futures
import contextlib
import functools
import os
import random
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import pytest
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
# What the answer to a request may be if the other request came first.
_LATE = (WARNED, REFUSED)

OWNER, OTHER = "owners", "others"
# The states of packages. A release and a draft are private.
RELEASE, PUBLIC, DRAFT = "release", "public", "draft"
DEACTIVATED, DELETED = "deactivated", "deleted"

# Sends the request of the round with a number.
Send = Callable[[int], requests.Response]


class End(NamedTuple):
    """How a round ends: both answers, and the state that both requests leave."""

    first: str
    second: str
    state: Any


def run(first: Send, second: Send) -> list[tuple[str, str]]:
    """Send both requests of each round at once; return the answers by round.

    A request that was refused, or had a warning, begins earlier in the next round, so that both
    orders occur.
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
            ahead += _STEP_SECONDS * ((answer in _LATE) - (other in _LATE))
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


def state_of(written: str | None, states: Mapping[str, str]) -> str:
    """Return the state of a package by what the service says of it, if it has the package."""
    if not written:
        return DELETED
    return {each: state for state, each in states.items()}.get(written, written)


REMOVALS = pytest.mark.parametrize(
    ("remove", "removed"), [("delete", DELETED), ("deactivate", DEACTIVATED)]
)


class Races(abc.ABC):
    """The races that both services decide in the same way; a subclass has those of one service.

    A change is the name of a method that takes a client and the id of a package.
    """

    @abc.abstractmethod
    def package(
        self, name: str, state: str, version: str = "1.0.0", owner: str = OWNER, **require: str
    ) -> Any:
        """Make a package, which has an ``id`` and ``contents``."""

    @abc.abstractmethod
    def store(self, site: Any, *packages: Sequence[Any]) -> None:
        """Write packages into the service, as if published long ago."""

    @abc.abstractmethod
    def states(self, site: Any, packages: Sequence[Any]) -> list[str]:
        """Return the states of packages."""

    @abc.abstractmethod
    def client(self, site: Any, process: int = 0, role: str = "admin") -> Any:
        """Return a client of the project of the packages, at one of the processes."""

    @abc.abstractmethod
    def repository(self, client: Any) -> Repository:
        """Return the packages of the project, for changes of their tags."""

    @abc.abstractmethod
    def locked(self, site: Any, package: Any, is_shared: bool) -> AbstractContextManager[None]:
        """Lock the row of a package, see :func:`locked`."""

    @pytest.fixture
    def names(self, request: pytest.FixtureRequest) -> list[str]:
        """A name for each round, which no other test uses."""
        # A name of a package must not be too long.
        prefix = f"{request.node.originalname}_{zlib.crc32(request.node.name.encode()):x}"
        return [f"org.{prefix}.n{number}" for number in range(ROUNDS)]

    def change(self, name: str) -> Callable[[Any, str], requests.Response]:
        """Return the change of a name."""
        found: Callable[[Any, str], requests.Response] = getattr(self, name)
        return found

    def race(
        self,
        site: Any,
        first: tuple[str, Sequence[Any]],
        second: tuple[str, Sequence[Any]],
        clients: Sequence[Any] = (),
    ) -> list[End]:
        """Make changes of two lists of packages; return how each round ends.

        :param clients: by default, administrators at two processes.
        """
        (change, ones), (other_change, others) = first, second
        one, another = clients or (self.client(site, process) for process in range(2))
        answers = run(
            lambda number: self.change(change)(one, ones[number].id),
            lambda number: self.change(other_change)(another, others[number].id),
        )
        states = zip(self.states(site, ones), self.states(site, others), strict=True)
        return [End(*answer, state) for answer, state in zip(answers, states, strict=True)]

    @REMOVALS
    @pytest.mark.parametrize(("publish", "before"), [("publish", DRAFT), ("activate", DEACTIVATED)])
    def test_a_package_is_published_or_loses_what_it_requires(
        self, site: Any, names: list[str], publish: str, before: str, remove: str, removed: str
    ) -> None:
        requiring = [self.package(name, before, **{f"{name}.base": "1"}) for name in names]
        required = [self.package(f"{name}.base", RELEASE) for name in names]
        self.store(site, requiring, required)

        ends = self.race(site, (publish, requiring), (remove, required))

        check(ends, {End(DONE, REFUSED, (RELEASE, RELEASE)), End(REFUSED, DONE, (before, removed))})

    @pytest.mark.parametrize("publish", ["publish_for_all", "publicize"])
    def test_a_package_becomes_public_or_loses_the_public_package_that_it_requires(
        self, site: Any, names: list[str], publish: str, remove: str = "delete", end: str = DELETED
    ) -> None:
        # The project of the package has another version of what it requires.
        requiring = [self.package(name, RELEASE, **{f"{name}.base": "1"}) for name in names]
        own = [self.package(f"{name}.base", RELEASE, "1.1.0") for name in names]
        required = [self.package(f"{name}.base", PUBLIC) for name in names]
        self.store(site, requiring, own, required)

        ends = self.race(site, (publish, requiring), (remove, required))

        check(ends, {End(DONE, REFUSED, (PUBLIC, PUBLIC)), End(REFUSED, DONE, (RELEASE, end))})

    def test_a_yank_counts_or_warns(self, site: Any, names: list[str]) -> None:
        requiring = [self.package(name, DRAFT, **{f"{name}.base": "1"}) for name in names]
        required = [self.package(f"{name}.base", RELEASE) for name in names]
        self.store(site, requiring, required)

        ends = self.race(site, ("publish", requiring), ("yank", required))

        check(ends, {End(DONE, WARNED, (RELEASE, RELEASE)), End(REFUSED, DONE, (DRAFT, RELEASE))})

    @REMOVALS
    def test_one_of_two_packages_stays_that_satisfy_a_requirement(
        self, site: Any, names: list[str], remove: str, removed: str
    ) -> None:
        requiring = [self.package(name, RELEASE, **{f"{name}.base": "1"}) for name in names]
        versions = [
            [self.package(f"{name}.base", RELEASE, version) for name in names]
            for version in ("1.0.0", "1.1.0")
        ]
        self.store(site, requiring, *versions)

        ends = self.race(site, ("delete", versions[0]), (remove, versions[1]))

        check(
            ends, {End(DONE, REFUSED, (DELETED, RELEASE)), End(REFUSED, DONE, (RELEASE, removed))}
        )

    @pytest.mark.parametrize("publish", ["publish_for_all", "publicize"])
    def test_one_of_two_packages_of_a_name_and_version_becomes_public(
        self, site: Any, names: list[str], publish: str
    ) -> None:
        ours, theirs = (
            [self.package(name, RELEASE, owner=owner) for name in names] for owner in (OWNER, OTHER)
        )
        self.store(site, ours, theirs)

        ends = self.race(site, ("publicize", ours), (publish, theirs))

        check(ends, {End(DONE, REFUSED, (PUBLIC, RELEASE)), End(REFUSED, DONE, (RELEASE, PUBLIC))})

    def test_no_tag_is_lost(self, site: Any, names: list[str]) -> None:
        package = self.package(names[0], RELEASE)
        self.store(site, [package])
        clients = [self.client(site, process, "member") for process in range(3)]
        repositories = [self.repository(client) for client in clients]
        before = set(repositories[0].get(package.id).fields.get("tags") or [])

        add_tags(repositories, package.id)

        assert set(repositories[0].get(package.id).fields["tags"]) == TAGS | before

    def test_no_release_lacks_what_it_requires_after_a_storm(
        self, site: Any, names: list[str]
    ) -> None:
        base, middle, top = (f"{names[0]}.{part}" for part in ("base", "middle", "top"))
        versions = "1.0.0", "1.1.0"
        packages = [
            *(self.package(base, RELEASE, version) for version in versions),
            *(self.package(middle, RELEASE, version, **{base: "1"}) for version in versions),
            self.package(top, RELEASE, **{middle: "1", base: "1.1"}),
        ]
        self.store(site, packages)

        def send(client: Any, dice: random.Random) -> requests.Response:
            change = self.change(dice.choice(("activate", "deactivate")))
            return change(client, dice.choice(packages).id)

        clients = [self.client(site, process) for process in range(4)]
        storm([functools.partial(send, client) for client in clients])

        states = self.states(site, packages)
        active = [each for each, state in zip(packages, states, strict=True) if state == RELEASE]
        check_satisfied([each.contents.manifest for each in active], {base, middle})

    @pytest.mark.parametrize("is_shared", [True, False])
    def test_a_publication_waits_only_for_removals(
        self, site: Any, names: list[str], is_shared: bool
    ) -> None:
        package = self.package(names[0], DRAFT, **{f"{names[0]}.base": "1"})
        required = self.package(f"{names[0]}.base", RELEASE)
        self.store(site, [package, required])

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            with self.locked(site, required, is_shared):
                client = self.client(site, role="member")
                sent = pool.submit(self.change("publish"), client, package.id)
                done = concurrent.futures.wait([sent], timeout=20 if is_shared else 1).done
            assert bool(done) is is_shared
            assert sent.result().status_code == 200
