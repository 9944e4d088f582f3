# SPDX-License-Identifier: Apache-2.0

"""The real Glance on this host, in the environment that ``make glance`` builds.

It is configured by the files of this project that an operator installs. Without Keystone,
a filter of the tests trusts each token.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping

import sqlalchemy
from sqlalchemy.engine import make_url

from tests import prerequisites, processes
from tests.functional import databases, keystone

ETC = processes.ROOT / "glare_murano" / "glance" / "etc"
CONTAINER_FORMATS = "bare,ovf,docker,compressed,murano"

# In seconds: a test that kills a process waits for it.
IMPORT_TIMEOUT = 2

_FILES = ("glance-image-import.conf", "glance-policy.yaml", "property-protections.conf")
_PASTE = "glance-api-paste.ini"
_KEYSTONE_FILTER = "keystonemiddleware.auth_token:filter_factory"
_TRUSTING_FILTER = "tests.functional.glance.trusted_tokens:filter_factory"

_NO_KEYSTONE = "auth_type = password"

_CONF = """\
[DEFAULT]
log_file = {folder}/glance-{port}.log
enabled_backends = files:file,web:http
show_multiple_locations = True
limit_param_default = 100
property_protection_file = {etc}/property-protections.conf
worker_self_reference_url = http://127.0.0.1:{own}
{options}

[database]
connection = {database}
sqlite_synchronous = False

[glance_store]
default_backend = files

[murano_packages]
provided_packages = org.test.plugin:1.4.0
provided_classes = org.test.plugin.Mail
import_timeout = {import_timeout}

[import_filtering_opts]
allowed_hosts = [127.0.0.1]
allowed_ports = []

[files]
filesystem_store_datadir = {folder}/images

[oslo_concurrency]
lock_path = {folder}

[os_glance_staging_store]
filesystem_store_datadir = {folder}/staging

[os_glance_tasks_store]
filesystem_store_datadir = {folder}/tasks

[image_format]
container_formats = {formats}

[oslo_messaging_notifications]
driver = log

[oslo_policy]
policy_file = {etc}/glance-policy.yaml

[paste_deploy]
flavor = keystone
config_file = {folder}/{paste}

[keystone_authtoken]
{keystone}
"""

# A transaction in SQLite fails at once if it reads, and then writes while another one does:
# many of Glance's own requests and imports would fail so. If each locks the database as it
# begins, one waits for the other. The application takes the command line for its own.
_SERVER = """\
import os
import pathlib
import sys
import sqlalchemy
import waitress
from sqlalchemy import event
not_locking = pathlib.Path(os.environ["OS_GLANCE_CONFIG_DIR"], "not-locking")
@event.listens_for(sqlalchemy.engine.Engine, "before_cursor_execute", retval=True)
def lock_at_once(connection, cursor, statement, parameters, context, many):
    begins = statement == "BEGIN" and not not_locking.exists()
    return "BEGIN IMMEDIATE" if begins else statement, parameters
port = sys.argv.pop()
from glance.wsgi.api import application
waitress.serve(application, host="127.0.0.1", port=port, threads=8)
"""

# Starts with the configuration of each directory, as WSGI servers do, and writes the error there.
_STARTS = """\
import os
import pathlib
import sys
from glance.api.v2 import router
from glance.common import wsgi_app
from glare_murano.glance.api import image_requests, package_application
for directory in sys.argv[1:]:
    if not os.fork():
        os.environ["OS_GLANCE_CONFIG_DIR"] = directory
        try:
            from glance.wsgi.api import application
            error = ""
        except Exception as failed:
            error = f"{type(failed).__name__}: {failed}"
        pathlib.Path(directory, "error").write_text(error)
        os._exit(0)
    os.wait()
"""

# The SQLite file in which Glance has made its tables, if any test has needed it.
_tables: list[bytes] = []

Change = Callable[[pathlib.Path], object]
Database = Callable[[pathlib.Path], contextlib.AbstractContextManager[str]]


class Process:
    """A process of Glance, which can be killed and started again.

    :ivar pid: its number, once it runs.
    """

    def __init__(self, etc: pathlib.Path, port: int, output: pathlib.Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._etc, self._port, self._output = etc, port, output
        self._stack = contextlib.ExitStack()
        self.pid = 0

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = (
            prerequisites.glance() / "python",
            "-W",
            "ignore",
            "-c",
            _SERVER,
            self._port,
        )
        environment = {
            "OS_GLANCE_CONFIG_DIR": str(self._etc),
            "PYTHONPATH": str(processes.ROOT),
        }
        running = processes.listening(command, self._port, self._output, environment)
        self.pid = self._stack.enter_context(running).pid

    def stop_locking(self) -> None:
        """Let its transactions in SQLite begin without a lock, as those of a plain Glance do."""
        (self._etc / "not-locking").touch()

    def processor_seconds(self) -> float:
        """Return the processor time that it has taken so far."""
        # The fields after the name of the program, which may have blanks; see proc(5).
        stat = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def peak_memory(self) -> int:
        """Return the most memory that it has had at once, in bytes."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        (kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        return int(kib) * 1024

    def kill(self) -> None:
        """Kill it with all that it has started."""
        self._stack.close()


@dataclasses.dataclass(frozen=True)
class Glance:
    """A Glance that runs.

    :param processes: they share database, store and staging area.
    :param folder: all that it keeps: ``images``, ``staging`` and its logs.
    :param database: the URL of its database.
    """

    processes: tuple[Process, ...]
    folder: pathlib.Path
    database: str

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of all processes."""
        return tuple(process.url for process in self.processes)

    @property
    def url(self) -> str:
        """The URL of the first process."""
        return self.urls[0]

    @property
    def staging(self) -> pathlib.Path:
        """The directory of staged archives."""
        return self.folder / "staging"

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlalchemy.engine.Connection]:
        """Begin a transaction in the database, and commit it at the end."""
        engine = sqlalchemy.create_engine(self.database)
        with engine.begin() as connection:
            yield connection
        engine.dispose()

    def log(self) -> str:
        """Return what all processes have logged."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("glance-*.log")))


def wait_for_import_timeout() -> None:
    """Wait until an import without progress may be begun anew."""
    time.sleep(IMPORT_TIMEOUT)


@contextlib.contextmanager
def running(
    folder: pathlib.Path,
    database: Database = databases.sqlite,
    identity: keystone.Keystone | None = None,
    count: int = 1,
    options: str = "",
    shares_url: bool = False,
    change: Change = lambda _: None,
) -> Iterator[Glance]:
    """Run it, with all that it keeps in a folder.

    :param identity: the Keystone that authenticates; by default each token is trusted.
    :param count: how many processes share database, store and staging area.
    :param options: of the group ``[DEFAULT]``, beside those of the tests.
    :param shares_url: whether all processes have the same URL for requests to one another.
    :param change: changes the configuration files in a folder before a process starts.
    """
    prerequisites.glance()
    for name in ("images", "staging", "tasks"):
        (folder / name).mkdir()
    (folder / _PASTE).write_text(_paste(identity))
    ports = [processes.free_port() for _ in range(count)]
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(database(folder))
        for port in ports:
            own = ports[0] if shares_url else port
            _configure(folder / f"etc-{port}", folder, (port, own), url, identity, options)
            change(folder / f"etc-{port}")
        if database is databases.sqlite:
            _copy_tables(folder / f"etc-{ports[0]}", url)
        else:
            manage(folder / f"etc-{ports[0]}", "db", "sync")
        started = tuple(
            Process(folder / f"etc-{port}", port, folder / f"{port}.out") for port in ports
        )
        for process in started:
            stack.callback(process.kill)
            process.start()
        yield Glance(started, folder, url)


def start_each(folder: pathlib.Path, changes: Mapping[str, Change]) -> dict[str, str]:
    """Start it with each of several configurations, and return the errors by their names.

    An error is empty if it starts.
    """
    (folder / _PASTE).write_text(_paste(None))
    for name in ("images", "staging", "tasks"):
        (folder / name).mkdir()
    directories = {name: folder / name for name in changes}
    for name, etc in directories.items():
        _configure(etc, folder, (0, 0), "sqlite://", None, "")
        changes[name](etc)
    subprocess.run(
        [prerequisites.glance() / "python", "-W", "ignore", "-c", _STARTS, *directories.values()],
        env={**os.environ, "PYTHONPATH": str(processes.ROOT)},
        check=True,
    )
    return {name: (etc / "error").read_text() for name, etc in directories.items()}


def _copy_tables(etc: pathlib.Path, url: str) -> None:
    """Give a new SQLite database the tables that Glance has made before, which takes it long."""
    file = pathlib.Path(str(make_url(url).database))
    if not _tables:
        manage(etc, "db", "sync")
        _tables.append(file.read_bytes())
    file.write_bytes(_tables[0])


def _configure(
    etc: pathlib.Path,
    folder: pathlib.Path,
    ports: tuple[int, int],
    database: str,
    identity: keystone.Keystone | None,
    options: str,
) -> None:
    """Write the configuration of a process, as the documentation describes.

    :param ports: its port, and that of its URL for other processes.
    """
    etc.mkdir()
    for name in _FILES:
        shutil.copy(ETC / name, etc)
    conf = _CONF.format(
        etc=etc,
        import_timeout=IMPORT_TIMEOUT,
        folder=folder,
        port=ports[0],
        own=ports[1],
        database=database,
        paste=_PASTE,
        formats=CONTAINER_FORMATS,
        options=options,
        keystone=identity.middleware if identity else _NO_KEYSTONE,
    )
    (etc / "glance-api.conf").write_text(conf)


def _paste(identity: keystone.Keystone | None) -> str:
    text = (ETC / _PASTE).read_text()
    return text if identity else trusting(text)


def trusting(paste: str) -> str:
    """Return a paste file of Glance's that trusts each token, instead of Keystone."""
    return paste.replace(_KEYSTONE_FILTER, _TRUSTING_FILTER)


def manage(etc: pathlib.Path, *arguments: str) -> None:
    """Run a command of ``glance-manage`` to its end."""
    program = prerequisites.glance() / "glance-manage"
    command = [str(program), "--config-file", str(etc / "glance-api.conf"), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{command}: {finished.stdout}{finished.stderr}"
