# SPDX-License-Identifier: Apache-2.0

"""A HOT template, as far as a class and a form are made of it, checked.

The module reads one document. What it creates in the cloud is Heat's affair:
of the resources no more is asked than that there is such a section.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from glare_murano.package import InvalidPackage, Problem, safe_yaml
from glare_murano.package.hot.parameter import Constraint, Parameter, Type, read_constraints
from glare_murano.package.rules import Rule

FILE_NAME = "template.yaml"

# Name -> the nodes of key and value.
_Entries = dict[str, tuple[yaml.Node, yaml.Node]]


@dataclasses.dataclass(frozen=True)
class Template:
    """A template.

    :param parameters: by name, in the template's order.
    :param groups: names of parameters that a form shows together, group by
        group; those that the template leaves out stand in the last.
    :param outputs: names of what a stack gives back.
    """

    parameters: Mapping[str, Parameter]
    groups: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]

    @classmethod
    def parse(cls, data: bytes) -> "Template":
        """Read a template.

        :param data: the bytes of ``template.yaml``.
        :raises InvalidPackage: with everything that is wrong in it.
        """
        return _Reader(data).template()


class _Reader:
    """Collects what one document says, and what is wrong with it."""

    def __init__(self, data: bytes) -> None:
        self._problems: list[Problem] = []
        root = safe_yaml.compose(data, FILE_NAME)
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
            kind = Type(str(values.get("type")))
        except ValueError:
            found = repr(values["type"])[:60] if "type" in values else "no type"
            expected = ", ".join(Type)
            self._complain(
                Rule.TEMPLATE_TYPE,
                where,
                f"expected type to be one of {expected}, found {found}",
                key,
            )
            return None
        return Parameter(
            name,
            kind,
            label=self._text(values, "label", where, key),
            description=self._text(values, "description", where, key),
            has_default="default" in values,
            default=values.get("default"),
            constraints=tuple(self._constraints(values.get("constraints"), kind, where, key)),
        )

    def _constraints(
        self, values: Any, kind: Type, where: str, key: yaml.Node
    ) -> Iterator[Constraint]:
        if not isinstance(values, list | None):
            self._complain(
                Rule.TEMPLATE_CONSTRAINT, where, "expected constraints to be a list", key
            )
            return
        for number, value in enumerate(values or ()):
            try:
                yield from read_constraints(value, kind)
            except ValueError as error:
                self._complain(
                    Rule.TEMPLATE_CONSTRAINT, f"{where}.constraints[{number}]", str(error), key
                )

    def _groups(self, parameters: Mapping[str, Parameter]) -> Iterator[tuple[str, ...]]:
        """The groups of the template, and one of all that stand in none."""
        node = self._sections.get("parameter_groups")
        values = self._value(node, "parameter_groups") if node is not None else None
        left = dict.fromkeys(parameters)
        for number, group in enumerate(values if isinstance(values, list) else ()):
            if not isinstance(group, dict) or not isinstance(
                group.get("parameters"), list | dict | None
            ):
                where = f"parameter_groups[{number}]"
                self._complain(Rule.TEMPLATE_GROUP, where, "expected a list of parameters", node)
                continue
            names = group.get("parameters") or ()
            known = [name for name in names if isinstance(name, str) and name in parameters]
            yield tuple(known)
            left = {name: None for name in left if name not in known}
        if not isinstance(values, list | None):
            self._complain(Rule.TEMPLATE_GROUP, "parameter_groups", "expected a list", node)
        if left:
            yield tuple(left)

    def _text(self, values: Mapping[str, Any], name: str, where: str, key: yaml.Node) -> str | None:
        value = values.get(name)
        if isinstance(value, dict | list):
            self._complain(Rule.TEMPLATE_PARAMETER, where, f"expected {name} to be a text", key)
        return None if value is None else str(value)

    def _section(self, name: str) -> _Entries:
        node = self._sections.get(name)
        return self._entries(node, name) if node is not None and node.tag != safe_yaml.NULL else {}

    def _entries(self, node: yaml.Node | None, where: str) -> _Entries:
        """The entries of a mapping; of those with one name, the last."""
        if not isinstance(node, yaml.MappingNode):
            found = safe_yaml.kind(node)
            self._complain(Rule.TEMPLATE_MAPPING, where, f"expected a mapping, found {found}", node)
            return {}
        entries: _Entries = {}
        for key, value in self._merged(node, where):
            if isinstance(key, yaml.ScalarNode):
                entries[key.value] = (key, value)
            else:
                self._complain(Rule.TEMPLATE_MAPPING, where, "a key is no text", key)
        return entries

    def _merged(self, node: yaml.MappingNode, where: str) -> list[tuple[yaml.Node, yaml.Node]]:
        """The entries of a mapping, those that YAML's ``<<`` brings in included."""
        try:
            yaml.constructor.SafeConstructor().flatten_mapping(node)
        except yaml.MarkedYAMLError as error:
            self._complain(Rule.TEMPLATE_MAPPING, where, f"'<<': {error.problem}", node)
        return list(node.value)

    def _value(self, node: yaml.Node, where: str) -> Any:
        """A node as plain values; None if it is wrong."""
        level = [node]
        for _ in range(safe_yaml.MAX_DEPTH):
            level = [child for inner in level for child in self._children(inner, where)]
        if level:
            self._complain(Rule.YAML_DEPTH, where, "aliases nest too deep", node)
            return None
        try:
            return safe_yaml.plain(node)
        except ValueError as error:
            self._complain(Rule.TEMPLATE_VALUE, where, str(error), node)
            return None

    def _children(self, node: yaml.Node, where: str) -> list[yaml.Node]:
        if isinstance(node, yaml.MappingNode):
            return [value for _, value in self._merged(node, where)]
        return list(node.value) if isinstance(node, yaml.SequenceNode) else []

    def _complain(self, rule: Rule, where: str, message: str, node: yaml.Node | None) -> None:
        line = safe_yaml.line_of(node.start_mark) if node is not None else 0
        place = f"{FILE_NAME}: {where}" if where else FILE_NAME
        self._problems.append(Problem(rule, place, message, line))
