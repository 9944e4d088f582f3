# SPDX-License-Identifier: Apache-2.0

"""A host on which phases of stack.sh run with DevStack's own functions.

All its files lie in one directory. The directory ``programs`` has stand-ins for what changes
the machine or needs a network: sudo, systemd, pip, and the tools of the web server. The
directories ``glare`` and ``murano`` stand for those plug-ins, which DevStack would clone.
"""

import configparser
import dataclasses
import getpass
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping

from tests import prerequisites, processes
from tests.functional.glance import service

PLUGIN = processes.ROOT / "devstack"
PREPARED = ("stack pre-install", "stack install", "stack post-config")
STACK = (*PREPARED, "stack extra", "stack test-config")
UNSTACK = ("unstack",)
CLEAN = ("unstack", "clean")
# DevStack's own services, without and with Glance.
PLAIN = "key,mysql,rabbit,tempest"
GLANCE = f"{PLAIN},g-api"

STOCK_PASTE = """\
[pipeline:glare-api]
pipeline = cors faultwrapper healthcheck http_proxy_to_wsgi osprofiler trustedauth glarev1api

[pipeline:glare-api-keystone]
pipeline = healthcheck cors faultwrapper authtoken context osprofiler glarev1api

[filter:healthcheck]
paste.filter_factory = oslo_middleware:Healthcheck.factory
"""

# Without a database, a message queue and a journal of this host.
_GLANCE_SECTIONS = """\
[[post-config|$GLANCE_API_CONF]]
[DEFAULT]
log_file = {top}/glance.log
node_staging_uri = file://{top}/data/glance/staging
transport_url = fake:/
use_journal = False
[database]
connection = sqlite:///{top}/glance.sqlite?timeout=60
"""

_DRAWN_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
_FOLDER = pathlib.Path(__file__).parent
_PROGRAMS = _FOLDER / "programs"
# What needs a network, or changes the web server, is recorded only.
_RECORDED = ("pip", "edit-constraints", "a2enmod", "a2ensite", "a2dissite", "a2query", "uwsgi")
_DEVSTACK = ("functions", "functions-common", "inc", "lib", "stackrc", "files")


@dataclasses.dataclass(frozen=True)
class Host:
    """A host with DevStack.

    :ivar plugins: what ``local.conf`` enables, in this order.
    :ivar services: what DevStack itself runs.
    :ivar settings: the localrc section of ``local.conf``.
    :ivar sections: the other sections of ``local.conf``.
    :ivar local_conf: the whole of ``local.conf``, instead of what follows from the others.
    """

    top: pathlib.Path
    plugins: tuple[str, ...]
    services: str
    settings: Mapping[str, str]
    sections: str = ""
    local_conf: str = ""

    def run(self, *phases: str, fails: bool = False, **localrc: str | None) -> str:
        """Run phases in one shell; returns what it wrote.

        :param localrc: settings beside those of the host, or None for DevStack's default.
        """
        self._write_local_conf(localrc)
        environment = {
            "HOME": str(self.top),
            "PATH": f"{self.top}/programs:{os.environ['PATH']}",
            "HOST_DIR": str(self.top),
            "TEST_PYTHON": sys.executable,
            "PYTHONPATH": str(processes.ROOT),
            # git_clone writes there.
            "GIT_CONFIG_SYSTEM": str(self.top / "gitconfig"),
        }
        done = subprocess.run(
            ["bash", self.top / "devstack/stack.sh", *phases],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout
        refused = self.top / "refused"
        assert not refused.exists(), refused.read_text()
        return done.stdout

    def configure_cloud(self, service_type: str, url: str, token: str) -> None:
        """Name a service without Keystone as the cloud that packages are published in."""
        cloud = {
            "auth_type": "admin_token",
            "auth": {"endpoint": url, "token": token},
            f"{service_type}_endpoint_override": url,
            f"{service_type}_project_id": token.split(":")[1],
        }
        (self.top / "clouds.yaml").write_text(json.dumps({"clouds": {"devstack-admin": cloud}}))

    def conf(self, name: str) -> dict[str, dict[str, str]]:
        """Return the options of a configuration file by section."""
        ini = configparser.RawConfigParser(default_section="")
        ini.read_string((self.top / "etc" / name).read_text())
        return {name: dict(section) for name, section in ini.items() if len(section)}

    @property
    def glare(self) -> dict[str, dict[str, str]]:
        return self.conf("glare/glare.conf")

    @property
    def murano(self) -> dict[str, dict[str, str]]:
        return self.conf("murano/murano.conf")

    @property
    def data(self) -> pathlib.Path:
        return self.top / "data/glare-murano"

    @property
    def venv(self) -> pathlib.Path:
        return self.data / "venv"

    @property
    def calls(self) -> list[str]:
        calls = self.top / "calls"
        return calls.read_text().splitlines() if calls.exists() else []

    @property
    def running(self) -> dict[str, str]:
        return {unit.name: unit.read_text().strip() for unit in (self.top / "running").iterdir()}

    def files(self) -> dict[str, str]:
        """Return the contents of all files that DevStack and its plug-ins have written."""
        found = {}
        for folder in ("data", "etc", "stack", "systemd", "running", "enabled"):
            for path in (self.top / folder).rglob("*"):
                name = str(path.relative_to(self.top))
                if path.is_symlink():
                    found[name] = f"-> {path.readlink()}"
                else:
                    # DevStack draws a port for Glance in each run.
                    text = "" if path.is_dir() else path.read_text(errors="replace")
                    found[name] = _DRAWN_PORT.sub("port", text)
        return found

    def _write_local_conf(self, localrc: Mapping[str, str | None]) -> None:
        settings = {"ENABLED_SERVICES": self.services, **self.settings, **localrc}
        lines = [
            "[[local|localrc]]",
            *(f"{name}='{value}'" for name, value in settings.items() if value is not None),
            *(f"enable_plugin {name} https://{name}.example" for name in self.plugins),
            self.sections,
        ]
        text = self.local_conf or "\n".join(lines)
        (self.top / "devstack/local.conf").write_text(text)


def new_host(
    top: pathlib.Path,
    *plugins: str,
    services: str = PLAIN,
    **settings: str,
) -> Host:
    """Make a host on which nothing has run.

    :param plugins: names of plug-ins, by default all three.
    """
    plugins = plugins or ("glare", "murano", "glare-murano")
    devstack = prerequisites.devstack()
    for name in (
        "devstack",
        "stack",
        "etc/apache",
        *["data", "enabled", "running", "stock", "systemd"],
    ):
        (top / name).mkdir(parents=True)
    for name in _DEVSTACK:
        (top / "devstack" / name).symlink_to(devstack / name)
    (top / "devstack/stack.sh").symlink_to(_FOLDER / "stack.sh")
    _add_programs(top)
    _add_services(top, plugins, services)
    directories = {
        "DEST": "stack",
        "DATA_DIR": "data",
        "GLANCE_CONF_DIR": "etc/glance",
        "TEMPEST_CONFIG_DIR": "etc",
        "APACHE_CONF_DIR": "etc/apache",
    }
    return Host(
        top,
        plugins,
        services,
        {
            **{name: str(top / directory) for name, directory in directories.items()},
            "STACK_USER": getpass.getuser(),
            "HOST_IP": "127.0.0.1",
            "DATABASE_PASSWORD": "database",
            "RABBIT_PASSWORD": "rabbit",
            "SERVICE_PASSWORD": "service",
            "GLARE_MURANO_PYTHON": str(top / "programs/make-venv"),
            "GLARE_MURANO_PUBLISH": "",
            **settings,
        },
        _GLANCE_SECTIONS.format(top=top) if "g-api" in services else "",
    )


def _add_services(top: pathlib.Path, plugins: tuple[str, ...], services: str) -> None:
    """Add what DevStack would clone, and the files that its plug-ins start from."""
    (top / "stack/glare-murano").symlink_to(processes.ROOT)
    (top / "stack/glare").symlink_to(_FOLDER / "glare")
    (top / "stock/glare.conf").write_text("[paste_deploy]\nflavor = keystone\n")
    (top / "stock/glare-paste.ini").write_text(STOCK_PASTE)
    (top / "stock/murano.conf").write_text("[engine]\nengine_workers = 2\n")
    if "murano" in plugins:
        # The plug-in adds a link there.
        shutil.copytree(_FOLDER / "murano", top / "stack/murano")
    (top / "etc/tempest.conf").write_text(
        "[service_available]\nmurano = True\n[application_catalog]\ndeployment_tests = True\n"
    )
    if "g-api" in services:
        stock = prerequisites.glance().parent / "etc/glance/glance-api-paste.ini"
        etc = top / "stack/glance/etc"
        (etc / "metadefs").mkdir(parents=True)
        (etc / "glance-api-paste.ini").write_text(service.trusting(stock.read_text()))
        for name in ("schema-image.json", "metadefs/a.json"):
            (etc / name).write_text("{}")


def _add_programs(top: pathlib.Path) -> None:
    programs = dict.fromkeys(_RECORDED, _PROGRAMS / "recorded") | {
        path.name: path for path in _PROGRAMS.iterdir()
    }
    # DevStack's own environment, that of its requirements, and the rest.
    for folder in ("data/venv/bin", "stack/requirements/.venv/bin", "programs"):
        (top / folder).mkdir(parents=True)
        for name, path in programs.items():
            (top / folder / name).symlink_to(path)
    (top / "data/venv/bin/python3").symlink_to(sys.executable)


def write_package(folder: pathlib.Path, name: str, version: str) -> str:
    """Write a package into a new directory, and return its path."""
    (folder / "Classes").mkdir(parents=True)
    (folder / "Classes/Thing.yaml").write_text(f"Name: {name}.Thing\n")
    (folder / "manifest.yaml").write_text(
        f"Format: 1.4\nType: Library\nFullName: {name}\nVersion: {version}\n"
        f"Classes:\n  {name}.Thing: Thing.yaml\n"
    )
    return str(folder)
