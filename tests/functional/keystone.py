# SPDX-License-Identifier: Apache-2.0

"""OpenStack Keystone on this host.

The real service over SQLite, in the environment that ``make services`` builds
for it and Swift: it wants other versions than Glare and Murano do.
"""

import contextlib
import dataclasses
import getpass
import pathlib
import subprocess
from collections.abc import Iterable, Iterator

from keystoneauth1 import identity, session
from keystoneclient.v3 import client

from tests import processes

BIN = processes.ROOT / ".cache" / "swift" / "bin"
PASSWORD = "secret"

_REGION = "RegionOne"

_CONF = """\
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

[identity]
# Hashing is slow on purpose; tests need no protection of their passwords.
password_hash_rounds = 4
"""

# It takes the command line for its own.
_SERVER = """\
import sys
import waitress
port = sys.argv.pop()
from keystone.wsgi.api import application
waitress.serve(application, host="127.0.0.1", port=port)
"""

# Of keystonemiddleware.auth_token, by which a service asks who a token belongs to.
_MIDDLEWARE = f"""\
auth_type = password
auth_url = {{url}}
interface = public
username = admin
password = {PASSWORD}
project_name = admin
user_domain_id = default
project_domain_id = default"""


@dataclasses.dataclass(frozen=True)
class Keystone:
    """A Keystone that runs, with one user: an administrator."""

    url: str

    @property
    def middleware(self) -> str:
        """The options by which a service authenticates those who ask it."""
        return _MIDDLEWARE.format(url=self.url)

    def credentials(self, user: str = "admin", project: str = "") -> dict[str, str]:
        """The credentials of a user, by default in the project of the same name."""
        return {
            "auth_url": self.url,
            "username": user,
            "password": PASSWORD,
            "project_name": project or user,
            "user_domain_id": "default",
            "project_domain_id": "default",
        }

    def session(self, user: str = "admin", project: str = "") -> session.Session:
        """A session of a user, by default in the project of the same name."""
        return session.Session(auth=identity.V3Password(**self.credentials(user, project)))

    def add_project(self, name: str) -> None:
        """Create a project, and a user of the same name as its member."""
        keystone = client.Client(session=self.session())
        project = keystone.projects.create(name, domain="default")
        user = keystone.users.create(name, domain="default", password=PASSWORD)
        (role,) = keystone.roles.list(name="member")
        keystone.roles.grant(role, user=user, project=project)

    def add_users(self, project: str, roles: Iterable[str]) -> str:
        """Create a project, with a user for each role, of the role's name; return its id."""
        keystone = client.Client(session=self.session())
        created = keystone.projects.create(project, domain="default")
        for name in roles:
            user = keystone.users.create(name, domain="default", password=PASSWORD)
            (role,) = keystone.roles.list(name=name)
            keystone.roles.grant(role, user=user, project=created)
        return str(created.id)

    def add_member(self, user: str, project: str) -> str:
        """Make a user a member of a project, and return the id of the project."""
        keystone = client.Client(session=self.session())
        (found,) = keystone.projects.list(name=project)
        (member,) = keystone.users.list(name=user)
        (role,) = keystone.roles.list(name="member")
        keystone.roles.grant(role, user=member, project=found)
        return str(found.id)

    def add_service(self, name: str, service_type: str, url: str) -> None:
        """Put a service into the catalogue that new tokens come with."""
        keystone = client.Client(session=self.session())
        service = keystone.services.create(name, service_type)
        keystone.endpoints.create(service, url, interface="public", region=_REGION)


def url_at(port: int) -> str:
    """Return the URL of a Keystone at a port."""
    return f"http://127.0.0.1:{port}/v3"


@contextlib.contextmanager
def running(
    folder: pathlib.Path, programs: pathlib.Path = BIN, port: int | None = None
) -> Iterator[Keystone]:
    """Run it, with all that it keeps in a folder.

    :param programs: the directory of Keystone's programs; an environment with Glance has
        them as well.
    :param port: a free port; by default any.
    """
    assert programs.is_dir(), f"Keystone is not in {programs}; 'make services' installs it"
    for repository in ("tokens", "receipts", "credentials"):
        (folder / repository).mkdir(mode=0o700)
    conf = folder / "keystone.conf"
    conf.write_text(_CONF.format(folder=folder))
    port = port or processes.free_port()
    url = url_at(port)
    manage = (programs / "keystone-manage", "--config-file", conf)
    user = getpass.getuser()
    run(*manage, "db_sync")
    run(*manage, "fernet_setup", "--keystone-user", user, "--keystone-group", user)
    run(
        *(*manage, "bootstrap", "--bootstrap-password", PASSWORD),
        *("--bootstrap-public-url", url, "--bootstrap-internal-url", url),
        *("--bootstrap-region-id", _REGION),
    )
    command = (programs / "python", "-W", "ignore", "-c", _SERVER, port)
    environment = {"OS_KEYSTONE_CONFIG_FILES": str(conf)}
    with processes.listening(command, port, folder / "keystone.out", environment):
        yield Keystone(url)


def run(program: pathlib.Path, *arguments: object) -> None:
    """Run a command to its end."""
    command = [str(program), *map(str, arguments)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{command}: {finished.stdout}{finished.stderr}"
