# SPDX-License-Identifier: Apache-2.0

"""The files for uWSGI, Kolla-Ansible and OpenStack-Ansible: their syntax, and what they name."""

import configparser
import pathlib
import re
from typing import Any

import jinja2
import pytest
import yaml

from glare_murano import images
from glare_murano.glance import configuration

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGES = ROOT / "doc" / "source" / "guides" / "operators"
KOLLA, ANSIBLE, UWSGI, TIMER = (
    EXAMPLES / name for name in ("kolla", "openstack-ansible", "uwsgi", "pages")
)
VARIABLES = ANSIBLE / "user_variables_glare_murano.yml"
# Where the files of this project are, in the environment of a deployment tool.
FILES = re.compile(r"(?:/var/lib/kolla/venv|\{\{ glance_bin \| dirname \}\})/etc/glare-murano/(.*)")
# The other options have one value each.
_OPTIONS = {
    ("DEFAULT", "property_protection_file"),
    ("image_format", "container_formats"),
    ("image_import_opts", "image_import_plugins"),
    ("paste_deploy", "config_file"),
    ("wsgi", "python_interpreter"),
}
# The instructions that the Dockerfiles of this project use.
_INSTRUCTIONS = {"ADD", "COPY", "ENTRYPOINT", "FROM", "RUN", "USER", "VOLUME"}
_SHIPPED = configuration.IniFile(configuration.ETC / "glance-murano.conf")


def _ini(path: pathlib.Path) -> configparser.RawConfigParser:
    # The group DEFAULT is one like the others.
    parser = configparser.RawConfigParser(default_section="none")
    parser.read_string(path.read_text())
    return parser


def _setup() -> configparser.RawConfigParser:
    return _ini(ROOT / "setup.cfg")


def _names(section: str, option: str) -> list[str]:
    """Return the names of entry points, extras or data files in ``setup.cfg``."""
    return re.findall(r"^([\w./-]+) = ", _setup().get(section, option), re.M)


def variables() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(VARIABLES.read_text())
    return found


def _kolla_options() -> dict[str, dict[str, str]]:
    parser = _ini(KOLLA / "glance-api.conf")
    return {section: dict(parser[section]) for section in parser.sections()}


GLANCE_OPTIONS = {
    "kolla": _kolla_options(),
    "openstack-ansible": variables()["glance_glance_api_conf_overrides"],
}
TOOLS = sorted(GLANCE_OPTIONS)


def test_every_file_is_shown_on_a_page() -> None:
    shown = {
        (PAGES / path).resolve()
        for page in PAGES.glob("*.rst")
        for path in re.findall(r"^ *\.\. literalinclude:: (\S+)$", page.read_text(), re.M)
    }
    files = {path for folder in (KOLLA, ANSIBLE, UWSGI, TIMER) for path in folder.iterdir()}
    assert len(files) == 10
    assert files <= shown


@pytest.mark.parametrize("tool", TOOLS)
def test_the_options_are_those_of_glance_with_packages(tool: str) -> None:
    options = GLANCE_OPTIONS[tool]
    assert {(group, name) for group in options for name in options[group]} == _OPTIONS
    assert options["image_format"]["container_formats"] == _SHIPPED.get(
        "image_format", "container_formats"
    )
    assert images.CONTAINER_FORMAT in options["image_format"]["container_formats"].split(",")
    plugin = options["image_import_opts"]["image_import_plugins"]
    assert plugin == f"[{configuration.PLUGIN}]"
    assert configuration.PLUGIN in _names("entry_points", "glance.image_import.plugins")


@pytest.mark.parametrize("tool", TOOLS)
def test_the_named_files_are_shipped(tool: str) -> None:
    options = GLANCE_OPTIONS[tool]
    files = [options["DEFAULT"]["property_protection_file"], options["paste_deploy"]["config_file"]]
    names = [FILES.fullmatch(file) for file in files]
    assert all(name and (configuration.ETC / name[1]).is_file() for name in names)
    folder = configuration.ETC.relative_to(ROOT)
    assert f"etc/glare-murano = {folder}/*" in _setup().get("files", "data_files")


@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_is_left_for_the_command_to_configure(tool: str, tmp_path: pathlib.Path) -> None:
    """So ``glare-murano-glance-status`` gives no warning."""
    policy = (configuration.ETC / "glance-policy.yaml").read_text()
    (tmp_path / "policy.yaml").write_text(policy)
    conf = configuration.IniFile(tmp_path / "glance-api.conf")
    for group, values in GLANCE_OPTIONS[tool].items():
        for name, value in values.items():
            shipped = FILES.fullmatch(value)
            conf.set(group, name, str(configuration.ETC / shipped[1]) if shipped else value)
    conf.path.write_text(conf.text)

    assert configuration.find_changes(tmp_path) == {}


def test_the_policy_of_openstack_ansible_is_the_shipped_one() -> None:
    shipped = yaml.safe_load((configuration.ETC / "glance-policy.yaml").read_text())
    assert variables()["glance_policy_overrides"] == shipped


def test_openstack_ansible_installs_this_project() -> None:
    (source,) = variables()["glance_user_pip_packages"]
    name = _setup().get("metadata", "name")
    version = (ROOT / "VERSION").read_text().strip()
    assert source.endswith(f"/{name}@{version}#egg={name}")


def test_kolla_builds_the_image_that_is_deployed() -> None:
    (section,) = _ini(KOLLA / "kolla-build.conf").sections()
    image, _, plugin = section.partition("-plugin-")
    location = _ini(KOLLA / "kolla-build.conf").get(section, "location")
    assert pathlib.PurePath(location).name == plugin == _setup().get("metadata", "name")
    assert yaml.safe_load((KOLLA / "globals.yml").read_text())["glance_api_image"].endswith(image)


def test_the_template_for_kolla_makes_a_dockerfile() -> None:
    parent = (
        '{% import "macros.j2" as macros with context %}FROM base\n'
        "{% block glance_api_footer %}{% endblock %}\nUSER glance\n"
    )
    # As in Kolla.
    macros = (
        "{% macro install_pip(packages) %}python3 -m pip install -c /requirements/"
        "upper-constraints.txt {{ packages | join(' ') }}{% endmacro %}"
        "{% macro upper_constraints_remove(name) %}sed -i /^{{ name }}===/d file{% endmacro %}"
    )
    text = (KOLLA / "template-overrides.j2").read_text()
    loader = jinja2.DictLoader({"parent": parent, "macros.j2": macros, "own": text})
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        # As in Kolla.
        autoescape=False,
    )

    rendered = environment.get_template("own").render(parent_template="parent")

    lines = [line for line in rendered.splitlines() if line.strip()]
    assert lines[0] == "FROM base"
    assert lines[-1] == "USER glance"
    assert _instructions(rendered) <= _INSTRUCTIONS
    assert "/plugins/glare-murano" in rendered


def test_the_dockerfile_of_the_engine_starts_its_command() -> None:
    text = (KOLLA / "Dockerfile").read_text()
    assert _instructions(text) <= _INSTRUCTIONS
    command = re.findall(r'^ENTRYPOINT \["/opt/murano/bin/([\w-]+)"', text, re.M)
    assert command == ["murano-glare-engine"]
    assert command[0] in _names("entry_points", "console_scripts")
    (extra,) = re.findall(r"/src\[(\w+)\]", text)
    assert extra in _setup().options("extras")
    assert (ROOT / "constraints.txt").is_file()
    # The directory of the shipped settings.
    cache = _ini(ROOT / "loader" / "engine" / "etc" / "murano.conf").get("engine", "packages_cache")
    assert f"murano {cache}\n" in text
    assert f"VOLUME {cache}\n" in text


def test_uwsgi_runs_glance() -> None:
    ini = _ini(UWSGI / "glance-api-uwsgi.ini")["uwsgi"]
    unit = _ini(UWSGI / "glance-api.service")["Service"]
    assert ini["module"] == "glance.wsgi.api:application"
    assert unit["execstart"].startswith(f"{ini['virtualenv']}/bin/uwsgi --ini /etc/glance/")
    assert pathlib.PurePath(unit["execstart"]).name == "glance-api-uwsgi.ini"


def _instructions(text: str) -> set[str]:
    """Return the instructions of a Dockerfile; each is at the beginning of a line."""
    without_comments = re.sub(r"^#.*\n", "", text, flags=re.M)
    joined = re.sub(r"\\\n", " ", without_comments)
    return {line.split()[0] for line in joined.splitlines() if line.strip()}
