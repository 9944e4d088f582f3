# SPDX-License-Identifier: Apache-2.0

"""Define findings, and write them as text, GitHub annotations and SARIF 2.1.0.

The checks that make findings are in ``checking``.
"""

import ast
import dataclasses
import enum
import importlib.metadata
import inspect
import json
import os
import pathlib
import textwrap
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_SARIF = "2.1.0"
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@enum.unique
class Level(enum.StrEnum):
    """The severity of a finding; GitHub and SARIF use the same values."""

    ERROR = "error"
    WARNING = "warning"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A problem in a package.

    :param level: the severity of the problem.
    :param rule: the broken rule; the string below the rule says why it exists and what to do.
    :param path: the file or the directory with the problem; for a package in a ZIP file, the path
        of the ZIP file.
    :param line: the line in the file, counted from 1; 0 if unknown.
    :param message: what is wrong.
    """

    level: Level
    rule: enum.StrEnum
    path: pathlib.Path
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.level}: {self.message} [{self.rule}]"


def annotations(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield an annotation for GitHub Actions for each finding.

    An annotation is a workflow command, see "Workflow commands for GitHub Actions", section
    "Setting an error message".
    """
    for each in findings:
        keys = {"file": str(each.path), "line": str(each.line), "title": str(each.rule)}
        written = ",".join(f"{k}={_escaped(v, ':,')}" for k, v in keys.items() if v != "0")
        yield f"::{each.level} {written}::{_escaped(each.message)}"


def sarif(findings: Sequence[Finding]) -> str:
    """Return a log in the Static Analysis Results Interchange Format, version 2.1.0 (OASIS)."""
    rules = sorted({each.rule for each in findings})
    driver = {
        "name": "glare-murano",
        "version": importlib.metadata.version("glare-murano"),
        "rules": [_rule(each) for each in rules],
    }
    results = [
        {
            "ruleId": str(each.rule),
            "ruleIndex": rules.index(each.rule),
            "level": str(each.level),
            "message": {"text": each.message},
            "locations": [{"physicalLocation": _location(each)}],
        }
        for each in findings
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": _SARIF, "runs": [run]}, indent=2)


def remedies(rules: type[enum.StrEnum]) -> Mapping[str, str]:
    """Read the source of an enumeration, and return the string below each member.

    :returns: a mapping of the names of the members to the strings.
    """
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(rules))).body
    found = {}
    name = ""
    for node in getattr(definition, "body", ()):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)]):
                name = target
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                found[name] = " ".join(text.replace("``", "`").split())
    return found


def _rule(rule: enum.StrEnum) -> Mapping[str, Any]:
    text = {"text": remedies(type(rule))[rule.name]}
    return {"id": str(rule), "shortDescription": text, "fullDescription": text, "help": text}


def _location(finding: Finding) -> Mapping[str, Any]:
    path = finding.path
    uri = path.as_uri() if path.is_absolute() else urllib.parse.quote(os.fsencode(path))
    location: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if finding.line:
        location["region"] = {"startLine": finding.line}
    return location


def _escaped(text: str, characters: str = "") -> str:
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{characters}" else c for c in text)
