# SPDX-License-Identifier: Apache-2.0

"""The real Murano engine in the test process, the real Glare in another."""

import contextlib
import gc
import itertools
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import oslo_messaging
import pytest
from murano.common import config as murano_config

from examples import demo
from loader import config
from loader.catalogs import options
from tests import packages, prerequisites
from tests.integration import example, murano_pl, publish, services
from tests.plugins import Site

_counter = itertools.count()


@pytest.fixture(scope="session")
def core_library() -> pathlib.Path:
    return prerequisites.core_library()


@pytest.fixture(scope="session")
def glare_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Glare, beside which the package type of the examples is installed."""
    work = tmp_path_factory.mktemp("state")
    installed = tmp_path_factory.mktemp("site")
    example.install(Site(installed))
    (work / "glare").mkdir(mode=0o700)
    option = "[artifact_type:murano]\nprovided_packages = test-adder:1.4.2\n"
    (work / "glare" / "local.conf").write_text(option)
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", f"{installed}:{example.FOLDER}", prepend=os.pathsep)
            url = stack.enter_context(demo.DevelopmentServer(work))
        yield url


@pytest.fixture(scope="session")
def glare(glare_url: str) -> Any:
    """A client that publishes."""
    return publish.client_of(glare_url, demo.PUBLISHER_TOKEN)


@pytest.fixture(scope="session")
def tenant(glare_url: str) -> Any:
    """A client that publishes for the project of the tasks."""
    return publish.client_of(glare_url, demo.USER_TOKEN)


@pytest.fixture(scope="session")
def engine_conf(
    glare_url: str, glare: Any, core_library: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The engine's configuration, with the core library and the examples published."""
    demo.configure_engine(tmp_path_factory.mktemp("engine"), demo.glare_options(glare_url))
    folders = [*core_library.glob("io.murano*"), *demo.PACKAGES.glob("*/*/")]
    publish.publish(glare, folders, public=True)
    for known in (config.OPTIONS, config.SERVICE_OPTIONS):
        options.register(murano_config.CONF, known)
    # In cells, a test takes several times as long: after each change of an option, another warm
    # process starts. See "make test-cells".
    for option in ("request_cells", "task_cells"):
        murano_config.CONF.set_default(option, "CELLS" in os.environ, "engine")
    # This registers the option transport_url.
    oslo_messaging.TransportURL.parse(murano_config.CONF)
    # The engine collects garbage in every task; the modules imported so far are not garbage.
    gc.freeze()
    return murano_config.CONF


@pytest.fixture(scope="session")
def language(engine_conf: Any, glare: Any) -> None:
    """The packages that show the MuranoPL reference, published."""
    manifests = pathlib.Path(__file__).with_name("language").rglob("manifest.yaml")
    publish.publish(glare, [manifest.parent for manifest in sorted(manifests)], public=True)


@pytest.fixture(scope="module")
def engine(language: None) -> Iterator[murano_pl.Engine]:
    """An engine with the packages that show the MuranoPL reference."""
    with murano_pl.running() as running:
        yield running


@pytest.fixture
def conf(engine_conf: Any) -> Iterator[Any]:
    """The same, to be changed by one test."""
    yield engine_conf
    for group, names in (
        ("engine", ("package_loader", "packages_service", "request_cells", "task_cells")),
        ("engine", ("max_project_request_cells", "max_request_cells", "request_seconds")),
        ("engine", ("max_green_threads", "max_task_memory")),
        ("engine", ("max_task_cells", "max_project_task_cells", "task_seconds")),
        ("engine", ("max_messages", "share_agent_password")),
        ("rabbitmq", ("ca_certs", "host", "login", "password")),
        (None, ("transport_url",)),
        ("murano", ("dsl_iterators_limit",)),
        ("engine", ("packages_cache", "enable_packages_cache")),
        ("engine", ("load_packages_from", "class_configs", "decrypt_data", "reachable_endpoints")),
        ("murano_auth", ("www_authenticate_uri",)),
        ("package_loader", ("max_subclasses", "reserved_names_file")),
    ):
        for option in names:
            engine_conf.clear_override(option, group)


@pytest.fixture
def queue() -> Iterator[str]:
    """The transport URL of a virtual host of RabbitMQ."""
    with services.message_queue() as url:
        yield url


@pytest.fixture
def name() -> str:
    """The name of a package that no other test uses."""
    return f"org.test.package{next(_counter)}"


@pytest.fixture
def publish_package(glare: Any, tmp_path: pathlib.Path) -> Callable[..., None]:
    """Publish a small package for every project."""

    def publish_files(name: str, version: str, **keys: Any) -> None:
        folder = packages.write(tmp_path / name / version, packages.content(name, version, **keys))
        publish.publish(glare, [folder], public=True)

    return publish_files


@pytest.fixture
def write_class(conf: Any, tmp_path: pathlib.Path) -> Callable[..., None]:
    """Write a package with the class ``NAME.Thing`` where the engine finds it before Glare."""
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")

    def write(name: str, code: str, version: str = "1.0.0", **keys: Any) -> None:
        content = packages.content(name, version, code=f"Name: {name}.Thing\n{code}", **keys)
        packages.write(tmp_path / name / version, content)

    return write
