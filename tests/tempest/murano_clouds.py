# SPDX-License-Identifier: Apache-2.0

"""Three clouds for Murano's own tests: plain Murano, and Murano over Glare and over Glance.

Each has a real Keystone, murano-api, engine and service broker, from environments that ``make
tempest`` builds. The three programs of Murano share one ``murano.conf``, and the broker has a file
beside it, as the page on the broker says.
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from tests import prerequisites, processes
from tests.functional import databases, installation, keystone
from tests.functional.glance import service as glance
from tests.integration import services

ENVIRONMENTS = prerequisites.CACHE / "tempest"

_SAMPLES = processes.ROOT / "loader" / "engine" / "etc"
_STOCK_SAMPLES = prerequisites.MURANO / "etc" / "murano"
_CACHE = "/var/cache/murano/packages"
_CORE_LIBRARY_VERSION = "0.16.0"
_FROM_GLANCE = """
[package_loader]
catalogs = directory,glance
"""

_MURANO_CONF = """\
[DEFAULT]
bind_host = 127.0.0.1
bind_port = {port}
transport_url = {transport_url}

[database]
connection = {database}

[engine]
engine_workers = 1

[keystone_authtoken]
{middleware}

[murano]
api_workers = 1

[murano_auth]
{middleware}
www_authenticate_uri = {keystone}

[oslo_messaging_notifications]
driver = messagingv2

{settings}
"""

_BROKER_CONF = """\
[cfapi]
auth_url = {keystone}
bind_host = 127.0.0.1
bind_port = {port}
project_domain_name = Default
tenant = admin
user_domain_name = Default

[database]
connection = {database}
"""

Services = Callable[[pathlib.Path], contextlib.AbstractContextManager[keystone.Keystone]]


@dataclasses.dataclass(frozen=True)
class MuranoCloud:
    """A kind of cloud.

    :param name: its name in ``expected.yaml``.
    :param environment: the environment with the programs of Murano.
    :param samples: the directory with the pipeline of murano-api.
    :param services: runs Keystone, and the service that keeps the packages.
    :param settings: the settings of this project in ``murano.conf``; empty for plain Murano.
    """

    name: str
    environment: pathlib.Path
    samples: pathlib.Path
    services: Services
    settings: str = ""

    @contextlib.contextmanager
    def running(self, folder: pathlib.Path) -> Iterator[keystone.Keystone]:
        """Run all services, with the core library published.

        :param folder: an empty directory for all files and logs.
        """
        with contextlib.ExitStack() as stack:
            identity = stack.enter_context(self.services(folder))
            api, broker = processes.free_port(), processes.free_port()
            identity.add_service("murano", "application-catalog", f"http://127.0.0.1:{api}")
            identity.add_service("murano-cfapi", "service-broker", f"http://127.0.0.1:{broker}")
            queue = stack.enter_context(services.message_queue())
            own, of_broker = (stack.enter_context(databases.mariadb(folder)) for _ in range(2))
            shared = folder / "murano.conf"
            conf = _MURANO_CONF.format(
                port=api,
                transport_url=queue,
                database=own,
                keystone=identity.url,
                middleware=identity.middleware,
                settings=self.settings.replace(_CACHE, str(folder / "packages-cache")),
            )
            shared.write_text(conf)
            broker_conf = folder / "murano-cfapi.conf"
            conf = _BROKER_CONF.format(keystone=identity.url, port=broker, database=of_broker)
            broker_conf.write_text(conf)
            shutil.copy(self.samples / "murano-paste.ini", folder)
            shutil.copy(_STOCK_SAMPLES / "murano-cfapi-paste.ini", folder)
            self._run("murano-db-manage", shared, action="upgrade")
            self._run("murano-cfapi-db-manage", shared, broker_conf, action="upgrade")
            for program, port, files in (
                ("murano-api", api, (shared,)),
                ("murano-cfapi", broker, (shared, broker_conf)),
            ):
                output = folder / f"{program}.out"
                command = self._command(program, *files)
                stack.enter_context(processes.listening(command, port, output))
            self._publish_core_library(shared, identity)
            engine = "murano-engine" if self._is_plain else "murano-glare-engine"
            command = self._command(engine, shared)
            stack.enter_context(processes.running(command, folder / "murano-engine.out"))
            processes.wait_until(
                lambda: services.consumers(queue, "tasks"), "the start of the engine"
            )
            yield identity

    def _publish_core_library(self, conf: pathlib.Path, identity: keystone.Keystone) -> None:
        """Publish the core library as an operator does."""
        libraries = sorted(map(str, prerequisites.core_library().glob("io.murano*")))
        if self._is_plain:
            for library in libraries:
                self._run("murano-manage", conf, action=f"import-package {library}")
            return
        command = [str(installation.BIN / "openstack"), "--os-murano-catalog", self.name]
        command += ["murano", "package", "publish", "--public"]
        command += ["--as-version", _CORE_LIBRARY_VERSION, *libraries]
        subprocess.run(command, check=True, env=administrator(identity), stdout=subprocess.DEVNULL)

    @property
    def _is_plain(self) -> bool:
        return not self.settings

    def _command(self, program: str, *files: pathlib.Path) -> list[Any]:
        path = self.environment / "bin" / program
        return [path, *(f"--config-file={file}" for file in files)]

    def _run(self, program: str, *files: pathlib.Path, action: str) -> None:
        command = [*map(str, self._command(program, *files)), *action.split(" ", 1)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def administrator(identity: keystone.Keystone) -> dict[str, str]:
    """Return the environment of a command with the credentials of an administrator."""
    credentials = identity.credentials().items()
    return {
        **os.environ,
        **{f"OS_{name.upper()}": value for name, value in credentials},
        "OS_CLIENT_CONFIG_FILE": os.devnull,
        "OS_IDENTITY_API_VERSION": "3",
    }


@contextlib.contextmanager
def _plain(folder: pathlib.Path) -> Iterator[keystone.Keystone]:
    with keystone.running(folder) as identity:
        _add_unused_glance(identity)
        yield identity


@contextlib.contextmanager
def _with_glare(folder: pathlib.Path) -> Iterator[keystone.Keystone]:
    with installation.installed(folder) as installed:
        _add_unused_glance(installed.identity)
        yield installed.identity


@contextlib.contextmanager
def _with_glance(folder: pathlib.Path) -> Iterator[keystone.Keystone]:
    own = folder / "glance"
    own.mkdir()
    with (
        keystone.running(folder) as identity,
        glance.running(own, databases.mariadb, identity) as running,
    ):
        identity.add_service("glance", "image", running.url)
        yield identity


def _add_unused_glance(identity: keystone.Keystone) -> None:
    # The client of Murano warns if the catalogue has no Glance, and the tests read its output.
    identity.add_service("glance", "image", "http://127.0.0.1:1")


_OURS = ENVIRONMENTS / "ours"
_SETTINGS = (_SAMPLES / "murano.conf").read_text()

CLOUDS = {
    cloud.name: cloud
    for cloud in (
        MuranoCloud("stock", ENVIRONMENTS / "stock", _STOCK_SAMPLES, _plain),
        MuranoCloud("glare", _OURS, _SAMPLES, _with_glare, _SETTINGS),
        MuranoCloud("glance", _OURS, _SAMPLES, _with_glance, f"{_SETTINGS}{_FROM_GLANCE}"),
    )
}
