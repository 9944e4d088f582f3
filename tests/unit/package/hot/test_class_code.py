# SPDX-License-Identifier: Apache-2.0

"""The class that is generated from a template."""

from typing import Any

import pytest

from glare_murano.package.hot.class_code import make_class
from glare_murano.package.hot.template import Template
from glare_murano.package.hot.yaql_dumper import Yaql

NAME = "org.test.Hot"


def _class(template: str) -> Any:
    return make_class(NAME, Template.parse(template.encode()), files=(), has_environments=False)


def _contract(template: str) -> Any:
    properties = _class(template)["Properties"]
    contract = properties["templateParameters"]["Contract"]
    return {name: expression.text for name, expression in contract.items()}


def test_the_class() -> None:
    found = _class("parameters: {a: {type: string}}\noutputs: {b: {}}\nresources:\n")

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
def test_the_contract_of_a_parameter(parameter: str, contract: str) -> None:
    assert _contract(f"parameters: {{p: {parameter}}}\nresources:\n") == {"p": contract}


def test_merged_entries_count() -> None:
    found = _contract(
        "common: &common {one: &one {type: number, constraints: [range: {min: 1}]}}\n"
        "parameters: {<<: *common, two: {<<: *one, default: 1}}\n"
        "resources:\n"
    )

    assert found == {"one": "$.int().check($ >= 1)", "two": "$.int()?.check($ >= 1)"}


def test_without_files_none_are_passed_on() -> None:
    assert {Yaql("$files"): {}} in _class("resources: {}")["Methods"]["deploy"]["Body"]
