# SPDX-License-Identifier: Apache-2.0

"""The costly queries, sent to the real Glare and the real Glance.

The processor time of a service counts: on a busy machine, a request also waits for others.
"""

import abc
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import requests

from benchmarks import catalogue
from glare_murano import images, wire
from glare_murano.glance.ini_file import IniFile
from tests.functional.client import ARTIFACTS, Client, message, refusal
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient
from tests.hostile.queries import QUERIES, Catalogue, CostlyQuery, Kind, Outcome

PROJECT = "costly"
# The default of ``plan_seconds``, and how long a request may go on after its limit.
DEFAULT_LIMIT = 5
# Quiet machines keep to one second.
GRACE = 3
# A limit to end queries, and one to answer them on a busy machine.
SHORT, LONG = 1, 90


class Sent(NamedTuple):
    """The answer to a request, and the processor time of the service."""

    answer: requests.Response
    seconds: float


class Service(abc.ABC):
    """A service with some of the catalogues."""

    _client: Client | ImageClient

    def __init__(self) -> None:
        self._stored: set[str] = set()

    def send(self, query: CostlyQuery) -> Sent:
        """Send a query, when the service has the packages of its catalogue."""
        if query.catalogue.name not in self._stored:
            self._store(query.catalogue)
            self._stored.add(query.catalogue.name)
        return self._send(query, SHORT if query.outcome is Outcome.STOPPED else LONG)

    @abc.abstractmethod
    def has(self, name: str, version: str) -> bool:
        """Return whether the service has an active package."""

    def create(self, name: str) -> requests.Response:
        """Send a request that writes into the database."""
        return self._client.create(name)

    @abc.abstractmethod
    def _store(self, found: Catalogue) -> None: ...

    @abc.abstractmethod
    def _send(self, query: CostlyQuery, limit: int) -> Sent: ...


class _Glare(Service):
    """Glare in this process."""

    def __init__(
        self, client: Client, database: pathlib.Path, set_option: Callable[[str, object], None]
    ) -> None:
        super().__init__()
        self._client, self._database, self.set_option = client, database, set_option

    def has(self, name: str, version: str) -> bool:
        return self._client.names(name=name, version=version, status="active") != []

    def _store(self, found: Catalogue) -> None:
        artifacts = (catalogue.Artifact(e, PROJECT, "private") for e in found.make(found.name))
        catalogue.load(self._database, artifacts)

    def _send(self, query: CostlyQuery, limit: int) -> Sent:
        self.set_option("plan_seconds", limit)
        deleted = ""
        if query.kind is Kind.DELETION:
            found = self._client.request("GET", "", params=query.content).json()["artifacts"]
            deleted = f"{ARTIFACTS}/{found[0]['id']}"
        start = time.process_time()
        answer = _request(self._client.url, self._client.token, query, deleted)
        return Sent(answer, time.process_time() - start)


class _Glance(Service):
    """Glance, with a process for each limit."""

    def __init__(self, glance: service.Glance) -> None:
        super().__init__()
        self._glance = glance
        self._processes = dict(zip((LONG, SHORT), glance.processes, strict=True))
        self._client = ImageClient(glance.url, f"user:{PROJECT}:member,reader")

    def has(self, name: str, version: str) -> bool:
        return self._client.show(self._client.id_of(name, version))["status"] == images.ACTIVE

    def _store(self, found: Catalogue) -> None:
        stored.store(self._glance, [stored.Package(e, PROJECT) for e in found.make(found.name)])

    def _send(self, query: CostlyQuery, limit: int) -> Sent:
        process = self._processes[limit]
        deleted = ""
        if query.kind is Kind.DELETION:
            deleted = f"/v2/images/{self._client.id_of(**query.content)}"
        start = process.processor_seconds()
        answer = _request(process.url, self._client.token, query, deleted)
        return Sent(answer, process.processor_seconds() - start)


def _request(url: str, token: str, query: CostlyQuery, deleted: str) -> requests.Response:
    """Send a query; answers are too large to be compared with the document of the API.

    :param deleted: the path of the package that a deletion removes.
    """
    method, path, content = {
        Kind.DEPENDENCIES: ("POST", wire.DEPENDENCIES_PATH, {"json": query.content}),
        Kind.SUBCLASSES: ("GET", wire.SUBCLASSES_PATH, {"params": query.content}),
        Kind.DELETION: ("DELETE", deleted, {}),
    }[query.kind]
    headers = {"X-Auth-Token": token, "Accept": "application/json"}
    return requests.request(method, url + path, headers=headers, timeout=100, **content)


@pytest.fixture(scope="module")
def in_glare(glare_url: str, state_dir: pathlib.Path) -> Iterator[_Glare]:
    client = Client(glare_url, f"user:{PROJECT}:member")
    database = state_dir / "glare.sqlite"
    yield _Glare(client, database, lambda *_: None)
    # An administrator of a later test lists the packages of all projects.
    catalogue.remove(database, PROJECT)


@pytest.fixture(scope="module")
def in_glance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Glance]:
    limits = iter((LONG, SHORT))

    def limit(etc: pathlib.Path) -> None:
        file = IniFile(etc / "glance-api.conf")
        file.set("murano_packages", "plan_seconds", str(next(limits)))
        file.path.write_text(file.text)

    with service.running(tmp_path_factory.mktemp("costly"), count=2, change=limit) as running:
        yield _Glance(running)


@pytest.fixture(params=["glare", "glance"])
def service_of_packages(
    request: pytest.FixtureRequest, set_option: Callable[[str, object], None]
) -> Service:
    found: Service = request.getfixturevalue(f"in_{request.param}")
    if isinstance(found, _Glare):
        found.set_option = set_option
    return found


def _ids(query: CostlyQuery) -> str:
    return query.name


@pytest.mark.parametrize(
    "query", [each for each in QUERIES if each.outcome is Outcome.ANSWERED], ids=_ids
)
def test_a_legal_query_is_answered(service_of_packages: Service, query: CostlyQuery) -> None:
    answer, seconds = service_of_packages.send(query)

    assert answer.status_code == 200, message(answer)
    # A slow machine takes more than twice as long as a quick one.
    assert seconds < DEFAULT_LIMIT + GRACE


@pytest.mark.parametrize(
    "query", [each for each in QUERIES if each.outcome is Outcome.REFUSED], ids=_ids
)
def test_a_forbidden_query_is_refused_at_once(
    service_of_packages: Service, query: CostlyQuery
) -> None:
    answer, seconds = service_of_packages.send(query)

    assert query.words in refusal(answer, 400)
    assert seconds < DEFAULT_LIMIT


@pytest.mark.parametrize(
    "query", [each for each in QUERIES if each.outcome is Outcome.STOPPED], ids=_ids
)
def test_a_query_ends_soon_after_its_limit(
    service_of_packages: Service, query: CostlyQuery, name: str
) -> None:
    answer, seconds = service_of_packages.send(query)

    assert query.words in refusal(answer, 400)
    assert f", after {SHORT} seconds; " in message(answer)
    assert "or raise the option plan_seconds" in message(answer)
    assert seconds < SHORT + GRACE
    # It leaves no lock of the database.
    assert service_of_packages.create(name).status_code == 201
    if query.kind is Kind.DELETION:
        assert service_of_packages.has(**query.content)
