# SPDX-License-Identifier: Apache-2.0

"""Find mistakes in a form that the dashboard accepts, but that lead to wrong objects."""

import re
from collections.abc import Iterator

import yaml

from glare_murano.package.errors import quoted
from glare_murano.package.manifest import Manifest
from glare_murano.package.ui_form.form_report import snake_case
from glare_murano.resolver import satisfies_itself
from loader.authoring.check_rules import CheckRule
from loader.compatibility.nodes import entries, is_expression, pairs, text, values

# The broken rule, the YAML node that breaks it, and a message.
Mistake = tuple[CheckRule, yaml.Node, str]

# If this matches an expression, "$" in it may stand for something other than the values of all
# pages.
_REBINDING = re.compile(r"->|\.\s*\w+\s*\(")
_REFERENCE = re.compile(r"(?<![\w$])\$(?:forms)?\.([^\W\d]\w*)(?:\.([^\W\d]\w*))?")
# The name of the page that the dashboard adds to each form.
_LAST_PAGE = "workflowManagement"


def find(form: yaml.Node, manifest: Manifest) -> Iterator[Mistake]:
    """Yield the mistakes in the sections ``Application`` and ``Templates`` of a form.

    A mistake is a class that is missing in the manifest although the package should define it, or a
    reference to a page or a field that the form does not have.

    :param form: a form that ``check_form`` has accepted.
    """
    sections = {snake_case(name): node for name, node in values(form).items()}
    pages = _pages(sections.get("forms"))
    for name in ("application", "templates"):
        for node in _scalars(sections.get(name)):
            if is_expression(node):
                yield from _references(node, pages)
        for header in _headers(sections.get(name)):
            written = header.get("type")
            fqn = text(written, "").partition("@")[0].partition("/")[0]
            if written is not None and is_missing(manifest, fqn):
                message = f"the form makes a {fqn}, which Classes does not list"
                yield CheckRule.FORM_CLASS, written, message


def is_missing(manifest: Manifest, class_name: str) -> bool:
    """Return whether a package should define a class, but its manifest does not list the class.

    A package should define a class if the name of the class begins with the name of the package.
    There are two exceptions: if the name also begins with the name of a required package, and if
    the package requires an older version of itself.
    """
    prefix = f"{manifest.fqn}."
    own = manifest.requirements.get(manifest.fqn)
    if own is not None and not satisfies_itself(manifest.version, own):
        # The class may be in an older version of the package.
        return False
    # The name of a required package may begin with the name of this package.
    required = tuple(f"{each}." for each in manifest.requirements if each.startswith(prefix))
    is_own = class_name.startswith(prefix) and not class_name.startswith(required)
    return is_own and class_name not in manifest.classes


def _pages(forms: yaml.Node | None) -> dict[str, set[str]]:
    """Return a mapping of a form's pages to the names of their fields.

    :param forms: the section ``Forms``.
    """
    found: dict[str, set[str]] = {}
    for page in forms.value if isinstance(forms, yaml.SequenceNode) else ():
        for name, (_, content) in list(entries(page).items())[:1]:
            fields = values(content).get("fields")
            items = fields.value if isinstance(fields, yaml.SequenceNode) else []
            found[name] = {text(values(each).get("name"), "") for each in items}
    return found


def _references(node: yaml.Node, pages: dict[str, set[str]]) -> Iterator[Mistake]:
    expression = str(node.value)
    if _REBINDING.search(expression):
        return
    for page, field in _REFERENCE.findall(expression):
        if page == _LAST_PAGE or (page in pages and field in ("", *pages[page])):
            continue
        message = f"{quoted(expression)}: Forms has no page {quoted(page)}"
        if page in pages:
            message = f"{quoted(expression)}: the page {quoted(page)} has no field {quoted(field)}"
        yield CheckRule.FORM_VALUE, node, message


def _headers(node: yaml.Node | None) -> Iterator[dict[str, yaml.Node]]:
    """Yield the headers (``?``) of all objects in a node of the form."""
    if isinstance(node, yaml.MappingNode):
        for name, (_, value) in entries(node).items():
            if name == "?":
                yield dict(values(value))
            yield from _headers(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _headers(each)


def _scalars(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for _, value in pairs(node):
            yield from _scalars(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _scalars(each)
    elif node is not None:
        yield node
