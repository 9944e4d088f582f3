# SPDX-License-Identifier: Apache-2.0

"""Hosts with Glare or Murano: what is configured, installed, started and published there.

What the plug-in publishes, it publishes in the real Glare.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest
from glare.common import policy as glare_policy
from oslo_config import cfg
from oslo_policy import policy

from glare_murano.glare import server
from tests import packages
from tests.functional import murano_api
from tests.functional.client import Client
from tests.functional.devstack.host import (
    CLEAN,
    GLANCE,
    PLAIN,
    PREPARED,
    STACK,
    STOCK_PASTE,
    Host,
    new_host,
    write_package,
)

pytestmark = pytest.mark.devstack

TOKEN = "admin:admin:admin"

_RESTART = ("stop", "start")


@pytest.fixture
def host(tmp_path: pathlib.Path, service_port: str) -> Host:
    return new_host(tmp_path, GLARE_SERVICE_PORT=service_port)


class TestStack:
    """Glare and Murano, and a change of Murano's configuration in local.conf."""

    @pytest.fixture(scope="class")
    def host(self, tmp_path_factory: pytest.TempPathFactory, service_port: str) -> Host:
        host = new_host(tmp_path_factory.mktemp("host"), GLARE_SERVICE_PORT=service_port)
        sections = "[[post-config|$MURANO_CONF_FILE]]\n[engine]\npackages_cache = /elsewhere"
        host = dataclasses.replace(host, sections=sections)
        host.run(*STACK)
        return host

    def test_glare_offers_the_artifact_type(self, host: Host) -> None:
        assert host.glare["DEFAULT"] == {
            "custom_artifact_types_modules": "glare_murano.glare.artifact",
            "enabled_artifact_types": "heat_templates,heat_environments,murano_packages,"
            "tosca_templates,images,murano",
        }

    def test_glare_has_the_documented_pipeline_with_keystone(self, host: Host) -> None:
        etc = host.top / "etc/glare"
        paste = etc / "glare-murano-paste.ini"
        assert host.glare["paste_deploy"] == {"flavor": "keystone", "config_file": str(paste)}
        assert paste.read_text() == (server.ETC / "glare-paste.ini").read_text()
        assert (etc / "glare-paste.ini").read_text() == STOCK_PASTE
        authentication = host.glare["keystone_authtoken"]
        assert authentication["username"] == "glare"
        assert authentication["password"] == "service"
        assert authentication["auth_url"] == "http://127.0.0.1/identity"

    def test_the_policy_is_that_of_the_documentation(self, host: Host) -> None:
        rules = (host.top / "etc/glare/policy.d/glare-murano.yaml").read_text()
        assert rules == (server.ETC / "policy.yaml").read_text()

    @pytest.mark.parametrize(
        ("visibility", "status", "project", "allowed"),
        [
            ("public", "active", "other", True),
            ("private", "active", "other", False),
            ("private", "active", "own", True),
            ("public", "deactivated", "other", False),
        ],
    )
    def test_every_project_may_download_what_is_public(
        self, host: Host, visibility: str, status: str, project: str, *, allowed: bool
    ) -> None:
        folder = host.top / "etc/glare"
        # The file as Glare's plug-in leaves it: its rules are none to oslo.policy.
        (folder / "policy.yaml").write_text('artifact:download": "rule:admin_or_owner"\n')
        conf = cfg.ConfigOpts()
        conf(["--config-file", str(folder / "glare.conf")])
        enforcer = policy.Enforcer(conf)
        enforcer.register_defaults(glare_policy.artifact_policy_rules)
        artifact = {"visibility": visibility, "status": status, "owner": "own"}
        user = {"project_id": project, "roles": ["member"], "is_admin": False}
        assert enforcer.authorize("artifact:download", artifact, user) is allowed

    def test_the_engine_takes_packages_from_glare(self, host: Host) -> None:
        assert host.murano == {
            "engine": {
                "engine_workers": "2",
                "enable_packages_cache": "True",
                "packages_cache": "/elsewhere",
                "share_agent_password": "True",
            },
            "glare": {"endpoint_type": "publicURL"},
            "paste_deploy": {"config_file": str(host.top / "etc/murano/glare-murano-paste.ini")},
        }

    def test_nobody_else_reads_the_cache(self, host: Host) -> None:
        assert (host.data / "packages").stat().st_mode & 0o777 == 0o700

    def test_murano_s_api_has_the_documented_filter(self, host: Host) -> None:
        paste = host.top / "etc/murano/glare-murano-paste.ini"
        assert paste.read_text() == murano_api.PASTE_FILE.read_text()

    def test_services_run_from_the_environment(self, host: Host) -> None:
        programs = host.venv / "bin"
        murano = f"--config-file {host.top}/etc/murano/murano.conf"
        assert host.running == {
            "glare": f"{programs}/glare-api --config-file {host.top}/etc/glare/glare.conf",
            "murano-api": f"{programs}/murano-api {murano}",
            "murano-engine": f"{programs}/murano-glare-engine {murano}",
        }
        # Murano's plug-in finds murano-db-manage there.
        assert (host.top / "stack/murano/bin").readlink() == programs

    def test_the_environment_is_made_with_the_tested_versions(self, host: Host) -> None:
        root = host.top / "stack/glare-murano"
        assert [call for call in host.calls if call.startswith(("venv", "pip", "edit"))] == [
            f"venv {host.venv}",
            f"pip install -c {root}/constraints.txt -e {root}[glare,cli,engine] PyMySQL",
        ]

    def test_tempest_tests_glare_but_not_by_murano_s_client(self, host: Host) -> None:
        assert host.conf("tempest.conf") == {
            "service_available": {"murano": "True", "glare": "True"},
            "application_catalog": {"deployment_tests": "True", "glare_backend": "False"},
        }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("images", "images,murano"),
        ("images, all", "images,all,murano"),
        ("images,murano_packages", "images,murano_packages,murano"),
        ("images, murano", "images, murano"),
    ],
)
def test_the_types_that_glare_has_stay(host: Host, before: str, after: str) -> None:
    (host.top / "stock/glare.conf").write_text(
        f"[DEFAULT]\nenabled_artifact_types = {before}\ncustom_artifact_types_modules = their.own\n"
    )
    host.run("stack post-config")
    assert host.glare["DEFAULT"] == {
        "enabled_artifact_types": after,
        "custom_artifact_types_modules": "their.own,glare_murano.glare.artifact",
    }


def test_local_conf_is_obeyed(host: Host, service_port: str) -> None:
    url = f"http://localhost:{service_port}"
    host.run(
        *STACK,
        ENABLED_SERVICES="key,mysql,tls-proxy",
        # Nothing waits for this port.
        GLARE_SERVICE_PORT="1",
        GLARE_MURANO_URL=url,
        GLARE_MURANO_ENDPOINT_TYPE="internalURL",
        GLARE_MURANO_USE_CACHE="no",
        GLARE_MURANO_CACHE_DIR=str(host.top / "kept"),
        GLARE_MURANO_VENV=str(host.top / "environment"),
        GLARE_MURANO_VENV_PACKAGES="psycopg2,systemd-python",
        GLARE_MURANO_CONSTRAINTS="/constraints",
        GLARE_MURANO_OTHER_TYPES="images",
    )
    assert host.murano["glare"] == {
        "url": url,
        "endpoint_type": "internalURL",
        "cafile": str(host.top / "data/ca-bundle.pem"),
    }
    assert host.murano["engine"]["enable_packages_cache"] == "False"
    assert host.murano["engine"]["packages_cache"] == str(host.top / "kept")
    assert host.glare["DEFAULT"]["enabled_artifact_types"] == "images,murano"
    assert host.running["murano-engine"].startswith(f"{host.top}/environment/bin/")
    (pip,) = (call for call in host.calls if call.startswith("pip"))
    assert pip.startswith("pip install -c /constraints -e ")
    assert pip.endswith("[glare,cli,engine] psycopg2 systemd-python")
    assert "glare" not in host.conf("tempest.conf")["service_available"]


def test_a_glare_that_does_not_start_stops_stack(host: Host) -> None:
    written = host.run(*STACK, fails=True, GLARE_SERVICE_PORT="1", SERVICE_TIMEOUT="1")
    assert "Glare did not start at http://127.0.0.1:1" in written
    assert "murano-glare-engine" not in host.running["murano-engine"]


def test_devstacks_own_python_is_used_on_request(host: Host) -> None:
    host.run(*STACK, GLARE_MURANO_VENV="")
    pip = f"pip install -c {host.top}/stack/requirements/upper-constraints.txt -e "
    assert f"{pip}{host.top}/stack/glare-murano[glare,cli,engine]" in host.calls
    programs = host.top / "data/venv/bin"
    assert host.running["murano-engine"].startswith(f"{programs}/murano-glare-engine ")
    assert host.running["glare"].startswith(f"{programs}/glare-api ")
    uwsgi = f"{programs}/uwsgi --procname-prefix murano-api --ini "
    assert host.running["murano-api"].startswith(uwsgi)
    assert not (host.top / "stack/murano/bin").exists()


def test_murano_s_api_is_left_as_it_is_on_request(host: Host) -> None:
    host.run(*STACK, GLARE_MURANO_API="False")
    assert host.running["murano-api"].endswith("murano-api stock")
    assert "paste_deploy" not in host.murano


def test_nothing_is_installed_offline(host: Host) -> None:
    # As the first run has left it.
    host.venv.mkdir(parents=True)
    host.run(*PREPARED, OFFLINE="True")
    assert [call for call in host.calls if call.startswith(("venv", "pip"))] == []


@pytest.mark.parametrize(
    ("plugins", "services", "settings", "extras"),
    [
        ("glare glare-murano", PLAIN, {}, ["glare,cli"]),
        ("murano glare-murano", PLAIN, {}, ["engine"]),
        ("glare glare-murano", GLANCE, {"MURANO_CATALOG": "glare"}, ["glare,cli"]),
        ("glare glare-murano", GLANCE, {"MURANO_CATALOG": "glance"}, ["glare,cli", "glance,cli"]),
        ("glare-murano", GLANCE, {}, ["glance,cli"]),
    ],
)
def test_what_is_installed_follows_from_the_services(
    tmp_path: pathlib.Path,
    service_port: str,
    plugins: str,
    services: str,
    settings: dict[str, str],
    extras: list[str],
) -> None:
    host = new_host(
        tmp_path,
        *plugins.split(),
        services=services,
        GLANCE_SERVICE_HOST=f"127.0.0.1:{service_port}",
        **settings,
    )
    host.run(*PREPARED)
    installed = [call.split("[")[1].split("]")[0] for call in host.calls if call.startswith("pip")]
    assert installed == extras
    assert (host.top / "etc/glance/policy.d").exists() == ("glance,cli" in extras)
    assert (host.top / "etc/glare/policy.d").exists() == ("glare,cli" in extras)


def test_the_engine_can_take_packages_from_a_glance_elsewhere(tmp_path: pathlib.Path) -> None:
    host = new_host(tmp_path, "murano", "glare-murano", MURANO_CATALOG="glance")
    host.run(*STACK, ENABLED_SERVICES="key,mysql,tls-proxy")
    assert host.murano["package_loader"] == {"catalogs": "directory,glance"}
    assert host.murano["glance"] == {
        "endpoint_type": "publicURL",
        "cafile": str(host.top / "data/ca-bundle.pem"),
    }
    # A host without a catalogue of its own publishes nothing.
    assert not any(call.startswith("openstack") for call in host.calls)


@pytest.mark.parametrize("where", ["elsewhere", "data/glare-murano/../elsewhere"])
def test_clean_leaves_directories_that_lie_elsewhere(host: Host, where: str) -> None:
    venv, cache = (f"{host.top}/{where}/{name}" for name in ("venv", "packages"))
    host.data.mkdir(parents=True)
    for phases in (STACK, CLEAN):
        host.run(*phases, GLARE_MURANO_VENV=venv, GLARE_MURANO_CACHE_DIR=cache)
    for folder in (venv, cache):
        assert pathlib.Path(os.path.normpath(folder)).is_dir()
    assert not (host.top / "stack/murano/bin").is_symlink()


def test_clean_leaves_a_directory_of_programs_that_is_murano_s(host: Host) -> None:
    (host.top / "programs-of-murano").mkdir()
    (host.top / "stack/murano/bin").symlink_to(host.top / "programs-of-murano")
    host.run(*CLEAN)
    assert (host.top / "stack/murano/bin").is_symlink()


@pytest.fixture(scope="module")
def glare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Glare, which lives as long as this module's tests."""
    state = tmp_path_factory.mktemp("glare")
    command = [sys.executable, "-m", "glare_murano.glare.server", f"--state-dir={state}"]
    with subprocess.Popen([*command, "--port=0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        core = packages.package("io.murano", "0.1.0")
        Client(url, TOKEN).publish("io.murano", "0.1.0", core, public=True)
        yield url
        process.terminate()


def _found(url: str, name: str) -> list[tuple[str, str, str]]:
    request = urllib.request.Request(
        f"{url}/artifacts/murano?name={name}&sort=version:asc", headers={"X-Auth-Token": TOKEN}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        artifacts = json.load(answer)["artifacts"]
    return [(found["version"], found["status"], found["visibility"]) for found in artifacts]


class TestPublishing:
    def stack(
        self, host: Host, glare: str, folders: str | None = None, *, fails: bool = False
    ) -> str:
        host.configure_cloud("artifact", glare, TOKEN)
        port = str(urllib.parse.urlsplit(glare).port)
        return host.run(*STACK, fails=fails, GLARE_SERVICE_PORT=port, GLARE_MURANO_PUBLISH=folders)

    def test_the_core_library_is_published_before_the_engine_starts(
        self, host: Host, glare: str
    ) -> None:
        for name in ("io.murano", "io.murano.applications"):
            write_package(host.top / "stack/murano/meta" / name, name, "0.0.0")
        self.stack(host, glare)
        for name in ("io.murano", "io.murano.applications"):
            assert ("0.16.0", "active", "public") in _found(glare, name)
            assert "0.0.0" not in [version for version, *_ in _found(glare, name)]
        assert [" ".join(call.split()[:2]) for call in host.calls[-6:]] == [
            "openstack --os-cloud",
            "openstack --os-cloud",
            *(f"{done} {name}" for name in ("murano-api", "murano-engine") for done in _RESTART),
        ]

    def test_several_core_libraries_are_published_and_never_changed(
        self, host: Host, glare: str
    ) -> None:
        name = "org.core"
        folder = write_package(host.top / "core", name, "0.0.0")
        self.stack(host, glare, f"0.15.0={folder},{folder}")
        found = [(version, "active", "public") for version in ("0.0.0", "0.15.0")]
        assert _found(glare, name) == found

        (host.top / "core/Classes/Thing.yaml").write_text(f"Name: {name}.Thing\n# changed\n")
        written = self.stack(host, glare, f"0.15.0={folder}", fails=True)
        assert f"{name} 0.15.0 is published in Glare at" in written
        assert "with other files" in written
        assert f"{folder} was not published in Glare" in written
        assert "murano-glare-engine" not in host.running["murano-engine"]
        assert _found(glare, name) == found
