# SPDX-License-Identifier: Apache-2.0

"""Glare's processor time for dependency queries and publishing."""

import contextlib
import functools
import io
import itertools
import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks import catalogue, server
from benchmarks.measure import Figure, ratio, scratch, seconds
from benchmarks.package import CORE_LIBRARY
from glare_murano import fields
from glare_murano.package import Archive, read_manifest
from tests.functional.client import Client

SIZES = (1_000, 10_000, 100_000)
BUILT_IN = "murano_packages"
APPLICATION = catalogue.name(1)

_SIZE = 10_000
_STARTS = 9


def resolving() -> Iterator[Figure]:
    """Compare the closure of an application with a list call for a single artifact.

    Glare has read the packages' metadata in an earlier query.
    """
    with contextlib.ExitStack() as stack:
        servers = {size: stack.enter_context(_loaded(size)) for size in SIZES}
        clients = {size: of.client(catalogue.owner(1)) for size, of in servers.items()}
        for size in SIZES:
            value = ratio(
                functools.partial(_closure, clients[size]),
                functools.partial(_list, clients[size]),
                clock=servers[size].processor_time,
            )
            yield Figure(
                f"closure of 50 packages / a list call, {size:,} artifacts", value, "times", 2.6
            )
        least, most = min(SIZES), max(SIZES)
        value = ratio(
            lambda: _closure(clients[most]),
            lambda: _closure(clients[least]),
            # While one of them answers, the other is idle.
            clock=lambda: servers[most].processor_time() + servers[least].processor_time(),
        )
        yield Figure(f"closure of 50 packages, {most:,} / {least:,} artifacts", value, "times", 1.5)


def changing_pins() -> Iterator[Figure]:
    """Compare closures that differ each time with a list call.

    The pins choose other releases each time. No earlier query has read their metadata.
    """
    with _loaded(_SIZE) as running:
        client = running.client(catalogue.owner(1))
        _closure(client)
        ratios = [
            seconds(functools.partial(_closure, client, pins), clock=running.processor_time)
            / seconds(lambda: _list(client), clock=running.processor_time)
            for pins in _pins()
        ]
    name = f"closure of 50 packages, other pins / a list call, {_SIZE:,} artifacts"
    yield Figure(name, statistics.median(ratios), "times", 3)


def _pins() -> Iterator[dict[str, list[str]]]:
    """Pin every package of the application to its oldest release, then to the next, and so on."""
    for version in catalogue.VERSIONS:
        if version.startswith("1."):
            yield {
                catalogue.name(number): [version] for number in range(1, catalogue.APPLICATION_SIZE)
            }


def starting() -> Iterator[Figure]:
    """Compare the closure, as the first request to a fresh Glare, with a list call.

    The first list call takes about as long as the first closure, and does not count.
    """
    state = scratch()
    with server.running(fields.TYPE_NAME, state=state) as running:
        catalogue.load(running.database, catalogue.artifacts(_SIZE))
    ratios = []
    for _ in range(_STARTS):
        with server.running(fields.TYPE_NAME, state=state) as running:
            client = running.client(catalogue.owner(1))
            closure, list_call = (
                functools.partial(_closure, client),
                functools.partial(_list, client),
            )
            first = seconds(closure, clock=running.processor_time)
            list_call()
            ratios.append(first / seconds(list_call, clock=running.processor_time))
    name = f"first closure of a fresh Glare / a list call, {_SIZE:,} artifacts"
    yield Figure(name, statistics.median(ratios), "times", 4)


@contextlib.contextmanager
def _loaded(size: int) -> Iterator[server.Server]:
    """Run a Glare with a catalogue of this many artifacts."""
    with server.running(fields.TYPE_NAME) as running:
        catalogue.load(running.database, catalogue.artifacts(size))
        yield running


def _closure(client: Client, pins: dict[str, list[str]] | None = None) -> None:
    answer = client.resolve(requirements={APPLICATION: "1"}, pins=pins or {}).json()
    assert len({release["name"] for release in answer["releases"]}) == catalogue.APPLICATION_SIZE
    assert not answer["unsatisfied"]


def _list(client: Client) -> None:
    filters = {"name": APPLICATION, "version": "gte:1.0.0", "sort": "version:desc", "limit": "1"}
    assert len(client.request("GET", "", params=filters).json()["artifacts"]) == 1


def publishing() -> Iterator[Figure]:
    """Compare publishing the core library with publishing it as Glare's own type."""
    packed = io.BytesIO()
    with Archive.open(CORE_LIBRARY) as archive:
        archive.pack(packed)
        manifest = read_manifest(archive)
    names = {"name": manifest.fqn, "version": str(manifest.version)}
    # A project can publish a version once.
    projects = (f"project{number}" for number in itertools.count())
    with server.running(fields.TYPE_NAME, BUILT_IN) as running:

        def publish(artifact_type: str, blob: str, **values: Any) -> None:
            # The core library's name belongs to those who may publish it for every project.
            client = running.client(next(projects), artifact_type, "admin")
            identifier = client.create(**names, **values).json()["id"]
            assert client.upload(identifier, packed.getvalue(), blob).ok
            assert client.set(identifier, "status", "active").ok

        value = ratio(
            lambda: publish(fields.TYPE_NAME, fields.ARCHIVE),
            # Glare refuses to activate its own type without a display name.
            lambda: publish(BUILT_IN, "package", display_name=manifest.display_name),
            clock=running.processor_time,
        )
    yield Figure("publishing the core library / as murano_packages", value, "times", 1.55)


BENCHMARKS = (resolving, changing_pins, starting, publishing)
