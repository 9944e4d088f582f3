# SPDX-License-Identifier: Apache-2.0

"""The package type ``Heat.HOT``.

Its generators are tested in tests/unit/package/hot, and the class in the engine
in tests/integration/test_hot.py.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from glare_murano.package import InvalidPackage, Version
from glare_murano.package.hot.yaql_dumper import Yaql
from loader.formats.hot import HOTPackage

MANIFEST = {
    "Format": "Heat.HOT/1.0",
    "Type": "Application",
    "FullName": "org.test.Hot",
    "Version": "1.2",
    "Description": "A test",
}

NO_PARAMETERS = "resources: {}\n"


class _Loader(yaml.SafeLoader):
    pass


_Loader.add_constructor("!yaql", lambda loader, node: Yaql(loader.construct_scalar(node)))


def _read(text: Any) -> Any:
    return yaml.load(text, _Loader)


Make = Callable[..., HOTPackage]


@pytest.fixture
def package(tmp_path: pathlib.Path) -> Make:
    """A package with this template, files and keys of the manifest."""

    def make(template: str, files: dict[str, str] | None = None, **keys: Any) -> HOTPackage:
        for path, text in {"template.yaml": template, **(files or {})}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return HOTPackage("Heat.HOT", Version("1.0.0"), str(tmp_path), {**MANIFEST, **keys})

    return make


def _class(package: HOTPackage) -> Any:
    return _read(package.get_class("org.test.Hot"))


def _contract(package: HOTPackage) -> Any:
    contract = _class(package)["Properties"]["templateParameters"]["Contract"]
    return {name: expression.text for name, expression in contract.items()}


def _statements(package: HOTPackage, method: str) -> Any:
    return _class(package)["Methods"][method]["Body"]


def test_the_one_class_has_the_packages_name(package: Make) -> None:
    found = package(NO_PARAMETERS)

    assert found.classes == ("org.test.Hot",)
    assert found.requirements == {}
    assert (found.full_name, str(found.version)) == ("org.test.Hot", "1.2.0")
    with pytest.raises(KeyError):
        found.get_class("org.test.Other")


def test_requirements_are_those_written(package: Make) -> None:
    assert package(NO_PARAMETERS, Require={"org.other": "1"}).requirements == {"org.other": "1"}


def test_the_template_is_a_resource(package: Make, tmp_path: pathlib.Path) -> None:
    found = package(NO_PARAMETERS)

    assert Yaql("$stack.setTemplate($resources.yaml('org.test.Hot'))") in _statements(
        found, "deploy"
    )
    assert found.get_resource("org.test.Hot") == str(tmp_path / "template.yaml")
    assert found.get_resource("other") == str(tmp_path / "Resources" / "other")
    with pytest.raises(ValueError, match="leaves the directory"):
        found.get_resource("../template.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["template.yaml"]


def test_files_are_passed_on(package: Make) -> None:
    names = ["b.sh", "a/c.yaml", "it's.sh"]
    found = package(NO_PARAMETERS, {f"Resources/HotFiles/{name}": "" for name in names})

    assert {
        Yaql("$files"): {
            "a/c.yaml": Yaql("$resources.string('HotFiles/a/c.yaml')"),
            "b.sh": Yaql("$resources.string('HotFiles/b.sh')"),
            "it's.sh": Yaql("$resources.string('HotFiles/it\\'s.sh')"),
        }
    } in _statements(found, "deploy")


def test_heat_environments_may_give_the_parameters(package: Make) -> None:
    template = "parameters: {p: {type: number}}\nresources:\n"

    assert _contract(package(template, {"Resources/HotEnvironments/a.yaml": ""})) == {}


@pytest.mark.parametrize(("keys", "file"), [({}, "ui.yaml"), ({"UI": "other.yaml"}, "other.yaml")])
def test_the_packages_own_form_wins(package: Make, keys: dict[str, str], file: str) -> None:
    assert package(NO_PARAMETERS, {f"UI/{file}": "Version: 2.2\n"}, **keys).ui == b"Version: 2.2\n"


def test_the_form_is_generated_from_the_template(package: Make) -> None:
    form = _read(package("parameters: {a: {type: string}}\nresources:\n").ui)

    assert form["Application"]["templateParameters"] == {"a": Yaql("$.group1.a")}


def test_a_wrong_template_is_refused(package: Make) -> None:
    with pytest.raises(InvalidPackage, match=r"\[template-resources\]"):
        package("FullName: no template\n")


def test_a_package_without_a_template_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidPackage, match=r"template\.yaml: .* \[template-missing\]"):
        HOTPackage("Heat.HOT", Version("1.0.0"), str(tmp_path), MANIFEST)
