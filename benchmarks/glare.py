# SPDX-License-Identifier: Apache-2.0

"""What dependency queries and publishing cost Glare, in its own measure."""

import contextlib
import io
import itertools
from collections.abc import Iterator
from typing import Any

from benchmarks import catalogue, server
from benchmarks.measure import Figure, ratio
from benchmarks.package import CORE_LIBRARY
from glare_murano import fields
from glare_murano.package import Archive, read_manifest
from tests.functional.client import Client

SIZES = (1_000, 10_000, 100_000)
BUILT_IN = "murano_packages"
APPLICATION = catalogue.name(1)

_numbers = itertools.count()


def resolving() -> Iterator[Figure]:
    """The closure of an application, against a list call that returns one artifact."""
    with contextlib.ExitStack() as stack:
        servers = {size: stack.enter_context(_loaded(size)) for size in SIZES}
        clients = {size: of.client(catalogue.owner(1)) for size, of in servers.items()}
        for size in SIZES:
            value = ratio(
                lambda size=size: _closure(clients[size]),  # type: ignore[misc]
                lambda size=size: _list(clients[size]),  # type: ignore[misc]
                clock=servers[size].processor_time,
            )
            yield Figure(
                f"closure of 50 packages / a list call, {size:,} artifacts", value, "times", 3
            )
        least, most = min(SIZES), max(SIZES)
        value = ratio(
            lambda: _closure(clients[most]),
            lambda: _closure(clients[least]),
            # While one of them answers, the other has nothing to do.
            clock=lambda: servers[most].processor_time() + servers[least].processor_time(),
        )
        yield Figure(f"closure of 50 packages, {most:,} / {least:,} artifacts", value, "times", 1.5)
        value = ratio(
            lambda: _ask(clients[most], {}),
            lambda: _list(clients[most]),
            clock=servers[most].processor_time,
        )
        name = f"the same closure once more / a list call, {most:,} artifacts"
        yield Figure(name, value, "times", 1.5)


@contextlib.contextmanager
def _loaded(size: int) -> Iterator[server.Server]:
    """A Glare with a catalogue of so many artifacts."""
    with server.running(fields.TYPE_NAME) as running:
        catalogue.load(running.database, catalogue.artifacts(size))
        yield running


def _closure(client: Client) -> None:
    """Ask what no one has asked before: the pin is upon a package that there is not."""
    _ask(client, {f"org.bench.Package{next(_numbers)}": ["1.0.0"]})


def _ask(client: Client, pins: dict[str, list[str]]) -> None:
    answer = client.ask(requirements={APPLICATION: "1"}, pins=pins).json()
    assert len({release["name"] for release in answer["releases"]}) == catalogue.APPLICATION_SIZE
    assert not answer["unsatisfied"]


def _list(client: Client) -> None:
    filters = {"name": APPLICATION, "version": "gte:1.0.0", "sort": "version:desc", "limit": "1"}
    assert len(client.request("GET", "", params=filters).json()["artifacts"]) == 1


def publishing() -> Iterator[Figure]:
    """The core library created, uploaded and activated, against Glare's own type for packages."""
    packed = io.BytesIO()
    with Archive.open(CORE_LIBRARY) as archive:
        archive.pack(packed)
        manifest = read_manifest(archive)
    claim = {"name": manifest.full_name, "version": str(manifest.version)}
    # A project can publish a version once.
    projects = (f"project{number}" for number in itertools.count())
    with server.running(fields.TYPE_NAME, BUILT_IN) as running:

        def publish(artifact_type: str, blob: str, **said: Any) -> None:
            client = running.client(next(projects), artifact_type)
            identifier = client.create(**claim, **said).json()["id"]
            assert client.upload(identifier, packed.getvalue(), blob).ok
            assert client.set(identifier, "status", "active").ok

        value = ratio(
            lambda: publish(fields.TYPE_NAME, fields.ARCHIVE),
            # Glare does not activate one without a display name.
            lambda: publish(BUILT_IN, "package", display_name=manifest.display_name),
            clock=running.processor_time,
        )
    yield Figure("publishing the core library / as murano_packages", value, "times", 3)


BENCHMARKS = (resolving, publishing)
