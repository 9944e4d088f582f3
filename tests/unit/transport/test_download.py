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
from glare_murano.package import InvalidArchive, Version, VersionSpec
from glare_murano.wire import Query
from loader.catalogs.base import Catalog
from loader.catalogs.glance import GlanceRepository
from loader.catalogs.glare import GlareCatalog, GlareRepository
from loader.catalogs.murano import MuranoCatalog
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage
from loader.publishing import bundles, exports
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
    content = packages.content("org.faulty")
    content["Resources/large"] = random.Random(0).randbytes(size)
    return packages.zipped(content)


@pytest.fixture
def server(archive: bytes) -> Iterator[Faulty]:
    with faulty.serving(archive) as state:
        yield state


def _catalog(server: Faulty, **others: Any) -> GlareCatalog:
    session = faulty.Session(server)
    return GlareCatalog(session, project_id=faulty.PROJECT, endpoint=server.url, **others)


def _murano(server: Faulty, **others: Any) -> MuranoCatalog:
    session = faulty.Session(server)
    return MuranoCatalog(session, project_id=faulty.PROJECT, endpoint=server.url, **others)


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
    package_loader.load("org.faulty", VersionSpec.of("1"))
    return package_loader


_TEMPORARY = {
    "truncated": faulty.truncate,
    "reset": faulty.reset,
    "stalled": faulty.stall,
    "silent": faulty.hang,
    "dropped": faulty.drop,
    "408": faulty.status(408),
    "429": faulty.status(429, Retry_After="7"),
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


@_CATALOGS
def test_a_cookie_of_one_request_is_not_sent_with_another(server: Faulty, make: Make) -> None:
    catalog = make(server)
    server.faults = [faulty.status(404, Set_Cookie="user=first")]
    with pytest.raises(loader.CatalogError):
        _fetched(catalog, server)

    _fetched(catalog, server)

    assert "Cookie" not in server.headers


@_CATALOGS
def test_the_target_of_a_redirection_does_not_control_a_terminal(
    server: Faulty, make: Make
) -> None:
    server.faults = [faulty.status(302, Location="http://127.0.0.1/\x1b[31m\xc2\x9b2J")]
    with pytest.raises(loader.CatalogError, match=r"redirects to 'http.*x1b.*x9b2J'") as failure:
        list(make(server).releases("org.faulty"))
    assert str(failure.value).isprintable()


@pytest.mark.parametrize("fault", _TEMPORARY.values(), ids=_TEMPORARY)
def test_a_lasting_failure_is_reported_with_its_cause(server: Faulty, fault: Fault) -> None:
    # More than tries, since each piece that arrives is progress.
    server.faults = [fault] * 20

    with pytest.raises(loader.CatalogError) as failure:
        list(_catalog(server, attempts=3).fetch(server.release))

    assert "did not send the archive of org.faulty 1.0.0" in str(failure.value)
    assert 3 <= len(server.seen) < 20


@pytest.mark.parametrize("code", [400, 403, 404, 409])
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


_DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize("code", [408, 429, 503])
def test_the_waits_grow_and_follow_retry_after(
    server: Faulty, code: int, waits: list[float]
) -> None:
    server.faults = [
        faulty.status(code, Retry_After="7"),
        faulty.status(code, Retry_After="Wed, 21 Oct 2015 07:28:42 GMT", Date=_DATE),
        faulty.status(code, Retry_After="tomorrow"),
    ]

    list(_catalog(server).fetch(server.release))

    assert waits[:2] == [7, 42]
    assert 0 <= waits[2] < 5


@_CATALOGS
@pytest.mark.parametrize("requested", ["86400", "Wed, 21 Oct 2099 07:28:00 GMT", "9" * 999])
def test_nobody_waits_for_a_retry_beyond_the_deadline(
    server: Faulty, make: Make, requested: str, waits: list[float]
) -> None:
    server.faults = [faulty.status(503, Retry_After=requested, Date=_DATE)] * 2

    for ask in (lambda: list(make(server).releases("a")), lambda: _fetched(make(server), server)):
        with pytest.raises(loader.CatalogUnavailable, match="with the status 503"):
            ask()

    assert waits == []


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
    "asked", ["\xb2", "-1", "1.5", "Wed, 21 Oct 1999 07:28:00 GMT", "in a while", ""]
)
def test_a_retry_after_without_a_later_time_is_ignored(
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


@pytest.mark.parametrize("body", [b'{"packages": [{"na', b'{"packages": [', b"", b"{"])
def test_truncated_json_is_requested_again(server: Faulty, body: bytes) -> None:
    server.faults = [
        lambda handler: handler.send_other(body),
        lambda handler: handler.send_other(b'{"packages": []}'),
    ]

    assert list(_catalog(server).releases("org.faulty")) == []
    assert len(server.seen) == 2


@_CATALOGS
def test_the_answer_of_another_service_is_described(server: Faulty, make: Make) -> None:
    server.faults = [lambda h: h.send_other(b"<html>Welcome</html>", Content_Type="text/html")]

    with pytest.raises(loader.CatalogError) as failure:
        list(make(server).releases("org.faulty"))

    message = str(failure.value)
    assert "did not answer" not in message
    assert f"at {server.url} answered GET /" in message
    assert "with the status 200 and the content type 'text/html': it is not JSON" in message
    assert "check that the configured URL" in message
    assert len(server.seen) == 1


@_CATALOGS
@pytest.mark.parametrize("code", [401, 404])
def test_a_refusal_is_described_with_its_remedy(server: Faulty, make: Make, code: int) -> None:
    server.faults = [faulty.status(code, Content_Type="text/plain")] * 2

    with pytest.raises(loader.CatalogError) as failure:
        list(make(server).releases("org.faulty"))

    assert f"with the status {code} and the content type 'text/plain'" in str(failure.value)
    assert (
        str(failure.value)
        .rpartition("; check ")[2]
        .startswith({401: "the credentials", 404: "that the configured URL"}[code])
    )


_JSON = {"Content-Type": "application/json"}


def _keystone(server: Faulty, **others: Any) -> GlareCatalog:
    return GlareCatalog(_keystone_session(server), endpoint=server.url, **others)


@pytest.mark.parametrize("make", [_catalog, _murano, _keystone])
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"errors": ["a string"]}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"x", "text/plain; charset=undefined"),
    ],
    ids=["errors", "nested", "charset"],
)
def test_a_refusal_of_any_form_counts_by_its_status(
    server: Faulty, make: Make, body: bytes, content_type: str, waits: list[float]
) -> None:
    def refuse(handler: faulty.Handler) -> None:
        handler._answer(body, {"Content-Type": content_type}, 503)

    server.faults, server.identity_faults = [refuse] * 3, [refuse] * 3

    with pytest.raises(loader.CatalogUnavailable, match=r"status 503 .*HTTP 503"):
        list(make(server, attempts=3).releases("org.faulty"))
    assert len(waits) == 2


@pytest.mark.parametrize("make", [_catalog, _murano, _keystone])
@pytest.mark.parametrize(
    ("status", "headers"),
    [(401, {"Openstack-Auth-Receipt": "x"}), (302, {"Location": "http://[x"})],
    ids=["receipt", "redirection"],
)
def test_an_answer_on_which_a_library_fails_is_a_failure_of_the_catalogue(
    server: Faulty, make: Make, status: int, headers: dict[str, str]
) -> None:
    def answer(handler: faulty.Handler) -> None:
        handler._answer(b"{}", {**headers, **_JSON}, status)

    server.faults, server.identity_faults = [answer], [answer]

    with pytest.raises(loader.CatalogError, match="the answer cannot be read"):
        list(make(server).releases("org.faulty"))


@pytest.mark.parametrize("make", [_catalog, _murano, _keystone])
@pytest.mark.parametrize("status", [201, 302, 503])
def test_every_answer_is_decompressed_up_to_a_limit(
    server: Faulty, make: Make, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("MAX_DOCUMENT", "MAX_OTHER"):
        monkeypatch.setattr(f"loader.transport.limited_sessions.{limit}", 1000)
    packed = gzip.compress(bytes(100 * 1024**2))
    headers = {"Content-Encoding": "gzip", "Location": "/", **_JSON}

    def answer(handler: faulty.Handler) -> None:
        handler._answer(packed, headers, status)

    server.faults, server.identity_faults = [answer], [answer]
    tracemalloc.start()

    with pytest.raises(loader.CatalogError):
        list(make(server).releases("org.faulty"))

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * 1024**2


@pytest.mark.parametrize("make", [_catalog, _keystone])
def test_a_refusal_or_a_token_is_shorter_than_a_list(
    server: Faulty, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.limited_sessions.MAX_OTHER", 1000)
    body = json.dumps({"error": {"message": "x" * 1000}}).encode()

    def answer(handler: faulty.Handler) -> None:
        handler._answer(body, _JSON, 400)

    server.faults, server.identity_faults = [answer], [answer]

    with pytest.raises(loader.CatalogError, match="more than 1000 bytes"):
        list(make(server).releases("org.faulty"))


def test_the_message_of_a_server_is_quoted_and_shortened(server: Faulty) -> None:
    for sent, reason in (
        ("a\n\x1b[31mb", r": 'a\\n\\x1b\[31mb \(HTTP"),
        ("x" * 9999, r": x{400}\.\.\.$"),
    ):
        body = json.dumps({"error": {"message": sent}}).encode()
        server.faults = [lambda handler, body=body: handler._answer(body, _JSON, 400)]

        with pytest.raises(loader.CatalogError, match=reason):
            list(_catalog(server).releases("org.faulty"))


def test_a_list_that_is_late_is_requested_again(server: Faulty) -> None:
    server.faults = [faulty.hang, lambda handler: handler.send_other(b'{"packages": []}')]

    assert list(_catalog(server).releases("org.faulty")) == []
    assert len(server.seen) == 2


class _Sent:
    """A fault: more bytes than an archive may have, and how many MiB of them were sent."""

    mebibytes = 0

    def __call__(self, handler: faulty.Handler) -> None:
        handler.send_then_end(b"", Content_Length=str(200 * 1024**2))
        with contextlib.suppress(OSError):
            while self.mebibytes < 200:
                handler.wfile.write(bytes(1024**2))
                self.mebibytes += 1


def _saved(server: Faulty, folder: pathlib.Path) -> None:
    exports.save(_catalog(server), server.release, folder / "a.zip", lambda *_: None)


def _downloaded(server: Faulty, repository_class: type[Repository]) -> None:
    repository = repository_class(faulty.Session(server), endpoint=server.url)
    stored = StoredPackage("0", "org.faulty", Version("1.0.0"), "active", "public", "", {})
    for _ in repository.download(stored):
        pass


def _send_image(handler: faulty.Handler) -> None:
    handler.send_other(b'{"id": "0"}')


@pytest.mark.parametrize(
    ("read", "before"),
    [
        (lambda server, _: list(_murano(server).releases("org.faulty")), [faulty.nothing]),
        (lambda server, folder: _loaded(_catalog(server), folder), [faulty.nothing]),
        (lambda server, _: list(_murano(server).fetch(server.release)), []),
        (_saved, []),
        (lambda server, _: _downloaded(server, GlareRepository), []),
        (lambda server, _: _downloaded(server, GlanceRepository), [_send_image]),
    ],
    ids=["listed", "cached", "fetched", "saved", "of Glare", "of Glance"],
)
def test_an_archive_that_is_too_large_is_not_downloaded_to_the_end(
    server: Faulty,
    read: Callable[[Faulty, pathlib.Path], object],
    before: list[Fault],
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent = _Sent()
    server.faults = [*before, sent]

    with caplog.at_level("WARNING"):
        try:
            read(server, tmp_path)
        except InvalidArchive as error:
            message = str(error)
        else:
            message = caplog.text

    assert "at most 104857600 are allowed [archive-size]" in message
    # The client has hung up; the rest is in buffers.
    assert 100 <= sent.mebibytes < 150
    assert not (tmp_path / "a.zip").exists()


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


def test_an_expired_token_is_renewed(server: Faulty) -> None:
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
    server.faults = [lambda handler: handler.send_other(b'{"packages": []}')]

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


def test_a_missing_endpoint_is_reported_with_its_region(server: Faulty) -> None:
    catalog = GlareCatalog(_keystone_session(server), region_name="north")

    message = (
        rf"^Glare of the region north: Keystone at {server.url}/v3 has no public endpoint of the "
        rf"type artifact in north: .*; check the region's name"
    )
    with pytest.raises(loader.CatalogError, match=message):
        list(catalog.releases("org.faulty"))


@pytest.mark.usefixtures("waits")
def test_an_unreachable_keystone_is_named_in_place_of_glare(server: Faulty) -> None:
    server.identity_faults = [faulty.drop] * 9
    catalog = GlareCatalog(_keystone_session(server), project_id="p", endpoint=server.url)

    message = (
        rf"^Glare at {server.url}: cannot authenticate: Keystone at {server.url}/v3 did not answer"
    )
    with pytest.raises(loader.CatalogUnavailable, match=message):
        list(catalog.releases("org.faulty"))


def test_wrong_credentials_are_reported_with_their_remedy(server: Faulty) -> None:
    server.identity_faults = [faulty.status(401)]
    catalog = GlareCatalog(_keystone_session(server), endpoint=server.url)

    message = (
        rf"Keystone at {server.url}/v3 answered POST /v3/auth/tokens with the status 401 .*"
        rf"; check its URL and the credentials$"
    )
    with pytest.raises(loader.CatalogError, match=message):
        list(catalog.releases("org.faulty"))


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


_TRICKLES = pytest.mark.parametrize(
    "fault", [faulty.trickle_headers, faulty.trickle, faulty.trickle_chunk, faulty.trickle_trailers]
)


@_TRICKLES
def test_a_batch_that_arrives_too_slowly_is_given_up(
    server: Faulty, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.catalogs.openstack._BATCH_TIMEOUT", 0.1)
    release, server.archive = server.release, bytes(512)
    server.faults = [fault]

    with pytest.raises(loader.CatalogError, match=r"not complete within 0\.1 seconds"):
        list(_catalog(server).batch([release]))


@_TRICKLES
@_CATALOGS
def test_a_list_that_arrives_too_slowly_is_given_up(
    server: Faulty, fault: Fault, make: Make
) -> None:
    server.archive = b"{}"
    server.faults = [fault]

    with pytest.raises(loader.CatalogUnavailable, match=r"not complete within 0\.1 seconds"):
        list(make(server, request_timeout=0.1).releases("org.faulty"))
    assert len(server.seen) == 1


def test_a_token_that_arrives_too_slowly_is_given_up(server: Faulty) -> None:
    server.tokens, server.identity_faults = set(), [faulty.trickle_headers]
    catalog = GlareCatalog(_keystone_session(server), endpoint=server.url, request_timeout=0.1)

    message = rf"Keystone at {server.url}/v3 did not answer: not complete within 0\.1 seconds"
    with pytest.raises(loader.CatalogUnavailable, match=message):
        list(catalog.releases("org.faulty"))


@_TRICKLES
def test_an_archive_that_arrives_too_slowly_is_given_up(
    server: Faulty, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.download._GRACE", 0.2)
    server.faults = [fault]

    with pytest.raises(loader.CatalogUnavailable, match="slower than 1000 bytes per second"):
        _fetched(_catalog(server, min_download_rate=1000), server)
    assert len(server.seen) == 1


@_TRICKLES
def test_a_bundle_that_arrives_too_slowly_is_given_up(
    server: Faulty, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.download._GRACE", 0.2)
    server.archive, server.faults = bytes(512), [fault]

    with pytest.raises(loader.CatalogUnavailable, match="slower than 10240 bytes per second"):
        bundles.read(f"{server.url}/packages.bundle#sha256={'0' * 64}")
    assert len(server.seen) == 1


def test_new_connections_do_not_make_a_slow_archive_faster(
    server: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.download._GRACE", 0.2)
    monkeypatch.setattr("random.uniform", lambda low, high: 0)
    server.ranges = True
    server.faults = [lambda handler: handler.send_then_end(b"P", Content_Length="9")]
    server.faults += [_one_byte] * 10_000

    with pytest.raises(loader.CatalogUnavailable, match="slower than 1000 bytes per second"):
        _fetched(_murano(server, min_download_rate=1000), server)
    assert 10 < len(server.seen) < 10_000


def _one_byte(handler: faulty.Handler) -> None:
    start = int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    handler.send_response_only(206)
    handler.send_header("Content-Range", f"bytes {start}-{start + 8}/{len(handler.state.archive)}")
    handler.send_header("Content-Length", "9")
    handler.end_headers()
    handler.wfile.write(b"P")
    handler.close_connection = True


def test_a_slow_reader_is_not_a_slow_server(
    server: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.download._GRACE", 0.2)
    arriving = _catalog(server).fetch(server.release)
    first = next(arriving)
    threading.Event().wait(0.3)

    assert first + b"".join(arriving) == server.archive


def test_a_long_wait_is_logged(
    server: Faulty, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("loader.transport.deadlines._LOG_AFTER", 0.05)
    server.faults = [faulty.trickle_headers] * 2
    catalog = _catalog(server, attempts=1, request_timeout=0.1)
    monkeypatch.setattr("loader.transport.download._GRACE", 0.1)

    with pytest.raises(loader.CatalogError):
        catalog.resolve(Query((("org.faulty", VersionSpec.of("1")),)))
    with pytest.raises(loader.CatalogError):
        _fetched(catalog, server)

    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        f"Glare at {server.url}: the closure of org.faulty 1 (POST /murano/v1/dependencies): "
        f"waiting for 0.05 seconds so far; an error if not complete within 0.1 seconds",
        f"Glare at {server.url}: the archive of org.faulty 1.0.0 (artifact 0): waiting for 0.05 "
        f"seconds so far; an error if slower than 10240 bytes per second for 0.1 seconds",
    ]


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "length"])
def test_a_list_may_be_compressed(server: Faulty, chunked: bool) -> None:
    listed = {"packages": [], "padding": random.Random(0).randbytes(300_000).hex()}
    packed = gzip.compress(json.dumps(listed).encode())
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
    monkeypatch.setattr("loader.transport.limited_sessions.MAX_DOCUMENT", 1000)
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


def test_the_session_of_a_caller_stays_as_it_is(
    server: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.transport.limited_sessions.MAX_DOCUMENT", 1000)
    session = _keystone_session(server)
    adapters = {prefix: dict(vars(each)) for prefix, each in session.adapters.items()}
    server.faults = [lambda handler: handler.send_other(b'{"packages": []}')]

    assert list(GlareCatalog(session, endpoint=server.url).releases("org.faulty")) == []

    # The caller may read any answer as a whole.
    server.faults = [lambda handler: handler.send_other(bytes(2000))]
    assert session.get(f"{server.url}/large").content == bytes(2000)
    assert session.session.hooks == {"response": []}
    assert {prefix: vars(each) for prefix, each in session.adapters.items()} == adapters
    # The token is the same.
    assert server.issued == 1


def test_the_catalogues_of_a_session_share_a_connection(server: Faulty) -> None:
    session = ksa_session.Session(token_endpoint.Token(server.url, "token"))
    server.faults = [lambda handler: handler.send_other(b'{"packages": []}')] * 3

    for _ in range(3):
        catalog = GlareCatalog(session, project_id=faulty.PROJECT, endpoint=server.url)
        assert list(catalog.releases("org.faulty")) == []

    assert server.connections == 1


def test_a_session_is_used_with_the_hooks_and_adapters_of_its_caller(server: Faulty) -> None:
    seen: list[str] = []

    class Adapter(requests.adapters.HTTPAdapter):
        def __init__(self, label: str) -> None:
            self.label = label
            super().__init__()

        def add_headers(self, request: requests.PreparedRequest, **_: Any) -> None:
            seen.append(self.label)

    session = ksa_session.Session(token_endpoint.Token(server.url, "token"))
    session.mount("http://", Adapter("adapter"))
    session.session.hooks["response"] = lambda *_, **__: seen.append("hook")  # type: ignore[assignment]
    server.faults = [lambda handler: handler.send_other(b'{"packages": []}')]

    list(GlareCatalog(session, project_id="p", endpoint=server.url).releases("org.faulty"))

    assert seen == ["adapter", "hook"]


def test_progress_is_reported(server: Faulty, tmp_path: pathlib.Path) -> None:
    steps: list[loader.Progress] = []
    cache = loader.Cache(tmp_path)
    fetcher = loader.Fetcher(cache, report=steps.append)
    package_loader = loader.PackageLoader([_catalog(server)], cache, fetcher=fetcher)

    package_loader.load("org.faulty", VersionSpec.of("1"))

    assert [step.done for step in steps] == sorted({step.done for step in steps})
    assert steps[-1].done == steps[-1].total == len(server.archive)
    assert {step.name for step in steps} == {"org.faulty 1.0.0"}


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
        package_loader.load("org.faulty", VersionSpec.of("1"))

    assert package_loader.pins.dump() == {}


def test_an_answer_is_read_up_to_a_limit(server: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loader.transport.limited_sessions.MAX_DOCUMENT", 1000)
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
    package = _loaded(catalog, cache).load("org.faulty", VersionSpec.of("1"))
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
    whole = Download(lambda headers: next(answers), 2, 1, "a file")

    if isinstance(expected, bytes):
        assert b"".join(whole) == expected
    else:
        with pytest.raises(ksa_exceptions.ClientException, match=expected):
            b"".join(whole)
