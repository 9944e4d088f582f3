# SPDX-License-Identifier: Apache-2.0

"""Read the contracts of properties and arguments, and decide whether a value may be omitted.

Contracts are compared by the values that pass them unchanged (document "MuranoPL reference",
"Contract"). ``$.int()`` converts the string "1" into a number, so only numbers pass it unchanged. A
change from ``$.string()`` to ``$.int()`` therefore changes the type of a property or an argument.
If a contract of a mapping does not name a key, the engine drops the key.
"""

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from glare_murano.package import safe_yaml
from loader.compatibility import conditions, expressions
from loader.compatibility.conditions import Condition
from loader.compatibility.nodes import is_expression, pairs


class Kind(enum.Enum):
    """The kind of values that an expression accepts."""

    ANY = "anything"
    STRING = "string"
    INTEGER = "int"
    BOOLEAN = "bool"
    OBJECT = "class"
    TEMPLATE = "template"


@dataclasses.dataclass(frozen=True)
class Type:
    """The arguments of ``class()`` or ``template()``.

    :param name: the class; objects of this class and of its subclasses pass.
    :param default: the class of objects that do not name their class; None without this argument.
    :param versions: the range of the class's versions; None without this argument.
    :param excluded: the properties that a template may lack.
    """

    name: str
    default: str | None = None
    versions: str | None = None
    excluded: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Value:
    """The contract of a single value, such as ``$.int().notNull().check($ > 0)`` or a constant.

    :param kind: the kind of values that pass.
    :param type: the class of objects or templates that pass; None for all other kinds.
    :param is_not_null: whether null is refused by ``notNull()``.
    :param is_owned: true after ``owned()``, false after ``notOwned()``; None if neither is called.
    :param skips_null: whether the conditions follow ``?.``, so that null is not checked.
    :param conditions: the conditions on the converted value.
    :param raw: the conditions on the value before it is converted.
    """

    kind: Kind = Kind.ANY
    type: Type | None = None
    is_not_null: bool = False
    is_owned: bool | None = None
    skips_null: bool = False
    conditions: frozenset[Condition] = frozenset()
    raw: frozenset[Condition] = frozenset()

    @property
    def accepts_null(self) -> bool | None:
        """Whether null passes; None if this is unknown."""
        if self.is_not_null:
            return False
        return True if self.skips_null else conditions.admit_null(self.conditions | self.raw)


@dataclasses.dataclass(frozen=True)
class Items:
    """The contract of a list.

    :param contracts: the contracts of the first items; the last contract applies to all further
        items.
    :param least: the smallest number of items.
    :param greatest: the largest number of items.
    """

    contracts: "tuple[Contract, ...]"
    least: int
    greatest: float

    def contract(self, index: int) -> "Contract":
        """Return the contract of the item at an index."""
        return self.contracts[min(index, len(self.contracts) - 1)]


@dataclasses.dataclass(frozen=True)
class Keys:
    """The contract of a mapping.

    :param named: the contracts of the values, by key.
    :param others: the contract of all other keys, and the contract of their values; None if other
        keys are dropped.
    """

    named: "Mapping[str, Contract]"
    others: "tuple[Contract, Contract] | None"


@dataclasses.dataclass(frozen=True)
class Unknown:
    """A contract with an unknown effect, for example since it calls an unknown function.

    :param text: the expression, as ``expressions.write`` writes it.
    :param accepts_null: whether null passes; None if this is unknown.
    """

    text: str
    accepts_null: bool | None


@dataclasses.dataclass(frozen=True)
class Invalid:
    """A contract that looks like an expression, but is not valid.

    :param text: the contract as it is written.
    :param reason: why it is not valid.
    """

    text: str
    reason: str


Contract = Value | Items | Keys | Unknown | Invalid

ANYTHING = Value()
_CONVERSIONS = {"string": Kind.STRING, "int": Kind.INTEGER, "bool": Kind.BOOLEAN}
_OWNERSHIP = {"owned": True, "notOwned": False}
_TYPE_PARAMETERS = {
    "class": ("name", "defaultName", "versionSpec"),
    "template": ("type", "defaultType", "versionSpec", "excludeProperties"),
}
_CONSTANTS = {str: Kind.STRING, int: Kind.INTEGER, bool: Kind.BOOLEAN}


def read(node: yaml.Node | None, namespaces: Mapping[str, str]) -> Contract:
    """Read a contract.

    :param node: the YAML of the contract; without it, every value is accepted.
    :param namespaces: a mapping of prefixes to namespaces, as the class declares them.
    :raises YaqlMissing: if yaql is not installed.
    """
    if node is None:
        return ANYTHING
    if isinstance(node, yaml.SequenceNode):
        return _read_items(node, namespaces)
    if isinstance(node, yaml.MappingNode):
        return _read_keys(node, namespaces)
    if is_expression(node):
        try:
            return _read_expression(expressions.parse(node.value), namespaces)
        except (ValueError, RecursionError) as error:
            if node.tag == safe_yaml.YAQL or "$" in node.value:
                return Invalid(node.value, str(error))
    return read_constant(safe_yaml.plain(node))


def accepts_missing(contract: Contract) -> bool | None:
    """Return whether a value with this contract may be null or omitted; None if this is unknown.

    The engine reads an omitted list or mapping as an empty one.
    """
    match contract:
        case Value() | Unknown():
            return contract.accepts_null
        case Items():
            return contract.least == 0
        case Keys():
            answers = {accepts_missing(each) for each in contract.named.values()}
            return False if False in answers else None if None in answers else True
    return None


def invalid_part(contract: Contract) -> Invalid | None:
    """Return the first invalid contract: the given contract, or a contract inside it.

    :returns: None if all of them are valid.
    """
    match contract:
        case Invalid():
            return contract
        case Items():
            parts = list(contract.contracts)
        case Keys():
            parts = [*contract.named.values(), *(contract.others or ())]
        case _:
            return None
    return next(filter(None, map(invalid_part, parts)), None)


def type_names(contract: Contract) -> Iterator[str]:
    """Yield the names of the classes whose objects or templates a contract accepts."""
    match contract:
        case Value(type=Type() as found):
            yield found.name
        case Items():
            for each in contract.contracts:
                yield from type_names(each)
        case Keys():
            for each in (*contract.named.values(), *(contract.others or ())):
                yield from type_names(each)


def _read_items(node: yaml.SequenceNode, namespaces: Mapping[str, str]) -> Items:
    bounds: list[int] = []
    nodes = list(node.value)
    while nodes and len(bounds) < 2 and (bound := _whole_number(nodes[-1])) is not None:
        bounds.insert(0, bound)
        nodes.pop()
    found = tuple(read(each, namespaces) for each in nodes) or (ANYTHING,)
    least, greatest = (*bounds, float("inf"))[:2] if bounds else (0, float("inf"))
    return Items(found, int(least), greatest)


def _whole_number(node: yaml.Node) -> int | None:
    value = safe_yaml.plain(node) if isinstance(node, yaml.ScalarNode) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _read_keys(node: yaml.MappingNode, namespaces: Mapping[str, str]) -> Contract:
    named: dict[str, Contract] = {}
    others: tuple[Contract, Contract] | None = None
    for key, value in pairs(node):
        name = read(key, namespaces)
        match name:
            case Value(conditions=found) if not is_expression(key) and found:
                named[str(key.value)] = read(value, namespaces)
            case _ if others is not None:
                return Invalid(str(key.value), "only one key may be an expression")
            case _:
                others = (name, read(value, namespaces))
    if not node.value:
        others = (ANYTHING, ANYTHING)
    return Keys(named, others)


def read_constant(value: object) -> Value:
    """Return the contract of a constant; only this value passes it."""
    kind = _CONSTANTS.get(type(value), Kind.ANY)
    allowed = frozenset([conditions.equals(value)])
    return Value(kind, is_not_null=value is not None, conditions=allowed)


def _read_expression(expression: Any, namespaces: Mapping[str, str]) -> Contract:
    steps = _steps(expression)
    value: Value | None = Value() if steps is not None else None
    for connector, function in steps or ():
        if value is not None:
            value = _with_step(value, connector, function, namespaces)
    if value is not None:
        return value
    text = expressions.write(expression, namespaces)
    return Unknown(text, _unknown_accepts_null(expressions.unwrapped(expression), namespaces))


def _unknown_accepts_null(expression: Any, namespaces: Mapping[str, str]) -> bool | None:
    from yaql.language import expressions as yaql

    if isinstance(expression, yaql.BinaryOperator) and expression.operator == "or":
        # In "$.int() or 5", the first contract refuses values, and the second replaces null.
        return accepts_missing(_read_expression(expression.args[0], namespaces))
    return None


def _steps(expression: Any) -> list[tuple[str, Any]] | None:
    """Split an expression such as ``$.int().check($ > 0)`` into its functions.

    :returns: pairs of a connector, ``.`` or ``?.``, and the function that follows it; None if the
        expression is not a chain of functions that begins with ``$``.
    """
    from yaql.language import expressions as yaql

    steps = []
    rest = expressions.unwrapped(expression)
    while isinstance(rest, yaql.BinaryOperator) and rest.operator in (".", "?."):
        receiver, function = rest.args
        if type(function) is not yaql.Function:
            return None
        steps.append((rest.operator, function))
        rest = expressions.unwrapped(receiver)
    is_value = isinstance(rest, yaql.GetContextValue) and rest.path.value == "$"
    return steps[::-1] if is_value else None


def _with_step(
    value: Value, connector: str, function: Any, namespaces: Mapping[str, str]
) -> Value | None:
    """Return the contract of a value with one more function; None if its effect is unknown.

    :param value: the contract before this function.
    :param connector: ``.`` or ``?.``, which precedes the function.
    :param function: the call of the function.
    """
    name, arguments = function.name, function.args
    if name == "check" and arguments:
        return _with_check(value, connector, arguments[0], namespaces)
    if name in ("class", "template") and value.kind is Kind.ANY:
        found = _read_type(name, arguments, namespaces)
        return None if found is None else _converted(value, Kind(name), found)
    if arguments:
        return None
    if name in _CONVERSIONS and value.kind is Kind.ANY:
        return _converted(value, _CONVERSIONS[name], None)
    if name == "notNull":
        # A function after "?." is not called for null.
        return dataclasses.replace(value, is_not_null=value.is_not_null or connector == ".")
    if name in _OWNERSHIP and value.is_owned is None:
        return dataclasses.replace(value, is_owned=_OWNERSHIP[name])
    return None


def _converted(value: Value, kind: Kind, type_: Type | None) -> Value:
    return dataclasses.replace(
        value, kind=kind, type=type_, conditions=frozenset(), raw=value.conditions
    )


def _with_check(
    value: Value, connector: str, predicate: Any, namespaces: Mapping[str, str]
) -> Value | None:
    skips_null = connector == "?."
    if value.conditions | value.raw and value.skips_null != skips_null:
        return None
    found = value.conditions.union(conditions.read(predicate, namespaces))
    return dataclasses.replace(value, skips_null=skips_null, conditions=found)


def _read_type(function: str, arguments: Any, namespaces: Mapping[str, str]) -> Type | None:
    """Read the arguments of ``class()`` or ``template()``.

    :returns: None if an argument is not a constant, or if the function has no such argument.
    """
    from yaql.language import expressions as yaql

    parameters = _TYPE_PARAMETERS[function]
    given: dict[str, Any] = {}
    for position, argument in enumerate(arguments):
        if isinstance(argument, yaql.MappingRuleExpression):
            given[str(getattr(argument.source, "value", ""))] = argument.destination
        elif position < len(parameters):
            given[parameters[position]] = argument
        else:
            return None
    if not given.keys() <= set(parameters):
        return None
    # Null means that a parameter is omitted; only the first parameter cannot be omitted.
    given = {key: each for key, each in given.items() if getattr(each, "value", "") is not None}
    name, default = map(given.get, parameters[:2])
    versions, excluded = given.get("versionSpec"), given.get("excludeProperties")
    found = Type(
        name=expressions.class_name(name, namespaces) or "",
        default=expressions.class_name(default, namespaces),
        versions=getattr(versions, "value", None),
        excluded=frozenset(str(getattr(each, "value", "")) for each in _listed(excluded)),
    )
    is_read = (
        found.name
        and (default is None or found.default is not None)
        and (versions is None or isinstance(found.versions, str))
        and "" not in found.excluded
        and (excluded is None or found.excluded)
    )
    return found if is_read else None


def _listed(expression: Any) -> tuple[Any, ...]:
    is_list = getattr(expression, "name", "") in ("list", "#list")
    return tuple(expression.args) if is_list else ()
