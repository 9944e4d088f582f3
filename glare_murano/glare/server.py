# SPDX-License-Identifier: Apache-2.0

"""Run the development server: Glare with the artifact type ``murano`` on one host.

The server runs Glare's own WSGI application on the loopback interface, with SQLite and a directory
of files. All data is in a state directory, and stays there for the next start. Glare trusts every
client (``trustedauth``), so the server is not for production.
"""

import argparse
import contextlib
import datetime
import fcntl
import os
import pathlib
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO
from warnings import filterwarnings

# Glare imports eventlet, which warns at each start that it is deprecated.
filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
# SQLite converts decimal numbers to floats, and Glare's numbers are small enough for this.
filterwarnings("ignore", message=r"Dialect sqlite\+pysqlite does \*not\* support Decimal")

import waitress
import yaml
from glare.common import config as glare_config
from glare.common import utils as glare_utils
from glare.db.migration import migration
from glare.db.sqlalchemy import api as database
from oslo_config import cfg
from oslo_log import log as logging
from waitress import wasyncore

from glare_murano import fields
from glare_murano.glare import uploads
from glare_murano.glare.db import transactions
from glare_murano.package.errors import GlareMuranoError

LOG = logging.getLogger(__name__)

HOST = "127.0.0.1"
DEFAULT_PORT = 9494
_THREADS = 8
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The directory with the configuration files for operators.
ETC = pathlib.Path(__file__).with_name("etc")
_CLOUD = "glare-murano"
TOKEN = "admin:admin:admin"  # noqa: S105 - the server accepts any token

_CONF = """\
# Overwritten at every start. Put your own settings into local.conf beside this
# file, which is read after it.
[DEFAULT]
custom_artifact_types_modules = glare_murano.glare.artifact
enabled_artifact_types = {type_name}
log_file = {state}/glare.log
transport_url = fake://
use_stderr = false

[database]
connection = sqlite:///{state}/glare.sqlite?timeout=60
# Do not wait for the disk. Only a crash of the operating system can damage the database.
sqlite_synchronous = false

[glance_store]
default_store = file
stores = file
filesystem_store_datadir = {state}/blobs

[oslo_policy]
policy_file = {etc}/policy.yaml

[paste_deploy]
config_file = {state}/glare-paste.ini
"""

_TRUSTED_AUTH = """
# For development only: a token is user:project:roles, and is not checked.
[filter:trustedauth]
paste.filter_factory = glare.api.middleware.context:TrustedAuthMiddleware.factory
"""


class ServerError(GlareMuranoError):
    """The server cannot start; the message has one line."""


class Server:
    """A server that listens for requests to Glare.

    A process has at most one server, since Glare keeps global state.

    :ivar url: the URL of the server.
    """

    def __init__(self, application: Any, port: int) -> None:
        self._sockets: dict[int, Any] = {}
        self._stopping = threading.Event()
        try:
            self._server = waitress.create_server(
                application, map=self._sockets, host=HOST, port=port, threads=_THREADS
            )
        except OSError as error:
            raise ServerError(
                f"cannot listen on {HOST}:{port}: {error.strerror or error}; "
                f"choose another port with --port"
            ) from error
        self.url = f"http://{HOST}:{self._server.effective_port}"

    def run(self) -> None:
        """Answer requests until ``close`` is called."""
        try:
            while not self._stopping.is_set():
                wasyncore.loop(timeout=1, map=self._sockets, count=1)
        finally:
            self._server.task_dispatcher.shutdown()
            wasyncore.close_all(self._sockets)

    def close(self) -> None:
        """Make ``run`` wait some seconds for the running requests, and then return.

        Another thread or a signal handler can call this method.
        """
        self._stopping.set()
        self._server.pull_trigger()


@contextlib.contextmanager
def prepared(state_dir: pathlib.Path) -> Iterator[Any]:
    """Create or migrate a state directory, and yield Glare's WSGI application.

    The directory is locked until the ``with`` statement ends.

    :raises ServerError: if the directory cannot be used, or another server uses it.
    """
    state = state_dir.expanduser().resolve()
    if unusable := sorted(set("$%?\n") & set(str(state))):
        raise ServerError(
            f"cannot use {state}: Glare's configuration cannot hold "
            f"{' '.join(map(repr, unusable))} in a path"
        )
    try:
        for directory in (state, state / "blobs"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _lock(state)
        conf = _CONF.format(state=state, etc=ETC, type_name=fields.TYPE_NAME)
        (state / "glare.conf").write_text(conf)
        (state / "glare-paste.ini").write_text(trusting_paste())
    except FileExistsError as error:
        raise ServerError(f"cannot use {state}, which is a file; name a directory") from error
    except OSError as error:
        raise ServerError(f"cannot use {state}: {error.strerror or error}") from error
    try:
        yield _application(state)
    finally:
        lock.close()


def _lock(state: pathlib.Path) -> BinaryIO:
    """Lock a state directory until the returned file is closed.

    :raises ServerError: if another server uses the directory.
    """
    file = (state / ".lock").open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise ServerError(f"{state} is in use by another glare-murano-server") from error
    return file


def trusting_paste() -> str:
    """Return the content of the operators' paste file, changed so that Glare trusts any token."""
    paste = (ETC / "glare-paste.ini").read_text()
    paste = paste.replace("glare-api-keystone", "glare-api")
    return paste.replace(" authtoken context ", " trustedauth ") + _TRUSTED_AUTH


def _application(state: pathlib.Path) -> Any:
    files = [state / "glare.conf", state / "local.conf"]
    logging.register_options(cfg.CONF)
    glare_config.parse_args(args=[f"--config-file={file}" for file in files if file.exists()])
    logging.setup(cfg.CONF, "glare")
    migration.upgrade(None)
    transactions.begin_immediately(database.get_engine())
    glare_utils.initialize_glance_store()
    application = glare_config.load_paste_app("glare-api")
    # No other server uses the directory, so no upload is running, and all uploads can be cancelled.
    uploads.expire_all(datetime.datetime.max)
    return application


def _write_clouds(state_dir: pathlib.Path, url: str) -> str:
    """Write a ``clouds.yaml`` for the server.

    :returns: the path of the file, quoted for a shell.
    """
    file = state_dir.expanduser().resolve() / "clouds.yaml"
    cloud = {
        "auth_type": "admin_token",
        "auth": {"endpoint": url, "token": TOKEN},
        "artifact_endpoint_override": url,
        "artifact_project_id": TOKEN.split(":")[1],
    }
    file.write_text(yaml.safe_dump({"clouds": {_CLOUD: cloud}}, sort_keys=False))
    return shlex.quote(str(file))


def _port(text: str) -> int:
    if text not in map(str, range(2**16)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {2**16 - 1}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="glare-murano-server",
        description="Run Glare with the artifact type 'murano' on loopback, for development and "
        "tests: over SQLite and a directory of files, and with trust in every client.",
    )
    text = "directory for the database, the archives and the log; created if missing"
    parser.add_argument("--state-dir", type=pathlib.Path, required=True, metavar="DIR", help=text)
    text = "port to listen on (default: %(default)s; 0 for any free port)"
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, metavar="P", help=text)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server until SIGINT, SIGTERM or SIGHUP.

    :returns: the exit code, 1 if the server could not start or has failed.
    """
    arguments = _parser().parse_args(argv)
    running: list[Server] = []

    def stop(*_: object) -> None:
        # This does not raise an exception, since Python drops exceptions that are raised in
        # finalizers.
        if not running:
            os._exit(0)
        running[0].close()

    for number in _SIGNALS:
        signal.signal(number, stop)
    try:
        with prepared(arguments.state_dir) as application:
            server = Server(application, arguments.port)
            running.append(server)
            clouds = _write_clouds(arguments.state_dir, server.url)
            print(f"Glare listens on {server.url}")
            print(f"To use it: export OS_CLIENT_CONFIG_FILE={clouds} OS_CLOUD={_CLOUD}", flush=True)
            server.run()
    except ServerError as error:
        return _fail(str(error))
    except Exception as error:
        if cfg.CONF.log_file:
            LOG.exception("The server ended")
        summary = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return _fail(f"{summary}; see {arguments.state_dir}/glare.log")
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    return 0


def _fail(message: str) -> int:
    print(f"glare-murano-server: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
