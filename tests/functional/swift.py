# SPDX-License-Identifier: Apache-2.0

"""OpenStack Swift, with Keystone before it, on this host.

Real services with one device and one replica, started for a test in the
environment that ``make services`` builds for them. Swift's driver in Glare
takes no tokens but Keystone's.
"""

import contextlib
import getpass
import pathlib
from collections.abc import Iterator

import swiftclient

from tests import prerequisites, processes
from tests.functional import keystone, stores

_CONTAINER = "glare"
_RING_BUILDER = keystone.BIN / "swift-ring-builder"
_UUID_LENGTH = 36

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
delay_auth_decision = true
{middleware}

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
    prerequisites.swift()
    with contextlib.ExitStack() as stack:
        identity = stack.enter_context(keystone.running(folder))
        url = stack.enter_context(_swift(folder, identity))
        identity.add_service("swift", "object-store", f"{url}/v1/AUTH_%(project_id)s")
        connection = swiftclient.Connection(session=identity.session())
        connection.put_container(_CONTAINER)

        def contents() -> set[str]:
            names = [found["name"] for found in connection.get_container(_CONTAINER)[1]]
            # What has segments lies beside them: UUID, UUID-00001, and so on.
            return {f"swift+config://murano/{_CONTAINER}/{name[:_UUID_LENGTH]}" for name in names}

        account = folder / "swift-store.conf"
        account.write_text(_ACCOUNT.format(auth_url=identity.url, password=keystone.PASSWORD))
        yield stores.Store(
            _STORE.format(account=account, container=_CONTAINER),
            contents,
            lambda name: connection.put_object(_CONTAINER, name, b"content"),
        )


@contextlib.contextmanager
def _swift(folder: pathlib.Path, identity: keystone.Keystone) -> Iterator[str]:
    """Run Swift's four servers, and give the URL of the proxy."""
    (folder / "devices" / "d1").mkdir(parents=True)
    (folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = tests\n")
    with contextlib.ExitStack() as stack:
        for name in ("account", "container", "object"):
            port = processes.free_port()
            builder = folder / f"{name}.builder"
            keystone.run(_RING_BUILDER, builder, "create", "0", "1", "1")
            keystone.run(_RING_BUILDER, builder, "add", f"r1z1-127.0.0.1:{port}/d1", "1")
            keystone.run(_RING_BUILDER, builder, "rebalance")
            stack.enter_context(_swift_server(folder, name, port, f"{name}-server"))
        port = processes.free_port()
        pipeline = "catch_errors authtoken keystoneauth dlo proxy-server"
        more = _PROXY_CONF.format(middleware=identity.middleware)
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
    command = (keystone.BIN / f"swift-{name}-server", conf, "verbose")
    with processes.listening(command, port, folder / f"{name}.out"):
        yield
