# SPDX-License-Identifier: Apache-2.0

"""Members that a class inherits from several classes which are not related.

The classes are in directories. ``test_inherited_versions`` shows two versions of one class, from
each kind of catalogue.
"""

import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration import tasks


def _act(class_name: str, method: str, pins: Any = None, **properties: Any) -> Any:
    action = tasks.action("object", method)
    return tasks.run({"type": class_name}, pins, action, **properties)["action"]


def test_a_method_that_a_parent_overrides_is_called_for_its_own_version(
    write_class: Callable[..., None], name: str
) -> None:
    method = "  {}:\n    Scope: Public\n    Body:\n      Return: {}\n"
    versions = ("1.2.0", "1.3.0", "2.0.0")
    for version in versions:
        methods = method.format("call", "$.word()") + method.format("word", f"base {version}")
        write_class(name, f"Methods:\n{methods}", version)
    for parent, number, word in (("a", "1", "a"), ("b", "1.2.0", None), ("c", "2", None)):
        methods = method.format(f"call_{parent}", "$.call()")
        methods += method.format("word", word) if word else ""
        code = f"Extends: {name}.Thing\nMethods:\n{methods}"
        write_class(f"{name}.{parent}", code, Require={name: number})
    parents = [f"{name}.{parent}" for parent in "abc"]
    extends = ", ".join(f"{parent}.Thing" for parent in parents)
    methods = method.format("words", "list($.call_a(), $.call_b(), $.call_c())")
    code = f"Extends: [{extends}]\nMethods:\n{methods}"
    write_class(f"{name}.d", code, Require=dict.fromkeys(parents, "1"))

    # Because of the pins, a's class has version 1.3.0, for which this class has version 1.2.0.
    answer = _act(f"{name}.d.Thing", "words", pins={name: list(versions)})

    assert answer["result"] == ["a", "a", "base 2.0.0"]


def test_unrelated_classes_with_the_same_property_are_loaded(
    write_class: Callable[..., None], name: str
) -> None:
    for parent, default in (("a", 1), ("b", 2)):
        write_class(
            f"{name}.{parent}",
            f"Properties:\n  size:\n    Contract: $.int()\n    Default: {default}\nMethods:\n"
            f"  size_{parent}:\n    Body:\n      Return: $.size\n",
        )
    code = (
        f"Extends: [{name}.a.Thing, {name}.b.Thing]\nMethods:\n  sizes:\n    Scope: Public\n"
        f"    Body:\n      Return: list($.size_a(), $.size_b())\n"
    )
    write_class(f"{name}.c", code, Require={f"{name}.a": "1", f"{name}.b": "1"})

    assert _act(f"{name}.c.Thing", "sizes")["result"] == [1, 2]
    assert _act(f"{name}.c.Thing", "sizes", size=3)["result"] == [3, 3]


def test_an_object_that_a_common_base_class_creates_has_all_values(
    write_class: Callable[..., None], name: str
) -> None:
    property_ = "Properties:\n  size:\n    Contract: $.int()\n"
    make = "Methods:\n  make:\n    Usage: Static\n    Arguments:\n"
    make += "    - type:\n        Contract: $\n    Body:\n      Return: new($type, size => 3)\n"
    write_class(name, property_ + make)
    for parent in ("a", "b"):
        size = f"Methods:\n  size_{parent}:\n    Body:\n      Return: $.size\n"
        code = f"Extends: {name}.Thing\n{property_}{size}"
        write_class(f"{name}.{parent}", code, Require={name: "1"})
    code = (
        f"Extends: [{name}.a.Thing, {name}.b.Thing]\nMethods:\n  sizes:\n    Scope: Public\n"
        f"    Body:\n      - $made: type('{name}.Thing').make(type($))\n"
        f"      - Return: list($made.size_a(), $made.size_b())\n"
    )
    required = dict.fromkeys((name, f"{name}.a", f"{name}.b"), "1")
    write_class(f"{name}.c", code, Require=required)

    assert _act(f"{name}.c.Thing", "sizes")["result"] == [3, 3]


@pytest.mark.parametrize(("first", "second"), [("1", "2"), ("2", "1")])
def test_a_property_may_be_in_the_model_of_one_version_alone(
    write_class: Callable[..., None], name: str, first: str, second: str
) -> None:
    size = "Properties:\n  size:\n    Contract: $.int()\n    Default: {}\n    Usage: {}\n"
    write_class(name, size.format(1, "In"), "1.0.0")
    write_class(name, size.format(2, "Runtime"), "2.0.0")
    for number in (first, second):
        methods = f"  size_{number}:\n    Body:\n      Return: $.size\n"
        methods += "  write:\n    Body:\n      $.size: 7\n" if number == "2" else ""
        code = f"Extends: {name}.Thing\nMethods:\n{methods}"
        write_class(f"{name}.v{number}", code, Require={name: number})
    code = (
        f"Extends: [{name}.v{first}.Thing, {name}.v{second}.Thing]\nProperties:\n"
        f"  own:\n    Contract: $\nMethods:\n  sizes:\n    Scope: Public\n    Body:\n"
        f"      - $before: list($.size_1(), $.size_2())\n      - $.write()\n"
        f"      - Return: [$before, $.size_1(), $.size_2()]\n"
    )
    write_class(f"{name}.c", code, Require={f"{name}.v1": "1", f"{name}.v2": "1"})

    action = tasks.action("object", "sizes")
    answer = tasks.run({"type": f"{name}.c.Thing"}, action=action, size=5)

    assert answer["action"]["result"] == [[5, 2], 5, 7]
    assert answer["model"]["Objects"]["size"] == 5


def test_a_private_property_may_have_the_name_of_an_ambiguous_one(
    write_class: Callable[..., None], name: str
) -> None:
    for parent in ("a", "b"):
        write_class(f"{name}.{parent}", "Properties:\n  size:\n    Contract: $.int()\n")
    write_class(
        f"{name}.c", "Methods:\n  own:\n    Body:\n      - $.size: 7\n      - Return: $.size\n"
    )
    parents = [f"{name}.{parent}" for parent in "abc"]
    extends = ", ".join(f"{parent}.Thing" for parent in parents)
    code = f"Extends: [{extends}]\nMethods:\n  call:\n    Scope: Public\n    Body:\n"
    write_class(f"{name}.d", f"{code}      Return: $.own()\n", Require=dict.fromkeys(parents, "1"))

    answer = tasks.run({"type": f"{name}.d.Thing"}, action=tasks.action("object", "call"), size=5)

    assert answer["action"]["result"] == 7
    assert answer["model"]["Objects"]["size"] == 5


def test_a_value_has_to_satisfy_the_contract_that_a_parent_overrides(
    write_class: Callable[..., None], name: str
) -> None:
    size = "Properties:\n  size:\n    Contract: $.int().check({})\n"
    write_class(name, size.format("$ != 5"))
    code = f"Extends: {name}.Thing\n" + size.format("true")
    write_class(f"{name}.a", code, Require={name: "1"})
    write_class(f"{name}.b", size.format("true"))
    read = "Methods:\n  read:\n    Scope: Public\n    Body:\n      Return: done\n"
    code = f"Extends: [{name}.a.Thing, {name}.b.Thing]\n{read}"
    write_class(f"{name}.c", code, Require={f"{name}.a": "1", f"{name}.b": "1"})

    assert _act(f"{name}.c.Thing", "read", size=4)["result"] == "done"
    message = _act(f"{name}.c.Thing", "read", size=5)["result"]["message"]
    assert "Value 5 doesn't match predicate" in message


def test_an_error_with_two_core_libraries_names_both(
    write_class: Callable[..., None],
    name: str,
    core_library: pathlib.Path,
    tmp_path: pathlib.Path,
) -> None:
    newer = tmp_path / "newer"
    shutil.copytree(core_library / "io.murano", newer)
    manifest = (newer / "manifest.yaml").read_text()
    (newer / "manifest.yaml").write_text(f"{manifest}\nVersion: 1.0.0\n")
    for parent, number in (("a", "0"), ("b", "1")):
        code = "Extends: io.murano.Application\n"
        write_class(f"{name}.{parent}", code, Require={"io.murano": number})
    code = (
        f"Extends: [{name}.a.Thing, {name}.b.Thing]\nMethods:\n"
        f"  attribute:\n    Scope: Public\n    Body:\n      $.setAttr(key, value)\n"
        f"  accept:\n    Usage: Static\n    Arguments:\n"
        f"    - it:\n        Contract: $.class('io.murano.Application')\n"
        f"  contract:\n    Scope: Public\n    Body:\n      $this.accept($)\n"
    )
    required = {f"{name}.a": "1", f"{name}.b": "1", "io.murano": ">=0"}
    write_class(f"{name}.c", code, Require=required)

    for method, member in (
        ("attribute", 'method "setAttr"'),
        ("contract", 'version of class "io.murano.Application"'),
    ):
        message = _act(f"{name}.c.Thing", method)["result"]["message"]
        assert f"Found more than one {member}" in message
        for version, parent in (("0.0.0", "a"), ("1.0.0", "b")):
            assert f"of io.murano {version}, required by {name}.{parent} 1.0.0" in message
