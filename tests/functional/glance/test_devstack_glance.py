# SPDX-License-Identifier: Apache-2.0

"""The DevStack plug-in on a host with Glance alone, and the real Glance that it configures.

The functions of DevStack are those of ``devstack_host``. With the marker ``devstack`` they are
DevStack's own, whose ``lib/glance`` writes the configuration.
"""

import pathlib
import sys
from collections.abc import Iterator

import pytest
import yaml

from glare_murano import wire
from glare_murano.glance.configuration import configure
from tests import packages, prerequisites, processes
from tests.functional.devstack_host import (
    FUNCTIONS,
    OTHER_PLUGINS,
    PLUGIN,
    PREPARED,
    STACK,
    Host,
    new_host,
    write_package,
)
from tests.functional.glance import service
from tests.functional.glance.image_client import ImageClient

# What DevStack writes for Glance, and when; of its lib/glance, only what matters here.
_GLANCE = """
GLANCE_BIN_DIR=$TOP_DIR/path
GLANCE_CONF_DIR=$TOP_DIR/etc/glance
GLANCE_API_CONF=$GLANCE_CONF_DIR/glance-api.conf

function configure_glance {
    mkdir -p "$GLANCE_CONF_DIR"
    touch "$GLANCE_API_CONF" "$GLANCE_CONF_DIR/glance-image-import.conf"
    cp "$DEST/glance/etc/glance-api-paste.ini" "$GLANCE_CONF_DIR"
    iniset "$GLANCE_API_CONF" paste_deploy flavor keystone+cachemanagement
    iniset "$GLANCE_API_CONF" DEFAULT image_cache_dir "$DATA_DIR/glance/cache"
    iniset "$GLANCE_API_CONF" DEFAULT worker_self_reference_url http://127.0.0.1
    iniset "$GLANCE_API_CONF" glance_store filesystem_store_datadir "$DATA_DIR/glance/images"
    iniset "$GLANCE_API_CONF" database connection "$(database_connection_url glance)"
    iniset "$GLANCE_CONF_DIR/glance-image-import.conf" \\
        image_import_opts image_import_plugins "[]"
}
function start_glance { run_process g-api "uwsgi"; }
function stop_glance { stop_process g-api; }
"""

_OTHERS = """
function database_connection_url { echo "sqlite:///$TOP_DIR/glance.sqlite?timeout=60"; }

function glance_settings { enable_service g-api; }
function glance_plugin {
    case "$*" in
        "stack install")
            configure_glance
            iniset "$GLANCE_API_CONF" DEFAULT node_staging_uri "file://$DATA_DIR/staging"
            ;;
        "stack extra") start_glance ;;
        unstack) stop_glance ;;
    esac
}
"""

# DevStack's own functions. Systemd, Apache, Keystone and pip are stand-ins.
_DEVSTACK = """\
set -o errexit -o xtrace

function sudo { if [[ "$1" == -E ]]; then shift; fi; "$@"; }
SYSTEMCTL=$TOP_DIR/path/systemctl
SYSTEMD_DIR=$TOP_DIR/systemd
KILL_PATH=/bin/kill
API_WORKERS=2
WORKER_TIMEOUT=80
APACHE_LOCAL_HOST=127.0.0.1
SERVICE_HOST=127.0.0.1
SERVICE_LISTEN_ADDRESS=127.0.0.1
SERVICE_PROTOCOL=http
SYSLOG=False
ENABLE_DEBUG_LOG_LEVEL=False
GLOBAL_VENV=False
GLANCE_CONF_DIR=$TOP_DIR/etc/glance
source "$DEVSTACK_DIR/functions"
source "$DEVSTACK_DIR/lib/apache"
source "$DEVSTACK_DIR/lib/glance"
GLANCE_BIN_DIR=$TOP_DIR/path

function record { echo "$*" >> "$TOP_DIR/calls"; }
function setup_develop { record setup_develop "$@"; }
function git_clone { record git_clone "$@"; }
function wait_for_service { record wait_for_service "$@"; }
function configure_keystone_authtoken_middleware { record "$FUNCNAME" "$@"; }
function iniset_rpc_backend { iniset "$2" DEFAULT transport_url "fake:/"; }
function setup_logging { iniset "$1" DEFAULT log_file "$TOP_DIR/glance.log"; }
function apache_site_config_for { echo "$TOP_DIR/$1.conf"; }
function enable_apache_mod { :; }
function enable_apache_site { :; }
function restart_apache_server { :; }
"""

_SYSTEMCTL = """\
#!/bin/bash
unit=${{2#devstack@}}
unit={top}/running/${{unit%.service}}
case "$1" in
    start) [[ -e "$unit" ]] || date +%N > "$unit" ;;
    stop) rm -f "$unit" ;;
    is-enabled) [[ -e "$unit" ]] ;;
esac
"""

_CONFIGURE = """\
#!/bin/bash
PYTHONPATH={root} exec {python} -m glare_murano.glance.configuration "$@"
"""

_POLICY = {"upload_image": "role:member", "delete_image": "role:admin"}
_PROTECTIONS = """\
[^billing_.*]
create = admin
read = @
update = admin
delete = admin
[.*]
create = @
read = @
update = @
delete = @
"""


def _glance_host(top: pathlib.Path, functions: str = FUNCTIONS + _GLANCE) -> Host:
    host = new_host(top, functions, OTHER_PLUGINS + _OTHERS)
    stock = prerequisites.glance().parent / "etc" / "glance"
    (top / "glance/etc/metadefs").mkdir(parents=True)
    paste = (stock / "glance-api-paste.ini").read_text()
    (top / "glance/etc/glance-api-paste.ini").write_text(service.trusting(paste))
    for name in ("schema-image.json", "metadefs/a.json"):
        (top / "glance/etc" / name).write_text("{}")
    programs = {"uwsgi": "", "systemctl": _SYSTEMCTL, "glare-murano-glance-configure": _CONFIGURE}
    for name, text in programs.items():
        (top / "path" / name).write_text(
            text.format(top=top, root=processes.ROOT, python=sys.executable)
        )
        (top / "path" / name).chmod(0o755)
    return host


def _run(host: Host, *phases: str, **localrc: str) -> str:
    return host.run(
        *phases,
        plugins="glance our",
        **{"DEVSTACK_DIR": str(prerequisites.DEVSTACK), **localrc},
    )


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    return _glance_host(tmp_path)


@pytest.mark.parametrize(
    ("plugins", "catalog", "merged"),
    [
        ("glance glare our", "", False),
        ("glance glare our", "glare", False),
        ("glance glare our", "glance", True),
        ("glance our", "glance", True),
    ],
)
def test_the_catalogue_decides_whether_glance_is_changed(
    tmp_path: pathlib.Path, plugins: str, catalog: str, *, merged: bool
) -> None:
    host = _glance_host(tmp_path)
    host.run(*PREPARED, plugins=plugins, MURANO_CATALOG=catalog)
    assert (host.top / "etc/glance/policy.d").exists() == merged
    assert (f"setup_develop {PLUGIN.parent} glance,cli" in host.calls) == merged
    is_glare = "glare" in plugins
    assert is_glare == (host.top / "etc/glare/policy.d/glare-murano.yaml").exists()


def test_a_host_without_glance_and_glare_is_refused(tmp_path: pathlib.Path) -> None:
    host = _glance_host(tmp_path)
    written = host.run(*STACK, plugins="our", fails=True, MURANO_CATALOG="glance")
    assert "needs g-api, glare or murano" in written


class TestStack:
    """After stack.sh, and after another one, on a host whose operator has rules of their own."""

    @pytest.fixture(
        scope="class",
        params=[
            "stand-in",
            pytest.param("devstack", marks=[pytest.mark.services, pytest.mark.devstack]),
        ],
    )
    def host(
        self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Host:
        functions = _DEVSTACK if request.param == "devstack" else FUNCTIONS + _GLANCE
        host = _glance_host(tmp_path_factory.mktemp("host"), functions)
        etc = host.top / "etc/glance"
        etc.mkdir(parents=True)
        (etc / "policy.yaml").write_text(yaml.safe_dump(_POLICY))
        (etc / "rules.conf").write_text(_PROTECTIONS)
        (etc / "glance-api.conf").write_text("[DEFAULT]\nproperty_protection_file = rules.conf\n")
        for _ in range(2):
            _run(host, *STACK)
        return host

    @pytest.fixture(scope="class")
    def url(self, host: Host) -> Iterator[str]:
        """The address of the Glance that is configured there."""
        etc = host.top / "etc/glance"
        port = processes.free_port()
        for name in ("images", "staging"):
            (host.top / "data/glance" / name).mkdir(parents=True)
        service.manage(etc, "db", "sync")
        glance = service.Process(etc, port, host.top / "glance.out")
        try:
            glance.start()
            yield glance.url
        finally:
            glance.kill()

    def test_the_files_are_merged_into_those_of_the_operator(self, host: Host) -> None:
        etc = host.top / "etc/glance"
        before = {path: path.read_bytes() for path in etc.rglob("*") if path.is_file()}
        assert configure(etc) == []
        assert {path: path.read_bytes() for path in before} == before
        assert yaml.safe_load((etc / "policy.yaml").read_text()) == _POLICY
        assert (etc / "rules.conf").read_text().endswith(_PROTECTIONS)

    def test_it_is_installed_where_glance_runs(self, host: Host) -> None:
        assert f"setup_develop {PLUGIN.parent} glance,cli" in host.calls
        assert not (host.top / "data/glare-murano").exists()
        assert not any(call.startswith(("venv", "pip")) for call in host.calls)

    def test_what_runs_was_started_with_the_configuration(self, host: Host) -> None:
        (unit,) = host.running
        changed = max(path.stat().st_mtime for path in (host.top / "etc/glance").rglob("*"))
        assert unit == "g-api"
        assert (host.top / "running" / unit).stat().st_mtime >= changed

    def test_glance_takes_packages_through_an_import_alone(self, url: str) -> None:
        images = ImageClient(url, "user:project:member,reader")
        data = packages.package("org.stacked")
        image_id = images.create("org.stacked").json()["id"]
        assert images.put(image_id, data, into="file").status_code == 403

        image = images.imported(image_id, data)
        assert image["status"] == "active"
        assert image["murano_version"] == "1.0.0"
        assert images.set(image_id, "murano_version", "2.0.0").status_code == 403
        assert images.request("GET", "/murano").status_code == 200

    def test_the_core_library_is_published_for_everybody(self, host: Host, url: str) -> None:
        for name in ("io.murano", "io.murano.applications"):
            write_package(host.top / "murano/meta" / name, name, "0.0.0")
        host.configure_cloud("image", url, "admin:admin:admin,member,reader")
        host.publish_default()
        _run(host, "stack install", "stack extra")

        assert f"git_clone https://opendev.org/openstack/murano.git {host.top}/murano 16.0.0" in (
            host.calls
        )
        query = {"requirements": {"io.murano.applications": "0.16"}}
        found = ImageClient(url, "user:other:member,reader").query(wire.DEPENDENCIES_PATH, **query)
        assert [(release["name"], release["version"]) for release in found.json()["releases"]] == [
            ("io.murano", "0.16.0"),
            ("io.murano.applications", "0.16.0"),
        ]

    def test_the_rules_of_the_operator_are_obeyed(self, url: str) -> None:
        images = ImageClient(url, "user:other:member,reader")
        admin = ImageClient(url, "admin:other:admin,member,reader")
        body = {"name": "vm", "container_format": "bare", "disk_format": "raw"}
        image_id = images.request("POST", "/v2/images", json=body).json()["id"]
        assert images.put(image_id, b"data", into="file").status_code == 204
        assert images.set(image_id, "billing_class", "a", op="add").status_code == 403
        assert admin.set(image_id, "billing_class", "a", op="add").status_code == 200
        assert images.delete(image_id).status_code == 403
