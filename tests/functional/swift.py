# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""OpenStack Swift, with Keystone before it, on this host.

Real services with one device and one replica, started for a test in the
environment that ``make services`` builds for them. Swift's driver in Glare
takes no tokens but Keystone's.
"""

import contextlib
import getpass
import pathlib
import subprocess
from collections.abc import Iterator

import swiftclient
from keystoneauth1 import identity
from keystoneauth1 import session
from keystoneclient.v3 import client as keystone_client

from tests import processes
from tests.functional import stores

_BIN = processes.ROOT / ".cache" / "swift" / "bin"

_PASSWORD = "secret"
_REGION = "RegionOne"
_CONTAINER = "glare"
_UUID_LENGTH = 36

_KEYSTONE_CONF = """\
[DEFAULT]
log_file = {folder}/keystone.log

[database]
connection = sqlite:///{folder}/keystone.sqlite

[fernet_tokens]
key_repository = {folder}/tokens

[fernet_receipts]
key_repository = {folder}/receipts

[credential]
key_repository = {folder}/credentials
"""

# It takes the command line for its own.
_KEYSTONE = """\
import sys
import waitress
port = sys.argv.pop()
from keystone.wsgi.api import application
waitress.serve(application, host="127.0.0.1", port=port)
"""

_SWIFT_CONF = """\
[DEFAULT]
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}

[pipeline:main]
pipeline = {pipeline}

[app:{name}-server]
use = egg:swift#{name}
"""

_PROXY_CONF = """\
account_autocreate = true

[filter:authtoken]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory
auth_type = password
auth_url = {auth_url}
interface = public
username = admin
password = {password}
project_name = admin
user_domain_id = default
project_domain_id = default
delay_auth_decision = true

[filter:catch_errors]
use = egg:swift#catch_errors

[filter:dlo]
use = egg:swift#dlo

[filter:keystoneauth]
use = egg:swift#keystoneauth
operator_roles = admin
"""

_STORE = """\
stores = swift
default_store = swift
default_swift_reference = murano
swift_store_config_file = {account}
swift_store_container = {container}
swift_store_create_container_on_put = true
"""

_ACCOUNT = """\
[murano]
auth_address = {auth_url}
user = admin:admin
key = {password}
user_domain_id = default
project_domain_id = default
"""


@contextlib.contextmanager
def swift(folder: pathlib.Path) -> Iterator[stores.Store]:
    """A container in a Swift of its own."""
    assert _BIN.is_dir(), f"Swift is not in {_BIN}; 'make services' installs it"
    with contextlib.ExitStack() as stack:
        auth_url = stack.enter_context(_keystone(folder))
        url = stack.enter_context(_swift(folder, auth_url))
        auth = identity.V3Password(
            auth_url,
            username="admin",
            password=_PASSWORD,
            project_name="admin",
            user_domain_id="default",
            project_domain_id="default",
        )
        keystone = keystone_client.Client(session=session.Session(auth=auth))
        service = keystone.services.create("swift", "object-store")
        account_url = f"{url}/v1/AUTH_%(project_id)s"
        keystone.endpoints.create(service, account_url, interface="public", region=_REGION)
        auth.invalidate()
        connection = swiftclient.Connection(session=session.Session(auth=auth))
        connection.put_container(_CONTAINER)

        def contents() -> set[str]:
            names = [found["name"] for found in connection.get_container(_CONTAINER)[1]]
            # What has segments lies beside them: UUID, UUID-00001, and so on.
            return {f"swift+config://murano/{_CONTAINER}/{name[:_UUID_LENGTH]}" for name in names}

        account = folder / "swift-store.conf"
        account.write_text(_ACCOUNT.format(auth_url=auth_url, password=_PASSWORD))
        yield stores.Store(_STORE.format(account=account, container=_CONTAINER), contents)


@contextlib.contextmanager
def _keystone(folder: pathlib.Path) -> Iterator[str]:
    """Run Keystone, and give its URL."""
    for repository in ("tokens", "receipts", "credentials"):
        (folder / repository).mkdir(mode=0o700)
    conf = folder / "keystone.conf"
    conf.write_text(_KEYSTONE_CONF.format(folder=folder))
    port = processes.free_port()
    url = f"http://127.0.0.1:{port}/v3"
    manage = ("keystone-manage", "--config-file", conf)
    user = getpass.getuser()
    _run(*manage, "db_sync")
    _run(*manage, "fernet_setup", "--keystone-user", user, "--keystone-group", user)
    _run(
        *(*manage, "bootstrap", "--bootstrap-password", _PASSWORD),
        *("--bootstrap-public-url", url, "--bootstrap-region-id", _REGION),
    )
    command = (_BIN / "python", "-W", "ignore", "-c", _KEYSTONE, port)
    environment = {"OS_KEYSTONE_CONFIG_FILES": str(conf)}
    with processes.listening(command, port, folder / "keystone.out", environment):
        yield url


@contextlib.contextmanager
def _swift(folder: pathlib.Path, auth_url: str) -> Iterator[str]:
    """Run Swift's four servers, and give the URL of the proxy."""
    (folder / "devices" / "d1").mkdir(parents=True)
    (folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = tests\n")
    with contextlib.ExitStack() as stack:
        for name in ("account", "container", "object"):
            port = processes.free_port()
            builder = folder / f"{name}.builder"
            _run("swift-ring-builder", builder, "create", "0", "1", "1")
            _run("swift-ring-builder", builder, "add", f"r1z1-127.0.0.1:{port}/d1", "1")
            _run("swift-ring-builder", builder, "rebalance")
            stack.enter_context(_swift_server(folder, name, port, f"{name}-server"))
        port = processes.free_port()
        pipeline = "catch_errors authtoken keystoneauth dlo proxy-server"
        more = _PROXY_CONF.format(auth_url=auth_url, password=_PASSWORD)
        stack.enter_context(_swift_server(folder, "proxy", port, pipeline, more))
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def _swift_server(
    folder: pathlib.Path, name: str, port: int, pipeline: str, more: str = ""
) -> Iterator[None]:
    conf = folder / f"{name}.conf"
    conf.write_text(
        _SWIFT_CONF.format(
            folder=folder, port=port, user=getpass.getuser(), name=name, pipeline=pipeline
        )
        + more
    )
    command = (_BIN / f"swift-{name}-server", conf, "verbose")
    with processes.listening(command, port, folder / f"{name}.out"):
        yield


def _run(name: str, *arguments: object) -> None:
    command = [str(_BIN / name), *map(str, arguments)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{command}: {finished.stdout}{finished.stderr}"
