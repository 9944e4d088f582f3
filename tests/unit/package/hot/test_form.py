# SPDX-License-Identifier: Apache-2.0

"""The form that is generated from a template."""

from typing import Any

import pytest

from glare_murano.package import Version
from glare_murano.package.hot.form import make_form
from glare_murano.package.hot.template import Template
from glare_murano.package.hot.yaql_dumper import Yaql, dump
from glare_murano.package.ui_form import check_form


def _form(template: str) -> Any:
    return make_form("org.test.Hot", Version("1.2.0"), "A test", Template.parse(template.encode()))


def _fields(template: str) -> dict[str, Any]:
    """The fields for parameters, by name."""
    pages = _form(template)["Forms"][1:]
    fields = [field for page in pages for part in page.values() for field in part["fields"]]
    return {field["name"]: field for field in fields}


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
            "{type: string, constraints: [length: {min: 3}, length: {max: 9}]}",
            {"minLength": 3, "maxLength": 9},
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
def test_the_field_of_a_parameter(parameter: str, field: dict[str, Any]) -> None:
    found = _fields(f"parameters: {{a_parameter: {parameter}}}\nresources:\n")

    plain = {"name": "a_parameter", "label": "A Parameter", "type": "string", "required": True}
    assert found == {"a_parameter": {**plain, **field}}


def test_the_form_has_a_page_for_each_group() -> None:
    form = _form(
        "parameter_groups: [{label: Two, parameters: [c, a, z]}, {}, {parameters: {d: }}]\n"
        "parameters: {a: {type: json}, b-2: {type: json}, c: {type: json}, d: {type: json}}\n"
        "resources:\n"
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


def test_without_parameters_the_form_asks_for_a_name() -> None:
    form = _form("resources: {}\n")

    assert len(form["Forms"]) == 1
    assert set(form["Application"]) == {"?", "name"}


def test_a_parameter_may_have_a_name_that_no_field_can_have() -> None:
    form = _form(
        "heat_template_version: 2016-10-14\nresources: {}\nparameters: {service: {type: string}}"
    )
    assert check_form(dump(form).encode(), "form") == ([], [])
    assert form["Application"]["templateParameters"] == {
        "service": Yaql("$.group1.get('service-')")
    }
    assert form["Forms"][1]["group1"]["fields"][0]["name"] == "service-"
