# SPDX-License-Identifier: Apache-2.0

"""The form in which a user fills in the parameters of a HOT template, as plain data.

It is a form definition of version 2, as Murano's dashboard reads it.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from glare_murano.package import Version
from glare_murano.package.hot.parameter import (
    AllowedPattern,
    Constraint,
    Length,
    Parameter,
    Type,
    truth_or_none,
)
from glare_murano.package.hot.template import Template
from glare_murano.package.hot.yaql import Yaql, literal

_FIELD_TYPES = {Type.NUMBER: "integer", Type.BOOLEAN: "boolean"}
_KEYWORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


def make_form(
    name: str, version: Version, description: str | None, template: Template
) -> dict[str, Any]:
    """Make the form.

    The first page asks for the application's name, each further one for a
    group of parameters.

    :param name: the FQN of the package and its class.
    :param description: the package's, shown above the form.
    """
    pages = [_application_fields(description)]
    pages += [[_field(template.parameters[n]) for n in group] for group in template.groups]
    values = {
        parameter: Yaql(_value(page, parameter))
        for page, group in enumerate(template.groups, start=1)
        for parameter in group
    }
    application: dict[str, Any] = {
        "?": {"type": name, "package": name, "classVersion": str(version)},
        "name": Yaql("$.group0.name"),
    }
    if template.groups:
        application["templateParameters"] = values
    return {
        "Version": 2,
        "Application": application,
        "Forms": [{f"group{number}": {"fields": fields}} for number, fields in enumerate(pages)],
    }


def _application_fields(description: str | None) -> list[dict[str, Any]]:
    return [
        {
            "name": "title",
            "type": "string",
            "required": False,
            "hidden": True,
            "description": description,
        },
        {
            "name": "name",
            "type": "string",
            "label": "Application Name",
            "required": True,
            "description": "What the environment calls this application.",
        },
    ]


def _value(page: int, parameter: str) -> str:
    if _KEYWORD.match(parameter):
        return f"$.group{page}.{parameter}"
    return f"$.group{page}.get({literal(parameter)})"


def _field(parameter: Parameter) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": parameter.name,
        "type": _FIELD_TYPES.get(parameter.kind, "string"),
        "label": parameter.label or parameter.name.replace("_", " ").title(),
        "required": not parameter.has_default,
    }
    if parameter.description is not None:
        field["description"] = parameter.description
    if parameter.has_default:
        field["initial"] = _initial(parameter)
    lengths = [
        constraint
        for constraint in parameter.constraints
        if isinstance(constraint, Length) and not constraint.of_items
    ]
    others = [constraint for constraint in parameter.constraints if constraint not in lengths]
    field.update(_length(lengths))
    validators = list(_validators(others))
    if validators:
        field["validators"] = validators
    return field


def _initial(parameter: Parameter) -> Any:
    """The default as the field shows it and gives it back: no list, no mapping."""
    default = parameter.default
    if parameter.kind is Type.LIST and isinstance(default, list):
        return ",".join(map(str, default))
    if isinstance(default, dict | list):
        return json.dumps(default)
    if parameter.kind is Type.BOOLEAN:
        truth = truth_or_none(default)
        return default if truth is None else truth
    return default


def _length(constraints: Iterable[Length]) -> dict[str, int]:
    lows = [c.minimum for c in constraints if c.minimum is not None]
    highs = [c.maximum for c in constraints if c.maximum is not None]
    found = {}
    if lows:
        found["minLength"] = max(lows)
    if highs:
        found["maxLength"] = min(highs)
    return found


def _validators(constraints: Iterable[Constraint]) -> Iterable[dict[str, Any]]:
    for constraint in constraints:
        if isinstance(constraint, AllowedPattern):
            expression: Any = {"regexpValidator": _regexp(constraint.pattern)}
        elif constraint.predicate is not None:
            expression = Yaql(constraint.predicate)
        else:
            continue
        message = constraint.description
        yield {"expr": expression} | ({} if message is None else {"message": message})


def _regexp(pattern: str) -> str:
    # A slash in front would mean that flags follow a slash at the end.
    return f"\\{pattern}" if pattern.startswith("/") else pattern
