# SPDX-License-Identifier: Apache-2.0

"""A Keystone with users of each role, and both services behind Keystone's filter ``audit``.

Both have the policies and the audit maps that this project ships, and write each notification
to their logs.
"""

import contextlib
import dataclasses
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from glare_murano.glance import configuration
from glare_murano.glance.ini_file import IniFile
from glare_murano.glare import server
from tests import packages, prerequisites
from tests.functional import databases, keystone, sites, stores
from tests.functional.client import Client
from tests.functional.glance import service, stored
from tests.functional.glance.image_client import ImageClient
from tests.functional.keystone import Keystone

# From the least to the most; Keystone gives a token the roles before its own as well.
ROLES = ("reader", "member", "manager", "admin")
PROJECT = "north"

_GLARE_CONF = """
[keystone_authtoken]
{middleware}

[oslo_messaging_notifications]
driver = log
"""

_AUDIT = """
[filter:audit]
paste.filter_factory = keystonemiddleware.audit:filter_factory
audit_map_file = {map_file}
"""


@dataclasses.dataclass(frozen=True)
class Cloud:
    """A cloud that runs.

    :param project_id: the project of the users named like their roles; the administrator
        ``admin`` is of another project.
    """

    identity: Keystone
    project_id: str
    glare_url: str
    glance: service.Glance
    _glare_log: pathlib.Path

    def user_id(self, role: str) -> str:
        """Return the id of the user of a role."""
        return str(self._session(role).get_user_id())

    def glare(self, role: str) -> Client:
        """Return a client of Glare for the user of a role."""
        return Client(self.glare_url, str(self._session(role).get_token()))

    def images(self, role: str) -> ImageClient:
        """Return a client of Glance for the user of a role."""
        return ImageClient(self.glance.url, str(self._session(role).get_token()), self.project_id)

    def glare_events(self) -> list[dict[str, Any]]:
        """Return the notifications of Glare, in order."""
        return _events(self._glare_log.read_text())

    def glance_events(self) -> list[dict[str, Any]]:
        """Return the notifications of Glance, in order."""
        return _events(self.glance.log())

    def _session(self, role: str) -> Any:
        return self.identity.session(role, "admin" if role == "admin" else PROJECT)


def _events(log: str) -> list[dict[str, Any]]:
    found = re.findall(r"oslo\.messaging\.notification\.\S+ \[.*?\] (\{.*\})$", log, re.M)
    return [json.loads(line) for line in found]


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Cloud]:
    """Run it, over SQLite, with all that it keeps in a folder."""
    for name in ("keystone", "glare", "glance"):
        (folder / name).mkdir()
    with (
        keystone.running(folder / "keystone", prerequisites.glance()) as identity,
        _glare(folder / "glare", identity) as glare_url,
        service.running(
            folder / "glance", databases.sqlite, identity, change=_put_audit_into_glance
        ) as glance,
    ):
        identity.add_service("glare", "artifact", glare_url)
        identity.add_service("glance", "image", glance.url)
        project_id = identity.add_users(PROJECT, ROLES[:-1])
        cloud = Cloud(identity, project_id, glare_url, glance, folder / "glare" / "glare.log")
        _publish_core_library(cloud)
        yield cloud


@contextlib.contextmanager
def _glare(folder: pathlib.Path, identity: Keystone) -> Iterator[str]:
    paste = (server.ETC / "glare-paste.ini").read_text()
    (folder / "glare-paste.ini").write_text(paste.replace("/etc/glare", str(server.ETC)))
    with databases.sqlite(folder) as connection, stores.files(folder) as store:
        options = _GLARE_CONF.format(middleware=identity.middleware)
        conf = sites.configuration(folder, connection, store) + options
        (folder / "glare.conf").write_text(f"{conf}\n[paste_deploy]\nflavor = keystone+audit\n")
        sites.create_tables(folder)
        with sites.api(folder, "api") as url:
            yield url


def _put_audit_into_glance(etc: pathlib.Path) -> None:
    """Add the filter as an operator does, and run the command of this project afterwards."""
    file = IniFile(etc.parent / "glance-api-paste.ini")
    ours = " murano-images"
    text = file.text.replace(f" context{ours} ", " context audit ")
    assert text != file.text
    file.path.write_text(
        text + _AUDIT.format(map_file=configuration.ETC / "glance_api_audit_map.conf")
    )
    configuration.configure(etc)


def _publish_core_library(cloud: Cloud) -> None:
    data = packages.package("io.murano", "0.0.1")
    cloud.glare("admin").publish("io.murano", "0.0.1", data, public=True)
    owner = str(cloud.identity.session().get_project_id())
    stored.store(cloud.glance, [stored.package(data, owner, "public")])
