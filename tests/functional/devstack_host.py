# SPDX-License-Identifier: Apache-2.0

"""A host on which stack.sh can run: DevStack's functions, and plug-ins beside ours.

Both are small stand-ins: they write real configuration files, and record what they are
asked to do.
"""

import configparser
import dataclasses
import getpass
import json
import os
import pathlib
import subprocess
import sys

from tests import processes

PLUGIN = processes.ROOT / "devstack"
PREPARED = ("stack pre-install", "stack install", "stack post-config")
STACK = (*PREPARED, "stack extra", "stack test-config")

STOCK_PASTE = """\
[pipeline:glare-api]
pipeline = cors faultwrapper healthcheck http_proxy_to_wsgi osprofiler trustedauth glarev1api

[pipeline:glare-api-keystone]
pipeline = healthcheck cors faultwrapper authtoken context osprofiler glarev1api

[filter:healthcheck]
paste.filter_factory = oslo_middleware:Healthcheck.factory
"""

INI = """\
import configparser
import pathlib
import sys

action, file, section, option, *value = sys.argv[1:]
ini = configparser.RawConfigParser()
ini.optionxform = str
ini.read(file)
if action == "get":
    known = section == "DEFAULT" or ini.has_section(section)
    print(ini.get(section, option, fallback="") if known else "")
    sys.exit()
if section != "DEFAULT" and not ini.has_section(section):
    ini.add_section(section)
if action == "set":
    ini.set(section, option, " ".join(value))
else:
    ini.remove_option(section, option)
with pathlib.Path(file).open("w") as stream:
    ini.write(stream)
"""

# As in DevStack, a service that runs is not started again.
FUNCTIONS = """\
set -o errexit -o nounset -o xtrace

function record { echo "$*" >> "$TOP_DIR/calls"; }
function echo_summary { echo "$*"; }
function define_plugin { :; }
function plugin_requires { :; }
function die { echo "died: ${*:2}" >&2; exit 1; }
function sudo { "$@"; }
function trueorfalse {
    case "${!2:-}" in
        1 | [Tt]rue | [Yy]es) echo True ;;
        0 | [Ff]alse | [Nn]o) echo False ;;
        *) echo "$1" ;;
    esac
}
function iniset { "$PYTHON" -S "$TOP_DIR/ini.py" set "$@"; }
function iniget { "$PYTHON" -S "$TOP_DIR/ini.py" get "$@"; }
function inidelete { "$PYTHON" -S "$TOP_DIR/ini.py" delete "$@"; }
function enable_service {
    if [[ ",$DISABLED_SERVICES," != *",$1,"* ]]; then
        ENABLED_SERVICES+=",$1"
    fi
}
function is_service_enabled { [[ ",$ENABLED_SERVICES," == *",$1,"* ]]; }
function get_python_exec_prefix { echo "$DATA_DIR/venv/bin"; }
function setup_develop { record setup_develop "$@"; }
function git_clone { record git_clone "$@"; }
function wait_for_service { record wait_for_service "$@"; }
function configure_keystone_authtoken_middleware { record "$FUNCNAME" "$@"; }
function run_process {
    record run_process "$@"
    if is_service_enabled "$1" && [[ ! -e "$TOP_DIR/running/$1" ]]; then
        echo "$2" > "$TOP_DIR/running/$1"
    fi
}
function stop_process {
    record stop_process "$1"
    rm -f "$TOP_DIR/running/$1"
}
"""

OTHER_PLUGINS = """\
function glare_settings {
    enable_service glare
    GLARE_BIN_DIR=$(get_python_exec_prefix)
    GLARE_CONF_DIR=$TOP_DIR/etc/glare
    GLARE_CONF_FILE=$GLARE_CONF_DIR/glare.conf
    GLARE_PASTE_INI=$GLARE_CONF_DIR/glare-paste.ini
    GLARE_SERVICE_PROTOCOL=http
    GLARE_SERVICE_HOST=127.0.0.1
    GLARE_SERVICE_PORT=9494
}

function glare_plugin {
    case "$*" in
        "stack post-config")
            mkdir -p "$GLARE_CONF_DIR"
            cp "$TOP_DIR/glare.conf" "$GLARE_CONF_FILE"
            cp "$TOP_DIR/glare-paste.ini" "$GLARE_PASTE_INI"
            ;;
        "stack extra")
            run_process glare \
                "$GLARE_BIN_DIR/glare-api --config-file $GLARE_CONF_FILE"
            ;;
        unstack)
            stop_process glare-api
            ;;
    esac
}

function murano_settings {
    enable_service murano
    enable_service murano-api
    enable_service murano-engine
    MURANO_DIR=$DEST/murano
    MURANO_CONF_FILE=$TOP_DIR/etc/murano/murano.conf
    GLARE_ENDPOINT_TYPE=${GLARE_ENDPOINT_TYPE:-publicURL}
}

function murano_plugin {
    MURANO_USE_UWSGI=${MURANO_USE_UWSGI:-True}
    MURANO_UWSGI_CONF=$TOP_DIR/etc/murano/murano-api-uwsgi.ini
    MURANO_BIN_DIR=$(get_python_exec_prefix)
    if [[ -d "$MURANO_DIR/bin" ]]; then
        MURANO_BIN_DIR=$MURANO_DIR/bin
    fi
    case "$*" in
        "stack post-config")
            mkdir -p "$TOP_DIR/etc/murano"
            cp "$TOP_DIR/murano.conf" "$MURANO_CONF_FILE"
            ;;
        "stack extra")
            record "murano-db-manage from $MURANO_BIN_DIR"
            run_process murano-api stock
            run_process murano-engine \
                "$MURANO_BIN_DIR/murano-engine --config-file $MURANO_CONF_FILE"
            ;;
        unstack)
            stop_process murano-api
            stop_process murano-engine
            ;;
    esac
}

function our_settings { source "$PLUGIN/settings"; }
function our_plugin { source "$PLUGIN/plugin.sh" "$@"; }
"""

RUN = """\
for plugin in $PLUGINS; do
    "${plugin}_settings"
done
for phase in "$@"; do
    for plugin in $PLUGINS; do
        # shellcheck disable=SC2086
        "${plugin}_plugin" $phase
    done
done
"""

# It makes what "python -m venv" would, with a pip that only records.
MAKE_VENV = """\
#!/bin/bash
echo "venv $3" >> "{top}/calls"
mkdir -p "$3/bin"
printf '#!/bin/bash\\necho "pip $*" >> "{top}/calls"\\n' > "$3/bin/pip"
cp "{top}/path/openstack" "$3/bin"
chmod +x "$3/bin/pip"
"""

OPENSTACK = """\
#!/bin/bash
echo "openstack $*" >> "{top}/calls"
OS_CLIENT_CONFIG_FILE={top}/clouds.yaml exec {python} -m openstackclient.shell "$@"
"""


@dataclasses.dataclass
class Host:
    """A host on which stack.sh can run."""

    top: pathlib.Path

    def run(
        self,
        *phases: str,
        plugins: str = "glare murano our",
        fails: bool = False,
        **localrc: str,
    ) -> str:
        """Run phases in one shell; returns what it wrote, with bash's trace."""
        environment = {
            "PATH": f"{self.top}/path:{os.environ['PATH']}",
            "TOP_DIR": str(self.top),
            "DEST": str(self.top),
            "GIT_BASE": "https://opendev.org",
            "DATA_DIR": str(self.top / "data"),
            "STACK_USER": getpass.getuser(),
            "PYTHON": sys.executable,
            "PLUGIN": str(PLUGIN),
            "PLUGINS": plugins,
            "SERVICE_TIMEOUT": "60",
            "SSL_BUNDLE_FILE": "/data/ca-bundle.pem",
            "TEMPEST_CONFIG": str(self.top / "tempest.conf"),
            "ENABLED_SERVICES": "key,tempest",
            "DISABLED_SERVICES": "",
            "GLARE_MURANO_PYTHON": f"{self.top}/path/make-venv",
            "GLARE_MURANO_PUBLISH": "",
        }
        done = subprocess.run(
            ["bash", self.top / "stack.sh", *phases],
            env=environment | localrc,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stdout + done.stderr

    def configure_cloud(self, service_type: str, url: str, token: str) -> None:
        """Name a service without Keystone as the cloud that packages are published in."""
        cloud = {
            "auth_type": "admin_token",
            "auth": {"endpoint": url, "token": token},
            f"{service_type}_endpoint_override": url,
            f"{service_type}_project_id": token.split(":")[1],
        }
        (self.top / "clouds.yaml").write_text(json.dumps({"clouds": {"devstack-admin": cloud}}))

    def publish_default(self) -> None:
        """Publish what ``settings`` names by default, from the directory of Murano."""
        script = self.top / "stack.sh"
        script.write_text("unset GLARE_MURANO_PUBLISH\n" + script.read_text())

    def conf(self, name: str) -> dict[str, dict[str, str]]:
        ini = configparser.RawConfigParser()
        ini.read_string((self.top / name).read_text())
        return {name: dict(section) for name, section in ini.items() if len(section)}

    @property
    def glare(self) -> dict[str, dict[str, str]]:
        return self.conf("etc/glare/glare.conf")

    @property
    def murano(self) -> dict[str, dict[str, str]]:
        return self.conf("etc/murano/murano.conf")

    @property
    def venv(self) -> pathlib.Path:
        return self.top / "data/glare-murano/venv"

    @property
    def calls(self) -> list[str]:
        calls = self.top / "calls"
        return calls.read_text().splitlines() if calls.exists() else []

    @property
    def running(self) -> dict[str, str]:
        return {unit.name: unit.read_text().strip() for unit in (self.top / "running").iterdir()}


def new_host(top: pathlib.Path, functions: str = FUNCTIONS, others: str = OTHER_PLUGINS) -> Host:
    for folder in ("running", "path", "murano"):
        (top / folder).mkdir()
    (top / "glare.conf").write_text("[paste_deploy]\n")
    (top / "murano.conf").write_text("[engine]\nengine_workers = 2\n")
    (top / "glare-paste.ini").write_text(STOCK_PASTE)
    (top / "ini.py").write_text(INI)
    (top / "stack.sh").write_text(functions + others + RUN)
    for name, text in (("make-venv", MAKE_VENV), ("openstack", OPENSTACK), ("uwsgi", "")):
        program = top / "path" / name
        program.write_text(text.format(top=top, python=sys.executable))
        program.chmod(0o755)
    return Host(top)


def write_package(folder: pathlib.Path, name: str, version: str) -> str:
    """Write a package into a new directory, and return its path."""
    (folder / "Classes").mkdir(parents=True)
    (folder / "Classes/Thing.yaml").write_text(f"Name: {name}.Thing\n")
    (folder / "manifest.yaml").write_text(
        f"Format: 1.4\nType: Library\nFullName: {name}\nVersion: {version}\n"
        f"Classes:\n  {name}.Thing: Thing.yaml\n"
    )
    return str(folder)
