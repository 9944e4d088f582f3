# SPDX-License-Identifier: Apache-2.0

"""Check the fields of a form: their types, attributes and validators.

The dashboard passes the attributes of a field as arguments to the field's Python class, so an
unknown attribute breaks the form. But an attribute whose value is an expression becomes a property
of the field, and may have any name.
"""

import re
from collections.abc import Callable, Mapping

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_fqn
from glare_murano.package.rules import Rule
from glare_murano.package.ui_form.form_report import (
    FormReport,
    described,
    is_arithmetic,
    is_null,
    is_string,
    snake_case,
)

_DELIMITED = re.compile(r"/(.*)/([A-Za-z]*)$")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_DIGITS = re.compile(r"\s*[-+]?[0-9]{1,18}\s*\Z")
_FLAVOR_LIMITS = {
    f"{end}_{unit}" for end in ("min", "max") for unit in ("vcpus", "disk", "memory_mb")
}
# Attributes that the dashboard needs before it makes the Python class of a field. They do not
# become properties, even if their values are expressions.
_NO_PROPERTIES = ("regexp_validator", "widget_attrs", "widget_media")
# Attributes whose expressions are evaluated when the form is shown.
_SHOWN = ("description", "description_title", "help_text", "initial", "label")
# A field with such a name would replace an attribute of its page.
RESERVED_NAMES = ("service", "validators", "verbose_name")
_NETWORK_MODES = ("exclude", "translate")

# A function that reports the mistakes in the value of an attribute.
_Check = Callable[[FormReport, str, yaml.Node], None]


def check_field(report: FormReport, field: yaml.Node) -> str | None:
    """Check a field of a form.

    :param report: the report to which problems and warnings are added.
    :param field: the node of the field.
    :returns: the name of the field; None if the name is not valid.
    """
    entries = report.entries(Rule.FORM_FIELD, field, "a field")
    if entries is None:
        return None
    name = _check_name(report, field, entries.pop("name", (None, None))[1])
    kind = _check_type(report, field, entries.pop("type", (None, None))[1])
    known = _COMMON if kind is None else {**_COMMON, **_TYPES.get(kind, _OF_CLASS)}
    for key, (key_node, value) in entries.items():
        attribute = snake_case(key)
        _check_keys(report, value)
        if report.is_expression(value) and attribute not in _NO_PROPERTIES:
            if attribute in _SHOWN and is_arithmetic(value):
                message = f"{key} is {described(value)}, which YAQL would calculate; quote it"
                report.refuse(Rule.FORM_ATTRIBUTE, value, message)
            continue
        if check := known.get(attribute):
            check(report, key, value)
        elif kind is not None:
            message = f"the attribute {quoted(key)} is unknown in a field of the type {kind}"
            report.refuse(Rule.FORM_ATTRIBUTE, key_node, message)
    if kind == "password" and "label" not in map(snake_case, entries):
        message = "a field of the type password needs the attribute 'label'"
        report.refuse(Rule.FORM_ATTRIBUTE, field, message)
    return name


def _check_name(report: FormReport, field: yaml.Node, name: yaml.Node | None) -> str | None:
    if name is None:
        report.refuse(Rule.FORM_FIELD, field, "a field has no 'name'")
    elif not is_string(name) or not name.value:
        message = f"the name of a field is {described(name)}; expected a string"
        report.refuse(Rule.FORM_FIELD, name, message)
    elif name.value in RESERVED_NAMES:
        message = f"a field called {quoted(name.value)} breaks the page; choose another name"
        report.refuse(Rule.FORM_FIELD, name, message)
    else:
        return str(name.value)
    return None


def _check_type(report: FormReport, field: yaml.Node, written: yaml.Node | None) -> str | None:
    """Check the type of a field.

    :param report: the report to which problems and warnings are added.
    :param field: the node of the field.
    :param written: the node of the type; None if the field has no type.
    :returns: the type; the first class if the type is a list of classes. None if the type is
        missing or not valid, which is reported as a problem.
    """
    if written is None:
        report.refuse(Rule.FORM_FIELD, field, "a field has no 'type'")
        return None
    types = written.value if isinstance(written, yaml.SequenceNode) else [written]
    if not types:
        report.refuse(Rule.FORM_FIELD, written, "the type of a field is an empty list")
        return None
    for each in types:
        if is_string(each) and each.value in _TYPES and each is written:
            break
        try:
            check_fqn(str(each.value) if is_string(each) else "")
        except ValueError:
            message = f"{described(each)} is neither a type of fields nor the name of a class"
            report.refuse(Rule.FORM_FIELD, each, message)
            return None
        if "." not in each.value:
            message = f"{quoted(each.value)} is not a type of fields, so it is read as a class"
            report.warn(Rule.FORM_FIELD, each, message)
    return str(types[0].value)


def _check_keys(report: FormReport, node: yaml.Node) -> None:
    """Check that all keys of all mappings in a value are strings, at any depth.

    :param report: the report to which problems are added.
    :param node: the node of the value.
    """
    rest = [node]
    while rest:
        node = rest.pop()
        if isinstance(node, yaml.SequenceNode):
            rest += node.value
        elif isinstance(node, yaml.MappingNode):
            entries = report.entries(Rule.FORM_ATTRIBUTE, node, "an attribute") or {}
            rest += [value for _, value in entries.values()]


def _anything(_report: FormReport, _key: str, _value: yaml.Node) -> None:
    pass


def _refuse(report: FormReport, key: str, value: yaml.Node, expected: str) -> None:
    message = f"{key} is {described(value)}; expected {expected}"
    report.refuse(Rule.FORM_ATTRIBUTE, value, message)


def _boolean(report: FormReport, key: str, value: yaml.Node) -> None:
    if not is_null(value) and not isinstance(safe_yaml.plain(value), bool):
        message = f"{key} is {described(value)}; expected true or false"
        report.warn(Rule.FORM_ATTRIBUTE, value, message)


def _hidden(report: FormReport, key: str, value: yaml.Node) -> None:
    if isinstance(value, yaml.ScalarNode):
        _boolean(report, key, value)
    else:
        _refuse(report, key, value, "true or false")


def _length(report: FormReport, key: str, value: yaml.Node) -> None:
    is_written = is_string(value) and _DIGITS.match(str(value.value))
    if not is_written and not is_null(value) and value.tag not in _NUMBERS:
        _refuse(report, key, value, "a number")


def _number(report: FormReport, key: str, value: yaml.Node) -> None:
    if not is_null(value) and value.tag not in _NUMBERS:
        _refuse(report, key, value, "a number")


def _mapping(report: FormReport, key: str, value: yaml.Node) -> None:
    if not isinstance(value, yaml.MappingNode):
        _refuse(report, key, value, "a mapping")


def _mapping_or_null(report: FormReport, key: str, value: yaml.Node) -> None:
    if not is_null(value):
        _mapping(report, key, value)


def _media(report: FormReport, key: str, value: yaml.Node) -> None:
    _mapping(report, key, value)
    if isinstance(value, yaml.MappingNode):
        entries = report.entries(Rule.FORM_ATTRIBUTE, value, key) or {}
        if "css" in entries:
            _mapping_or_null(report, "css", entries["css"][1])


def _choices(report: FormReport, key: str, value: yaml.Node) -> None:
    if isinstance(value, yaml.MappingNode):
        return
    if not isinstance(value, yaml.SequenceNode):
        _refuse(report, key, value, "a list of pairs, or a mapping")
        return
    for choice in value.value:
        if not isinstance(choice, yaml.SequenceNode) or len(choice.value) != 2:
            _refuse(report, f"an entry of {key}", choice, "a list of a value and its title")


def _requirements(report: FormReport, key: str, value: yaml.Node) -> None:
    if not isinstance(value, yaml.MappingNode):
        _refuse(report, key, value, "a mapping")
        return
    for name, (node, limit) in (report.entries(Rule.FORM_ATTRIBUTE, value, key) or {}).items():
        if snake_case(name) not in _FLAVOR_LIMITS:
            report.warn(Rule.FORM_ATTRIBUTE, node, f"{quoted(name)} in {key} is unknown")
        elif limit.tag not in _NUMBERS:
            _refuse(report, name, limit, "a number")


def _network_mode(report: FormReport, key: str, value: yaml.Node) -> None:
    if not is_null(value) and (
        not is_string(value) or str(value.value).lower() not in ("", *_NETWORK_MODES)
    ):
        _refuse(report, key, value, " or ".join(_NETWORK_MODES))


def _pattern(report: FormReport, key: str, value: yaml.Node) -> None:
    """Check a Python regular expression, in the form ``pattern`` or ``/pattern/flags``.

    :param report: the report to which a problem is added.
    :param key: the attribute that has the regular expression as its value.
    :param value: the node of the regular expression.
    """
    if not is_string(value):
        _refuse(report, key, value, "a regular expression")
        return
    written = str(value.value)
    pattern, letters = written, ""
    if written.startswith("/"):
        if not (found := _DELIMITED.match(written)):
            _refuse(report, key, value, "/pattern/ or /pattern/flags after a slash")
            return
        pattern, letters = found[1], found[2]
    flags = 0
    for letter in letters.upper():
        flags |= getattr(re, letter, 0)
    try:
        report.patterns.check(pattern, flags)
    except ValueError as error:
        message = f"{key} {quoted(written)} is not a valid regular expression: {error}"
        report.refuse(Rule.FORM_VALIDATOR, value, message)


def _validators(report: FormReport, key: str, value: yaml.Node) -> None:
    if not isinstance(value, yaml.SequenceNode):
        report.refuse(Rule.FORM_VALIDATOR, value, f"{key} is {described(value)}; expected a list")
        return
    for validator in value.value:
        entries = report.entries(Rule.FORM_VALIDATOR, validator, "a validator")
        if entries is None:
            continue
        found = {snake_case(name): each for name, (_, each) in entries.items()}
        expression = found.get("expr")
        if isinstance(expression, yaml.MappingNode):
            inner = report.entries(Rule.FORM_VALIDATOR, expression, "expr") or {}
            patterns = [v for n, (_, v) in inner.items() if snake_case(n) == "regexp_validator"]
            for pattern in patterns:
                _pattern(report, "regexpValidator", pattern)
            is_used = bool(patterns)
        else:
            is_used = expression is not None and report.is_expression(expression)
        if not is_used:
            message = (
                "a validator without a regexpValidator or a YAQL expression in 'expr' is ignored; "
                "write the expression without quotes"
            )
            report.warn(Rule.FORM_VALIDATOR, validator, message)


_COMMON: Mapping[str, _Check] = {
    "description": _anything,
    "description_title": _anything,
    "disabled": _boolean,
    "error_messages": _mapping_or_null,
    "help_text": _anything,
    "hidden": _hidden,
    "initial": _anything,
    "label": _anything,
    "label_suffix": _anything,
    "localize": _boolean,
    "regexp_validator": _pattern,
    "required": _boolean,
    "show_hidden_initial": _boolean,
    "validators": _validators,
    "widget_attrs": _mapping_or_null,
    "widget_media": _media,
}
_STRING: Mapping[str, _Check] = {
    "empty_value": _anything,
    "max_length": _length,
    "min_length": _length,
    "strip": _boolean,
}
_CHOICE: Mapping[str, _Check] = {"choices": _choices}
# The attributes of a list that has a button to add an item.
_ADDING: Mapping[str, _Check] = {
    **_CHOICE,
    "add_item_link": _anything,
    "add_item_link_args": _anything,
}
_OF_CLASS: Mapping[str, _Check] = {**_ADDING, "empty_value_message": _anything}

# Type -> the attributes that it has besides ``_COMMON``. A type that is missing here is the name of
# a class.
_TYPES: Mapping[str, Mapping[str, _Check]] = {
    "azone": _CHOICE,
    "boolean": {},
    "choice": _CHOICE,
    "clusterip": {**_STRING, "unpack_ipv4": _boolean},
    "databaselist": _STRING,
    "domain": _OF_CLASS,
    "flavor": {**_CHOICE, "requirements": _requirements},
    "floatingip": {},
    "image": {**_CHOICE, "image_type": _anything},
    "integer": {"max_value": _number, "min_value": _number, "step_size": _number},
    "keypair": _ADDING,
    "network": {
        **_CHOICE,
        "allow_auto": _boolean,
        "filter": _anything,
        # Dashboards from the time of form version 2.1 know this attribute.
        "include_subnets": _boolean,
        "murano_networks": _network_mode,
    },
    "password": {**_STRING, "confirm_input": _boolean},
    "securitygroup": _ADDING,
    "string": _STRING,
    "text": _STRING,
    "volume": {**_CHOICE, "include_snapshots": _boolean, "include_volumes": _boolean},
    "zone": _CHOICE,
}
