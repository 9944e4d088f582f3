# SPDX-License-Identifier: Apache-2.0

"""The command ``murano-glare-engine``, run as in a cloud.

The engine, Glare and RabbitMQ are the real ones. The tests play murano-api, to see the whole
model, and to have engines of their own; ``test_cloud.py`` uses the real one.
"""

import contextlib
import dataclasses
import pathlib
import re
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from examples import demo
from loader import Cache
from tests.integration import services

pytestmark = pytest.mark.services

DATABASE = "org.example.db"
WIKI = "org.example.wiki"
SHOP = "org.example.shop"

_STOP_SECONDS = 30


@dataclasses.dataclass
class Catalog:
    """A Glare in which everything is published."""

    url: str
    artifacts: dict[str, Any]


@dataclasses.dataclass
class Service:
    """An engine, and its murano-api."""

    engine: services.Engine
    api: services.MuranoApi


@pytest.fixture(scope="module", autouse=True)
def _clean_end() -> Iterator[None]:
    # SIGTERM ends a test run as Ctrl-C does, so that fixtures clean up.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with demo.DevelopmentServer(tmp_path_factory.mktemp("glare")) as url:
        yield Catalog(url, services.publish_everything(url))


@pytest.fixture(scope="module")
def service(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("engine"), catalog) as service:
        yield service


@pytest.fixture(scope="module")
def deployed(service: Service) -> Any:
    """The engine's result of the deployment of an environment."""
    model = environment()
    return service.api.run(model, services.environment_id(model), "deploy")


@contextlib.contextmanager
def serving(folder: pathlib.Path, catalog: Catalog, **options: Any) -> Iterator[Service]:
    """Run an engine on a message queue of its own."""
    with (
        services.message_queue() as url,
        services.murano_engine(folder, url, catalog.url, **options) as engine,
        services.MuranoApi(url, engine) as api,
    ):
        yield Service(engine, api)


@contextlib.contextmanager
def downloading(cache_folder: pathlib.Path, digest: str) -> Iterator[None]:
    """Hold a cache's download of a package, as a slow process does."""
    started, finish = threading.Event(), threading.Event()

    def fetch() -> Iterator[bytes]:
        started.set()
        finish.wait()
        raise ConnectionAbortedError("the other process gives up")
        yield b""

    def download() -> None:
        with contextlib.suppress(Exception):
            Cache(cache_folder).package(digest, fetch)

    thread = threading.Thread(target=download)
    thread.start()
    started.wait()
    try:
        yield
    finally:
        finish.set()
        thread.join()


def environment() -> dict[str, Any]:
    """Return an environment with a wiki and a shop, as murano-api sends it to be deployed."""
    return demo.Environment.new(f"environment-{uuid.uuid4().hex}").model


def succeeded(result: Any) -> bool:
    return not result["action"]["isException"]


def test_deployment_returns_the_pins_in_the_model(deployed: Any) -> None:
    assert succeeded(deployed), deployed["action"]
    assert deployed["model"]["SystemData"]["Packages"] == {
        "io.murano": ["0.0.0"],
        DATABASE: ["1.3.0", "2.0.0"],
        SHOP: ["1.0.0"],
        WIKI: ["1.1.0"],
    }


def test_a_task_that_is_too_large_fails_and_keeps_its_model(service: Service) -> None:
    model = environment()
    model["Objects"]["?"]["padding"] = 5 * 1024**2 * "x"

    result = service.api.run(model, services.environment_id(model), "deploy")

    assert "at most 5242880 are allowed" in result["action"]["result"]["message"]
    assert result["model"] == model


def test_every_package_comes_through_the_loader(service: Service, deployed: Any) -> None:
    loaded = re.findall(
        r"Loaded (\d+) packages: \d+ requests, (\d+) archives \(\d+ bytes\) downloaded",
        service.engine.log,
    )
    assert loaded[0] == ("5", "5")


def test_worker_serves_others_while_another_process_downloads(
    catalog: Catalog, tmp_path: pathlib.Path
) -> None:
    digest = catalog.artifacts[f"{WIKI} 1.1.0"]["archive"]["sha256"]
    model = environment()
    with serving(tmp_path, catalog) as service:
        with downloading(service.engine.packages_cache, digest):
            service.api.start(model, services.environment_id(model), "deploy")
            stored = service.engine.packages_cache / "archives"
            # The core library and the wiki's requirements; the wiki's own archive is locked.
            services.wait_until(lambda: len(list(stored.iterdir())) >= 2, "the others")
            time.sleep(0.5)
            assert f"Package {WIKI} 1.1.0" not in service.engine.log
            answer = service.api.call_static_action(f"{DATABASE}.Database", "1", "version")
            assert answer == "1.3.0"
        result = service.api.result(model)
        assert succeeded(result), result["action"]


def test_murano_s_own_loader_can_be_chosen(catalog: Catalog, tmp_path: pathlib.Path) -> None:
    with serving(tmp_path, catalog, package_loader="murano") as service:
        model = environment()
        result = service.api.run(model, services.environment_id(model), "deploy")
        # Neither murano-api nor Keystone is running.
        assert not succeeded(result)
        assert "murano/engine/package_loader.py" in result["action"]["result"]["details"]
        assert "packages: " not in service.engine.log
        assert not service.engine.packages_cache.joinpath("packages").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_ends_the_engine_and_its_workers(
    catalog: Catalog, tmp_path: pathlib.Path, workers: int
) -> None:
    with serving(tmp_path, catalog, workers=workers) as service:
        assert service.api.call_static_action(f"{DATABASE}.Database", "2", "version") == "2.0.0"
        assert service.engine.terminate(_STOP_SECONDS) == 0
        assert not service.engine.has_processes()
