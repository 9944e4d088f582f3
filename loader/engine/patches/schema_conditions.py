# SPDX-License-Identifier: Apache-2.0

"""Translate the conditions in contracts, such as ``check($ > 0)``, into JSON schemas."""

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from murano.dsl import exceptions
from murano.dsl.contracts import basic, check, contracts, instances
from yaql.language import expressions, specs, yaqltypes

from loader.engine import contract_schemas

Schema = dict[str, Any]

# A comparison -> the comparison with the same meaning after both sides are exchanged.
_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "=": "=", "!=": "!="}
# Comparisons that give a schema for a length.
_OF_LENGTHS = (">", "<", ">=", "<=", "=")

# JSON type -> the suffix of the keywords for its length.
_MEASURED_TYPES = {"string": "Length", "array": "Items", "object": "Properties"}

# What the keyword ``not`` contains if null is refused and the type of the value is unknown.
_NOT_NULL = {"type": "null"}

# Groups, anchors and counts that Python has and JavaScript lacks.
_PYTHON_ONLY = re.compile(r"\(\?(?![:=!])|\\[AZ]|\{,")


def translate_every_condition() -> None:
    """Translate all conditions in a ``check()`` into the schema.

    The specification "MuranoPL forms", section "Schema generation", splits
    ``EXPR1 and ... and EXPRN``. It translates comparisons of numbers and of ``len($)``, ``in``, and
    regular expressions. Conditions on the properties of an object are under the key ``context`` of
    the schema.

    Murano 16 translates only the last of three conditions, and no condition on a length. It reads
    ``0 < $`` as ``$ >= 0``. If two conditions have the same keyword, it keeps only one of them. Its
    schema accepts null even if a condition refuses null.

    Here, all conditions of these kinds are translated, and also ``$ = value`` and ``$ != value``.
    Other conditions are left out.
    """

    def generate_schema(contract: Any) -> Schema:
        for condition in _split(contract.predicate):
            _add(contract.value, condition, contract)
        return dict(contract.value)

    check.Check.generate_schema = generate_schema


def keep_conditions() -> None:
    """Keep the conditions in front of a type, as in ``$.check($ > 0).int()``.

    The specification "MuranoPL forms", section "Schema generation", runs the whole contract. In
    Murano 16, a type removes all conditions in front of it, and a ``notNull()`` without a type has
    no effect. Here, the type is added to the conditions, and such a ``notNull()`` refuses null.
    """

    def keep(generate_schema: Callable[[Any], Schema]) -> Callable[[Any], Schema]:
        def generate(contract: Any) -> Schema:
            return _without_not_null(contract.value) | generate_schema(contract)

        return generate

    for kind in (basic.String, basic.Bool, basic.Int, instances.Class, instances.Template):
        kind.generate_schema = keep(kind.generate_schema)
    not_null = basic.NotNull.generate_schema

    def refuse_null(contract: Any) -> Schema:
        schema: Schema = not_null(contract)
        if "type" not in schema:
            _restrict(schema, {"not": _NOT_NULL}, [])
        return schema

    basic.NotNull.generate_schema = refuse_null


def refuse_other_receivers() -> None:
    """Refuse a contract such as ``$foo.int()``, which does not depend on the value.

    For such a contract, Murano 16 fails with an ``AttributeError``, which does not explain the
    mistake. Here, the error says that the function is not applied to the value.
    """

    def checked(generate_schema: Callable[[Any], Schema]) -> Callable[[Any], Schema]:
        def generate(contract: Any) -> Schema:
            if not isinstance(contract.value, dict):
                raise exceptions.DslContractSyntaxError(
                    f"{contract.name}() is not applied to the value, which is $"
                )
            return generate_schema(contract)

        return generate

    for kind in contracts.CONTRACT_METHODS:
        kind.generate_schema = checked(kind.generate_schema)


def keep_null_of_optional_checks() -> None:
    """Accept null in the schema of ``$.string()?.check(...)``, which does not check null.

    The specification "MuranoPL forms", section "Schema generation", runs the contract with
    functions that return schemas. In Murano 16, the operator ``?.`` then gets a schema and never
    null, so it always runs the checks, which may refuse null. Here, another operator ``?.`` runs
    the checks, and lets the schema accept null again. Contracts of optional parameters in HOT
    templates have this form.
    """
    prepare = contracts.Contract._prepare_schema_generation_context

    def skip_null(operator: Any, receiver: Schema, expr: Any) -> Any:
        is_nullable = "_notNull" not in receiver
        found = operator(receiver, expr)
        return _accept_null(found) if is_nullable else found

    for describe in (
        specs.parameter("expr", yaqltypes.YaqlExpression()),
        specs.inject("operator", yaqltypes.Delegate("#operator_.")),
        specs.name("#operator_?."),
    ):
        describe(skip_null)

    @functools.cache
    def prepare_context(runtime_version: Any) -> Any:
        context = prepare(runtime_version).create_child_context()
        context.register_function(skip_null)
        return context

    contracts.Contract._prepare_schema_generation_context = staticmethod(prepare_context)


@dataclasses.dataclass(frozen=True)
class _Subject:
    """What a condition restricts: the value, one of its properties, or the length of either.

    :param path: the names that lead from the value to the property; empty for the value itself.
    :param is_length: whether the length is restricted.
    """

    path: tuple[str, ...]
    is_length: bool = False


def _unwrap(expression: Any) -> Any:
    """Return an expression without the parentheses around it."""
    while isinstance(expression, expressions.Wrap):
        expression = expression.expr
    return expression


def _split(condition: Any) -> Iterator[Any]:
    """Split a condition at each ``and``, and yield the parts."""
    condition = _unwrap(condition)
    if isinstance(condition, expressions.BinaryOperator) and condition.operator == "and":
        for part in condition.args:
            yield from _split(part)
    else:
        yield condition


def _add(schema: Schema, condition: Any, contract: Any) -> None:
    """Add a condition to the schema of a value; leave it out if it cannot be translated.

    :param contract: the contract with the condition, which has the YAQL context.
    """
    if (found := _parse(condition, contract)) is None:
        return
    subject, operator, constant = found
    is_object = "muranoType" in schema
    if bool(subject.path) != is_object:
        return
    types = None if is_object else schema.get("type")
    if (translated := _translate(types, subject, operator, constant)) is None:
        return
    if is_object:
        schema = _inner(schema, subject.path)
    _restrict(schema, *translated)
    if not _holds_for_null(operator, constant, subject):
        _refuse_null(schema)
    if is_object:
        # Murano removes its mark ``_notNull`` only from the top of a schema.
        schema.pop("_notNull", None)


def _inner(schema: Schema, path: Sequence[str]) -> Schema:
    """Return the schema of a property of an object, and refuse null for the object.

    If the schema of the property is missing, it is added to that of the object. The property is not
    made required: it may be missing in an object, since it may have a default.

    :param schema: the schema of the object.
    :param path: the names that lead to the property.
    """
    _refuse_null(schema)
    schema = schema.setdefault("context", {})
    for depth, name in enumerate(path):
        if depth:
            schema["not"] = _NOT_NULL
        schema = schema.setdefault("properties", {}).setdefault(name, {})
    return schema


def _parse(condition: Any, contract: Any) -> tuple[_Subject, str, Any] | None:
    """Split a condition into what it restricts, its operator and a constant.

    :returns: None if the condition cannot be translated.
    """
    if not isinstance(condition, expressions.BinaryOperator):
        return None
    operator, (left, right) = condition.operator, condition.args
    if operator == ".":
        if (matched := _matched(left, right)) is None:
            return None
        operator, (left, right) = "=~", matched
    elif operator in _MIRRORED and _subject(left) is None:
        operator, left, right = _MIRRORED[operator], right, left
    elif operator not in (*_MIRRORED, "in", "=~"):
        return None
    if (subject := _subject(left)) is None:
        return None
    try:
        return subject, operator, _evaluate(right, contract)
    except ValueError:
        return None


def _matched(receiver: Any, call: Any) -> tuple[Any, Any] | None:
    """Return the value and the pattern of ``$.matches(PATTERN)`` or ``regex(PATTERN).matches($)``.

    :returns: None if the expression has another form.
    """
    if not isinstance(call, expressions.Function) or call.name != "matches" or len(call.args) != 1:
        return None
    (argument,) = call.args
    regex = _unwrap(receiver)
    if not isinstance(regex, expressions.Function) or regex.name != "regex":
        return receiver, argument
    # The other arguments of ``regex`` are options, such as to ignore case.
    return (argument, regex.args[0]) if len(regex.args) == 1 else None


def _evaluate(expression: Any, contract: Any) -> Any:
    """Evaluate an expression that does not use ``$``, and return its result as JSON data.

    :raises ValueError: if the expression fails, or its result is not JSON.
    """
    try:
        # None is also the result of Murano's function after an error.
        is_null = getattr(_unwrap(expression), "value", ...) is None
        constant = check.evaluate_constant(expression, contract.engine, contract.root_context)
    except Exception as error:
        # The expression may call methods of the class, which need an object.
        raise ValueError(str(error)) from error
    if isinstance(constant, set | frozenset):
        constant = sorted(constant, key=repr)
    if not contract_schemas.is_json(constant) or (constant is None and not is_null):
        raise ValueError(f"{expression} is not JSON")
    # YAQL has tuples and frozen dictionaries. In JSON, 1 and 1.0 are the same number.
    return json.loads(json.dumps(constant, default=dict), parse_float=_number)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _subject(expression: Any) -> _Subject | None:
    expression = _unwrap(expression)
    if isinstance(expression, expressions.BinaryOperator) and expression.operator == ".":
        outer, inner = expression.args
        subject = _subject(outer)
        if subject is None or subject.is_length:
            return None
        if isinstance(inner, expressions.KeywordConstant):
            return _Subject((*subject.path, inner.value))
        is_length = isinstance(inner, expressions.Function) and inner.name == "len"
        return _Subject(subject.path, True) if is_length and not inner.args else None
    if isinstance(expression, expressions.Function) and expression.name == "len":
        subject = _subject(expression.args[0]) if len(expression.args) == 1 else None
        return _Subject(subject.path, True) if subject and not subject.is_length else None
    return _Subject(()) if check.is_dollar(expression) else None


def _translate(
    written: str | list[str] | None, subject: _Subject, operator: str, constant: Any
) -> tuple[Schema, list[str]] | None:
    """Translate a condition into keywords of a schema, and JSON types that satisfy it.

    :param written: the types of the value in the schema; None if the schema has no type.
    :returns: None if the condition cannot be translated. The list of types is empty if the
        condition allows any type.
    """
    is_number = isinstance(constant, int | float) and not isinstance(constant, bool)
    if subject.is_length:
        types = list(_MEASURED_TYPES)
        measured = [kind for kind in types if kind in (written or types)]
        if not is_number or not isinstance(constant, int) or operator not in _OF_LENGTHS:
            return None
        return _length_bounds(measured, operator, constant), types
    if operator == "=~":
        return ({"pattern": constant}, ["string"]) if _is_pattern(constant) else None
    if operator in ("in", "="):
        values = [constant] if operator == "=" else constant
        if not isinstance(values, list) or not values:
            return None
        if written:
            values = [equal for value in values for equal in _equal_values(value, written)]
        return {"enum": list({json.dumps(value): value for value in values}.values())}, []
    if operator == "!=":
        if constant is None:
            # If the schema has types, ``_refuse_null`` removes null from them instead.
            return ({} if written else {"not": _NOT_NULL}), []
        return {"not": {"enum": _equal_values(constant, written)}}, []
    return (_bounds(operator, constant), ["number"]) if is_number else None


def _equal_values(constant: Any, written: str | list[str] | None) -> list[Any]:
    """Return the values that are equal to a constant in YAQL, where true equals 1, and false 0.

    :param written: the types of the value in the schema; None if the schema has no type.
    :returns: the values that have one of the types; only the constant, if there are none.
    """
    if not isinstance(constant, int) or constant not in (0, 1):
        return [constant]
    if written is None:
        return [int(constant), bool(constant)]
    numbers = [int(constant)] if "integer" in written or "number" in written else []
    return [*numbers, *([bool(constant)] if "boolean" in written else [])] or [constant]


def _bounds(operator: str, constant: float) -> Schema:
    keyword, exclusive = (
        ("minimum", "exclusiveMinimum") if ">" in operator else ("maximum", "exclusiveMaximum")
    )
    return {keyword: constant, exclusive: "=" not in operator}


def _length_bounds(types: list[str], operator: str, constant: int) -> Schema:
    """Return the keywords that bound the length of a value.

    A bound is inclusive, and at least 0. If no length satisfies the condition, the keywords refuse
    every value.

    :param types: the JSON types that the value can have.
    """
    bounds = {}
    if operator in (">", ">=", "="):
        bounds["min"] = max(0, constant + (operator == ">"))
    if operator in ("<", "<=", "="):
        bounds["max"] = constant - (operator == "<")
    if bounds.get("max", 0) < 0:
        # No length is negative, so the schema refuses every value.
        bounds = {"min": 1, "max": 0}
    return {
        f"{bound}{_MEASURED_TYPES[kind]}": length
        for kind in types
        for bound, length in bounds.items()
    }


def _is_pattern(constant: object) -> bool:
    if not isinstance(constant, str) or _PYTHON_ONLY.search(constant):
        return False
    try:
        re.compile(constant)
    except re.error:
        return False
    return True


def _holds_for_null(operator: str, constant: Any, subject: _Subject) -> bool:
    """Return whether null satisfies a condition; for YAQL, null is less than all numbers."""
    match operator:
        case "in":
            return None in constant
        case "=":
            return constant is None
        case "!=":
            return constant is not None
    return "<" in operator and not subject.is_length


def _restrict(schema: Schema, condition: Schema, types: list[str]) -> None:
    """Add the keywords of a condition to a schema, and ``types`` if the schema has no type.

    If the schema has a keyword with another value already, the condition is added to ``allOf``.
    """
    if "type" not in schema and types:
        nullable = [] if "_notNull" in schema else ["null"]
        schema["type"] = [*types, *nullable] if len(types) + len(nullable) > 1 else types[0]
        if schema.get("not") == _NOT_NULL:
            del schema["not"]
    if any(schema.get(key, value) != value for key, value in condition.items()):
        schema.setdefault("allOf", []).append(condition)
    else:
        schema.update(condition)


def _refuse_null(schema: Schema) -> None:
    schema["_notNull"] = True
    types = schema.get("type")
    if isinstance(types, list) and "null" in types:
        left = [kind for kind in types if kind != "null"]
        schema["type"] = left[0] if len(left) == 1 else left


def _without_not_null(schema: Schema) -> Schema:
    """Return a copy of a schema, without the keyword ``not`` if the keyword only refuses null."""
    return {key: each for key, each in schema.items() if (key, each) != ("not", _NOT_NULL)}


def _accept_null(schema: Schema) -> Schema:
    """Return a copy of a schema that also accepts null."""
    found = {key: each for key, each in _without_not_null(schema).items() if key != "_notNull"}
    types = found.get("type", "null")
    if "null" not in (kinds := [types] if isinstance(types, str) else types):
        found["type"] = [*kinds, "null"]
    if None not in found.get("enum", [None]):
        found["enum"] = [*found["enum"], None]
    if "allOf" in found:
        found["allOf"] = list(map(_accept_null, found["allOf"]))
    return found
