# SPDX-License-Identifier: Apache-2.0

"""The real Glance starts with the options and the policy that deployment tools write."""

import pathlib
from collections.abc import Mapping

import pytest
import yaml

from glare_murano.glance.ini_file import IniFile
from tests import prerequisites
from tests.functional.glance import service
from tests.unit import test_deployment_files as files


def _as_deployed(options: Mapping[str, Mapping[str, str]], policy: str) -> service.Change:
    """Return a change that replaces the settings for packages by those of a tool."""

    def change(etc: pathlib.Path) -> None:
        (etc / "glance-image-import.conf").unlink()
        (etc / "policy.yaml").write_text(policy)
        conf = IniFile(etc / "glance-api.conf")
        conf.set("oslo_policy", "policy_file", str(etc / "policy.yaml"))
        for group, values in options.items():
            for name, value in values.items():
                shipped = files.FILES.fullmatch(value)
                conf.set(group, name, str(service.ETC / shipped[1]) if shipped else value)
        # Glance's environment is elsewhere on a test machine.
        python = prerequisites.glance() / "python3"
        conf.set("wsgi", "python_interpreter", str(python))
        # The paste file has Keystone's filter, which sends no request at the start.
        for name in ("auth_url", "username", "password", "project_name"):
            conf.set("keystone_authtoken", name, "http://127.0.0.1:9/v3")
        conf.path.write_text(conf.text)

    return change


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The errors of starts with the settings of each tool, and of one that lacks the policy."""
    shipped = (service.ETC / "glance-policy.yaml").read_text()
    overrides = yaml.safe_dump(files.variables()["glance_policy_overrides"])
    kolla, ansible = (files.GLANCE_OPTIONS[tool] for tool in ("kolla", "openstack-ansible"))
    changes = {
        "kolla": _as_deployed(kolla, shipped),
        "openstack-ansible": _as_deployed(ansible, overrides),
        "no policy": _as_deployed(kolla, "{}"),
    }
    return service.start_each(tmp_path_factory.mktemp("tools"), changes)


@pytest.mark.parametrize("tool", files.TOOLS)
def test_glance_starts(errors: dict[str, str], tool: str) -> None:
    assert errors[tool] == ""


def test_glance_does_not_start_without_the_policy(errors: dict[str, str]) -> None:
    assert "by the rule upload_image, callers may give a package data" in errors["no policy"]
