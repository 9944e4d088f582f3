# SPDX-License-Identifier: Apache-2.0

"""A Glare that is installed by the installation guide, with the real Keystone and MariaDB.

The configuration files and the commands are those of the page. Only what differs on each
host is replaced: hosts, ports, directories, and the name of the database.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping

from keystoneclient.v3 import client as keystone_client

from tests import prerequisites, processes
from tests.functional import keystone, page_scripts

PAGE = processes.ROOT / "doc" / "source" / "guides" / "operators" / "glare.rst"
ETC = processes.ROOT / "glare_murano" / "glare" / "etc"
BIN = pathlib.Path(sys.executable).parent
SERVICE = ETC / "glare-api.service"


def _steps() -> str:
    """Return the page up to the end of its numbered steps."""
    steps, found, _ = PAGE.read_text().partition("\nPolicy\n======\n")
    assert found
    return steps


def shown() -> dict[str, pathlib.Path]:
    """Return the files that the page shows whole, by the names that it gives them."""
    found = re.findall(
        r"``([a-z/.-]+)``.*:\n\n\.\. literalinclude:: (\S+)\n   :language: \w+\n\n", _steps()
    )
    return {name: (PAGE.parent / source).resolve() for name, source in found}


def blocks(language: str) -> str:
    """Return all blocks of code in a language."""
    return page_scripts.blocks(_steps(), language)


@dataclasses.dataclass(frozen=True)
class Host:
    """A host on which the guide is followed.

    :param names: the names of this host for those in the page.
    :param environment: the environment of the commands.
    """

    url: str
    names: Mapping[str, str]
    environment: Mapping[str, str]

    def named(self, text: str) -> str:
        """Return a text of the page with the names of this host."""
        pattern = "|".join(map(re.escape, self.names))
        return re.sub(pattern, lambda found: self.names[found[0]], text)

    def install_files(self) -> None:
        for name, source in shown().items():
            if name.startswith("/"):
                pathlib.Path(self.named(name)).write_text(self.named(source.read_text()))

    def run(self, program: str) -> list[str]:
        """Run the page's commands of a program, as written there, and return their outputs."""
        commands = [
            self.named(line) for line in blocks("sh").splitlines() if line.split()[:1] == [program]
        ]
        assert commands, f"the page has no command of {program}"
        return [self._run(command) for command in commands]

    def _run(self, command: str) -> str:
        done = subprocess.run(
            command,
            shell=True,
            cwd=processes.ROOT,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


@dataclasses.dataclass(frozen=True)
class Installed:
    """A Glare that was installed by the guide.

    :param answers: the outputs of the guide's last check.
    """

    url: str
    identity: keystone.Keystone
    log: pathlib.Path
    answers: list[str]


@contextlib.contextmanager
def installed(folder: pathlib.Path) -> Iterator[Installed]:
    """Follow the guide, as an operator whose Keystone has a project ``service``."""
    prerequisites.swift()
    (folder / "etc").mkdir()
    (folder / "blobs").mkdir()
    mariadb = prerequisites.mariadb()
    with keystone.running(folder) as identity, mariadb.connect() as connection:
        keystone_client.Client(session=identity.session()).projects.create(
            "service", domain="default"
        )
        database = f"glare_{uuid.uuid4().hex}"
        host = _host(folder, identity, database)
        host.install_files()
        try:
            for statement in filter(str.strip, host.named(blocks("sql")).split(";")):
                connection.exec_driver_sql(statement)
            host.run("/opt/glare/bin/glare-db-manage")
            host.run("mariadb")
            host.run("openstack")
            (start,) = re.findall("^ExecStart=(.*)$", SERVICE.read_text(), re.M)
            port = int(host.url.rpartition(":")[2])
            log = folder / "glare.out"
            with processes.listening(shlex.split(host.named(start)), port, log):
                answers = host.run("curl")
                host.run("cli/bin/openstack")
                yield Installed(host.url, identity, log, answers)
        finally:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {database}")
            connection.exec_driver_sql(f"DROP USER IF EXISTS {database}")
    mariadb.dispose()


def _host(folder: pathlib.Path, identity: keystone.Keystone, database: str) -> Host:
    port = processes.free_port()
    url = f"http://127.0.0.1:{port}"
    return Host(
        url,
        {
            "/opt/glare/etc/glare-murano": str(ETC),
            "/opt/glare/bin": str(BIN),
            "cli/bin": str(BIN),
            "murano-16.0.0/meta": ".cache/murano-16.0.0/meta",
            "/etc/glare": str(folder / "etc"),
            "/var/lib/glare": str(folder),
            "https://keystone.example.org/v3": identity.url,
            "http://glare.example.org:9494": url,
            "bind_port = 9494": f"bind_port = {port}",
            "://glare:GLARE_DB_PASSWORD@db.example.org/glare": f"://{database}:GLARE_DB_PASSWORD"
            f"@127.0.0.1/{database}",
            "DATABASE glare": f"DATABASE {database}",
            "USER glare": f"USER {database}",
            "ON glare.* TO glare": f"ON {database}.* TO {database}",
            "mariadb glare": f"mariadb {database}",
            "--password-prompt": "--password GLARE_PASSWORD",
        },
        {
            "MYSQL_HOST": "127.0.0.1",
            "NO_PROXY": "127.0.0.1",
            "OS_CLIENT_CONFIG_FILE": os.devnull,
            "OS_IDENTITY_API_VERSION": "3",
            "PATH": f"{BIN}:{os.environ['PATH']}",
            **{f"OS_{name.upper()}": value for name, value in identity.credentials().items()},
        },
    )
