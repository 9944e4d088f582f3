# SPDX-License-Identifier: Apache-2.0

"""The loader behind a proxy, which the environment names."""

import os
import pathlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint

import loader
from glare_murano.glare import server
from loader.catalogs.glare import GlareCatalog
from tests import packages, processes
from tests.functional import proxy as proxies
from tests.functional.client import Client
from tests.functional.conftest import CORE, CORE_VERSION
from tests.functional.proxy import Handler, Proxy

# The name of a host that only the proxy can find.
GLARE = "glare.test"

_CONF = """\
[package_loader]
catalogs = glare

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


@pytest.fixture(scope="module")
def name(glare_url: str) -> str:
    """The name of a public application, which requires a package."""
    name = "org.test.proxied"
    admin = Client(glare_url, server.TOKEN)
    required = f"{name}.db"
    admin.publish(required, "1.0.0", packages.package(required), public=True)
    data = packages.package(name, "1.2.0", Require={required: "1"})
    admin.publish(name, "1.2.0", data, public=True)
    return name


@pytest.fixture
def proxy(glare_url: str) -> Iterator[Proxy]:
    """A proxy that leads to Glare."""
    with proxies.serving() as running:
        running.hosts[GLARE] = ("127.0.0.1", _port(glare_url))
        yield running


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def _load(
    folder: pathlib.Path, environment: dict[str, str], name: str, url: str, cafile: object = ""
) -> None:
    """Load the application and its requirement in a process."""
    folder.mkdir(exist_ok=True)
    conf = folder / "loader.conf"
    conf.write_text(_CONF.format(folder=folder, glare=url, cafile=cafile))
    command = ["-W", "ignore", "-m", "examples.load", "--config-file", str(conf), name, "1"]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=processes.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = [line.partition(":")[0] for line in done.stdout.splitlines()[:-1]]
    assert loaded == [f"{name} 1.2.0", f"{CORE} {CORE_VERSION}", f"{name}.db 1.0.0"]


def test_all_requests_go_through_the_proxy(proxy: Proxy, name: str, tmp_path: pathlib.Path) -> None:
    environment = {"http_proxy": proxy.url, "https_proxy": "http://127.0.0.1:9"}

    _load(tmp_path, environment, name, f"http://{GLARE}")

    # The core library, which every package requires, travels with the packages.
    assert len([request for request in proxy.requests if request.endswith("/archives")]) == 1
    assert len(proxy.requests) > 1


def test_tls_goes_through_the_proxy_and_is_checked_behind_it(
    proxy: Proxy,
    name: str,
    glare_url: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificate, key = proxies.certificate(tmp_path)
    environment = {"http_proxy": "http://127.0.0.1:9", "https_proxy": proxy.url}
    with proxies.secured(_port(glare_url), certificate, key) as port:
        _load(tmp_path, environment, name, f"https://127.0.0.1:{port}", cafile=certificate)

        assert set(proxy.requests) == {f"CONNECT 127.0.0.1:{port}"}
        proxy.requests.clear()
        monkeypatch.setenv("https_proxy", proxy.url)
        message = rf"through the proxy {proxy.url}: .*CERTIFICATE"
        with pytest.raises(loader.CatalogError, match=message):
            list(_glare(f"https://127.0.0.1:{port}").releases(name))
        assert proxy.requests == [f"CONNECT 127.0.0.1:{port}"]


def test_hosts_in_no_proxy_are_requested_directly(
    proxy: Proxy, name: str, glare_url: str, tmp_path: pathlib.Path
) -> None:
    environment = {"http_proxy": proxy.url, "no_proxy": "localhost,127.0.0.1"}

    _load(tmp_path / "direct", environment, name, glare_url)
    assert proxy.requests == []

    _load(tmp_path / "through", environment, name, f"http://{GLARE}")
    assert len(proxy.requests) > 1


def _glare(url: str) -> GlareCatalog:
    session = ksa_session.Session(token_endpoint.Token(url, "me:my-project:member"), timeout=1)
    return GlareCatalog(session, project_id="my-project", endpoint=url, attempts=2)


def _status(code: int) -> Callable[[Handler], None]:
    return lambda handler: handler.send_error(code)


def _hang(handler: Handler) -> None:
    threading.Event().wait(3)


@pytest.mark.parametrize(
    ("fault", "message", "tries"),
    [(_status(502), "502", 2), (_status(407), "407", 1), (_hang, "timed out", 2)],
    ids=["502", "407", "hangs"],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_fails_is_named(
    proxy: Proxy,
    scheme: str,
    fault: Callable[[Handler], None],
    message: str,
    tries: int,
    monkeypatch: pytest.MonkeyPatch,
    waits: list[float],
) -> None:
    monkeypatch.setenv(f"{scheme}_proxy", proxy.url.replace("//", "//me:secret@"))
    proxy.fault = fault

    with pytest.raises(loader.CatalogError) as failure:
        list(_glare(f"{scheme}://host.test").releases("org.some"))

    assert f"through the proxy {proxy.url.removeprefix('http://')}: " in str(failure.value)
    assert message in str(failure.value)
    assert "secret" not in str(failure.value)
    assert isinstance(failure.value, loader.CatalogUnavailable) == (tries > 1)
    assert len(proxy.requests) == tries
    assert len(waits) == tries - 1


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.usefixtures("waits")
def test_a_proxy_that_is_not_there_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv(f"{scheme}_proxy", url)

        with pytest.raises(loader.CatalogUnavailable, match=f"through the proxy {url}: .*refused"):
            list(_glare(f"{scheme}://host.test").releases("org.some"))


@pytest.mark.usefixtures("waits")
def test_no_proxy_is_named_for_a_direct_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(loader.CatalogUnavailable) as failure:
        list(_glare("http://127.0.0.1:9").releases("org.some"))

    assert "proxy" not in str(failure.value)


@pytest.mark.parametrize("password", ["secret", "sec/ret", "sec#ret", "sec@ret", "sec?ret"])
@pytest.mark.parametrize("scheme", ["http", "HTTP", " http", "https"])
def test_a_password_is_not_shown_however_it_is_written(
    scheme: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"{scheme}://user:{password}@127.0.0.1:1")

    with pytest.raises(loader.CatalogError, match=r"through the proxy 127\.0\.0\.1:1: ") as failure:
        list(_glare("http://host.test").releases("org.some"))

    assert password not in str(failure.value)
    assert "ret" not in str(failure.value).replace("retries", "")
