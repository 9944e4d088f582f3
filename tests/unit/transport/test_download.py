# SPDX-License-Identifier: Apache-2.0

"""Downloads and queries while the server, the network or the token fails."""

import contextlib
import gzip
import json
import multiprocessing
import pathlib
import random
import re
import socket
import socketserver
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import requests
import urllib3
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from keystoneauth1.identity import generic, v3

import loader
from glare_murano.package import VersionSpec
from glare_murano.wire import Query
from loader.catalogs.base import Catalog
from loader.catalogs.glare import GlareCatalog
from loader.catalogs.murano import MuranoCatalog
from loader.transport.download import Download
from tests import packages
from tests.unit import faulty
from tests.unit.faulty import Faulty

pytestmark = pytest.mark.usefixtures("waits")

Fault = Callable[[faulty.Handler], None]

FORK = multiprocessing.get_context("fork")
# More than a client reads at once, and than a socket keeps.
LARGE = 5 * 1024**2
SMALL = LARGE // 10


@pytest.fixture(scope="module")
def archive() -> bytes:
    return _archive(LARGE)


def _archive(size: int) -> bytes:
    content = packages.files(packages.manifest("org.faulty"))
    content["Resources/large"] = random.Random(0).randbytes(size)
    return packages.zipped(content)


@pytest.fixture
def server(archive: bytes) -> Iterator[Faulty]:
    with faulty.serving(archive) as state:
        yield state


def _catalog(server: Faulty, attempts: int = 5) -> GlareCatalog:
    session = faulty.Session(server)
    return GlareCatalog(session, project_id=faulty.PROJECT, endpoint=server.url, attempts=attempts)


def _murano(server: Faulty, attempts: int = 5) -> MuranoCatalog:
    session = faulty.Session(server)
    return MuranoCatalog(session, project_id=faulty.PROJECT, endpoint=server.url, attempts=attempts)


def _keystone_session(server: Faulty) -> ksa_session.Session:
    auth = v3.Password(
        f"{server.url}/v3",
        username="u",
        password="p",
        user_domain_id="d",
        project_id=faulty.PROJECT,
    )
    return ksa_session.Session(auth)


Make = Callable[..., Catalog]

_CATALOGS = pytest.mark.parametrize("make", [_catalog, _murano], ids=["glare", "murano"])


def _fetched(catalog: Catalog, server: Faulty) -> bytes:
    """Download the server's archive."""
    return b"".join(catalog.fetch(server.release))


def _loaded(catalog: Catalog, cache: pathlib.Path) -> loader.PackageLoader:
    package_loader = loader.PackageLoader([catalog], loader.Cache(cache))
    package_loader.load_package("org.faulty", VersionSpec.of("1"))
    return package_loader


_TEMPORARY = {
    "truncated": faulty.truncate,
    "reset": faulty.reset,
    "stalled": faulty.stall,
    "silent": faulty.hang,
    "dropped": faulty.drop,
    "500": faulty.status(500),
    "502": faulty.status(502),
    "503": faulty.status(503, Retry_After="7"),
}


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no-ranges"])
@pytest.mark.parametrize("fault", _TEMPORARY.values(), ids=_TEMPORARY)
def test_a_download_survives_temporary_failures(server: Faulty, fault: Fault, ranges: bool) -> None:
    server.faults, server.ranges = [fault, fault], ranges

    assert b"".join(_catalog(server).fetch(server.release)) == server.archive
    assert len(server.seen) == 3


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no-ranges"])
def test_a_download_continues_where_it_broke_off(server: Faulty, ranges: bool) -> None:
    server.faults, server.ranges = [faulty.truncate], ranges
    catalog = _catalog(server)

    assert b"".join(catalog.fetch(server.release)) == server.archive
    _, (_, _, wanted) = server.seen
    start = int(wanted.removeprefix("bytes=").removesuffix("-"))
    assert 0 < start <= len(server.archive) // 2
    assert catalog.counters.bytes == len(server.archive)


@pytest.mark.parametrize("fault", _TEMPORARY.values(), ids=_TEMPORARY)
def test_the_murano_catalogue_is_as_patient(server: Faulty, fault: Fault) -> None:
    catalog = _murano(server)
    server.faults, server.ranges = [fault, fault], True

    assert _fetched(catalog, server) == server.archive
    assert len(server.seen) == catalog.counters.requests == 3
    assert catalog.counters.bytes == len(server.archive)


@_CATALOGS
@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no-ranges"])
@pytest.mark.parametrize("tag", ["", '"1"', 'W/"1"'], ids=["no-tag", "tag", "weak-tag"])
def test_each_catalogue_continues_where_it_broke_off(
    server: Faulty, make: Make, ranges: bool, tag: str
) -> None:
    server.faults, server.ranges, server.tag = [faulty.truncate], ranges, tag
    catalog = make(server)

    assert _fetched(catalog, server) == server.archive
    assert [bool(wanted) for _, _, wanted in server.seen] == [False, True]
    assert server.headers.get("If-Range", "") == (tag if tag.startswith('"') else "")
    assert server.headers["Accept-Encoding"] == "identity"
    assert catalog.counters.bytes == len(server.archive)


@_CATALOGS
@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_lost_only_its_end_is_complete(
    server: Faulty, make: Make, ranges: bool
) -> None:
    server.ranges = ranges
    server.faults = [faulty.cut_last_chunk]

    assert _fetched(make(server), server) == server.archive
    assert server.seen[1][2] == f"bytes={len(server.archive)}-"


@_CATALOGS
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (faulty.go_on_elsewhere, r"bytes from \d+ on .* the server sent Content-Range 'bytes 0-"),
        (faulty.status(206), r"bytes from \d+ on .* the server sent Content-Range ''"),
        (faulty.status(416), "416"),
        (faulty.status(416, Content_Range="bytes */1"), "416"),
        (faulty.status(404), "404"),
        (lambda handler: handler.send_other(b"short"), r"\d+ bytes were received, .* 5 only"),
    ],
)
def test_a_download_continues_with_nothing_else(
    server: Faulty, make: Make, fault: Fault, message: str
) -> None:
    server.faults, server.ranges = [faulty.truncate, fault], True

    with pytest.raises(loader.CatalogError, match=message):
        _fetched(make(server), server)

    assert len(server.seen) == 2


@_CATALOGS
@pytest.mark.parametrize("tag", ['"1"', 'W/"1"'])
def test_a_download_does_not_continue_with_a_replaced_file(
    server: Faulty, make: Make, tag: str
) -> None:
    server.ranges, server.tag = True, tag
    server.faults = [faulty.replaced_by(bytes(len(server.archive)), tag.replace("1", "2"))]

    with pytest.raises(loader.CatalogError, match="replaced during the download"):
        _fetched(make(server), server)

    assert len(server.seen) == 2


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_token_follows_a_redirection(server: Faulty, code: int) -> None:
    session = ksa_session.Session(token_endpoint.Token(server.url, "token"))
    place: dict[str, Any] = {"project_id": faulty.PROJECT, "endpoint": server.url}
    catalogs = [GlareCatalog(session, **place), MuranoCatalog(session, **place)]
    query = Query((("org.faulty", VersionSpec.of("1")),))
    with faulty.serving(b"") as other:
        for catalog in catalogs:
            for ask in (
                lambda catalog=catalog: catalog.resolve(query) or list(catalog.releases("a")),
                lambda catalog=catalog: list(catalog.releases("org.faulty")),
                lambda catalog=catalog: list(catalog.fetch(server.release)),
            ):
                server.faults = [faulty.status(code, Location=f"{other.url}/artifacts")]
                with pytest.raises(loader.CatalogError, match=f"redirects to {other.url}"):
                    ask()
        assert other.seen == []
    assert len(server.seen) == 6


@pytest.mark.parametrize("fault", _TEMPORARY.values(), ids=_TEMPORARY)
def test_a_lasting_failure_is_reported_with_its_cause(server: Faulty, fault: Fault) -> None:
    # More than tries, since each piece that arrives is progress.
    server.faults = [fault] * 20

    with pytest.raises(loader.CatalogError) as failure:
        list(_catalog(server, attempts=3).fetch(server.release))

    assert "did not send the archive of org.faulty 1.0.0" in str(failure.value)
    assert 3 <= len(server.seen) < 20


@pytest.mark.parametrize("code", [400, 403, 404, 409, 429])
def test_a_refused_request_is_not_repeated(server: Faulty, code: int, waits: list[float]) -> None:
    server.faults = [faulty.status(code)]

    with pytest.raises(loader.CatalogError, match=str(code)):
        list(_catalog(server).fetch(server.release))

    assert len(server.seen) == 1
    assert waits == []


@pytest.mark.parametrize("url", ["http://[x", "ftp://host", "http://host:99999", "host"])
@pytest.mark.parametrize("kind", [GlareCatalog, MuranoCatalog])
def test_an_invalid_request_is_not_repeated(
    kind: Callable[..., Catalog], url: str, waits: list[float]
) -> None:
    session = ksa_session.Session(token_endpoint.Token("http://other", "token"))
    catalog = kind(session, project_id=faulty.PROJECT, endpoint=url)

    with pytest.raises(loader.CatalogError, match=re.escape(url)) as failure:
        list(catalog.releases("org.faulty"))

    assert not isinstance(failure.value, loader.CatalogUnavailable)
    assert catalog.counters.requests == 1
    assert waits == []


@contextlib.contextmanager
def _listening(answer: Callable[[socket.socket], object]) -> Iterator[tuple[str, list[int]]]:
    """The URL of a port by TLS, and the connections to it that were answered and closed."""
    connections: list[int] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            connections.append(1)
            answer(self.request)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        yield f"https://127.0.0.1:{listener.server_address[1]}", connections
        listener.shutdown()
        thread.join()


# A fatal alert of TLS: handshake_failure.
_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"


@pytest.mark.parametrize(
    ("answer", "kind", "tries"),
    [
        (lambda peer: peer.recv(10_000), loader.CatalogUnavailable, 3),
        (lambda peer: peer.recv(10_000) and peer.sendall(_ALERT), loader.CatalogError, 1),
    ],
    ids=["closed", "refused"],
)
@_CATALOGS
def test_a_connection_closed_within_tls_is_a_temporary_failure(
    make: Make, answer: Callable[[socket.socket], object], kind: type[Exception], tries: int
) -> None:
    with _listening(answer) as (url, connections):
        catalog = make(Faulty(b"", url), attempts=3)
        with pytest.raises(loader.CatalogError) as failure:
            list(catalog.releases("org.faulty"))

    assert type(failure.value) is kind
    assert len(connections) == tries


def test_the_waits_grow_and_follow_retry_after(server: Faulty, waits: list[float]) -> None:
    server.faults = [
        faulty.status(503, Retry_After="7"),
        faulty.status(503, Retry_After="86400"),
        faulty.status(503, Retry_After="tomorrow"),
    ]

    list(_catalog(server).fetch(server.release))

    assert 7 <= waits[0] < 30
    assert waits[1] == 30
    assert 0 <= waits[2] < 5


def test_the_waits_are_twice_as_long_each_time_up_to_a_bound(
    server: Faulty, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges: list[tuple[float, float]] = []

    def longest(low: float, high: float) -> float:
        ranges.append((low, high))
        return high

    monkeypatch.setattr("random.uniform", longest)
    server.faults = [faulty.status(503)] * 8

    list(_catalog(server, attempts=9).fetch(server.release))

    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    # By chance, so that not all who wait come back at once; the last is no range.
    assert ranges[:6] == [(0, wait) for wait in waits[:6]]


@_CATALOGS
@pytest.mark.parametrize(
    "asked", ["\xb2", "-1", "1.5", "Wed, 21 Oct 2099 07:28:00 GMT", "in a while", ""]
)
def test_a_retry_after_without_a_number_of_seconds_is_ignored(
    server: Faulty, make: Make, asked: str, waits: list[float]
) -> None:
    server.faults = [faulty.status(503, Retry_After=asked)]

    assert _fetched(make(server), server) == server.archive
    (waited,) = waits
    assert waited <= 0.5


@pytest.mark.parametrize("fault", _TEMPORARY.values(), ids=_TEMPORARY)
def test_a_query_survives_temporary_failures(server: Faulty, fault: Fault) -> None:
    if fault in (faulty.truncate, faulty.reset, faulty.stall):
        # Half of an archive is no answer at all: its beginning would be read.
        server.archive = b"{" * 100_000
    server.faults = [fault]

    answer = _catalog(server).resolve(Query((("org.faulty", VersionSpec.of("1")),)))

    assert answer is not None
    assert [str(release) for release, _ in answer.releases] == ["org.faulty 1.0.0"]


def test_a_list_that_is_late_is_requested_again(server: Faulty) -> None:
    server.faults = [faulty.hang, lambda handler: handler.send_other(b'{"artifacts": []}')]

    assert list(_catalog(server).releases("org.faulty")) == []
    assert len(server.seen) == 2


def test_a_modified_archive_is_refused(server: Faulty, tmp_path: pathlib.Path) -> None:
    server.faults = [lambda handler: handler._answer(b"{}", status=404)]
    catalog = _catalog(server)
    server.faults = []
    answer = catalog.resolve(Query((("org.faulty", VersionSpec.of("1")),)))
    assert answer is not None
    cache = loader.Cache(tmp_path)
    ((release, _),) = answer.releases
    server.faults = [faulty.flip]

    with pytest.raises(loader.DigestMismatch, match=release.digest):
        cache.package(release.digest, lambda: catalog.fetch(release))

    assert not cache.has(release.digest)
    assert cache.package(release.digest, lambda: catalog.fetch(release)).is_dir()


def test_an_expired_token_is_renewed(server: Faulty, tmp_path: pathlib.Path) -> None:
    server.tokens = set()
    catalog = GlareCatalog(_keystone_session(server), endpoint=server.url)
    answer = catalog.resolve(Query((("org.faulty", VersionSpec.of("1")),)))
    assert answer is not None
    server.tokens.clear()

    assert b"".join(catalog.fetch(answer.releases[0][0])) == server.archive
    assert server.issued == 2


@pytest.mark.parametrize("kind", [GlareCatalog, MuranoCatalog])
@pytest.mark.parametrize("fault", [faulty.drop, *(faulty.status(code) for code in (500, 502, 503))])
def test_a_first_token_survives_temporary_failures(
    server: Faulty, fault: Fault, kind: Callable[..., Catalog], waits: list[float]
) -> None:
    server.tokens, server.identity_faults = set(), [fault] * 2
    catalog = kind(_keystone_session(server), endpoint=server.url, attempts=3)
    server.faults = [lambda handler: handler.send_other(b'{"artifacts": [], "packages": []}')]

    assert list(catalog.releases("org.faulty")) == []
    assert (server.issued, len(waits)) == (1, 2)


@pytest.mark.parametrize("kind", [GlareCatalog, MuranoCatalog])
def test_a_first_token_is_requested_as_often_as_anything(
    server: Faulty, kind: Callable[..., Catalog], waits: list[float]
) -> None:
    catalog = kind(_keystone_session(server), endpoint=server.url, attempts=3)

    server.identity_faults = [faulty.status(503)] * 20
    with pytest.raises(loader.CatalogUnavailable, match="cannot authenticate"):
        list(catalog.releases("org.faulty"))
    assert len(waits) == 2
    server.identity_faults = [faulty.status(401)]
    with pytest.raises(loader.CatalogError, match="401"):
        list(catalog.releases("org.faulty"))
    assert len(waits) == 2


def test_a_wrong_url_of_keystone_is_reported_at_once(server: Faulty, waits: list[float]) -> None:
    auth = generic.Password(f"{server.url}/elsewhere", username="u", password="p", project_name="p")
    catalog = GlareCatalog(ksa_session.Session(auth), endpoint=server.url)
    server.faults = [faulty.status(404)] * 9

    with pytest.raises(loader.CatalogError, match="cannot authenticate"):
        list(catalog.releases("org.faulty"))
    assert waits == []


def test_every_request_has_a_timeout(server: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loader.transport.sessions.DEFAULT_TIMEOUT", (0.2, 0.2))
    session = ksa_session.Session(token_endpoint.Token(server.url, "token"))
    catalog = GlareCatalog(session, project_id="p", endpoint=server.url, attempts=1)
    server.faults = [faulty.stall, faulty.stall]

    for ask in (
        lambda: list(catalog.fetch(server.release)),
        lambda: list(catalog.releases("org.faulty")),
    ):
        start = time.monotonic()
        with pytest.raises(loader.CatalogError):
            ask()
        assert time.monotonic() - start < faulty.STALL


_TRICKLES = pytest.mark.parametrize("fault", [faulty.trickle, faulty.trickle_chunk])


@_TRICKLES
def test_a_batch_that_arrives_too_slowly_is_given_up(
    server: Faulty, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.catalogs.glare._BATCH_TIMEOUT", 0.1)
    server.faults = [fault]

    with pytest.raises(loader.CatalogError, match=r"not complete within 0\.1 seconds"):
        list(_catalog(server).batch([server.release]))


@_TRICKLES
@_CATALOGS
def test_a_list_that_arrives_too_slowly_is_given_up(
    server: Faulty, fault: Fault, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.adapter._DOCUMENT_TIMEOUT", 0.1)
    server.faults = [fault]

    with pytest.raises(loader.CatalogError, match=r"not complete within 0\.1 seconds"):
        list(make(server).releases("org.faulty"))


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "length"])
def test_a_list_may_be_compressed(server: Faulty, chunked: bool) -> None:
    artifacts = {"artifacts": [], "padding": random.Random(0).randbytes(300_000).hex()}
    packed = gzip.compress(json.dumps(artifacts).encode())
    length = {"Content_Length": str(len(packed))}
    body = packed
    if chunked:
        length = {"Transfer_Encoding": "chunked"}
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (packed[:9], packed[9:]))
        body += b"0\r\n\r\n"
    server.faults = [
        lambda handler: handler.send_then_end(body, Content_Encoding="gzip", **length),
        lambda handler: handler.send_then_end(b"none", Content_Encoding="gzip", Content_Length="4"),
    ]

    assert list(_catalog(server).releases("org.faulty")) == []
    with pytest.raises(loader.CatalogError, match="gzip"):
        list(_catalog(server).releases("org.faulty"))
    assert len(server.seen) == 2


def test_a_compressed_list_is_decompressed_up_to_a_limit(
    server: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.adapter._MAX_DOCUMENT", 1000)
    packed = gzip.compress(bytes(100 * 1024**2))
    length = str(len(packed))
    server.faults = [
        lambda h: h.send_then_end(packed, Content_Encoding="gzip", Content_Length=length)
    ]
    tracemalloc.start()

    with pytest.raises(loader.CatalogError, match="more than 1000 bytes"):
        list(_catalog(server).releases("org.faulty"))

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * 1024**2


def test_progress_is_reported(server: Faulty, tmp_path: pathlib.Path) -> None:
    steps: list[loader.Progress] = []
    cache = loader.Cache(tmp_path)
    fetcher = loader.Fetcher(cache, progress=steps.append)
    package_loader = loader.PackageLoader([_catalog(server)], cache, fetcher=fetcher)

    package_loader.load_package("org.faulty", VersionSpec.of("1"))

    assert [step.received for step in steps] == sorted({step.received for step in steps})
    assert steps[-1].received == steps[-1].total == len(server.archive)
    assert {str(step.release) for step in steps} == {"org.faulty 1.0.0"}


_LIES = {
    "length too short": (faulty.understate, "was expected, but"),
    "length too long": (faulty.overstate, "IncompleteRead"),
    "no more chunks": (faulty.cut_chunks, "IncompleteRead"),
    "no last chunk": (faulty.cut_last_chunk, "IncompleteRead"),
    "half a chunk": (faulty.break_chunk, "IncompleteRead"),
    "another digest": (faulty.flip, "was expected, but"),
    "stalled": (faulty.stall, "timed out"),
    "reset": (faulty.reset, "reset by peer"),
}


@pytest.mark.parametrize(("fault", "message"), _LIES.values(), ids=_LIES)
def test_a_server_that_always_lies_is_reported_and_nothing_is_kept(
    server: Faulty, fault: Fault, message: str, tmp_path: pathlib.Path
) -> None:
    server.ranges = True
    server.faults = [faulty.nothing, *[fault] * 50]

    with pytest.raises(loader.LoaderError, match=rf"^org\.faulty 1\.0\.0 of .*{message}"):
        _loaded(_catalog(server, attempts=2), tmp_path)

    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"]
    server.faults = []
    package_loader = _loaded(_catalog(server), tmp_path)
    assert package_loader.counters.downloads == 1


_WITHOUT_DIGEST = {name: lie for name, lie in _LIES.items() if name != "another digest"}


@pytest.mark.parametrize(("fault", "message"), _WITHOUT_DIGEST.values(), ids=_WITHOUT_DIGEST)
def test_an_archive_without_a_digest_is_refused_if_the_server_lies(
    server: Faulty,
    fault: Fault,
    message: str,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Murano's API lists no digest: the archive is read as a whole before it is known."""
    server.faults = [faulty.nothing, *[fault] * 50]

    with pytest.raises(loader.LoaderError) as failure:
        _loaded(_murano(server, attempts=2), tmp_path)

    said = f"{failure.value} {caplog.text}"
    assert f"Murano's API at {server.url}" in said
    assert any(word in said for word in (message, "archive-format"))
    server.faults = []
    assert _loaded(_murano(server), tmp_path).counters.downloads == 1


def test_nothing_wrong_is_loaded_whatever_happens(server: Faulty, tmp_path: pathlib.Path) -> None:
    dice = random.Random(1)
    faults = [*_TEMPORARY.values(), faulty.flip, faulty.status(404)]
    for number in range(12):
        server.faults = dice.choices(
            [f for f in faults if f not in (faulty.stall, faulty.hang)], k=3
        )
        cache = tmp_path / str(number)
        with contextlib.suppress(loader.LoaderError):
            _loaded(_catalog(server, attempts=2), cache)
        server.faults = []
        package_loader = _loaded(_catalog(server), cache)
        folder = package_loader._cache.package(server.release.digest, lambda: iter(()))
        assert (folder / "Resources/large").stat().st_size == LARGE


def test_an_archive_of_another_package_is_refused(server: Faulty, tmp_path: pathlib.Path) -> None:
    server.archive = packages.package("org.faulty", "6.6.6")
    package_loader = loader.PackageLoader([_catalog(server)], loader.Cache(tmp_path))

    with pytest.raises(loader.CatalogError, match=r"contains org\.faulty 6\.6\.6"):
        package_loader.load_package("org.faulty", VersionSpec.of("1"))

    assert package_loader.pins.dump() == {}


def test_an_answer_is_read_up_to_a_limit(server: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loader.transport.adapter._MAX_DOCUMENT", 1000)
    server.faults = [lambda handler: handler.send_other(b'{"releases": [' + b" " * 1_000_000)] * 2
    catalog = _catalog(server)

    with pytest.raises(loader.CatalogError, match="more than 1000 bytes"):
        catalog.resolve(Query((("org.faulty", VersionSpec.of("1")),)))
    with pytest.raises(loader.CatalogError, match="more than 1000 bytes"):
        list(catalog.releases("org.faulty"))
    assert len(server.seen) == 2


def test_a_process_that_is_killed_while_it_downloads_leaves_nothing(
    server: Faulty, tmp_path: pathlib.Path
) -> None:
    moments = random.Random(2016)
    server.archive, server.ranges = _archive(SMALL), True
    # What is imported and known once need not be learnt by each process.
    _loaded(_catalog(server), tmp_path / "before")
    unfinished = 0
    for number in range(10):
        cache = tmp_path / str(number)
        begun = threading.Event()

        def drip(handler: faulty.Handler, begun: threading.Event = begun) -> None:
            begun.set()
            faulty.drip(handler)

        server.faults = [faulty.nothing, drip]
        process = FORK.Process(target=_loaded, args=(_catalog(server), cache))
        process.start()
        assert begun.wait(30)
        process.join(moments.uniform(0, 0.12))
        process.kill()
        process.join()
        unfinished += bool(list((cache / "staging").iterdir()))

        process = FORK.Process(target=_load_all_of_it, args=(_catalog(server), cache))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert not list((cache / "staging").iterdir())

    # Most in the middle of the download, or of unpacking.
    assert unfinished > 3


def _load_all_of_it(catalog: Catalog, cache: pathlib.Path) -> None:
    package = _loaded(catalog, cache).load_package("org.faulty", VersionSpec.of("1"))
    large = pathlib.Path(package.get_resource("large"))
    assert large.read_bytes() == random.Random(0).randbytes(SMALL)


_WHOLE = b"0123456789"


class _Answer:
    """An answer that breaks off at its end, or does not."""

    def __init__(self, status: int, body: bytes, breaks: bool = False, **headers: str) -> None:
        self.status_code = status
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.headers = requests.structures.CaseInsensitiveDict(names)
        self.raw = self
        self._body = body
        self._breaks = breaks
        self._rest = body

    def read1(self, size: int, decode_content: bool) -> bytes:
        piece, self._rest = self._rest[:size], self._rest[size:]
        if not piece:
            # Each may be given again.
            self._rest = self._body
            if self._breaks:
                raise urllib3.exceptions.ProtocolError("it broke off")
        return piece

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (_Answer(200, _WHOLE, Content_Range="bytes 5-9/10"), None, _WHOLE),
        (
            _Answer(200, _WHOLE[:4], breaks=True),
            _Answer(206, _WHOLE[4:], Content_Range="bytes 4-9/10"),
            _WHOLE,
        ),
        (_Answer(200, _WHOLE[:4], breaks=True), _Answer(200, _WHOLE), _WHOLE),
        (
            _Answer(200, _WHOLE[:4], breaks=True),
            _Answer(206, _WHOLE[3:], Content_Range="bytes 3-9/10"),
            "bytes from 4 on .* 'bytes 3-9/10'",
        ),
        (
            _Answer(200, _WHOLE[:4], breaks=True),
            _Answer(200, b"012"),
            "4 bytes were received, .* 3 only",
        ),
        (
            _Answer(200, _WHOLE[:4], breaks=True, ETag='"a"', Last_Modified="once"),
            _Answer(206, _WHOLE[4:], ETag='"a"', Last_Modified="now", Content_Range="bytes 4-9/10"),
            _WHOLE,
        ),
        (
            _Answer(200, _WHOLE[:4], breaks=True, ETag='"a"'),
            _Answer(200, _WHOLE, ETag='"b"'),
            "replaced during the download",
        ),
    ],
)
def test_the_rest_follows_the_bytes_received_before(
    first: _Answer, second: _Answer | None, expected: bytes | str, waits: list[float]
) -> None:
    answers = cast(Iterator[Any], iter([first, second, second]))
    whole = Download(lambda headers: next(answers), 2)

    if isinstance(expected, bytes):
        assert b"".join(whole) == expected
    else:
        with pytest.raises(ksa_exceptions.ClientException, match=expected):
            b"".join(whole)
