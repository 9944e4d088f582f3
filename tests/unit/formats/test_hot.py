# SPDX-License-Identifier: Apache-2.0

"""The package type ``Heat.HOT``: the class and the form as data, and what is refused.

What the engine makes of them is in tests/integration/test_hot.py.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from glare_murano.package import InvalidPackage, Version
from glare_murano.package.hot import yaql
from glare_murano.package.hot.yaql import Yaql
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


def _fields(package: HOTPackage) -> dict[str, Any]:
    """The fields for parameters, by name."""
    pages = _read(package.ui)["Forms"][1:]
    fields = [field for page in pages for part in page.values() for field in part["fields"]]
    return {field["name"]: field for field in fields}


def test_the_one_class_has_the_packages_name(package: Make) -> None:
    found = package(NO_PARAMETERS)

    assert found.classes == ("org.test.Hot",)
    assert found.requirements == {}
    assert (found.full_name, str(found.version)) == ("org.test.Hot", "1.2.0")
    with pytest.raises(KeyError):
        found.get_class("org.test.Other")


def test_requirements_are_those_written(package: Make) -> None:
    assert package(NO_PARAMETERS, Require={"org.other": "1"}).requirements == {"org.other": "1"}


def test_the_class(package: Make) -> None:
    found = _class(package("parameters: {a: {type: string}}\noutputs: {b: {}}\nresources:\n"))

    assert (found["Name"], found["Extends"]) == ("org.test.Hot", "io.murano.Application")
    output = found["Properties"]["templateOutputs"]["Contract"].pop("b")
    assert output.text.endswith("$.string() or $")
    assert found["Properties"] == {
        "name": {"Usage": "In", "Contract": Yaql("$.string().notNull()")},
        "hotEnvironment": {"Usage": "In", "Contract": Yaql("$.string()")},
        "templateParameters": {
            "Usage": "In",
            "Contract": {"a": Yaql("$.string()")},
            "Default": {},
        },
        "templateOutputs": {"Usage": "Out", "Contract": {}, "Default": {}},
        "generatedHeatStackName": {"Usage": "Out", "Contract": Yaql("$.string()")},
    }
    assert set(found["Methods"]) == {"deploy", "destroy"}


@pytest.mark.parametrize(
    ("parameter", "contract"),
    [
        ("{type: string}", "$.string()"),
        ("{type: number}", "$.int()"),
        ("{type: boolean}", "$.bool()"),
        ("{type: comma_delimited_list}", "$.string()"),
        ("{type: json}", "$.string()"),
        (
            "{type: string, constraints: [length: {min: 1, max: 2}]}",
            "$.string().check(len($) >= 1 and len($) <= 2)",
        ),
        (
            "{type: string, default: a, constraints: [length: {min: 1}, length: {max: '2'}]}",
            "$.string()?.check(len($) >= 1)?.check(len($) <= 2)",
        ),
        ("{type: string, constraints: [length: {}]}", "$.string()"),
        ("{type: string, constraints: []}", "$.string()"),
        ("{type: string, constraints: }", "$.string()"),
        ("{type: number, constraints: [range: {min: -1.5}]}", "$.int().check($ >= -1.5)"),
        ("{type: number, constraints: [range: {max: 1.0e-7}]}", "$.int().check($ <= 0.0000001)"),
        ("{type: number, constraints: [range: {max: '1e3'}]}", "$.int().check($ <= 1000.0)"),
        (
            "{type: number, constraints: [allowed_values: [1, '2', '0.5']]}",
            "$.int().check($ in list(1, 2, 0.5))",
        ),
        (
            "{type: boolean, constraints: [allowed_values: [yes, 'no', 1, 'F']]}",
            "$.bool().check($ in list(true, false, true, false))",
        ),
        (
            r"""{type: string, constraints: [allowed_values: ["it's", 'a\b', 2001-01-01, 1.5]]}""",
            r"$.string().check($ in list('it\'s', 'a\\b', '2001-01-01', '1.5'))",
        ),
        (
            r"{type: string, constraints: [allowed_pattern: '\d']}",
            r"$.string().check($.matches('\\d'))",
        ),
        (
            "{type: comma_delimited_list, constraints: [length: {max: 2}, allowed_values: [a]]}",
            "$.string().check(len($.split(',')) <= 2)"
            ".check($ = '' or $.split(',').all($.trim() in list('a')))",
        ),
        # Left to Heat.
        ("{type: string, constraints: [custom_constraint: nova.flavor]}", "$.string()"),
        ("{type: number, constraints: [modulo: {step: 2}]}", "$.int()"),
        ("{type: number, constraints: [length: {max: 2}]}", "$.int()"),
        ("{type: string, constraints: [range: {max: 2}]}", "$.string()"),
        ("{type: json, constraints: [length: {max: 2}]}", "$.string()"),
        ("{type: boolean, constraints: [allowed_pattern: '[']}", "$.bool()"),
        ("{type: string, hidden: true, immutable: true, tags: [a]}", "$.string()"),
    ],
)
def test_the_contract_of_a_parameter(package: Make, parameter: str, contract: str) -> None:
    assert _contract(package(f"parameters: {{p: {parameter}}}\nresources:\n")) == {"p": contract}


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


def test_without_files_none_are_passed_on(package: Make) -> None:
    assert {Yaql("$files"): {}} in _statements(package(NO_PARAMETERS), "deploy")


def test_heat_environments_may_give_the_parameters(package: Make) -> None:
    template = "parameters: {p: {type: number}}\nresources:\n"

    assert _contract(package(template, {"Resources/HotEnvironments/a.yaml": ""})) == {}


@pytest.mark.parametrize(
    ("parameter", "field"),
    [
        ("{type: string}", {}),
        ("{type: number}", {"type": "integer"}),
        ("{type: boolean}", {"type": "boolean"}),
        ("{type: comma_delimited_list}", {}),
        ("{type: json}", {}),
        ("{type: string, label: A label}", {"label": "A label"}),
        ("{type: string, label: ''}", {}),
        ("{type: string, description: 5}", {"description": "5"}),
        ("{type: string, default: a}", {"required": False, "initial": "a"}),
        ("{type: string, default: 2001-01-01}", {"required": False, "initial": "2001-01-01"}),
        ("{type: string, default: }", {"required": False, "initial": None}),
        ("{type: number, default: 5}", {"type": "integer", "required": False, "initial": 5}),
        (
            "{type: boolean, default: 'No'}",
            {"type": "boolean", "required": False, "initial": False},
        ),
        ("{type: boolean, default: so}", {"type": "boolean", "required": False, "initial": "so"}),
        ("{type: comma_delimited_list, default: [a, 1]}", {"required": False, "initial": "a,1"}),
        ("{type: comma_delimited_list, default: 'a,b'}", {"required": False, "initial": "a,b"}),
        ("{type: json, default: {a: [1]}}", {"required": False, "initial": '{"a": [1]}'}),
        ("{type: json, default: '{}'}", {"required": False, "initial": "{}"}),
        (
            "{type: string, constraints: [length: {min: 1, max: 9}, length: {min: 2, max: 8}]}",
            {"minLength": 2, "maxLength": 8},
        ),
        (
            "{type: number, constraints: [{range: {min: 1}, description: Too few}]}",
            {
                "type": "integer",
                "validators": [{"expr": Yaql("$ >= 1"), "message": "Too few"}],
            },
        ),
        ("{type: number, constraints: [range: {}]}", {"type": "integer"}),
        (
            "{type: string, constraints: [allowed_pattern: '^a'], hidden: true}",
            {"validators": [{"expr": {"regexpValidator": "^a"}}]},
        ),
        (
            "{type: string, constraints: [allowed_pattern: /a/b]}",
            {"validators": [{"expr": {"regexpValidator": "\\/a/b"}}]},
        ),
        (
            "{type: comma_delimited_list, constraints: [length: {max: 2}]}",
            {"validators": [{"expr": Yaql("len($.split(',')) <= 2")}]},
        ),
        ("{type: number, constraints: [length: {max: 2}]}", {"type": "integer"}),
    ],
)
def test_the_field_of_a_parameter(package: Make, parameter: str, field: dict[str, Any]) -> None:
    found = package(f"parameters: {{a_parameter: {parameter}}}\nresources:\n")

    plain = {"name": "a_parameter", "label": "A Parameter", "type": "string", "required": True}
    assert _fields(found) == {"a_parameter": {**plain, **field}}


def test_the_form_has_a_page_for_each_group(package: Make) -> None:
    form = _read(
        package(
            "parameter_groups: [{label: Two, parameters: [c, a, z]}, {}, {parameters: {d: }}]\n"
            "parameters: {a: {type: json}, b-2: {type: json}, c: {type: json}, d: {type: json}}\n"
            "resources:\n"
        ).ui
    )

    assert form["Version"] == 2
    assert form["Application"] == {
        "?": {"type": "org.test.Hot", "package": "org.test.Hot", "classVersion": "1.2.0"},
        "name": Yaql("$.group0.name"),
        "templateParameters": {
            "c": Yaql("$.group1.c"),
            "a": Yaql("$.group1.a"),
            "d": Yaql("$.group3.d"),
            "b-2": Yaql("$.group4.get('b-2')"),
        },
    }
    pages = [
        [f["name"] for f in part["fields"]] for page in form["Forms"] for part in page.values()
    ]
    assert pages == [["title", "name"], ["c", "a"], [], ["d"], ["b-2"]]
    assert [name for page in form["Forms"] for name in page] == [
        f"group{number}" for number in range(5)
    ]
    assert form["Forms"][0]["group0"]["fields"][0]["description"] == "A test"


def test_without_parameters_the_form_asks_for_a_name(package: Make) -> None:
    form = _read(package(NO_PARAMETERS).ui)

    assert len(form["Forms"]) == 1
    assert set(form["Application"]) == {"?", "name"}


@pytest.mark.parametrize(("keys", "file"), [({}, "ui.yaml"), ({"UI": "other.yaml"}, "other.yaml")])
def test_the_packages_own_form_wins(package: Make, keys: dict[str, str], file: str) -> None:
    assert package(NO_PARAMETERS, {f"UI/{file}": "Version: 2.2\n"}, **keys).ui == b"Version: 2.2\n"


def test_merged_entries_count(package: Make) -> None:
    found = package(
        "common: &common {one: &one {type: number, constraints: [range: {min: 1}]}}\n"
        "parameters: {<<: *common, two: {<<: *one, default: 1}}\n"
        "resources:\n"
    )

    assert _contract(found) == {"one": "$.int().check($ >= 1)", "two": "$.int()?.check($ >= 1)"}


@pytest.mark.parametrize(
    ("template", "rule"),
    [
        ("a: [", "yaml-syntax"),
        ("\0", "yaml-syntax"),
        ("a: 1\n---\nb: 1\n", "yaml-syntax"),
        ("[" * 70 + "]" * 70, "yaml-depth"),
        ("resources: " + "a" * 2**20, "yaml-size"),
        ("resources: !!python/name:os.system", "yaml-tag"),
    ],
)
def test_what_is_no_yaml_is_refused(package: Make, template: str, rule: str) -> None:
    with pytest.raises(InvalidPackage) as caught:
        package(template)

    [problem] = caught.value.problems
    assert (problem.rule, problem.where) == (rule, "template.yaml")


@pytest.mark.parametrize(
    ("template", "rule", "where", "line", "message"),
    [
        ("", "mapping", "", 0, "expected a mapping, found nothing"),
        ("- a\n", "mapping", "", 1, "found a sequence"),
        ("[a]: 1\n", "mapping", "", 1, "a key is no text"),
        ("FullName: no template", "resources", "", 1, "no section 'resources'"),
        ("resources:\nparameters: []", "mapping", ": parameters", 2, "found a sequence"),
        ("resources:\nparameters:\n  <<: a\n", "mapping", ": parameters", 3, "'<<'"),
        ("resources:\noutputs: a", "mapping", ": outputs", 2, "found a text"),
        ("resources:\nparameter_groups: a", "group", ": parameter_groups", 2, "a list"),
        ("resources:\nparameter_groups: [{}, a]", "group", ": parameter_groups[1]", 2, "a list"),
        (
            "resources:\nparameter_groups: [{parameters: a}]",
            "group",
            ": parameter_groups[0]",
            2,
            "expected a list of parameters",
        ),
    ],
)
def test_what_is_no_template_is_refused(
    package: Make, template: str, rule: str, where: str, line: int, message: str
) -> None:
    with pytest.raises(InvalidPackage) as caught:
        package(template)

    [problem] = caught.value.problems
    assert problem.rule == f"template-{rule}"
    assert (problem.where, problem.line) == (f"template.yaml{where}", line)
    assert message in problem.message


@pytest.mark.parametrize(
    ("parameter", "rule", "message"),
    [
        ("", "mapping", "expected a mapping, found nothing"),
        ("{label: a}", "type", "found no type"),
        (
            "{type: text}",
            "type",
            "one of string, number, boolean, comma_delimited_list, json, found 'text'",
        ),
        ("{type: [json]}", "type", "found ['json']"),
        ("{type: json, [a]: 1}", "value", "a key"),
        ("{type: json, label: [a]}", "parameter", "expected label to be a text"),
        ("{type: json, description: {}}", "parameter", "expected description to be a text"),
        ("{type: json, constraints: a}", "constraint", "expected constraints to be a list"),
    ],
)
def test_what_is_no_parameter_is_refused(
    package: Make, parameter: str, rule: str, message: str
) -> None:
    with pytest.raises(InvalidPackage) as caught:
        package(f"resources:\nparameters:\n  p: {parameter}\n")

    [problem] = caught.value.problems
    assert problem.rule == f"template-{rule}"
    assert (problem.where, problem.line) == ("template.yaml: parameters.p", 3)
    assert message in problem.message


@pytest.mark.parametrize(
    ("kind", "constraint", "message"),
    [
        ("json", "a", "expected a mapping such as {length: {max: 8}}, found 'a'"),
        ("string", "length: 5", "length: expected a mapping of min and max, found 5"),
        ("string", "length: {min: 1.5}", "length: expected a whole number, found 1.5"),
        ("string", "{length: {max: 1}, description: [a]}", "expected a text, found ['a']"),
        ("number", "range: {max: many}", "range: expected a number of at most 9223"),
        ("number", "range: {max: .inf}", "found '.inf'"),
        ("number", "range: {max: nan}", "found 'nan'"),
        ("number", "range: {max: 1.0e+300}", "found 1e+300"),
        ("number", "range: {max: true}", "found True"),
        ("number", "range: {max: " + "9" * 5000 + "}", "999..."),
        ("number", "allowed_values: [a]", "allowed_values: expected a number"),
        ("boolean", "allowed_values: [maybe]", "expected a truth value, found 'maybe'"),
        ("string", "allowed_values: a", "expected a list of values, found 'a'"),
        ("string", "allowed_values: [[a]]", "expected a text, found ['a']"),
        ("string", "allowed_pattern: '('", "expected a regular expression, found '('"),
        ("string", "allowed_pattern: 5", "expected a regular expression, found 5"),
    ],
)
def test_what_is_no_constraint_is_refused(
    package: Make, kind: str, constraint: str, message: str
) -> None:
    with pytest.raises(InvalidPackage) as caught:
        package(
            f"resources:\nparameters:\n  p: {{type: {kind}, constraints: [{{}}, {constraint}]}}\n"
        )

    [problem] = caught.value.problems
    assert problem.rule == "template-constraint"
    assert (problem.where, problem.line) == ("template.yaml: parameters.p.constraints[1]", 3)
    assert message in problem.message
    assert len(problem.message) < 200


def test_aliases_that_grow_are_refused(package: Make) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30)]

    with pytest.raises(InvalidPackage, match="yaml-alias"):
        package("\n".join([*lines, "resources: {}"]))


def test_aliases_that_nest_too_deep_are_refused(package: Make) -> None:
    items = ["&a0 [x]"] + [f"&a{n} [*a{n - 1}]" for n in range(1, 400)]
    template = f"resources:\nparameters: {{p: {{type: json, default: [{', '.join(items)}]}}}}\n"

    with pytest.raises(InvalidPackage) as caught:
        package(template)

    assert [problem.rule for problem in caught.value.problems] == ["yaml-depth"]


def test_everything_that_is_wrong_is_told_at_once(package: Make) -> None:
    with pytest.raises(InvalidPackage) as caught:
        package("resources:\nparameters: {a: {type: x}, b: [], c: {type: json}}\noutputs: []\n")

    assert [problem.rule for problem in caught.value.problems] == [
        "template-type",
        "template-mapping",
        "template-mapping",
    ]


def test_a_package_without_a_template_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidPackage, match=r"template\.yaml: .* \[template-missing\]"):
        HOTPackage("Heat.HOT", Version("1.0.0"), str(tmp_path), MANIFEST)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.builds(Yaql, st.text()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_what_is_written_is_read_back(document: Any) -> None:
    assert _read(yaql.dump(document)) == document


def test_what_stands_twice_is_written_twice() -> None:
    shared = {"a": Yaql("$")}

    assert yaql.dump([shared, shared]).count("!yaql") == 2
