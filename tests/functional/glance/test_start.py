# SPDX-License-Identifier: Apache-2.0

"""The real Glance does not start without the settings that protect packages."""

import pathlib
import re

import pytest

from glare_murano.glance.ini_file import IniFile
from tests.functional.glance import service

_CONF = "glance-api.conf"
_IMPORT = "glance-image-import.conf"
_POLICY = "glance-policy.yaml"
_PROTECTIONS = "property-protections.conf"
_FORMATS = ("image_format", "container_formats")
_FILE = ("DEFAULT", "property_protection_file")
_INTERPRETER = ("wsgi", "python_interpreter")
_RULES = ("oslo_policy", "policy_file")


def _set(section: str, option: str, value: str, name: str = _CONF) -> service.Change:
    """Return a change that sets an option in a file."""

    def change(etc: pathlib.Path) -> None:
        file = IniFile(etc / name)
        file.set(section, option, value.format(etc=etc))
        file.path.write_text(file.text)

    return change


def _protect(first: str, **options: str) -> service.Change:
    """Return a change that adds a first section to the property protections."""
    actions = dict.fromkeys(("create", "read", "update", "delete"), "!") | options
    lines = [f"[{first}]", *(f"{action} = {value}" for action, value in actions.items())]

    def change(etc: pathlib.Path) -> None:
        file = etc / _PROTECTIONS
        file.write_text("\n".join([*lines, file.read_text()]))
        _set(*_FILE, str(file))(etc)

    return change


def _permit(rule: str, value: str) -> service.Change:
    """Return a change that replaces a rule of the policy."""

    def change(etc: pathlib.Path) -> None:
        file = etc / _POLICY
        text, count = re.subn(f'^"{rule}":.*', f'"{rule}": "{value}"', file.read_text(), flags=re.M)
        assert count == 1
        file.write_text(text)
        _set(*_RULES, str(file))(etc)

    return change


def _enable(*plugins: str, output_format: str = "raw") -> service.Change:
    """Return a change of the import plug-ins."""

    def change(etc: pathlib.Path) -> None:
        listed = f"[{','.join(plugins)}]"
        _set("image_import_opts", "image_import_plugins", listed, _IMPORT)(etc)
        _set("image_conversion", "output_format", output_format)(etc)

    return change


GUARD = "not 'murano':%(container_format)s"

FAULTS = {
    "formats": (_set(*_FORMATS, "bare,ovf"), "container_formats: add murano to the list"),
    "no plug-in": (_enable("no_op"), "write ['no_op', 'murano_package']"),
    "plug-in first": (_enable("murano_package", "no_op"), "write ['no_op', 'murano_package']"),
    "decompression": (
        _enable("image_decompression", "murano_package"),
        "remove image_decompression",
    ),
    "conversion": (
        _enable("image_conversion", "murano_package", output_format="qcow2"),
        "[image_conversion] output_format: write raw",
    ),
    "conversion to another format": (
        _enable("image_conversion", "murano_package", output_format="vmdk"),
        "[image_conversion] output_format: write raw",
    ),
    "no protections": (_set(*_FILE, ""), "property_protection_file: write the path of a copy of"),
    "missing protections": (
        _set(*_FILE, "{etc}/missing.conf"),
        "missing.conf cannot be read; see Glance's log",
    ),
    "protections for all": (
        _protect(".", update="@"),
        "callers may update the property murano_author (roles: admin)",
    ),
    "protections by role": (
        _protect("^murano_yanked$", delete="Curator"),
        "callers may delete the property murano_yanked (roles: curator)",
    ),
    "protections by case": (
        _protect("^MURANO_VERSION$", create="reader"),
        "callers may create the property MURANO_VERSION (roles: reader)",
    ),
    "upload": (
        _permit("upload_image", "role:member and project_id:%(project_id)s"),
        "by the rule upload_image, callers may give a package data that nobody has checked "
        "(roles: member)",
    ),
    "upload by a role": (
        _permit("upload_image", f"role:uploader and role:reader or {GUARD}"),
        "by the rule upload_image, callers may give a package data that nobody has checked "
        "(roles: admin, ",
    ),
    "location": (
        _permit("add_image_location", "role:service"),
        "by the rule add_image_location",
    ),
    "patch": (_permit("set_image_location", "role:admin"), "by the rule set_image_location"),
    # Python takes the program that has loaded it for its interpreter.
    "uWSGI": (
        _set(*_INTERPRETER, "/bin/true"),
        "python_interpreter: write the path of Glance's Python",
    ),
    "interpreter": (_set(*_INTERPRETER, "{etc}/python"), "interpreter/python cannot run it"),
    "removal": (_permit("delete_image_location", "@"), "by the rule delete_image_location"),
}

HARMLESS: dict[str, service.Change] = {
    "shipped files": lambda _: None,
    "conversion to the same format": _enable("image_conversion", "murano_package"),
    "another format, but no conversion": _enable("murano_package", output_format="qcow2"),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The errors of starts with each fault, and with each harmless change."""
    changes: dict[str, service.Change] = {fault: change for fault, (change, _) in FAULTS.items()}
    changes |= HARMLESS
    return service.start_each(tmp_path_factory.mktemp("faults"), changes)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_setting_is_named(errors: dict[str, str], fault: str) -> None:
    first, *missing = errors[fault].splitlines()

    assert first.startswith("RuntimeError: Glance's settings do not protect packages")
    # Nothing else is missing.
    assert len(missing) == 1
    assert FAULTS[fault][1] in missing[0]


@pytest.mark.parametrize("change", HARMLESS)
def test_glance_starts_otherwise(errors: dict[str, str], change: str) -> None:
    assert errors[change] == ""
