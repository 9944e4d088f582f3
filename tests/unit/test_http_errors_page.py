# SPDX-License-Identifier: Apache-2.0

"""The page of HTTP errors has the statuses of the API's description, and headers of the code."""

import ast
import inspect
import itertools
import json
import pathlib
import re
import textwrap

import yaml

from glare_murano import preconditions, wire
from glare_murano.package import rules
from glare_murano.service import refusals

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "doc" / "source" / "reference" / "http-errors.rst").read_text()
API = yaml.safe_load((ROOT / "doc" / "openapi.yaml").read_text())


def test_the_statuses_are_those_of_the_api() -> None:
    described = {
        status
        for path in API["paths"].values()
        for operation in path.values()
        if isinstance(operation, dict)
        for status in operation.get("responses", {})
        if status >= "400"
    }
    assert re.findall(r"^   \* - (\d{3})$", PAGE, re.MULTILINE) == sorted(described)


def test_the_form_is_that_of_a_refusal() -> None:
    (block,) = re.findall(r"code-block:: json\n\n((?:    .*\n)+)", PAGE)
    shown = json.loads(textwrap.dedent(block))
    assert shown == refusals.document(shown["code"], shown["error"]["message"])


def test_the_headers_and_rules_are_those_of_the_code() -> None:
    assert f"``{preconditions.HEADER}``" in PAGE
    assert f"``{wire.OVERRIDE_HEADER}``" in PAGE
    names = set(re.findall(r"\(``([a-z]+-[a-z]+)``", PAGE)) | set(
        re.findall(r"^``(requirement-[a-z]+)``", PAGE, re.MULTILINE)
    )
    assert len(names) >= 5
    assert names <= {str(rule) for rule in rules.Rule}


def test_every_rule_says_what_to_do() -> None:
    (tree,) = ast.parse(inspect.getsource(rules.Rule)).body
    assert isinstance(tree, ast.ClassDef)
    texts = [
        after.value.value
        for rule, after in itertools.pairwise(tree.body)
        if isinstance(rule, ast.Assign)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
    ]
    assert len(texts) == len(rules.Rule)
    # What was refused, and then what to do.
    assert [text for text in texts if len(re.findall(r"[.](?:\s|$)", str(text))) < 2] == []
