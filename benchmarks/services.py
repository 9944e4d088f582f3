# SPDX-License-Identifier: Apache-2.0

"""Keystone, Glare and murano-api, each in a process of its own.

Both catalogues have the same packages, and both validate tokens with Keystone.
"""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from keystoneauth1 import session as ksa_session

from benchmarks import closure, server
from glare_murano import fields
from tests import processes
from tests.functional import keystone
from tests.functional.client import Client

_SOURCE = processes.ROOT / ".cache" / "murano-16.0.0"
_PASTE = processes.ROOT / "glare_murano" / "glare" / "etc" / "glare-paste.ini"
_PACKAGES = "/v1/catalog/packages"

_GLARE_CONF = """\
[paste_deploy]
config_file = {paste}
flavor = keystone

[keystone_authtoken]
{middleware}
"""

_MURANO_CONF = """\
[DEFAULT]
bind_host = 127.0.0.1
bind_port = {port}
log_file = {directory}/murano.log
transport_url = fake://
use_stderr = false

[database]
connection = sqlite:///{directory}/murano.sqlite

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
    """Running services, and a user's credentials.

    :param configuration: the configuration file for an engine.
    """

    configuration: pathlib.Path
    token: str
    project_id: str


@contextlib.contextmanager
def running() -> Iterator[Services]:
    """Run all three services, with the application's packages in both catalogues."""
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        identity = stack.enter_context(keystone.running(directory))
        artifacts = stack.enter_context(glare(identity))
        murano, configuration = stack.enter_context(_murano(directory, identity, artifacts.url))
        session = identity.session()
        token = str(session.get_token())
        closure.publish(Client(artifacts.url, token))
        _upload(session, murano)
        yield Services(configuration, token, str(session.get_project_id()))


@contextlib.contextmanager
def glare(
    identity: keystone.Keystone, environment: Mapping[str, str] | None = None
) -> Iterator[server.Server]:
    """Run Glare, which validates tokens with Keystone.

    :param environment: is added to its environment.
    """
    settings = _GLARE_CONF.format(paste=_PASTE, middleware=identity.middleware)
    with server.running(fields.TYPE_NAME, settings=settings, environment=environment) as running:
        yield running


@contextlib.contextmanager
def _murano(
    directory: pathlib.Path, identity: keystone.Keystone, glare: str
) -> Iterator[tuple[str, pathlib.Path]]:
    """Run murano-api, and give its URL and its configuration, which an engine shares."""
    port = processes.free_port()
    url = f"http://127.0.0.1:{port}"
    configuration = directory / "murano.conf"
    configuration.write_text(
        _MURANO_CONF.format(
            port=port,
            directory=directory,
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
    with processes.listening(command, port, directory / "murano.out"):
        yield url, configuration


def _upload(session: ksa_session.Session, url: str) -> None:
    metadata = json.dumps({"is_public": True})
    for archive in closure.archives().values():
        files = {"file": ("package.zip", archive), "__metadata__": (None, metadata)}
        session.post(url + _PACKAGES, files=files)
