# SPDX-License-Identifier: Apache-2.0

"""Read and check the parts of a HOT template from which a class and a form are generated.

These parts are the parameters, the parameter groups, and the outputs. The section ``resources``
must exist, but only Heat reads it.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.errors import InvalidPackage, Problem
from glare_murano.package.hot.parameter import (
    Constraint,
    Parameter,
    ParameterType,
    read_constraints,
)
from glare_murano.package.patterns import PatternCheck
from glare_murano.package.rules import Rule

TEMPLATE_FILE = "template.yaml"

# Name -> the YAML nodes of the key and of the value.
_Entries = dict[str, tuple[yaml.Node, yaml.Node]]


@dataclasses.dataclass(frozen=True)
class Template:
    """The parts of a HOT template from which a class and a form are generated.

    :param parameters: the parameters by name, in the order of the template.
    :param groups: the parameter groups: one group for each page of the form, with the names of its
        parameters. An additional last group has the parameters that the template's groups leave
        out, if there are any.
    :param outputs: the names of the values that a stack returns.
    """

    parameters: Mapping[str, Parameter]
    groups: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]

    @classmethod
    def parse(cls, data: bytes) -> "Template":
        """Read a template.

        :param data: the bytes of ``template.yaml``.
        :raises InvalidPackage: if the template is not valid. The error has all problems of the
            sections, unless the template is not valid YAML or has a problem at the top level.
        """
        return _TemplateReader(data).template()


class _TemplateReader:
    """A reader of a template, which collects the problems that it finds."""

    def __init__(self, data: bytes) -> None:
        self._problems: list[Problem] = []
        self._patterns = PatternCheck()
        root = safe_yaml.compose(data, TEMPLATE_FILE)
        self._sections = {name: node for name, (_, node) in self._entries(root, "").items()}
        if not self._problems and "resources" not in self._sections:
            self._complain(Rule.TEMPLATE_RESOURCES, "", "there is no section 'resources'", root)
        if self._problems:
            raise InvalidPackage(self._problems)

    def template(self) -> Template:
        parameters = {
            name: parameter
            for name, (key, node) in self._section("parameters").items()
            if (parameter := self._parameter(name, key, node)) is not None
        }
        groups = tuple(self._groups(parameters))
        outputs = tuple(self._section("outputs"))
        if self._problems:
            raise InvalidPackage(self._problems)
        return Template(parameters, groups, outputs)

    def _parameter(self, name: str, key: yaml.Node, node: yaml.Node) -> Parameter | None:
        where = f"parameters.{name}"
        if not isinstance(node, yaml.MappingNode):
            found = safe_yaml.kind(node)
            self._complain(Rule.TEMPLATE_MAPPING, where, f"expected a mapping, found {found}", key)
            return None
        values = self._value(node, where)
        if values is None:
            return None
        try:
            kind = ParameterType(str(values.get("type")))
        except ValueError:
            found = repr(values["type"])[:60] if "type" in values else "no type"
            message = f"expected type to be one of {', '.join(ParameterType)}, found {found}"
            self._complain(Rule.TEMPLATE_TYPE, where, message, key)
            return None
        return Parameter(
            name,
            kind,
            label=self._string(values, "label", where, key),
            description=self._string(values, "description", where, key),
            has_default="default" in values,
            default=values.get("default"),
            constraints=tuple(self._constraints(values.get("constraints"), kind, where, key)),
        )

    def _constraints(
        self, values: Any, kind: ParameterType, where: str, key: yaml.Node
    ) -> Iterator[Constraint]:
        if not isinstance(values, list | None):
            message = "expected constraints to be a list"
            self._complain(Rule.TEMPLATE_CONSTRAINT, where, message, key)
            return
        for number, value in enumerate(values or ()):
            try:
                yield from read_constraints(value, kind, self._patterns)
            except ValueError as error:
                place = f"{where}.constraints[{number}]"
                self._complain(Rule.TEMPLATE_CONSTRAINT, place, str(error), key)

    def _groups(self, parameters: Mapping[str, Parameter]) -> Iterator[tuple[str, ...]]:
        """Yield the names of the parameters in each group of the template.

        If several groups name a parameter, the parameter is only in the first of these groups. An
        additional last group has the parameters that all groups leave out, if there are any.
        """
        node = self._sections.get("parameter_groups")
        groups = self._value(node, "parameter_groups") if node is not None else None
        if not isinstance(groups, list | None):
            self._complain(Rule.TEMPLATE_GROUP, "parameter_groups", "expected a list", node)
            return
        others = dict.fromkeys(parameters)
        for number, group in enumerate(groups or ()):
            names = group.get("parameters") if isinstance(group, dict) else "invalid"
            if not isinstance(names, list | dict | None):
                where = f"parameter_groups[{number}]"
                self._complain(Rule.TEMPLATE_GROUP, where, "expected a list of parameters", node)
                continue
            strings = dict.fromkeys(name for name in names or () if isinstance(name, str))
            known = tuple(name for name in strings if name in others)
            yield known
            for name in known:
                del others[name]
        if others:
            yield tuple(others)

    def _string(self, values: dict[str, Any], name: str, where: str, key: yaml.Node) -> str | None:
        value = values.get(name)
        if isinstance(value, dict | list):
            self._complain(Rule.TEMPLATE_PARAMETER, where, f"expected {name} to be a string", key)
        return None if value is None else str(value)

    def _section(self, name: str) -> _Entries:
        node = self._sections.get(name)
        return self._entries(node, name) if node is not None and node.tag != safe_yaml.NULL else {}

    def _entries(self, node: yaml.Node | None, where: str) -> _Entries:
        """Return the entries of a mapping, by key. Of a repeated key, the last entry is returned.

        Keys that are not strings are recorded as problems, and left out. If the node is not a
        mapping, a problem is recorded, and the result is empty.
        """
        try:
            pairs = safe_yaml.merged_pairs(node)
        except ValueError as error:
            self._complain(Rule.TEMPLATE_MAPPING, where, str(error), node)
            return {}
        for key, _ in pairs:
            if not isinstance(key, yaml.ScalarNode):
                self._complain(Rule.TEMPLATE_MAPPING, where, "a key is not a string", key)
        return {key.value: (key, value) for key, value in pairs if isinstance(key, yaml.ScalarNode)}

    def _value(self, node: yaml.Node, where: str) -> Any:
        """Return the value of a node as plain Python data.

        :returns: the value; None if the value is null. If the value has a problem, the problem is
            recorded, and the result is None.
        """
        try:
            _merge(node)
            return safe_yaml.plain(node)
        except ValueError as error:
            self._complain(Rule.TEMPLATE_VALUE, where, str(error), node)
            return None

    def _complain(self, rule: Rule, where: str, message: str, node: yaml.Node | None) -> None:
        place = f"{TEMPLATE_FILE}: {where}" if where else TEMPLATE_FILE
        self._problems.append(Problem(rule, place, message, safe_yaml.line_of(node)))


def _merge(node: yaml.Node) -> None:
    """Replace YAML merge keys with the merged pairs, in a node and in all nodes inside it.

    :raises ValueError: if the value of a merge key is neither a mapping nor a list of mappings.
    """
    if isinstance(node, yaml.MappingNode):
        for _, value in safe_yaml.merged_pairs(node):
            _merge(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _merge(item)
