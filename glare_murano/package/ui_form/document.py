# SPDX-License-Identifier: Apache-2.0

"""Check the document of a form: its version, its sections and its pages."""

import enum
import re

import yaml
from semantic_version import Version

from glare_murano.package import safe_yaml
from glare_murano.package.errors import InvalidPackage, Problem, quoted
from glare_murano.package.rules import Rule
from glare_murano.package.ui_form.form_report import (
    Entries,
    FormReport,
    IsYaql,
    described,
    is_null,
    is_string,
    snake_case,
)
from glare_murano.package.ui_form.input_fields import check_field
from glare_murano.package.ui_form.object_headers import check_ranges
from glare_murano.package.ui_form.values import check_values

# The newest form version that Murano's dashboard knows.
_NEWEST = Version("2.4.0")
_MAX_LENGTH = 1024
# For forms of this version and newer ones, the dashboard adds the object's name to its header.
_NAMING = Version("2.2.0")
_METHOD = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z", re.ASCII)
_SECTIONS = ("application", "forms", "parameters", "parameters_source", "templates", "version")
# Names of arguments that the dashboard sets itself. It passes the sections of a form as further
# arguments, so no section may have one of these names.
_ARGUMENTS = ("cleaned_data", "fqn", "self", "version")

# Rules that apply whatever the operator chooses. They do not concern dashboards alone: an engine
# also needs the versions of objects, and the rules for YAML protect every program that reads the
# form.
ALWAYS_REFUSED = frozenset(
    [
        Rule.FORM_RANGE,
        Rule.YAML_ALIAS,
        Rule.YAML_DEPTH,
        Rule.YAML_KEY,
        Rule.YAML_SIZE,
        Rule.YAML_TAG,
    ]
)


@enum.unique
class FormCheck(enum.StrEnum):
    """What to do about a form that Murano's dashboard cannot show.

    ``WARN`` and ``ENFORCE`` both refuse a form that breaks a rule of ``ALWAYS_REFUSED``.
    """

    OFF = "off"
    """The form is not read."""
    WARN = "warn"
    """The problems of the form become warnings."""
    ENFORCE = "enforce"
    """The package is refused."""


def check_form(
    data: bytes, file: str, is_yaql: IsYaql | None = None
) -> tuple[list[Problem], list[Problem]]:
    """Check a form of any version from 2.0 to 2.4.

    :param data: the content of the file, in YAML.
    :param file: the name of the file, for messages.
    :param is_yaql: a function that returns whether a string is valid YAQL. Without a function, a
        string without quotes is accepted both as an expression and as a string.
    :returns: the problems and the warnings of the form.
    """
    report = FormReport(file, is_yaql)
    try:
        document = safe_yaml.compose(data, file)
        repeated = [] if document is None else [*safe_yaml.repeated_keys([document])]
        check_values(data, file, document)
    except InvalidPackage as error:
        return list(error.problems), []
    for key, is_same in repeated:
        if is_same:
            message = f"{described(key)} is repeated with the same value"
            report.warn(Rule.YAML_KEY, key, message)
        else:
            report.refuse(Rule.YAML_KEY, key, f"{described(key)} is repeated with another value")
    if document is None:
        report.refuse(Rule.FORM_SECTION, None, "the form is empty")
    elif entries := report.entries(Rule.FORM_SECTION, document, "the form"):
        _check_sections(report, document, entries)
    elif not report.problems:
        report.refuse(Rule.FORM_SECTION, document, "the form is empty")
    return report.problems, report.warnings


def _check_sections(report: FormReport, document: yaml.Node, entries: Entries) -> None:
    sections = {}
    for key, (node, value) in entries.items():
        # The dashboard accepts other keys in any spelling, such as "forms", but "Version" only in
        # this one.
        if snake_case(key) in _ARGUMENTS and key != "Version":
            message = f"the section {quoted(key)} breaks the form; remove it, or write 'Version'"
            report.refuse(Rule.FORM_SECTION, node, message)
        elif snake_case(key) not in _SECTIONS:
            report.warn(Rule.FORM_SECTION, node, f"the section {quoted(key)} is unknown")
        elif not is_null(value) or key == "Version":
            sections[snake_case(key)] = value
    version = _check_version(report, sections.get("version"))
    _check_application(report, document, sections.get("application"), version)
    for name in ("templates", "parameters"):
        if section := sections.get(name):
            report.entries(Rule.FORM_SECTION, section, name.title())
    for name in ("application", "templates", "parameters"):
        if section := sections.get(name):
            check_ranges(report, section)
    source = sections.get("parameters_source")
    if source is not None and not (is_string(source) and _METHOD.match(str(source.value))):
        message = f"ParametersSource is {described(source)}; expected the name of a method"
        report.refuse(Rule.FORM_SECTION, source, message)
    _check_pages(report, sections.get("forms"))


def _check_version(report: FormReport, node: yaml.Node | None) -> Version:
    """Check the version of a form, and return it.

    :param report: the report to which problems are added.
    :param node: the node of the version; None if the form has no version.
    :returns: the version; the newest version if the form has no version, or a wrong version.
    """
    if node is None:
        return _NEWEST
    # The value is used as YAML reads it, as in the dashboard: 2.10 is the number 2.1.
    text = str(safe_yaml.plain(node)) if isinstance(node, yaml.ScalarNode) else ""
    try:
        version = Version.coerce(text if len(text) <= _MAX_LENGTH else "")
    except ValueError:
        version = None
    if version is None or version.major != _NEWEST.major or version > _NEWEST:
        message = f"{described(node)} is not a version from 2.0 to 2.4"
        report.refuse(Rule.FORM_VERSION, node, message)
        return _NEWEST
    return version


def _check_application(
    report: FormReport,
    document: yaml.Node,
    application: yaml.Node | None,
    version: Version,
) -> None:
    """Check that the section ``Application`` has an object header with a type.

    In forms before version 2.2, the section or the header may also be a YAQL expression, which is
    not checked.
    """
    if application is None:
        report.refuse(Rule.FORM_SECTION, document, "the section 'Application' is missing")
        return
    if report.is_expression(application) and version < _NAMING:
        return
    entries = report.entries(Rule.FORM_SECTION, application, "Application", is_evaluated=True)
    if entries is None:
        return
    if "?" not in entries:
        message = "Application has no header: expected '?' with the key 'type'"
        report.refuse(Rule.FORM_SECTION, application, message)
        return
    _, header = entries["?"]
    if report.is_expression(header) and version < _NAMING:
        return
    subject = "the header '?' of Application"
    keys = report.entries(Rule.FORM_SECTION, header, subject, is_evaluated=True)
    if keys is not None and not ("type" in keys and is_string(keys["type"][1])):
        message = "the header '?' of Application has no 'type', the name of a class"
        report.refuse(Rule.FORM_SECTION, header, message)


def _check_pages(report: FormReport, forms: yaml.Node | None) -> None:
    if forms is None:
        return
    if not isinstance(forms, yaml.SequenceNode):
        message = f"Forms is {described(forms)}; expected a list"
        report.refuse(Rule.FORM_SECTION, forms, message)
        return
    names = set()
    for page in forms.value:
        entries = report.entries(Rule.FORM_PAGE, page, "a page of Forms")
        if entries is not None and not page.value:
            report.refuse(Rule.FORM_PAGE, page, "a page of Forms is empty; expected a name")
        if not entries:
            continue
        (name, (_, content)), *others = entries.items()
        if name in names:
            report.warn(Rule.FORM_PAGE, page, f"several pages are called {quoted(name)}")
        names.add(name)
        for other, (key, _) in others:
            message = f"{quoted(other)} beside the page {quoted(name)} is ignored; check the indent"
            report.warn(Rule.FORM_PAGE, key, message)
        _check_page(report, name, content)


def _check_page(report: FormReport, name: str, content: yaml.Node) -> None:
    entries = report.entries(Rule.FORM_PAGE, content, f"the page {quoted(name)}")
    if entries is None:
        return
    for key, (node, _) in entries.items():
        if key not in ("fields", "validators", "region"):
            message = f"{quoted(key)} in the page {quoted(name)} is ignored"
            report.warn(Rule.FORM_PAGE, node, message)
    _, fields = entries.get("fields", (None, None))
    if not isinstance(fields, yaml.SequenceNode):
        message = f"the page {quoted(name)} has no list 'fields'"
        report.refuse(Rule.FORM_PAGE, fields or content, message)
    else:
        _check_fields(report, name, fields.value)
    if "validators" in entries:
        _check_page_validators(report, name, entries["validators"][1])


def _check_fields(report: FormReport, page: str, fields: list[yaml.Node]) -> None:
    names = set()
    for field in fields:
        name = check_field(report, field)
        if name in names:
            message = f"several fields of the page {quoted(page)} are called {quoted(name)}"
            report.warn(Rule.FORM_FIELD, field, message)
        if name is not None:
            names.add(name)


def _check_page_validators(report: FormReport, page: str, validators: yaml.Node) -> None:
    """Check that each validator of a page has a YAQL expression.

    Only a validator of a field can have a regular expression instead.
    """
    if not isinstance(validators, yaml.SequenceNode):
        message = f"the validators of the page {quoted(page)} are not a list"
        report.refuse(Rule.FORM_VALIDATOR, validators, message)
        return
    for validator in validators.value:
        entries = report.entries(Rule.FORM_VALIDATOR, validator, "a validator")
        if entries is not None and not (
            "expr" in entries and report.is_expression(entries["expr"][1])
        ):
            message = (
                f"a validator of the page {quoted(page)} has no YAQL expression in 'expr'; write "
                f"the expression without quotes"
            )
            report.refuse(Rule.FORM_VALIDATOR, validator, message)
