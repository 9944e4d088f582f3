# SPDX-License-Identifier: Apache-2.0

"""Where the engine finds the base classes of a class, and classes that extend themselves."""

import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from murano.dsl import dsl_exception

from tests import packages
from tests.integration import publish, tasks

Publish = Callable[..., None]

_METHOD = "  {}:\n    Usage: Static\n    Scope: Public\n    Body:\n      Return: {}\n"


@pytest.fixture
def publish_classes(glare: Any, conf: Any, tmp_path: pathlib.Path) -> Publish:
    """Publish a package with some classes: name -> code."""

    def write(fqn: str, version: str, classes: Mapping[str, str], **keys: Any) -> None:
        named = {f"{fqn}.{name}": f"{name}.yaml" for name in classes}
        content = packages.content(fqn, version, Classes=named, **keys)
        for name, code in classes.items():
            header = f"Namespaces:\n  =: {fqn}\nName: {name}\n"
            content[f"Classes/{name}.yaml"] = (header + code).encode()
        folder = packages.write(tmp_path / fqn / version, content)
        publish.publish(glare, [folder], public=True)

    return write


def _versions(fqn: str) -> str:
    """Return the methods of a class that uses the classes ``Old`` and ``Both``."""
    accept = "  {0}:\n    Usage: Static\n    Scope: Public\n    Body:\n      Return: {1}\n"
    return (
        "Methods:\n"
        + _METHOD.format("old", "str(typeinfo(new(Old)).version)")
        + _METHOD.format("both", "str(typeinfo(new(Both)).version)")
        + _METHOD.format("parents", "typeinfo(:New).ancestors.select(str($.version))")
        + accept.format("contract", ":New.accept(new(Old))")
        + "  accept:\n    Usage: Static\n    Arguments:\n"
        "    - it:\n        Contract: $.class(Old).notNull()\n    Body:\n      Return: accepted\n"
    )


def test_a_class_of_an_older_version_of_the_package_is_used_if_that_is_required(
    publish_classes: Publish, name: str
) -> None:
    publish_classes(name, "1.0.0", {"Old": "", "Both": ""})
    code = f"Extends: Old\n{_versions(name)}"
    publish_classes(name, "2.0.0", {"New": code, "Both": ""}, Require={name: "1"})

    def call(method: str) -> Any:
        return tasks.call_static(f"{name}.New", method, "2")

    # The name of a class of the package itself means that class.
    assert (call("old"), call("both"), call("contract")) == ("1.0.0", "2.0.0", "accepted")
    assert call("parents") == ["1.0.0", "0.0.0"]


def test_a_contract_accepts_other_versions_of_the_package_with_its_major_number(
    publish_classes: Publish, name: str
) -> None:
    contract = f"Properties:\n  other:\n    Contract: $.class('{name}.Thing')\n"
    for version in ("1.0.0", "1.1.0", "2.0.0"):
        publish_classes(name, version, {"Thing": contract})

    def load(own: str, other: str) -> str:
        answer = tasks.run(
            {"type": f"{name}.Thing/{own}"},
            other={"?": {"id": "other", "type": f"{name}.Thing/{other}"}},
        )
        return str((answer["action"]["result"] or {}).get("message", "accepted"))

    assert (load("1.1.0", "1.0.0"), load("1.0.0", "1.1.0")) == ("accepted", "accepted")
    for own, other in (("1.1.0", "2.0.0"), ("2.0.0", "1.1.0")):
        assert f"{other}) is not compatible with requested type" in load(own, other)


def test_a_class_that_needs_itself_is_an_error(publish_classes: Publish, name: str) -> None:
    first, second = f"{name}.a", f"{name}.b"
    publish_classes(first, "1.0.0", {"Thing": "", "Other": ""})
    publish_classes(second, "1.0.0", {"Thing": f"Extends: {first}.Thing\n"}, Require={first: "*"})
    thing = f"Extends: {second}.Thing\n"
    publish_classes(first, "2.0.0", {"Thing": thing, "Own": "Meta: Own\n"}, Require={second: "1"})

    message = (
        f'{second} 1.0.0: Classes/Thing.yaml:4: Extends: class "{first}.Thing" needs itself, by '
        f"Extends, Import or Meta: {first}.Thing -> {second}.Thing -> {first}.Thing"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        tasks.schemas(f"{first}.Thing", "2")
    with pytest.raises(ValueError, match=f"{first}.Own -> {first}.Own"):
        tasks.schemas(f"{first}.Own", "2")
    # Version 1 of the class does not extend the other one.
    assert tasks.schemas(f"{first}.Thing", "1")


@pytest.mark.parametrize("required", [None, ">=1"])
def test_no_other_version_is_searched_if_the_package_satisfies_its_own_requirement(
    publish_classes: Publish, name: str, required: str | None
) -> None:
    publish_classes(name, "1.0.0", {"Old": ""})
    keys = {"Require": {name: required}} if required else {}
    publish_classes(name, "2.0.0", {"New": _versions(name)}, **keys)

    with pytest.raises(dsl_exception.MuranoPlException, match=rf'"{name}\.Old" is not found'):
        tasks.call_static(f"{name}.New", "old", "2")
