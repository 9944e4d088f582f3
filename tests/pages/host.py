# SPDX-License-Identifier: Apache-2.0

"""A host on which an operator follows the guides, one after the other.

The services are real: Keystone, Glare, Glance, murano-api, MariaDB and RabbitMQ. Their files and
programs are in one directory. ``pip`` only computes what it would install, since the tests need
their environments. ``programs`` has stand-ins for what else changes the machine: systemd, sudo,
useradd and new environments.
"""

import contextlib
import dataclasses
import getpass
import grp
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import sys
import uuid
from collections.abc import Iterator, Mapping

import yaml
from sqlalchemy.engine import make_url

from examples import demo
from glare_murano.glance import configuration
from tests import packages, prerequisites, processes
from tests.functional import databases, installation
from tests.functional.glance import service
from tests.integration import cloud

_ENGINE_ETC = processes.ROOT / "loader" / "engine" / "etc"
_PROGRAMS = pathlib.Path(__file__).with_name("programs")
_PIP = """\
#!/usr/bin/env bash
# The same command gives the same result.
done=${{0%/bin/pip}}/$(sha256sum <<< "$*" | cut -c -64)
[[ -e "$done" ]] && exit
case "$1" in
    install) {bin}/python -m pip --quiet install --dry-run "${{@:2}}" && touch "$done" ;;
    download | list) exec {bin}/python -m pip "$@" ;;
    *) echo "pip $1 would change the environment of the tests" >&2; exit 1 ;;
esac
"""
# What runs before a guide begins.
_UNITS = ("glance-api", "murano-api", "murano-engine")
# The agents have a user of their own, as the guides advise.
_AGENTS = """
[rabbitmq]
login = agents
password = secret
virtual_host = agents
"""
_LONG_AGO = 1_700_000_000


@dataclasses.dataclass(frozen=True)
class Host:
    """A host that runs.

    :param names: the names of this host for those in the pages.
    :param new_names: the same for a host on which nothing is installed.
    :param variables: what the operator has in the environment.
    """

    names: Mapping[str, str]
    new_names: Mapping[str, str]
    variables: Mapping[str, str]


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Host]:
    """Run the services, with what the guides find in a cloud that has run for a while."""
    for name in ("glance", "kolla/config/glance", "murano", "new", "other", "production", "units"):
        (folder / name).mkdir(parents=True)
    for name in _UNITS:
        (folder / "units" / f"{name}.service").touch()
    _make_environments(folder / "opt")
    with contextlib.ExitStack() as stack:
        murano = stack.enter_context(cloud.running(folder))
        glance = stack.enter_context(
            service.running(folder / "glance", databases.sqlite, murano.identity)
        )
        murano.identity.add_service("glance", "image", glance.url)
        _add_index(glance)
        stock = stack.enter_context(murano.stock_api())
        others = {
            name: stack.enter_context(demo.DevelopmentServer(folder / name))
            for name in ("other", "production")
        }
        _write_clouds(folder / "clouds.yaml", murano, stock, others)
        _write_configuration(folder)
        _publish_in_murano(murano, stock)
        _break_environment(murano)
        _leave_remains(folder, murano)
        (etc,) = (folder / "glance").glob("etc-*")
        names = {
            **_paths(folder, etc),
            **_endpoints(glance.url, murano),
            **_databases(folder, stack.enter_context(databases.mariadb(folder))),
            "https://keystone.example.org/v3": murano.identity.url,
            # The last one, since it is the beginning of the others.
            "/var/lib/glare": str(folder),
        }
        stack.callback(_delete_agents, names["murano-agents"])
        new = {**names, "/etc/glare": f"{folder}/new/etc", "/var/lib/glare": f"{folder}/new"}
        variables = {
            "MYSQL_HOST": "127.0.0.1",
            "OS_CLIENT_CONFIG_FILE": str(folder / "clouds.yaml"),
            "OS_CLOUD": "mycloud",
            "OS_GLANCE_CONFIG_DIR": str(etc),
            "PATH": f"{_PROGRAMS}:{installation.BIN}:{os.environ['PATH']}",
            "PYTHONWARNINGS": "ignore",
            "TEST_PYTHON": sys.executable,
            "UNIT_DIRECTORY": str(folder / "units"),
        }
        yield Host(names, new, variables)


def _delete_agents(name: str) -> None:
    """Delete what the guide has made in RabbitMQ, if anything."""
    if name in prerequisites.rabbitmqctl("list_vhosts"):
        prerequisites.rabbitmqctl("delete_vhost", name)
    if name in prerequisites.rabbitmqctl("list_users"):
        prerequisites.rabbitmqctl("delete_user", name)


def _make_environments(top: pathlib.Path) -> None:
    """Make the directories of the environments of the pages, with links to those of the tests."""
    for name, programs, etc in (
        ("cli", installation.BIN, None),
        ("glance", prerequisites.glance(), configuration.ETC),
        ("glare", installation.BIN, installation.ETC),
        ("murano", installation.BIN, _ENGINE_ETC),
    ):
        ours = top / name / "bin"
        ours.mkdir(parents=True)
        for program in programs.iterdir():
            if not program.name.startswith("pip"):
                (ours / program.name).symlink_to(program)
        (ours / "pip").write_text(_PIP.format(bin=programs))
        (ours / "pip").chmod(0o700)
        if etc:
            (top / name / "etc").mkdir()
            (top / name / "etc" / "glare-murano").symlink_to(etc)


def _add_index(glance: service.Glance) -> None:
    with contextlib.closing(sqlite3.connect(str(make_url(glance.database).database))) as database:
        database.executescript((configuration.ETC / "glance-indexes.sql").read_text())


def _write_clouds(
    path: pathlib.Path, murano: cloud.Cloud, stock: str, others: Mapping[str, str]
) -> None:
    """Write the clouds of the pages.

    :param stock: the URL of a murano-api without the filter of this project.
    :param others: the URLs of development servers.
    """
    ours = {
        "auth": murano.identity.credentials(),
        "identity_api_version": 3,
        "murano_catalog": "glare",
    }
    clouds = {
        "mycloud": ours,
        "test": ours,
        "admin": {**ours, "application_catalog_endpoint_override": stock},
    }
    for name, url in others.items():
        clouds[name] = {
            "auth_type": "admin_token",
            "auth": {"endpoint": url, "token": "admin:admin:admin"},
            "artifact_endpoint_override": url,
            "artifact_project_id": "admin",
        }
    path.write_text(yaml.safe_dump({"clouds": clouds}))


def _write_configuration(folder: pathlib.Path) -> None:
    """Write files as an operator has them before an upgrade."""
    conf = "".join((folder / name).read_text() for name in ("murano.conf", "loader.conf"))
    # murano-api and the broker each find their pipeline beside the file.
    conf = re.sub(r"\[paste_deploy\]\nconfig_file = .*\n", "", conf)
    (folder / "murano" / "murano.conf").write_text(conf + _AGENTS)
    shutil.copy(_ENGINE_ETC / "murano-paste.ini", folder / "murano")
    samples = prerequisites.MURANO / "etc" / "murano"
    shutil.copy(samples / "murano-cfapi-paste.ini", folder / "murano")
    shutil.copy(installation.ETC / "glare-paste.ini", folder / "etc")


def _publish_in_murano(murano: cloud.Cloud, stock: str) -> None:
    """Upload a package of a project to Murano's own API."""
    archive = packages.package("com.example.mail", "1.0.0")
    files = {"file": ("mail.zip", archive), "__metadata__": (None, "{}")}
    murano.project.murano.post(f"{stock}/v1/catalog/packages", files=files)


def _break_environment(murano: cloud.Cloud) -> None:
    """Leave an environment in ``deploying``, without an engine."""
    murano.engines.stop(signal.SIGTERM)
    project = cloud.Project(murano.operator, murano.project.glare)
    created = murano.operator.post("/v1/environments", json={"name": "broken"})
    cloud.Environment(project, created.json()["id"]).start()


def _leave_remains(folder: pathlib.Path, murano: cloud.Cloud) -> None:
    """Leave a draft and a blob in Glare, from long ago."""
    draft = {"name": "org.example.wiki", "version": "1.2.0"}
    created = murano.project.glare.post("/artifacts/murano", json=draft).json()
    database = _database(folder / "etc" / "glare.conf")
    mariadb = prerequisites.mariadb()
    with mariadb.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE {database}.glare_artifacts SET updated_at = '2026-01-31 12:00:00'"
            f" WHERE id = '{created['id']}'"
        )
    mariadb.dispose()
    blob = folder / "blobs" / str(uuid.uuid4())
    blob.write_bytes(bytes(81920))
    os.utime(blob, (_LONG_AGO, _LONG_AGO))


def _paths(folder: pathlib.Path, etc: pathlib.Path) -> dict[str, str]:
    user, group = getpass.getuser(), grp.getgrgid(os.getgid()).gr_name
    return {
        **{
            f"/opt/{name}/etc/glare-murano": f"{folder}/opt/{name}/etc/glare-murano"
            for name in ("glance", "glare", "murano")
        },
        "/opt": str(folder / "opt"),
        "cli/bin": str(folder / "opt/cli/bin"),
        "/srv/glare-murano/glare_murano/glance/etc": str(configuration.ETC),
        "/etc/glare": str(folder / "etc"),
        "/etc/murano": str(folder / "murano"),
        "/etc/glance": str(etc),
        "/etc/kolla": str(folder / "kolla"),
        "/etc/systemd/system": str(folder / "units"),
        "/var/cache/murano": str(folder / "cache"),
        "glare-murano-manage sweep": (
            f"glare-murano-manage --config-file {folder}/etc/glare.conf sweep"
        ),
        "-o murano -g murano": f"-o {user} -g {group}",
        "-o glare -g glare": f"-o {user} -g {group}",
        "-g glare": f"-g {group}",
    }


def _endpoints(glance_url: str, murano: cloud.Cloud) -> dict[str, str]:
    glance, broker = processes.free_port(), processes.free_port()
    return {
        "http://glance.example.org:9292": glance_url,
        "127.0.0.1:9292": f"127.0.0.1:{glance}",
        "127.0.0.1:8083": f"127.0.0.1:{broker}",
        "bind_port = 8083": f"bind_port = {broker}",
        "--project PROJECT": "--project one",
        "openstack package import": "openstack --os-cloud admin package import",
        "murano-agents": f"murano-agents-{uuid.uuid4().hex}",
    }


def _databases(folder: pathlib.Path, broker: str) -> dict[str, str]:
    glare = _database(folder / "etc" / "glare.conf")
    return {
        "transaction glare": f"transaction {glare}",
        "transaction murano": f"transaction {_database(folder / 'murano.conf')}",
        "DATABASE glare": f"DATABASE {glare}",
        "USER glare": f"USER {glare}",
        "mysql+pymysql://murano:MURANO_DB_PASSWORD@db.example.org/murano_cfapi": broker,
    }


def _database(conf: pathlib.Path) -> str:
    """Return the name of the database of a service."""
    (line,) = [line for line in conf.read_text().splitlines() if line.startswith("connection = ")]
    return str(make_url(line.removeprefix("connection = ")).database)
