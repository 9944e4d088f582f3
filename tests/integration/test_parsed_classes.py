# SPDX-License-Identifier: Apache-2.0

"""Parsed class files in memory: the real engine parses each once, and no task changes another's."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from murano.engine import yaql_yaml_loader

from glare_murano.package import Version
from loader.engine import parsed_classes
from loader.engine.error_places import ClassFile
from loader.engine.parsed_classes import ParsedClasses
from tests.integration import tasks

FILE = ClassFile("org.test.app 1.0.0: Classes/App.yaml")
MURANO_PL = Version("1.4.0")

CODE = """\
Name: App
Properties:
  size: &size
    Contract: $.int().notNull()
    Default: 5
  width: *size
  day: {Contract: $, Default: 2026-01-31}
Methods:
  grow:
    Body:
      - $.size: $.size + 1
      - Return: [$.size, !yaql 'width', 1.5, null]
---
Name: Other
"""


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that Murano parses, in their order."""
    files: list[str] = []
    get_loader = yaql_yaml_loader.get_loader

    def counting(version: Any) -> Any:
        def load(code: Any, file: str) -> Any:
            files.append(file)
            return get_loader(version)(code, file)

        return load

    monkeypatch.setattr(yaql_yaml_loader, "get_loader", counting)
    return files


def _described(value: Any) -> Any:
    """Describe all parts of documents, with their positions."""
    position = getattr(value, "source_file_position", None)
    at = tuple(vars(position).values()) if position else None
    if isinstance(value, dict):
        return at, [(_described(key), _described(part)) for key, part in value.items()]
    if isinstance(value, list):
        return [_described(part) for part in value]
    return at, type(value), str(value)


def test_a_kept_class_is_what_murano_parses(parsed: list[str]) -> None:
    classes = ParsedClasses()
    expected = yaql_yaml_loader.get_loader(MURANO_PL)(CODE, FILE)
    classes.parse(CODE, FILE, MURANO_PL)

    found = classes.parse(CODE, FILE, MURANO_PL)

    assert parsed == [FILE, FILE]
    assert _described(found) == _described(expected)
    position = found[0]["Methods"].source_file_position
    assert isinstance(position.file_path, ClassFile)
    # One anchor is one object.
    assert found[0]["Properties"]["width"] is found[0]["Properties"]["size"]


def test_changes_to_a_class_do_not_reach_the_next_task() -> None:
    classes = ParsedClasses()
    expected = _described(classes.parse(CODE, FILE, MURANO_PL))

    for _ in range(2):
        found = classes.parse(CODE, FILE, MURANO_PL)
        found[0]["Name"] = "Changed"
        found[0]["Methods"]["grow"]["Body"].clear()
        found.pop()

    assert _described(classes.parse(CODE, FILE, MURANO_PL)) == expected


def test_changes_to_the_first_result_do_not_reach_the_next_task() -> None:
    classes = ParsedClasses()
    classes.parse(CODE, FILE, MURANO_PL)[0].clear()

    assert classes.parse(CODE, FILE, MURANO_PL)[0]["Name"] == "App"


@pytest.mark.parametrize(
    ("code", "file", "version"),
    [
        (CODE.replace("5", "6"), FILE, MURANO_PL),
        (CODE, ClassFile("org.test.app 1.0.1: Classes/App.yaml"), MURANO_PL),
        # The engine of expressions is another one.
        (CODE, FILE, Version("1.0.0")),
    ],
)
def test_other_code_another_file_or_another_format_is_parsed(
    parsed: list[str], code: str, file: ClassFile, version: Version
) -> None:
    classes = ParsedClasses()
    classes.parse(CODE, FILE, MURANO_PL)

    found = classes.parse(code, file, version)

    assert parsed == [FILE, file]
    assert _described(found) == _described(yaql_yaml_loader.get_loader(version)(code, file))
    expression = found[0]["Properties"]["size"]["Contract"]
    assert expression.version == version
    assert expression.source_file_position.file_path == file


def test_a_class_that_cannot_be_parsed_is_not_kept(parsed: list[str]) -> None:
    classes = ParsedClasses()

    for _ in range(2):
        with pytest.raises(Exception, match="expected the node content"):
            classes.parse("Name: {", FILE, MURANO_PL)

    assert parsed == [FILE, FILE]
    assert len(classes) == 0


def test_the_least_recently_used_classes_are_dropped(parsed: list[str]) -> None:
    classes = ParsedClasses(max_size=20_000)
    files = [ClassFile(f"org.test.app 1.0.{number}: App.yaml") for number in range(20)]

    for file in files:
        classes.parse(CODE, files[0], MURANO_PL)
        classes.parse(CODE, file, MURANO_PL)

    assert parsed == files
    assert 1 < len(classes) < 10
    classes.parse(CODE, files[-1], MURANO_PL)
    classes.parse(CODE, files[1], MURANO_PL)
    assert parsed == [*files, files[1]]


def test_a_class_above_the_limit_is_not_kept() -> None:
    classes = ParsedClasses(max_size=1000)

    assert classes.parse(CODE, FILE, MURANO_PL)[0]["Name"] == "App"
    assert len(classes) == 0


@pytest.fixture
def app(write_class: Callable[..., None], name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A class of a package where the engine finds it; no class is kept before."""
    monkeypatch.setattr(parsed_classes, "kept", ParsedClasses())
    code = """\
Properties:
  size:
    Contract: $.int().notNull()
    Usage: InOut
Methods:
  grow:
    Scope: Public
    Body:
      - $.size: $.size + 1
      - If: $.size > 6
        Then:
          Throw: TooLarge
      - Return: $.size
"""
    write_class(name, code, "1.2.0")
    return f"{name}.Thing"


def _grow(app: str, size: int) -> Any:
    answer = tasks.run({"type": app}, action=tasks.action("object", "grow"), size=size)
    return answer["action"]["result"]


def test_a_second_task_parses_no_class(conf: Any, app: str, parsed: list[str]) -> None:
    # Cells have the parsed classes of public packages only.
    conf.set_override("task_cells", False, "engine")
    assert _grow(app, 5) == 6
    assert parsed
    parsed.clear()

    assert [_grow(app, size) for size in (1, 2)] == [2, 3]
    assert parsed == []


def test_an_error_in_a_kept_class_names_its_place(app: str) -> None:
    messages = {_grow(app, 6)["message"] for _ in range(2)}

    (message,) = messages
    assert f"{app.removesuffix('.Thing')} 1.2.0: Classes/Thing.yaml:13: " in message


def test_a_faulty_class_fails_in_each_task_alike(
    app: str, name: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / name / "1.2.0" / "Classes" / "Thing.yaml").write_text(
        f"Name: {name}.Thing\nUsage: Clas\n"
    )

    messages = {_grow(app, 1)["message"] for _ in range(2)}

    (message,) = messages
    assert ':2: Usage: Invalid type Usage: "Clas"' in message


def test_a_changed_file_of_a_directory_is_used_by_the_next_task(
    app: str, name: str, tmp_path: pathlib.Path
) -> None:
    assert _grow(app, 1) == 2
    file = tmp_path / name / "1.2.0" / "Classes" / "Thing.yaml"
    file.write_text(file.read_text().replace("$.size + 1", "$.size + 2"))

    assert _grow(app, 1) == 3
