# SPDX-License-Identifier: Apache-2.0

"""Errors in packages: the real engine's reports name the package, its version, file and line."""

import functools
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from murano.dsl import dsl_exception, helpers
from murano.engine import package_loader as murano_package_loader

from tests.integration import tasks

Write = Callable[..., None]


@pytest.fixture
def write(write_class: Write, name: str) -> Write:
    """Write a package of the test's own name, of which the code is given."""
    return functools.partial(write_class, name, version="1.2.0")


@pytest.fixture
def loader(conf: Any) -> Iterator[Any]:
    with murano_package_loader.CombinedPackageLoader(tasks.session()) as loader:
        yield loader


def deploy(name: str, action: dict[str, Any] | None = None, **properties: Any) -> Any:
    """Load an object of ``NAME.Thing``, and return the engine's result."""
    answer = tasks.run({"type": f"{name}.Thing"}, action=action, **properties)
    return answer["action"]["result"]


def place(name: str) -> str:
    return f"{name} 1.2.0: Classes/Thing.yaml"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("Extends: Missing\n", ':2: Extends: Class "Missing" is not found in'),
        ("Usage: Clas\n", ':2: Usage: Invalid type Usage: "Clas"'),
        ("Methods: [deploy]\n", ":2: Methods: expected a mapping, found a sequence"),
        ("Workflow: deploy\n", ":2: Workflow: expected a mapping, found a string"),
        ("Methods:\n  one:\n  two: text\n", ":4: Methods.two: expected a mapping, found a string"),
        ("Properties:\n  size: 5\n", ":3: Properties.size: expected a mapping with the key Contr"),
        ("Properties:\n  size:\n    Usage: In\n", ":3: Properties.size: the key Contract is miss"),
        (
            "Properties:\n  size:\n    Contract: $.int()\n    Usage: Input\n",
            ":5: Properties.size.Usage: Unknown usage Input. Must be one of",
        ),
        (
            "Properties:\n  size:\n    Contract: $.int(\n",
            ":4: Properties.size.Contract: '$.int(' is not a valid YAQL expression: Parse error",
        ),
        (
            "Properties:\n  size:\n    Contract: $.int()\n    Meta: [Missing]\n",
            ':5: Properties.size.Meta: Class "Missing" is not found',
        ),
        (
            "Methods:\n  one:\n    Arguments: [text]\n",
            ":4: Methods.one.Arguments: an argument is a mapping with one key, its name; found a",
        ),
        (
            "Methods:\n  one:\n    Arguments:\n      - size:\n          Usage: Standard\n",
            ":5: Methods.one.Arguments.size: the key Contract is missing",
        ),
        (
            "Methods:\n  one:\n    Arguments:\n      size: {Contract: $, Usage: X}\n",
            ":5: Methods.one.Arguments.size.Usage: Unknown usage X",
        ),
        (
            "Methods:\n  initialize:\n    Body:\n      - $a: 1\n        $b: 2\n",
            ":5: Methods.initialize: a statement assigns one value, but this one has several keys: "
            "$a, $b",
        ),
        (
            "Methods:\n  one:\n    Body:\n      - $a: 1\n      - $.foo(\n",
            ":6: Methods.one: '$.foo(' is not a valid YAQL expression: Parse error",
        ),
        (
            "Methods:\n  one:\n    Body:\n      - If: true\n        Then:\n          - Foo: bar\n",
            ":7: Methods.one: no block has these keys, or the block is incomplete: Foo",
        ),
        ("Methods:\n  one:\n    Body:\n      - $a: !yaql '$.b('\n", ":5: '$.b(' is not a valid YA"),
    ],
)
def test_an_error_in_a_class_names_its_place_and_the_reason(
    name: str, write: Write, code: str, reason: str
) -> None:
    write(code)

    assert deploy(name)["message"].startswith(f"{place(name)}{reason}"), deploy(name)["message"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"Name: {\n", ":2: not valid YAML: "),
        (b"Name: x\nSize: !!python/object:os.system 1\n", ":2: not valid YAML: could not determi"),
        (b"- Name\n", ":1: expected a class, found a sequence"),
        (b"", ": the file does not define class {name}.Thing"),
        (b"Name: Other\n", ": the file does not define class {name}.Thing"),
        (b"Namespaces: [a]\nName: Thing\n", ":1: Namespaces: expected a mapping, found a sequence"),
        (b"Namespaces: {1a: b}\nName: Thing\n", ':1: Namespaces: Invalid namespace prefix "1a"'),
        (
            b"Namespaces: {1a: b}\nName: Thing\nExtends: Other\n",
            ":1: Namespaces: Invalid namespace ",
        ),
        (
            b"Name: x\nNamespaces:\n  =: [a]\n",
            ":3: Namespaces.=: expected a name such as org.example",
        ),
        (b"Name: x\nNamespaces:\n  =: org.$.x\n", ":3: Namespaces.=: expected a name such as org"),
        (b"Usage: Class\nName: x%\n", ':2: Name: Invalid type name "x%"'),
        (b"Extends: {a: b}\n", ":1: Extends: expected the name of a class, found a mapping"),
        (b"Extends:\n- io.murano.Object\n- no:Thing\n", ":3: Extends: Unknown namespace prefix no"),
        (None, ": the file of class {name}.Thing is missing"),
    ],
)
def test_a_file_that_becomes_invalid_is_named(
    name: str, write: Write, loader: Any, tmp_path: pathlib.Path, content: bytes | None, reason: str
) -> None:
    write("")
    package = loader.load_package(name, helpers.parse_version_spec("1"))
    file = tmp_path / name / "1.2.0" / "Classes" / "Thing.yaml"
    file.unlink() if content is None else file.write_bytes(content)
    messages = []

    # Twice, since Murano reads a class only once.
    for _ in range(2):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            package.find_class(f"{name}.Thing")
        messages.append(str(caught.value))

    assert messages[0] == messages[1]
    assert messages[0].startswith(f"{place(name)}{reason.format(name=name)}"), messages


@pytest.mark.parametrize(
    ("contract", "value", "reason"),
    [
        ("$.class(Missing)", 5, 'Class "Missing" is not found in'),
        ("$.class(no:Thing)", 5, "Unknown namespace prefix no"),
        ("$.strin()", 5, 'Unknown method "strin"'),
        ("$.int().check(len($) > 2)", 5, 'No function "len" matches supplied arguments'),
        ("{$.string(): 1, $.int(): 2}", {}, "Dictionary contract cannot have more than one expr"),
        ("$.check($.matches('('))", "a", "missing ), unterminated subpattern"),
    ],
)
def test_an_error_in_a_contract_names_its_place(
    name: str, write: Write, contract: str, value: Any, reason: str
) -> None:
    write(f"Properties:\n  size:\n    Contract: {contract}\n    ")

    assert deploy(name, size=value)["message"].startswith(f"{place(name)}:4: Contract: {reason}")


@pytest.mark.parametrize(
    ("contract", "reason"),
    [
        ("$.class('a.Missing')", 'Class "a.Missing" is not found in'),
        ("[$.int(), $.strin()]", 'Unknown method "strin"'),
        ("{A: [$.int(1)]}", 'No method "int" for receiver'),
        ("$other.int()", "int() is not applied to the value, which is $"),
        ("{$.string(): 1, $.int(): 2}", "only one key can be an expression"),
        ("$.class(Thing, versionSpec => newest)", "'newest' is not a valid range"),
    ],
)
def test_a_schema_names_the_place_of_a_wrong_contract(
    name: str, write: Write, contract: str, reason: str
) -> None:
    write(f"Namespaces: {{=: {name}}}\nProperties:\n  size:\n    Contract: {contract}\n")

    # A class of Python reaches murano-api as it is, and becomes 400.
    with pytest.raises(
        ValueError, match=re.escape(f"{place(name)}:5: Contract: {reason}")
    ) as wrong:
        tasks.schemas(f"{name}.Thing")
    assert wrong.type is ValueError


_FAILING = """\
Methods:
  fail:
    Scope: Public
    Body:
      - $.helper()
  helper:
    Body:
      - Throw: Full
        Message: no room left
  missing:
    Usage: Static
    Scope: Public
    Body:
      - $size: 1 / 0
"""


def test_an_error_at_run_time_names_the_line_and_no_path_of_the_cache(
    conf: Any, name: str, write: Write, tmp_path: pathlib.Path
) -> None:
    write(_FAILING)

    result = deploy(name, tasks.action("object", "fail"))

    assert result["message"] == f"{place(name)}:9: [Full]: no room left"
    frames = [
        f'File "{place(name)}", line {line} in method {method} of type {name}.Thing'
        for line, method in (("6:9", "fail"), ("9:9", "helper"))
    ]
    found = [line.strip() for line in result["details"].splitlines() if "File" in line]
    assert found == frames
    assert str(tmp_path) not in result["details"]


def test_a_static_action_names_the_line_of_its_error(name: str, write: Write) -> None:
    write(_FAILING)

    with pytest.raises(dsl_exception.MuranoPlException) as caught:
        tasks.call_static(f"{name}.Thing", "missing")

    assert str(caught.value).startswith(f"{place(name)}:15: [ZeroDivisionError]: ")
