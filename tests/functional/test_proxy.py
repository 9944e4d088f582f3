# SPDX-License-Identifier: Apache-2.0

"""The loader behind a proxy, which the environment names."""

import os
import pathlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

import loader
from glare_murano.package import VersionSpec
from loader.catalogs.base import Catalog
from loader.catalogs.glare import GlareCatalog
from loader.catalogs.http import HttpCatalog
from tests import packages, processes
from tests.functional import proxy as proxies
from tests.functional import static
from tests.functional.client import Client
from tests.functional.proxy import Handler, Proxy

# Names of hosts that nobody but the proxy can find.
GLARE, REPOSITORY = "glare.test", "repository.test"
# In the repository; it requires a package in Glare.
APPLICATION = "org.application"

_CONF = """\
[package_loader]
catalogs = glare,http
http_url = {repository}
cafile = {cafile}

[glare]
url = {glare}
auth_type = admin_token
endpoint = {glare}
token = me:my-project:member
cafile = {cafile}

[engine]
packages_cache = {folder}/cache
"""


@pytest.fixture(autouse=True)
def _no_other_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def repository(admin: Client, name: str, tmp_path: pathlib.Path) -> Iterator[static.Server]:
    admin.publish(name, "1.0.0", packages.package(name), public=True)
    apps = tmp_path / "repository" / "apps"
    apps.mkdir(parents=True)
    data = packages.package(APPLICATION, "1.2.0", Require={name: "1"})
    (apps / f"{APPLICATION}.zip").write_bytes(data)
    with static.serving(static.Ranges, apps.parent) as server:
        yield server


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with proxies.serving() as running:
        yield running


@pytest.fixture
def way(proxy: Proxy, glare_url: str, repository: static.Server) -> Proxy:
    """A proxy that leads to Glare and to the repository."""
    proxy.hosts[GLARE] = ("127.0.0.1", _port(glare_url))
    proxy.hosts[REPOSITORY] = ("127.0.0.1", repository.server_port)
    return proxy


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def _load(
    folder: pathlib.Path, environment: dict[str, str], cafile: object = "", **urls: str
) -> list[str]:
    """Load the application and what it requires by a program of its own; what was loaded."""
    (folder / "loader.conf").write_text(_CONF.format(folder=folder, cafile=cafile, **urls))
    command = ["-W", "ignore", "-m", "examples.load", "--config-file", str(folder / "loader.conf")]
    done = subprocess.run(
        [sys.executable, *command, APPLICATION, "1"],
        cwd=processes.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.partition(":")[0] for line in done.stdout.splitlines()[:-1]]


def test_all_requests_go_through_the_proxy(
    way: Proxy, name: str, repository: static.Server, tmp_path: pathlib.Path
) -> None:
    environment = {"http_proxy": way.url, "https_proxy": "http://127.0.0.1:9"}
    urls = {"glare": f"http://{GLARE}", "repository": f"http://{REPOSITORY}/"}

    assert _load(tmp_path, environment, **urls) == [f"{APPLICATION} 1.2.0", f"{name} 1.0.0"]

    to_glare = [request for request in way.requests if f"//{GLARE}/" in request]
    # The core library, which every package requires, travels with the package.
    assert len([request for request in to_glare if request.endswith("/murano/archives")]) == 1
    to_repository = len(way.requests) - len(to_glare)
    assert to_repository == len(repository.requests) > 1


def test_tls_goes_through_the_proxy_and_is_checked_behind_it(
    way: Proxy,
    name: str,
    glare_url: str,
    repository: static.Server,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificate = repository.secure(tmp_path)
    environment = {"http_proxy": "http://127.0.0.1:9", "https_proxy": way.url}
    with proxies.secured(_port(glare_url), certificate, tmp_path / "key.pem") as port:
        urls = {"glare": f"https://127.0.0.1:{port}", "repository": repository.url}

        assert _load(tmp_path, environment, cafile=certificate, **urls) == [
            f"{APPLICATION} 1.2.0",
            f"{name} 1.0.0",
        ]

        assert set(way.requests) == {
            f"CONNECT 127.0.0.1:{port}",
            f"CONNECT 127.0.0.1:{repository.server_port}",
        }
    way.requests.clear()
    monkeypatch.setenv("https_proxy", way.url)
    with pytest.raises(loader.CatalogError, match=rf"through the proxy {way.url}: .*CERTIFICATE"):
        _http(repository.url).newest(APPLICATION, VersionSpec.of("*"))
    assert way.requests == [f"CONNECT 127.0.0.1:{repository.server_port}"]


def test_hosts_that_no_proxy_names_are_asked_without_one(
    way: Proxy, name: str, glare_url: str, repository: static.Server, tmp_path: pathlib.Path
) -> None:
    """One of the two; the other is found by the proxy alone."""
    environment = {"http_proxy": way.url, "no_proxy": "localhost,127.0.0.1"}
    urls = {"glare": glare_url, "repository": f"http://{REPOSITORY}/"}

    assert _load(tmp_path, environment, **urls) == [f"{APPLICATION} 1.2.0", f"{name} 1.0.0"]

    assert len(way.requests) == len(repository.requests) > 1


def _glare(url: str) -> GlareCatalog:
    session = ksa_session.Session(token_endpoint.Token(url, "me:my-project:member"), timeout=1)
    return GlareCatalog(session, project_id="my-project", endpoint=url, attempts=2)


def _http(url: str) -> HttpCatalog:
    return HttpCatalog(url, ksa_session.Session(timeout=1), attempts=2)


def _status(code: int) -> Callable[[Handler], None]:
    return lambda handler: handler.send_error(code)


def _hang(handler: Handler) -> None:
    threading.Event().wait(3)


@pytest.mark.parametrize(
    ("make", "scheme", "fault", "told", "tries"),
    [
        (make, scheme, _status(code), str(code), tries)
        for make in (_glare, _http)
        for scheme in ("http", "https")
        for code, tries in ((502, 2), (407, 1))
    ]
    + [(_glare, "https", _hang, "timed out", 2), (_http, "http", _hang, "timed out", 2)],
)
def test_a_proxy_that_fails_is_named(
    proxy: Proxy,
    make: Callable[[str], Catalog],
    scheme: str,
    fault: Callable[[Handler], None],
    told: str,
    tries: int,
    monkeypatch: pytest.MonkeyPatch,
    waits: list[float],
) -> None:
    monkeypatch.setenv(f"{scheme}_proxy", proxy.url.replace("//", "//me:secret@"))
    proxy.fault = fault

    with pytest.raises(loader.CatalogError) as failure:
        make(f"{scheme}://host.test").newest("org.some", VersionSpec.of("*"))

    assert f"through the proxy {proxy.url.removeprefix('http://')}: " in str(failure.value)
    assert told in str(failure.value)
    assert "secret" not in str(failure.value)
    assert isinstance(failure.value, loader.NoAnswer) == (tries > 1)
    assert len(proxy.requests) == tries
    assert len(waits) == tries - 1


@pytest.mark.parametrize("make", [_glare, _http], ids=["glare", "http"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there_is_named(
    make: Callable[[str], Catalog], scheme: str, monkeypatch: pytest.MonkeyPatch, waits: Any
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv(f"{scheme}_proxy", url)

        with pytest.raises(loader.NoAnswer, match=f"through the proxy {url}: .*refused"):
            make(f"{scheme}://host.test").newest("org.some", VersionSpec.of("*"))


def test_no_proxy_is_named_where_none_was_asked(
    monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(loader.NoAnswer) as failure:
        _http("http://127.0.0.1:9").newest("org.some", VersionSpec.of("*"))

    assert "proxy" not in str(failure.value)


@pytest.mark.parametrize("password", ["secret", "sec/ret", "sec#ret", "sec@ret", "sec?ret"])
@pytest.mark.parametrize("scheme", ["http", "HTTP", " http", "https"])
def test_a_password_is_not_shown_however_it_is_written(
    scheme: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"{scheme}://user:{password}@127.0.0.1:1")

    with pytest.raises(loader.CatalogError, match=r"through the proxy 127\.0\.0\.1:1: ") as failure:
        _glare("http://host.test").newest("org.some", VersionSpec.of("*"))

    assert password not in str(failure.value)
    assert "ret" not in str(failure.value).replace("retries", "")
