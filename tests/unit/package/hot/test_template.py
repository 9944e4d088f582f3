# SPDX-License-Identifier: Apache-2.0

"""Templates that are refused, and with which problems."""

import time

import pytest

from glare_murano.package import InvalidPackage
from glare_murano.package.hot.template import Template


def _parse(template: str) -> Template:
    return Template.parse(template.encode())


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
def test_what_is_no_yaml_is_refused(template: str, rule: str) -> None:
    with pytest.raises(InvalidPackage) as caught:
        _parse(template)

    [problem] = caught.value.problems
    assert (problem.rule, problem.where) == (rule, "template.yaml")


@pytest.mark.parametrize(
    ("template", "rule", "where", "line", "message"),
    [
        ("", "mapping", "", 0, "expected a mapping, found nothing"),
        ("- a\n", "mapping", "", 1, "found a sequence"),
        ("[a]: 1\n", "mapping", "", 1, "a key is not a string"),
        ("FullName: no template", "resources", "", 1, "no section 'resources'"),
        ("resources:\nparameters: []", "mapping", ": parameters", 2, "found a sequence"),
        ("resources:\nparameters:\n  <<: a\n", "mapping", ": parameters", 3, "'<<'"),
        ("resources:\noutputs: a", "mapping", ": outputs", 2, "found a string"),
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
    template: str, rule: str, where: str, line: int, message: str
) -> None:
    with pytest.raises(InvalidPackage) as caught:
        _parse(template)

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
        ("{type: json, label: [a]}", "parameter", "expected label to be a string"),
        ("{type: json, description: {}}", "parameter", "expected description to be a string"),
        ("{type: json, constraints: a}", "constraint", "expected constraints to be a list"),
    ],
)
def test_what_is_no_parameter_is_refused(parameter: str, rule: str, message: str) -> None:
    with pytest.raises(InvalidPackage) as caught:
        _parse(f"resources:\nparameters:\n  p: {parameter}\n")

    [problem] = caught.value.problems
    assert problem.rule == f"template-{rule}"
    assert (problem.where, problem.line) == ("template.yaml: parameters.p", 3)
    assert message in problem.message


def test_a_long_type_is_shortened() -> None:
    with pytest.raises(InvalidPackage) as caught:
        _parse(f"resources:\nparameters:\n  p: {{type: {'x' * 99}}}\n")

    [problem] = caught.value.problems
    assert problem.message.endswith(f"found '{'x' * 59}")


@pytest.mark.parametrize(
    ("kind", "constraint", "message"),
    [
        ("json", "a", "expected a mapping such as {length: {max: 8}}, found 'a'"),
        ("string", "length: 5", "length: expected a mapping of min and max, found 5"),
        ("string", "length: {min: 1.5}", "length: expected a whole number, found 1.5"),
        ("string", "{length: {max: 1}, description: [a]}", "expected a string, found ['a']"),
        ("number", "range: {max: many}", "range: expected a number of at most 9223"),
        ("number", "range: {max: .inf}", "found '.inf'"),
        ("number", "range: {max: nan}", "found 'nan'"),
        ("number", "range: {max: 1.0e+300}", "found 1e+300"),
        ("number", "range: {max: true}", "found True"),
        ("number", "range: {max: " + "9" * 5000 + "}", "999..."),
        ("number", "allowed_values: [a]", "allowed_values: expected a number"),
        ("boolean", "allowed_values: [maybe]", "expected a truth value, found 'maybe'"),
        ("string", "allowed_values: a", "expected a list of values, found 'a'"),
        ("string", "allowed_values: [[a]]", "expected a string, found ['a']"),
        ("string", "allowed_pattern: '('", "expected a regular expression, found '('"),
        ("string", "allowed_pattern: 5", "expected a regular expression, found 5"),
    ],
)
def test_what_is_no_constraint_is_refused(kind: str, constraint: str, message: str) -> None:
    with pytest.raises(InvalidPackage) as caught:
        _parse(
            f"resources:\nparameters:\n  p: {{type: {kind}, constraints: [{{}}, {constraint}]}}\n"
        )

    [problem] = caught.value.problems
    assert problem.rule == "template-constraint"
    assert (problem.where, problem.line) == ("template.yaml: parameters.p.constraints[1]", 3)
    assert message in problem.message
    assert len(problem.message) < 200


def test_aliases_that_grow_are_refused() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30)]

    with pytest.raises(InvalidPackage, match="yaml-alias"):
        _parse("\n".join([*lines, "resources: {}"]))


def test_aliases_that_nest_too_deep_are_refused() -> None:
    items = ["&a0 [x]"] + [f"&a{n} [*a{n - 1}]" for n in range(1, 400)]
    template = f"resources:\nparameters: {{p: {{type: json, default: [{', '.join(items)}]}}}}\n"

    with pytest.raises(InvalidPackage) as caught:
        _parse(template)

    assert [problem.rule for problem in caught.value.problems] == ["yaml-depth"]


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(InvalidPackage) as caught:
        _parse("resources:\nparameters: {a: {type: x}, b: [], c: {type: json}}\noutputs: []\n")

    assert [problem.rule for problem in caught.value.problems] == [
        "template-type",
        "template-mapping",
        "template-mapping",
    ]


def test_a_parameter_is_in_the_first_of_its_groups_once() -> None:
    template = _parse(
        "resources:\nparameters: {a: {type: json}, b: {type: json}}\n"
        "parameter_groups: [{parameters: [a, a]}, {parameters: [a, b, a]}]\n"
    )

    assert template.groups == (("a",), ("b",))


def test_groups_with_many_parameters_take_no_square_of_time() -> None:
    names = [f"p{number}" for number in range(8000)]
    parameters = "".join(f"  {name}: {{type: json}}\n" for name in names)
    repeated = ", ".join(names[:1] * 60_000)
    start = time.process_time()

    template = _parse(
        f"resources:\nparameters:\n{parameters}parameter_groups: [{{parameters: [{repeated}]}}]\n"
    )

    assert template.groups == (("p0",), tuple(names[1:]))
    # It was 40 seconds.
    assert time.process_time() - start < 8
