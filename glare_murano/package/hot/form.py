# SPDX-License-Identifier: Apache-2.0

"""Generate the form for the parameters of a HOT template.

The form is a form definition of version 2 for Murano's dashboard.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from glare_murano.package.hot.parameter import TRUTH_VALUES, Constraint, Parameter, ParameterType
from glare_murano.package.hot.template import Template
from glare_murano.package.hot.yaql_dumper import Yaql, literal
from glare_murano.package.ui_form.input_fields import RESERVED_NAMES
from glare_murano.package.versions import Version

_FIELD_TYPES = {ParameterType.NUMBER: "integer", ParameterType.BOOLEAN: "boolean"}
_KEYWORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


def make_form(
    name: str, version: Version, description: str | None, template: Template
) -> dict[str, Any]:
    """Make the form: a page for the name of the application, and a page for each parameter group.

    :param name: the FQN of the package, which is also the name of its class.
    :param version: the version of the package.
    :param description: the description of the package, which is shown above the form.
    :returns: the form as a mapping, for ``yaql_dumper.dump``.
    """
    pages = [_application_fields(description)]
    pages += [[_field(template.parameters[n]) for n in group] for group in template.groups]
    values = {
        parameter: _value(page, parameter)
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
    title = {"name": "title", "type": "string", "required": False, "hidden": True}
    name = {"name": "name", "type": "string", "label": "Application Name", "required": True}
    return [
        {**title, "description": description},
        {**name, "description": "The name of the application in the environment."},
    ]


def _value(page: int, parameter: str) -> Yaql:
    name = _field_name(parameter)
    if _KEYWORD.match(name):
        return Yaql(f"$.group{page}.{name}")
    return Yaql(f"$.group{page}.get({literal(name)})")


def _field_name(parameter: str) -> str:
    return f"{parameter}-" if parameter in RESERVED_NAMES else parameter


def _field(parameter: Parameter) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": _field_name(parameter.name),
        "type": _FIELD_TYPES.get(parameter.kind, "string"),
        "label": parameter.label or parameter.name.replace("_", " ").title(),
        "required": not parameter.has_default,
    }
    if parameter.description is not None:
        field["description"] = parameter.description
    if parameter.has_default:
        field["initial"] = _initial(parameter)
    constraints = parameter.constraints
    if least := [c.lengths[0] for c in constraints if c.lengths[0] is not None]:
        field["minLength"] = max(least)
    if greatest := [c.lengths[1] for c in constraints if c.lengths[1] is not None]:
        field["maxLength"] = min(greatest)
    if validators := list(_validators(c for c in constraints if c.lengths == (None, None))):
        field["validators"] = validators
    return field


def _initial(parameter: Parameter) -> Any:
    """Convert the default of a parameter to the initial value of an input field.

    A list or a mapping becomes a string. For a boolean parameter, a string such as ``yes`` becomes
    a truth value.
    """
    default = parameter.default
    if parameter.kind is ParameterType.LIST and isinstance(default, list):
        return ",".join(map(str, default))
    if isinstance(default, dict | list):
        return json.dumps(default)
    if parameter.kind is ParameterType.BOOLEAN:
        return TRUTH_VALUES.get(str(default).lower(), default)
    return default


def _validators(constraints: Iterable[Constraint]) -> Iterable[dict[str, Any]]:
    for constraint in constraints:
        if constraint.pattern is not None:
            # The dashboard reads "/pattern/flags" as a pattern with flags, so a leading slash is
            # escaped.
            escape = "\\" if constraint.pattern.startswith("/") else ""
            expression: Any = {"regexpValidator": escape + constraint.pattern}
        elif constraint.predicate is not None:
            expression = Yaql(constraint.predicate)
        else:
            continue
        message = constraint.description
        yield {"expr": expression} | ({} if message is None else {"message": message})
