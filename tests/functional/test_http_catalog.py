# SPDX-License-Identifier: Apache-2.0

"""A static repository over a real web server."""

import hashlib
import json
import logging
import os
import pathlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from oslo_config import cfg

import loader
from glare_murano.package import InvalidPackage, Limits, VersionSpec
from loader import config
from loader.catalogs import http as http_catalog
from loader.catalogs import options, registry
from loader.catalogs.http import HttpCatalog
from loader.catalogs.metadata_cache import Facts
from loader.transport.sessions import Scope
from tests import packages
from tests.functional import static
from tests.functional.static import Files, Server

pytestmark = pytest.mark.usefixtures("waits")

FQN = "org.app"
ANY = VersionSpec.of("*")

# More than what is read of an archive's end; it does not pack.
LARGE = random.Random(1).randbytes(300_000)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    found = tmp_path / "repository"
    for name in ("apps", "bundles"):
        (found / name).mkdir(parents=True)
    return found


@pytest.fixture(params=[static.Files, static.Ranges], ids=["whole", "ranges"])
def server(request: pytest.FixtureRequest, folder: pathlib.Path) -> Iterator[Server]:
    with static.serving(request.param, folder) as running:
        yield running


@pytest.fixture
def ranges(folder: pathlib.Path) -> Iterator[Server]:
    with static.serving(static.Ranges, folder) as running:
        yield running


Put = Callable[..., bytes]


@pytest.fixture
def put(folder: pathlib.Path) -> Put:
    """Put a package into the repository; with the version in the name, if asked."""

    def write(
        version: str, name: str = FQN, file: str = "", resource: bytes = b"", **keys: Any
    ) -> bytes:
        files = packages.files(packages.manifest(name, version, **keys))
        if resource:
            files = {"manifest.yaml": files.pop("manifest.yaml"), "Resources/r": resource, **files}
        data = packages.zipped(files)
        (folder / "apps" / (file or f"{name}.{version}.zip")).write_bytes(data)
        return data

    return write


@pytest.fixture
def bundle(folder: pathlib.Path) -> Callable[..., None]:
    def write(name: str, *items: Any) -> None:
        (folder / "bundles" / f"{name}.bundle").write_text(json.dumps({"Packages": items}))

    return write


Bundle = Callable[..., None]


def _catalog(server: Server, **others: Any) -> HttpCatalog:
    # Credentials that must never be sent.
    session = ksa_session.Session(auth=token_endpoint.Token(server.url, "secret"))
    return HttpCatalog(server.url, session, **{"attempts": 1, **others})


def _item(version: str, data: bytes | None = None, name: str = FQN, **others: str) -> Any:
    digest = {"Sha256": hashlib.sha256(data).hexdigest()} if data else {}
    return {"Name": name, "Version": version, **digest, **others}


def _versions(catalog: HttpCatalog, fqn: str = FQN) -> list[str]:
    return [str(release.version) for release in catalog.releases(fqn)]


def _load(catalog: HttpCatalog, folder: pathlib.Path, text: str = "*") -> str:
    package_loader = loader.PackageLoader([catalog], loader.Cache(folder))
    return str(package_loader.load_package(FQN, VersionSpec.of(text)).version)


def test_releases_are_those_of_bundles_and_the_one_without_a_version(
    server: Server, put: Put, bundle: Bundle, tmp_path: pathlib.Path
) -> None:
    put("1.0.0")
    put("1.5.0")
    put("1.10.0", file=f"{FQN}.zip", Require={"org.db": ">=1.2"})
    put("1.2.0", file="elsewhere.zip")
    put("9.0.0", name="org.other")
    bundle("index", _item("1.0.0"), _item("9.0.0", name="org.other"))
    bundle("more", _item("1.2.0", Url=f"{server.url}/apps/elsewhere.zip"), {"Name": FQN})
    bundle("others", _item("1.5.0"))
    catalog = _catalog(server, bundles=["more"])

    assert _versions(catalog) == ["1.10.0", "1.2.0", "1.0.0"]
    assert _versions(catalog, "org.other") == ["9.0.0"]
    assert _versions(catalog, "org.nothing") == []
    newest = catalog.newest(FQN, VersionSpec.of("1"))
    assert newest is not None
    assert newest.requirements["org.db"] == VersionSpec.of(">=1.2")
    assert newest.classes == {f"{FQN}.Thing"}
    assert _load(catalog, tmp_path / "cache", "<1.10") == "1.2.0"
    assert not any("X-Auth-Token" in headers for _, headers in server.requests)


def test_a_class_is_found_in_what_bundles_list_and_in_packages_of_its_name(
    server: Server, put: Put, bundle: Bundle
) -> None:
    put("1.0.0", Classes={"com.elsewhere.Thing": "Thing.yaml"})
    put("2.0.0", name="org.listed.not", file="org.listed.not.zip")
    bundle("index", _item("1.0.0"))
    catalog = _catalog(server)

    assert str(catalog.newest_defining("com.elsewhere.Thing", ANY)) == "org.app 1.0.0"
    assert str(catalog.newest_defining("org.listed.not.Thing", ANY)) == "org.listed.not 2.0.0"
    assert catalog.newest_defining("org.listed.Thing", ANY) is None
    assert list(catalog.releases_defining("no/name")) == []


def test_only_the_manifest_is_read_where_there_are_ranges(
    ranges: Server, put: Put, bundle: Bundle, tmp_path: pathlib.Path
) -> None:
    data = put("1.0.0", resource=LARGE)
    bundle("index", _item("1.0.0", data))
    catalog = _catalog(ranges)

    (release,) = catalog.releases(FQN)

    assert release.size == len(data)
    assert release.digest == hashlib.sha256(data).hexdigest()
    assert ranges.sent < 100_000
    assert _load(catalog, tmp_path / "cache") == "1.0.0"
    assert catalog.counters.requests == len(ranges.requests)


def test_without_ranges_an_archive_is_downloaded_once(
    folder: pathlib.Path, put: Put, tmp_path: pathlib.Path
) -> None:
    data = put("1.0.0", file=f"{FQN}.zip", resource=LARGE)
    with static.serving(static.Files, folder) as server:
        catalog = _catalog(server)

        assert _load(catalog, tmp_path / "cache") == "1.0.0"

        assert server.paths.count(f"/apps/{FQN}.zip") == 1
        assert catalog.counters.bytes == len(data)


def test_a_digest_that_nobody_told_is_found_by_one_download(
    ranges: Server, put: Put, tmp_path: pathlib.Path
) -> None:
    data = put("1.0.0", file=f"{FQN}.zip", resource=LARGE)
    facts = Facts(tmp_path / "facts")
    catalog = _catalog(ranges, facts=facts)
    (release,) = catalog.releases(FQN)
    assert release.digest == ""

    assert _load(catalog, tmp_path / "cache") == "1.0.0"

    sent = ranges.sent
    assert len(data) < sent < len(data) + 100_000
    (release,) = catalog.releases(FQN)
    assert release.digest == hashlib.sha256(data).hexdigest()
    assert _load(_catalog(ranges, facts=Facts(tmp_path / "facts")), tmp_path / "cache") == "1.0.0"
    assert ranges.sent == sent


def test_digests_that_nobody_told_are_found_once_and_remembered(
    ranges: Server, put: Put, tmp_path: pathlib.Path
) -> None:
    names = ("org.one", "org.two", "org.three")
    size = sum(
        len(put("1.0.0", name, file=f"{name}.zip", resource=random.Random(name).randbytes(400_000)))
        for name in names
    )
    put("1.0.0", file=f"{FQN}.zip", Require=dict.fromkeys(names, "1"))
    catalog = _catalog(ranges)

    def load() -> list[str]:
        cache = loader.Cache(tmp_path / "cache")
        memory = loader.Memory([catalog], cache, None)
        with loader.PackageLoader([catalog], cache, memory=memory) as packages:
            return [packages.load_package(name, ANY).full_name for name in (FQN, *names)]

    assert load() == [FQN, *names]
    # The ends, too, with the manifests.
    assert size < ranges.sent < size + 300_000

    def fail(handler: static.Files) -> bool:
        handler.send_error(503)
        return True

    ranges.fault = fail
    assert load() == [FQN, *names]


def test_a_lock_is_fetched_from_where_nobody_tells_digests(
    ranges: Server, put: Put, tmp_path: pathlib.Path
) -> None:
    put("0.1.0", "io.murano", file="io.murano.zip")
    put("1.0.0", file=f"{FQN}.zip", resource=random.Random(0).randbytes(200_000))
    lock = loader.Lock.create([_catalog(ranges)], {FQN: ANY})

    locked = loader.LockedCatalog(lock, [_catalog(ranges)])

    package_loader = loader.PackageLoader([locked], loader.Cache(tmp_path / "cache"))
    assert str(package_loader.load_package(FQN, ANY).version) == "1.0.0"


def test_a_download_that_fails_is_told_of_its_own_package_alone(
    ranges: Server, put: Put, tmp_path: pathlib.Path
) -> None:
    for name in ("org.one", "org.two"):
        put("1.0.0", name, file=f"{name}.zip", resource=random.Random(0).randbytes(200_000))
    put("1.0.0", file=f"{FQN}.zip", Require={"org.one": "1", "org.two": "1"})
    package_loader = loader.PackageLoader([_catalog(ranges)], loader.Cache(tmp_path / "cache"))

    def fail(handler: static.Files) -> bool:
        # What is planned is read by ranges, and what is fetched as a whole.
        if handler.path != "/apps/org.one.zip" or handler.headers["Range"]:
            return False
        handler.send_error(410)
        return True

    ranges.fault = fail
    package_loader.load_package(FQN, ANY)

    assert package_loader.load_package("org.two", VersionSpec.of("1")).full_name == "org.two"
    with pytest.raises(loader.CatalogError, match="one"):
        package_loader.load_package("org.one", VersionSpec.of("1"))


def test_nothing_that_is_unchanged_is_fetched_twice(
    server: Server, put: Put, bundle: Bundle, tmp_path: pathlib.Path
) -> None:
    put("1.0.0")
    put("2.0.0", file=f"{FQN}.zip")
    bundle("index", _item("1.0.0"))
    # Later processes of the same host, one after the other.
    assert _versions(_catalog(server, facts=Facts(tmp_path / "facts"))) == ["2.0.0", "1.0.0"]
    sent, _ = server.sent, server.paths

    catalog = _catalog(server, facts=Facts(tmp_path / "facts"))
    assert _versions(catalog) == ["2.0.0", "1.0.0"]
    assert server.sent == sent
    assert sorted(server.paths) == [
        "/apps/org.app.1.0.0.zip",
        "/apps/org.app.zip",
        "/bundles/index.bundle",
    ]
    assert _versions(catalog) == ["2.0.0", "1.0.0"]
    assert server.paths == []


def test_a_change_is_seen(
    server: Server, put: Put, bundle: Bundle, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    put("1.0.0", file=f"{FQN}.zip")
    bundle("index")
    facts = Facts(tmp_path / "facts")
    assert _versions(_catalog(server, facts=facts)) == ["1.0.0"]

    put("1.1.0", file=f"{FQN}.zip")
    put("0.5.0")
    bundle("index", _item("0.5.0"))
    # Python's server tells states by whole seconds.
    later = time.time() + 2
    for path in folder.rglob("*.*"):
        os.utime(path, (later, later))

    assert _versions(_catalog(server, facts=facts)) == ["1.1.0", "0.5.0"]
    (folder / "apps" / f"{FQN}.zip").unlink()
    assert _versions(_catalog(server, facts=facts)) == ["0.5.0"]


def test_what_has_a_digest_is_asked_for_once(
    server: Server, put: Put, bundle: Bundle, tmp_path: pathlib.Path
) -> None:
    bundle("index", *(_item(f"1.{minor}.0", put(f"1.{minor}.0")) for minor in range(5)))
    facts = Facts(tmp_path / "facts")
    _versions(_catalog(server, facts=facts))
    server.requests.clear()

    assert len(_versions(_catalog(server, facts=facts))) == 5

    assert sorted(server.paths) == ["/apps/org.app.zip", "/bundles/index.bundle"]


def test_an_archive_that_is_not_what_the_bundle_says_is_left_out_and_told(
    server: Server,
    put: Put,
    bundle: Bundle,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put("1.0.0", name="org.mallory", file=f"{FQN}.1.0.0.zip")
    put("7.0.0", file=f"{FQN}.2.0.0.zip")
    put("3.0.0")
    put("4.0.0", name="org.mallory", file=f"{FQN}.zip")
    bundle("index", _item("1.0.0"), _item("2.0.0"), _item("3.0.0", b"another"), _item("5.0.0"))
    catalog = _catalog(server)

    assert _versions(catalog) == []
    assert _versions(catalog) == []
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 4
    for words in (
        ("org.app 1.0.0", "org.mallory 1.0.0"),
        ("org.app 2.0.0", "org.app 7.0.0"),
        ("org.app.3.0.0.zip", "archive-digest", hashlib.sha256(b"another").hexdigest()),
        ("org.app.zip", "org.mallory 4.0.0"),
    ):
        assert any(all(word in warning for word in words) for warning in warnings), words


def test_a_broken_archive_is_left_out_and_not_read_again_until_it_changes(
    server: Server, put: Put, folder: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = folder / "apps" / f"{FQN}.zip"
    file.write_bytes(b"no archive" * 20_000)
    facts = Facts()
    for _ in range(2):
        caplog.clear()
        assert _versions(_catalog(server, facts=facts)) == []
        assert "archive-format" in caplog.text
    assert server.sent < 350_000

    put("1.0.0", file=file.name)
    later = time.time() + 2
    os.utime(file, (later, later))
    assert _versions(_catalog(server, facts=facts)) == ["1.0.0"]


def test_ranges_that_lie_change_nothing_for_the_worse(
    ranges: Server, put: Put, bundle: Bundle, tmp_path: pathlib.Path
) -> None:
    """A server that promises one thing by ranges and sends another as a whole."""
    data = put("1.0.0", resource=LARGE)
    bundle("index", _item("1.0.0", data))
    lie = packages.zipped(
        {
            "manifest.yaml": packages.files(packages.manifest(FQN, "1.0.0", Author="A liar"))[
                "manifest.yaml"
            ],
            "Resources/r": LARGE,
        }
    )

    def whole_is_another(request: Files) -> bool:
        if not request.path.endswith("1.0.0.zip") or "Range" in request.headers:
            return False
        request.answer(200, lie)  # type: ignore[attr-defined]
        return True

    ranges.fault = whole_is_another
    facts = Facts(tmp_path / "facts")
    with pytest.raises(loader.DigestMismatch):
        _load(_catalog(ranges, facts=facts), tmp_path / "cache")

    ranges.fault = None
    assert _load(_catalog(ranges, facts=facts), tmp_path / "cache") == "1.0.0"


@pytest.mark.parametrize(
    "described",
    [
        "",
        "bytes 0-9/*",
        "bytes 5-4/10",
        "bytes 0-99999999/100000000",
        "bytes 0-9/10",
        "lines 0-9/10",
    ],
)
def test_a_part_that_is_none_is_told(ranges: Server, put: Put, described: str) -> None:
    put("1.0.0", file=f"{FQN}.zip", resource=LARGE)

    def wrong(request: Files) -> bool:
        if "Range" in request.headers:
            request.answer(206, b"PK", **{"Content-Range": described})  # type: ignore[attr-defined]
        return "Range" in request.headers

    ranges.fault = wrong

    with pytest.raises(loader.CatalogError, match=r"org\.app\.zip"):
        _versions(_catalog(ranges))


def test_an_archive_that_changes_between_two_ranges_is_read_as_a_whole(
    ranges: Server, put: Put, folder: pathlib.Path
) -> None:
    put("1.0.0", file=f"{FQN}.zip", resource=LARGE)

    def changing(request: Files) -> bool:
        if len(ranges.requests) == 3:  # the index, the end, and now the manifest
            put("2.0.0", file=f"{FQN}.zip", resource=LARGE)
        return False

    ranges.fault = changing
    catalog = _catalog(ranges)

    assert _versions(catalog) == ["2.0.0"]
    assert len(ranges.requests) == 4


def test_a_part_that_breaks_off_is_gone_on_with(ranges: Server, put: Put) -> None:
    data = put("1.0.0", file=f"{FQN}.zip", resource=LARGE)
    cut: list[str] = []

    def breaking(request: Files) -> bool:
        wanted = request.headers["Range"] or ""
        if not wanted or len(cut) == 4:
            return False
        cut.append(wanted)
        if len(cut) % 2 == 0:
            return False
        # First the end, and then the manifest, which is the beginning.
        start, size = (len(data) - 65536, 65536) if len(cut) == 1 else (0, 16384)
        request.send_response(206)
        request.send_header("Content-Range", f"bytes {start}-{start + size - 1}/{len(data)}")
        request.send_header("Content-Length", str(size))
        request.end_headers()
        request.write(data[start : start + size // 2])
        return True

    ranges.fault = breaking
    assert _versions(_catalog(ranges, attempts=2)) == ["1.0.0"]
    last = len(data) - 1
    end = ["bytes=-65536", f"bytes={last - 32767}-{last}"]
    assert cut == [*end, "bytes=0-16383", "bytes=8192-16383"]


def test_the_halves_of_two_archives_are_not_loaded_as_one(
    folder: pathlib.Path, put: Put, tmp_path: pathlib.Path
) -> None:
    """Replaced within the second that the server tells states apart by."""
    path = folder / "apps" / f"{FQN}.zip"
    data = put("1.0.0", file=path.name, resource=LARGE)
    times = (path.stat().st_atime, path.stat().st_mtime)
    with static.serving(static.Files, folder) as server:

        def replacing(request: Files) -> bool:
            if request.path != f"/apps/{path.name}":
                return False
            server.fault = None
            request.send_response(200)
            request.send_header("Content-Length", str(len(data)))
            request.send_header("Last-Modified", request.date_time_string(int(times[1])))
            request.end_headers()
            request.write(data[: len(data) // 2])
            put("1.0.0", file=path.name, resource=LARGE[::-1])
            os.utime(path, times)
            return True

        server.fault = replacing
        facts = Facts(tmp_path / "facts")
        with pytest.raises(InvalidPackage, match=r"Resources/r: cannot be read"):
            _load(_catalog(server, facts=facts, attempts=2), tmp_path / "cache")
        # What was learnt of it is found wrong, and learnt anew.
        with pytest.raises(loader.DigestMismatch):
            _load(_catalog(server, facts=facts), tmp_path / "cache")
        assert _load(_catalog(server, facts=facts), tmp_path / "cache") == "1.0.0"


@pytest.mark.parametrize("status", [301, 401, 403, 416, 500, 503])
def test_what_is_no_answer_is_told(server: Server, put: Put, status: int) -> None:
    put("1.0.0", file=f"{FQN}.zip")

    def refusing(request: Files) -> bool:
        request.send_error(status)
        return True

    server.fault = refusing

    with pytest.raises(loader.CatalogError, match=rf"127\.0\.0\.1.*{status}"):
        _versions(_catalog(server))


@pytest.mark.parametrize("stall", [False, True])
def test_an_answer_that_stalls_or_breaks_off_is_told(server: Server, put: Put, stall: bool) -> None:
    put("1.0.0", file=f"{FQN}.zip")

    def breaking(request: Files) -> bool:
        if "index" in request.path:
            return False
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        request.wfile.write(b"PK")
        if stall:
            # Not by time.sleep, which is replaced for the whole process.
            threading.Event().wait(2)
        return True

    server.fault = breaking
    catalog = HttpCatalog(server.url, ksa_session.Session(timeout=1))  # type: ignore[arg-type]
    with pytest.raises(loader.CatalogError, match=r"org\.app\.zip"):
        _versions(catalog)


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(loader.CatalogError, match=url):
            HttpCatalog(url, ksa_session.Session()).newest(FQN, ANY)


def test_archives_and_bundles_without_end_are_refused(
    server: Server, put: Put, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    endless = 0

    def pouring(request: Files) -> bool:
        nonlocal endless
        if request.path.endswith("zip") or pour_bundles:
            request.send_response(200)
            request.end_headers()
            try:
                while endless < 10_000_000:
                    request.wfile.write(b"x" * 10_000)
                    endless += 10_000
            except OSError:
                pass
            return True
        return False

    pour_bundles = False
    server.fault = pouring
    assert _versions(_catalog(server, limits=Limits(archive_size=100_000))) == []
    assert "archive-size" in caplog.text

    pour_bundles = True
    monkeypatch.setattr(http_catalog, "_BUNDLE_SIZE", 100_000)
    with pytest.raises(loader.CatalogError, match="more than 100000 bytes"):
        _versions(_catalog(server))
    assert endless < 10_000_000


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"Packages": 7}', "[" * 100_000, '{"Packages": [' + "1," * 10_001 + "1]}"],
)
def test_what_is_no_bundle_is_told(ranges: Server, folder: pathlib.Path, text: str) -> None:
    (folder / "bundles" / "index.bundle").write_text(text)

    with pytest.raises(loader.CatalogError, match=r"index\.bundle"):
        _versions(_catalog(ranges))


def test_what_a_bundle_must_not_say_is_passed_over(
    ranges: Server, put: Put, bundle: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    put("1.0.0")
    bundle(
        "index",
        7,
        {},
        {"Name": "../evil"},
        {"Name": ["org.app"]},
        {"Name": FQN, "Version": "../1"},
        {"Name": FQN, "Url": "file:///etc/passwd"},
        {"Name": FQN, "Url": "ftp://host/x.zip"},
        {"Name": FQN, "Url": "http://host/a b\r\nX: y"},
        {"Name": FQN, "Url": "http://[::1"},
        {"Name": FQN, "Url": "http://host:99999/x.zip"},
        {"Name": FQN, "Sha256": "abc"},
        _item("1.0.0"),
    )
    catalog = _catalog(ranges)

    assert _versions(catalog) == ["1.0.0"]
    assert sorted(ranges.paths) == [
        "/apps/org.app.1.0.0.zip",
        "/apps/org.app.zip",
        "/bundles/index.bundle",
    ]
    assert len(caplog.records) == 11


def test_an_empty_file_is_no_package(
    ranges: Server, folder: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "apps" / f"{FQN}.zip").touch()

    def empty(request: Files) -> bool:
        if "Range" not in request.headers or "apps" not in request.path:
            return False
        request.answer(416, b"")  # type: ignore[attr-defined]
        return True

    ranges.fault = empty
    assert _versions(_catalog(ranges)) == []
    assert "archive-format" in caplog.text


def test_an_archive_of_many_files_is_read_by_ranges_too(
    ranges: Server, folder: pathlib.Path
) -> None:
    files = packages.files(packages.manifest(FQN))
    manifest = {"manifest.yaml": files.pop("manifest.yaml")}
    many = {f"Resources/{'long' * 20}{number}": b"x" for number in range(1500)}
    data = packages.zipped({**manifest, "Resources/r": LARGE, **many, **files})
    (folder / "apps" / f"{FQN}.zip").write_bytes(data)
    catalog = _catalog(ranges)

    assert _versions(catalog) == ["1.0.0"]

    assert ranges.sent < len(data) - len(LARGE) + 100_000


def test_no_credentials_are_sent_that_lie_about(
    server: Server, put: Put, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    put("1.0.0", file=f"{FQN}.zip")

    assert _versions(_catalog(server)) == ["1.0.0"]

    sent = {name.lower() for _, headers in server.requests for name in headers}
    assert not sent & {"authorization", "x-auth-token"}


def test_a_bad_moment_of_the_server_is_survived(
    server: Server, put: Put, waits: list[float]
) -> None:
    put("1.0.0", file=f"{FQN}.zip")
    bad = iter([True, True, False])

    def fail(handler: static.Files) -> bool:
        wrong = "apps" in handler.path and next(bad)
        if wrong:
            handler.send_error(503)
        return wrong

    server.fault = fail

    assert _versions(_catalog(server, attempts=3)) == ["1.0.0"]
    assert len(waits) == 2
    assert len(server.paths) == 4


def test_credentials_in_a_url_are_neither_sent_nor_told(
    server: Server,
    put: Put,
    bundle: Bundle,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put("1.0.0", file="elsewhere.zip")
    secret = server.url.replace("//", "//me:secret@")
    bundle("index", {"Name": FQN, "Version": "2.0.0", "Url": f"{secret}/apps/elsewhere.zip"})
    catalog = HttpCatalog(secret, ksa_session.Session())

    with (
        loader.PackageLoader([catalog], loader.Cache(tmp_path / "cache")) as package_loader,
        pytest.raises(loader.NoSuchPackage) as missing,
    ):
        package_loader.load_package(FQN, VersionSpec.of("1"))

    assert f"repository {server.url}:" in str(missing.value)
    assert "it should be org.app 2.0.0" in caplog.text
    assert "secret" not in str(missing.value) + caplog.text
    assert not any("Authorization" in headers for _, headers in server.requests)


def test_a_bundle_that_calls_itself_an_archive_harms_nobody(
    server: Server, put: Put, bundle: Bundle, tmp_path: pathlib.Path
) -> None:
    put("1.0.0")
    bundle("index", {"Name": FQN, "Url": f"{server.url}/bundles/index.bundle"}, _item("1.0.0"))
    for _ in range(2):
        catalog = _catalog(server, facts=Facts(tmp_path / "facts"))
        assert _versions(catalog) == _versions(catalog) == ["1.0.0"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host/packages",
        "ftp://host/packages",
        "HTTPS://host/",
        "http://",
        "http:///packages",
        "http://[x",
        "http://host:port/",
        "http://host:99999/",
        "http://host/my packages",
        "http://me:secret@[x",
        "me:secret@host",
    ],
)
def test_what_is_no_url_is_told_before_anything_is_asked(url: str) -> None:
    with pytest.raises(loader.CatalogError, match="is no URL") as told:
        HttpCatalog(url, ksa_session.Session())

    assert "secret" not in str(told.value)


def test_a_configured_url_that_is_none_is_told_with_its_option(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "loader.conf"
    file.write_text("[package_loader]\ncatalogs = http\nhttp_url = http://[x\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(file)])

    with pytest.raises(loader.CatalogError, match=r"^\[package_loader\] http_url: .*'http://\[x'"):
        config.package_loader(conf)


def test_a_bundle_that_the_operator_names_must_be_there(ranges: Server) -> None:
    with pytest.raises(loader.CatalogError, match=r"no bundle gone"):
        _versions(_catalog(ranges, bundles=["gone"]))


def test_a_packed_answer_is_refused(server: Server, put: Put) -> None:
    put("1.0.0", file=f"{FQN}.zip")

    def packing(request: Files) -> bool:
        assert request.headers["Accept-Encoding"] == "identity"
        request.send_response(200)
        request.send_header("Content-Encoding", "gzip")
        request.send_header("Content-Length", "2")
        request.end_headers()
        request.wfile.write(b"xx")
        return True

    server.fault = packing
    with pytest.raises(loader.CatalogError, match="packs what it sends"):
        _versions(_catalog(server))


def test_https_is_not_given_up(
    ranges: Server, bundle: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    """A bundle that came by HTTPS may name a plain URL only with a digest."""
    catalog = HttpCatalog("https://host", ksa_session.Session())
    digest = hashlib.sha256(b"").hexdigest()

    plain = catalog._entry({"Name": FQN, "Url": "http://other/x.zip"}, "a bundle")
    held = catalog._entry({"Name": FQN, "Url": "http://other/x.zip", "Sha256": digest}, "a bundle")

    assert plain is None
    assert "neither HTTPS nor a digest" in caplog.text
    assert held is not None


def test_a_client_shows_the_certificate_that_is_configured(
    ranges: Server, put: Put, tmp_path: pathlib.Path
) -> None:
    put("1.0.0", file=f"{FQN}.zip")
    certificate = str(ranges.secure(tmp_path, mutual=True))
    conf = cfg.ConfigOpts()
    conf([])
    options.register(conf, http_catalog.OPTIONS)
    conf.set_override("http_url", ranges.url, "package_loader")
    conf.set_override("cafile", certificate, "package_loader")
    conf.set_override("enable_packages_cache", False, "engine")

    (nobody,) = registry.catalogs(["http"], conf, Scope())
    with pytest.raises(loader.CatalogError):
        nobody.newest(FQN, ANY)

    conf.set_override("certfile", certificate, "package_loader")
    conf.set_override("keyfile", str(tmp_path / "key.pem"), "package_loader")
    (known,) = registry.catalogs(["http"], conf, Scope())
    assert str(known.newest(FQN, ANY)) == "org.app 1.0.0"


def test_https_is_held_to_the_operators_options_and_to_itself(
    ranges: Server, folder: pathlib.Path, put: Put, tmp_path: pathlib.Path
) -> None:
    put("1.0.0", file=f"{FQN}.zip")
    certificate = ranges.secure(tmp_path)
    conf = cfg.ConfigOpts()
    conf([])
    options.register(conf, http_catalog.OPTIONS)
    conf.set_override("http_url", ranges.url, "package_loader")
    conf.set_override("enable_packages_cache", False, "engine")

    (unknown,) = registry.catalogs(["http"], conf, Scope())
    with pytest.raises(loader.CatalogError, match=r"(?i)certificate") as failure:
        unknown.newest(FQN, ANY)
    assert not isinstance(failure.value, loader.NoAnswer)
    assert unknown.counters.requests == 1

    conf.set_override("cafile", str(certificate), "package_loader")
    (trusted,) = registry.catalogs(["http"], conf, Scope())
    assert str(trusted.newest(FQN, ANY)) == "org.app 1.0.0"

    with static.serving(static.Files, folder) as plain:

        def leading_away(request: Files) -> bool:
            request.send_response(302)
            request.send_header("Location", plain.url + request.path)
            request.end_headers()
            return True

        ranges.fault = leading_away
        (misled,) = registry.catalogs(["http"], conf, Scope())
        with pytest.raises(loader.CatalogError, match=f"leads to {plain.url}"):
            misled.newest(FQN, ANY)


def test_it_is_chosen_and_configured_by_name(
    ranges: Server, put: Put, bundle: Bundle, tmp_path: pathlib.Path
) -> None:
    put("1.0.0")
    bundle("mine", _item("1.0.0"))
    conf = cfg.ConfigOpts()
    conf([])
    with pytest.raises(loader.CatalogError, match=r"\[package_loader\] http_url"):
        registry.catalogs(["http"], conf, Scope())

    conf.set_override("http_url", ranges.url + "/", "package_loader")
    conf.set_override("http_bundles", ["mine"], "package_loader")
    conf.set_override("packages_cache", str(tmp_path), "engine")
    (catalog,) = registry.catalogs(["http"], conf, Scope())

    assert catalog.name == f"the repository {ranges.url}/"
    assert str(catalog.newest(FQN, ANY)) == "org.app 1.0.0"
    assert list((tmp_path / "catalogs").glob("*.json"))
