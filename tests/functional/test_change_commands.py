# SPDX-License-Identifier: Apache-2.0

"""The commands that change packages: set, unset, yank, deactivate, delete."""

from typing import Any

import pytest

from tests import packages
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack


def _publish(glare: Client, name: str, version: str = "1.0.0", **keys: Any) -> str:
    archive = packages.package(name, version, **keys)
    artifact_id: str = glare.publish(name, version, archive)["id"]
    return artifact_id


def test_properties_are_set_and_unset(openstack: OpenStack, glare: Client, name: str) -> None:
    _publish(glare, name, Tags=["first"])
    openstack.ok("package", "set", name, "--display-name", "Wiki", "--description", "Text")
    openstack.ok("package", "set", name, "--tag", "second", "--category", "Web")
    openstack.ok("package", "set", name, "--tag", "second", "--category", "Text")
    shown = openstack.json("package", "show", name)
    assert (shown["display_name"], shown["description"]) == ("Wiki", "Text")
    assert sorted(shown["tags"]) == ["first", "second"]
    assert shown["categories"] == ["Web", "Text"]
    openstack.ok("package", "unset", name, "--description", "--tag", "first", "--all-categories")
    shown = openstack.json("package", "show", name)
    assert (shown["description"], shown["tags"], shown["categories"]) == ("", ["second"], [])


def test_a_change_needs_a_reference_to_one_version(
    openstack: OpenStack, glare: Client, name: str
) -> None:
    for version in ("1.0.0", "1.1.0"):
        _publish(glare, name, version)
    several = openstack.fails("package", "yank", name, "--reason", "broken", code=2)
    assert f"{name} 1.1.0" in several.err
    assert f"{name} 1.0.0" in several.err
    assert glare.names(name=name, yanked="neq:") == []


def test_a_yank_is_made_and_ended(openstack: OpenStack, glare: Client, name: str) -> None:
    _publish(glare, name)
    openstack.ok("package", "yank", f"{name}@1.0.0", "--reason", "loses data")
    assert openstack.json("package", "versions", name)[0]["Yanked"] == "loses data"
    openstack.ok("package", "unyank", f"{name}@1.0.0")
    assert openstack.json("package", "versions", name)[0]["Yanked"] == ""


@pytest.mark.parametrize("reason", ["", " "])
def test_an_empty_reason_does_not_end_a_yank(
    openstack: OpenStack, glare: Client, name: str, reason: str
) -> None:
    _publish(glare, name)
    openstack.ok("package", "yank", name, "--reason", "loses data")
    refused = openstack.fails("package", "yank", name, "--reason", reason, code=2)
    assert (
        "argument --reason: is empty; say why the version must not be chosen, such as "
        '"loses data; use 1.3.0"\n'
    ) in refused.err
    assert openstack.json("package", "versions", name)[0]["Yanked"] == "loses data"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("package", "set"), "--tag"),
        (("package", "set"), "--category"),
        (("package", "set"), "--display-name"),
        (("package", "publish"), "--category"),
    ],
)
def test_empty_values_are_refused(
    openstack: OpenStack, command: tuple[str, ...], option: str
) -> None:
    refused = openstack.fails(*command, "org.example.wiki", option, " ", code=2)
    assert f"argument {option}: is empty; give a value" in refused.err


@pytest.mark.parametrize("command", ["set", "unset"])
def test_a_change_without_an_option_is_refused(openstack: OpenStack, command: str) -> None:
    refused = openstack.fails("package", command, "org.example.wiki", code=2)
    assert refused.err == "nothing to change: name at least one option, such as --tag\n"


def test_the_warning_about_dependents_of_a_yanked_package_is_shown(
    openstack: OpenStack, glare: Client, name: str
) -> None:
    _publish(glare, name)
    _publish(glare, f"{name}.user", Require={name: "1"})
    result = openstack.ok("package", "yank", name, "--reason", "loses data")
    assert f"{glare.url}: no version of {name} is left for" in result.err
    assert f"{name}.user" in result.err


def test_an_administrator_deactivates_and_reactivates(
    admin_openstack: OpenStack, openstack: OpenStack, glare: Client, name: str
) -> None:
    _publish(glare, name)
    refused = openstack.fails("package", "deactivate", name)
    assert refused.err.startswith(f"cannot change {name} 1.0.0: ")
    assert "artifact:deactivate" in refused.err
    admin_openstack.ok("package", "deactivate", name)
    assert openstack.json("package", "show", name)["status"] == "deactivated"
    admin_openstack.ok("package", "reactivate", name)
    assert openstack.json("package", "show", name)["status"] == "active"


def test_a_deletion_asks_first(openstack: OpenStack, glare: Client, name: str) -> None:
    _publish(glare, name)
    _publish(glare, name, "1.1.0")
    _publish(glare, f"{name}.user", Require={name: "1"})
    asked = openstack.fails("package", "delete", f"{name}@1.0.0")
    assert f"required by {name}.user 1.0.0" in asked.err
    assert "add --yes" in asked.err
    openstack.ok("package", "delete", f"{name}@1.0.0", "--yes")
    assert glare.names(name=name) == [(name, "1.1.0")]


def test_the_last_package_that_another_requires_is_not_deleted(
    openstack: OpenStack, glare: Client, name: str
) -> None:
    _publish(glare, name)
    _publish(glare, f"{name}.user", Require={name: "1"})
    refused = openstack.fails("package", "delete", name, "--yes")
    assert refused.err.startswith(
        f"cannot delete {name} 1.0.0: only {name} 1.0.0 satisfies requirements of active packages: "
        f"{name}.user 1.0.0 ({name} 1); delete or deactivate these first, each before the "
        f"packages that it requires, or upload another version in the ranges"
    )
    assert glare.names(name=name) == [(name, "1.0.0")]


def test_packages_are_deleted_before_those_that_they_require(
    openstack: OpenStack, glare: Client, name: str
) -> None:
    _publish(glare, name)
    _publish(glare, f"{name}.user", Require={name: "1"})
    _publish(glare, f"{name}.a", Require={f"{name}.user": "1"})
    uploaded = [name, f"{name}.user", f"{name}.a"]
    assert openstack.ok("package", "delete", *uploaded, "--yes").err == ""
    assert [glare.names(name=each) for each in uploaded] == [[], [], []]
