# SPDX-License-Identifier: Apache-2.0

"""Keystone, Glare and murano-api, each of them real and in a process of its own.

Both catalogues hold the same packages, and both have Keystone tell them who
asks, so that neither has less to do.
"""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from keystoneauth1 import session as ksa_session

from benchmarks import closure, server
from glare_murano import fields
from glare_murano.glare.server import _NEGOTIATION, _PASTE
from tests import processes
from tests.functional import keystone
from tests.functional.client import Client

_SOURCE = processes.ROOT / ".cache" / "murano-16.0.0"
_PACKAGES = "/v1/catalog/packages"

_KEYSTONE_PASTE = """\

[filter:authtoken]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory

[filter:context]
paste.filter_factory = glare.api.middleware.context:ContextMiddleware.factory
"""

_GLARE_CONF = """\
[paste_deploy]
config_file = {paste}

[keystone_authtoken]
{middleware}
"""

_MURANO_CONF = """\
[DEFAULT]
bind_host = 127.0.0.1
bind_port = {port}
log_file = {folder}/murano.log
transport_url = fake://
use_stderr = false

[database]
connection = sqlite:///{folder}/murano.sqlite

[engine]
enable_packages_cache = true

[glare]
url = {glare}

[keystone_authtoken]
{middleware}

[murano]
api_workers = 1
url = {murano}

[murano_auth]
www_authenticate_uri = {keystone}

[paste_deploy]
config_file = {source}/etc/murano/murano-paste.ini
"""


@dataclasses.dataclass(frozen=True)
class Services:
    """What runs, and who uses it.

    :param configuration: the file that an engine is configured by.
    """

    configuration: pathlib.Path
    token: str
    project_id: str


@contextlib.contextmanager
def running() -> Iterator[Services]:
    """Run all three, with the packages of the application in both catalogues."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        identity = stack.enter_context(keystone.running(folder))
        glare = stack.enter_context(_glare(folder, identity))
        murano, configuration = stack.enter_context(_murano(folder, identity, glare.url))
        session = identity.session()
        token = session.get_token()
        closure.publish(Client(glare.url, token))
        _upload(session, murano)
        yield Services(configuration, token, session.get_project_id())


@contextlib.contextmanager
def _glare(folder: pathlib.Path, identity: keystone.Keystone) -> Iterator[server.Server]:
    paste = folder / "keystone-paste.ini"
    pipeline = _PASTE.format(negotiation=_NEGOTIATION).replace(
        "trustedauth murano", "authtoken context murano"
    )
    paste.write_text(pipeline + _KEYSTONE_PASTE)
    settings = _GLARE_CONF.format(paste=paste, middleware=identity.middleware)
    with server.running(fields.TYPE_NAME, settings=settings) as running:
        yield running


@contextlib.contextmanager
def _murano(
    folder: pathlib.Path, identity: keystone.Keystone, glare: str
) -> Iterator[tuple[str, pathlib.Path]]:
    """The URL of murano-api, and its configuration, which is the engine's as well."""
    port = processes.free_port()
    url = f"http://127.0.0.1:{port}"
    configuration = folder / "murano.conf"
    configuration.write_text(
        _MURANO_CONF.format(
            port=port,
            folder=folder,
            glare=glare,
            murano=url,
            keystone=identity.url,
            middleware=identity.middleware,
            source=_SOURCE,
        )
    )
    options = ("--config-file", str(configuration))
    manage = str(pathlib.Path(sys.executable).with_name("murano-db-manage"))
    subprocess.run([manage, *options, "upgrade"], check=True, capture_output=True)
    command = (sys.executable, "-W", "ignore", "-m", "murano.cmd.api", *options)
    with processes.listening(command, port, folder / "murano.out"):
        yield url, configuration


def _upload(session: ksa_session.Session, url: str) -> None:
    about = json.dumps({"is_public": True})
    for archive in closure.archives().values():
        files = {"file": ("package.zip", archive), "__metadata__": (None, about)}
        session.post(url + _PACKAGES, files=files)
