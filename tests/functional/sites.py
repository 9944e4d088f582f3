# SPDX-License-Identifier: Apache-2.0

"""Sites: one Glare each, made of a database, a store, and API processes.

The API processes are Glare's own command ``glare-api``, configured as the
documentation describes; a site of one host is the development server.
"""

import contextlib
import dataclasses
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest
import sqlalchemy

from glare_murano.glare import server
from tests import packages, processes
from tests.functional import databases, stores
from tests.functional.client import Client
from tests.functional.conftest import CORE, CORE_VERSION

# Glare imports eventlet, which says at each start that it is to be replaced.
_PYTHON = (sys.executable, "-W", "ignore", "-m")

_CONF = """\
[DEFAULT]
custom_artifact_types_modules = glare_murano.glare.artifact
enabled_artifact_types = murano
log_file = {folder}/glare.log
transport_url = fake://
use_stderr = false
bind_host = 127.0.0.1
workers = 1

[database]
connection = {connection}

[glance_store]
{store}

[oslo_policy]
policy_file = {etc}/policy.yaml

[paste_deploy]
config_file = {folder}/glare-paste.ini
"""


# For the parameters of a fixture: the databases that several API processes can share.
SHARED_DATABASES = tuple(
    pytest.param(kind, marks=pytest.mark.services) for kind in ("mariadb", "postgresql")
)


@dataclasses.dataclass(frozen=True)
class Site:
    """A Glare that runs.

    :param urls: where its API processes are reached.
    :param spool: where they put temporary files.
    """

    urls: Sequence[str]
    database: sqlalchemy.engine.Engine
    store: stores.Store
    spool: pathlib.Path

    def client(self, project: str, process: int = 0, role: str = "member") -> Client:
        """A client of somebody in a project, at one of the API processes."""
        return Client(self.urls[process % len(self.urls)], f"user:{project}:{role}")

    @property
    def folder(self) -> pathlib.Path:
        """The directory with its configuration and log."""
        return self.spool.parent

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``glare-murano-manage`` beside the API processes."""
        command = (*_PYTHON, "glare_murano.glare.manage")
        conf = self.folder / "glare.conf"
        return subprocess.run(
            [*command, "--config-file", conf, *arguments],
            cwd=processes.ROOT,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def leftovers(self) -> dict[str, set[str]]:
        """Return remains of requests by kind, without empty kinds; an idle site has none."""
        named = self._column("SELECT url FROM glare_artifact_blobs")
        stored = self.store.contents()
        found = {
            "locks": self._column("SELECT id FROM glare_artifact_locks"),
            "blobs that are not active": self._column(
                "SELECT artifact_id FROM glare_artifact_blobs WHERE status <> 'active'"
            ),
            "stored, but not named": stored - named,
            "named, but not stored": named - stored,
            "temporary files": self.temporary_files(),
        }
        return {kind: things for kind, things in found.items() if things}

    def temporary_files(self) -> set[str]:
        """The files in the spool, and those that are open there but have no name."""
        found = {str(path) for path in self.spool.iterdir()}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            # A process may end meanwhile.
            with contextlib.suppress(OSError):
                for link in process.joinpath("fd").iterdir():
                    with contextlib.suppress(OSError):
                        opened = link.readlink()
                        found |= {str(opened)} if self.spool in opened.parents else set()
        return found

    def _column(self, statement: str) -> set[str]:
        with self.database.connect() as connection:
            return {row[0] for row in connection.exec_driver_sql(statement)}


@contextlib.contextmanager
def of_processes(
    folder: pathlib.Path, connection: str, store: stores.Store, number: int = 2, options: str = ""
) -> Iterator[Site]:
    """A number of ``glare-api`` over one database and one store.

    :param options: more sections of ``glare.conf``.
    """
    (folder / "glare.conf").write_text(configuration(folder, connection, store) + options)
    (folder / "glare-paste.ini").write_text(server.trusting_paste())
    create_tables(folder)
    databases.settle(connection)
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(api(folder, f"api{index}")) for index in range(number)]
        yield stack.enter_context(_site(folder, urls, connection, store))


def configuration(folder: pathlib.Path, connection: str, store: stores.Store) -> str:
    """Return the text of ``glare.conf``; its paste file is ``glare-paste.ini`` in the folder."""
    return _CONF.format(folder=folder, etc=server.ETC, connection=connection, store=store.options)


def create_tables(folder: pathlib.Path) -> None:
    """Create Glare's tables by the configuration in a folder."""
    command = (*_PYTHON, "glare.cmd.db_manage", "--config-file", folder / "glare.conf", "upgrade")
    subprocess.run(command, cwd=processes.ROOT, check=True, capture_output=True)


@contextlib.contextmanager
def of_database(
    kind: str, folder: pathlib.Path, number: int = 2, options: str = ""
) -> Iterator[Site]:
    """A site over a database of a kind, such as ``mariadb``."""
    with (
        getattr(databases, kind)(folder) as connection,
        stores.files(folder) as store,
        of_processes(folder, connection, store, number, options) as site,
    ):
        yield site


@contextlib.contextmanager
def shared(kind: str, folder: pathlib.Path) -> Iterator[Site]:
    """The development server, or two API processes over a database that can be shared."""
    with development(folder) if kind == "development" else of_database(kind, folder) as site:
        yield site


def fixture(
    opened: Callable[..., AbstractContextManager[Site]], kinds: Sequence[object], **options: Any
) -> Any:
    """Make a fixture of a module that opens a site of each kind.

    :param opened: a function of this module that takes a kind and a folder.
    """

    @pytest.fixture(scope="module", params=kinds)
    def site(
        request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Site]:
        with opened(request.param, tmp_path_factory.mktemp(request.param), **options) as site:
            yield site

    return site


@contextlib.contextmanager
def api(folder: pathlib.Path, name: str) -> Iterator[str]:
    """An API process of a site, which is killed at the end; give its URL."""
    port = processes.free_port()
    own = folder / f"{name}.conf"
    own.write_text(f"[DEFAULT]\nbind_port = {port}\n")
    command = (*_PYTHON, "glare.cmd.api", "--config-file", folder / "glare.conf")
    with _listening((*command, "--config-file", own), folder, port) as url:
        yield url


@contextlib.contextmanager
def development(folder: pathlib.Path) -> Iterator[Site]:
    """The development server, with SQLite and a directory of files."""
    port = processes.free_port()
    command = (*_PYTHON, "glare_murano.glare.server", "--state-dir", folder, "--port", port)
    with (
        _listening(command, folder, port) as url,
        databases.sqlite(folder) as connection,
        stores.files(folder) as store,
        _site(folder, [url], connection, store) as site,
    ):
        yield site


@contextlib.contextmanager
def _listening(command: Sequence[object], folder: pathlib.Path, port: int) -> Iterator[str]:
    spool = _spool(folder)
    spool.mkdir(exist_ok=True)
    output = folder / f"{port}.out"
    with processes.listening(command, port, output, {"TMPDIR": str(spool)}):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def _site(
    folder: pathlib.Path, urls: Sequence[str], connection: str, store: stores.Store
) -> Iterator[Site]:
    database = sqlalchemy.create_engine(connection)
    core = packages.package(CORE, CORE_VERSION)
    try:
        Client(urls[0], server.TOKEN).publish(CORE, CORE_VERSION, core, public=True)
        yield Site(urls, database, store, _spool(folder))
    finally:
        database.dispose()


def _spool(folder: pathlib.Path) -> pathlib.Path:
    return folder / "tmp"
