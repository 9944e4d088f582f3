# SPDX-License-Identifier: Apache-2.0

"""The table of rules: every code is used, documented, and written nowhere else."""

import ast
import functools
import pathlib
import re

import pytest

from glare_murano.package import Problem, Rule

ROOT = pathlib.Path(__file__).parents[3]
TABLE = ROOT / "glare_murano/package/rules.py"
PAGE = ROOT / "doc/source/reference/refusals.rst"

SOURCES = [
    path
    for folder in ("glare_murano", "loader")
    for path in (ROOT / folder).rglob("*.py")
    if path != TABLE
]


@functools.cache
def parsed():
    return [(path, node) for path in SOURCES for node in ast.walk(ast.parse(path.read_text()))]


def test_a_code_is_the_name_of_its_rule():
    assert [rule for rule in Rule if rule != rule.name.lower().replace("_", "-")] == []


def test_every_rule_is_used():
    used = {
        node.attr
        for _, node in parsed()
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name | ast.Attribute)
        and ast.unparse(node.value).split(".")[-1] == "Rule"
    }
    assert {rule.name for rule in Rule} - used == set()


def test_no_code_is_written_elsewhere():
    texts = [
        (path, node.value)
        for path, node in parsed()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    codes = re.compile(rf"(?<![\w-])({'|'.join(Rule)})(?![\w-])")
    assert [(path, text) for path, text in texts if codes.search(text)] == []


def test_every_rule_has_a_text_of_two_sentences():
    [table] = [node for node in ast.parse(TABLE.read_text()).body if isinstance(node, ast.ClassDef)]
    members = table.body[1:]
    names = [node.targets[0].id for node in members[::2]]
    texts = [" ".join(node.value.value.split()) for node in members[1::2]]
    assert names == [rule.name for rule in Rule]
    assert [text for text in texts if not re.fullmatch(r"[A-Z`].*\. [A-Z].*\.", text)] == []


def test_every_rule_is_in_the_documentation():
    listed = re.findall(r"^\.\. refusal-rules:: (.*)$", PAGE.read_text(), re.MULTILINE)
    prefixes = [prefix for line in listed for prefix in line.split()]
    assert len(prefixes) == len(set(prefixes))
    assert {rule.split("-")[0] for rule in Rule} == set(prefixes)


def test_a_problem_takes_the_code_of_a_rule():
    problem = Problem("manifest-name", "FullName", "is missing")
    assert problem.rule is Rule.MANIFEST_NAME
    assert str(problem) == "FullName: is missing [manifest-name]"


def test_a_problem_refuses_an_unknown_code():
    with pytest.raises(ValueError, match="'no-such-rule' is not a valid Rule"):
        Problem("no-such-rule", "FullName", "is missing")
