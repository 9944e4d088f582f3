# SPDX-License-Identifier: Apache-2.0

"""Translate the conditions of contracts into schemas."""

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from murano.dsl.contracts import basic, check, contracts, instances
from yaql.language import expressions, specs, yaqltypes

from loader.engine import contract_schemas

Schema = dict[str, Any]

# Comparison -> the same comparison when both sides are exchanged.
_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "=": "="}

# JSON type -> the suffix of the keywords for its length.
_MEASURED_TYPES = {"string": "Length", "array": "Items", "object": "Properties"}

# Groups, anchors and counts that Python has and JavaScript lacks.
_PYTHON_ONLY = re.compile(r"\(\?(?![:=!])|\\[AZ]|\{,")


def translate_every_condition() -> None:
    """Translate all conditions in a ``check()`` into the schema.

    The specification "MuranoPL forms", section "Schema generation", splits ``EXPR1 and ...
    and EXPRN``, and translates comparisons of numbers and of ``len($)``, ``in``, and regular
    expressions. For an object, conditions on inner properties are in ``context``. Other
    conditions are left out.

    Murano 16 translates only the last of three conditions, and no length. It reads ``0 < $`` as
    ``$ >= 0``. If two conditions have the same keyword, it keeps only one. Its schema accepts
    null even if a condition refuses null.
    """

    def generate_schema(contract: Any) -> Schema:
        for condition in _split(contract.predicate):
            _add(contract.value, condition, contract)
        return dict(contract.value)

    check.Check.generate_schema = generate_schema


def keep_conditions() -> None:
    """Keep the conditions in front of a type, as in ``$.check($ > 0).int()``.

    The specification "MuranoPL forms", section "Schema generation", runs the whole contract.
    In Murano 16, a type removes all conditions before it, and a ``notNull()`` without a type has no
    effect.
    """

    def keep(generate_schema: Callable[[Any], Schema]) -> Callable[[Any], Schema]:
        def generate(contract: Any) -> Schema:
            kept = {key: value for key, value in contract.value.items() if key != "not"}
            return kept | generate_schema(contract)

        return generate

    for kind in (basic.String, basic.Bool, basic.Int, instances.Class, instances.Template):
        kind.generate_schema = keep(kind.generate_schema)
    not_null = basic.NotNull.generate_schema

    def refuse_null(contract: Any) -> Schema:
        schema: Schema = not_null(contract)
        return schema if "type" in schema else schema | {"not": {"type": "null"}}

    basic.NotNull.generate_schema = refuse_null


def keep_null_of_optional_checks() -> None:
    """Accept null in the schema of ``$.string()?.check(...)``, which does not check null.

    The specification "MuranoPL forms", section "Schema generation", runs the contract with
    functions that return a schema. So YAQL's operator ``?.`` gets a schema and never null. It is
    replaced by an operator that runs the checks, and then accepts null again. Contracts of
    optional parameters in HOT templates have this form.
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
    """What a condition restricts: the value, an inner property of the value, or a length.

    :param path: the names of the inner properties.
    """

    path: tuple[str, ...]
    is_length: bool = False


def _unwrap(expression: Any) -> Any:
    """Return an expression without the parentheses around it."""
    while isinstance(expression, expressions.Wrap):
        expression = expression.expr
    return expression


def _split(condition: Any) -> Iterator[Any]:
    """Yield the conditions that ``and`` joins."""
    condition = _unwrap(condition)
    if isinstance(condition, expressions.BinaryOperator) and condition.operator == "and":
        for part in condition.args:
            yield from _split(part)
    else:
        yield condition


def _add(schema: Schema, condition: Any, contract: Any) -> None:
    """Add a condition to the schema of a value, if it can be translated."""
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
    """Return the schema of an object's inner property, and refuse null for the object.

    A value may lack the property, since the property may have a default.
    """
    _refuse_null(schema)
    schema = schema.setdefault("context", {})
    for depth, name in enumerate(path):
        if depth:
            schema["not"] = {"type": "null"}
        schema = schema.setdefault("properties", {}).setdefault(name, {})
    return schema


def _parse(condition: Any, contract: Any) -> tuple[_Subject, str, Any] | None:
    """Return the subject, operator and constant of a condition; None if it has another form."""
    if not isinstance(condition, expressions.BinaryOperator):
        return None
    operator, (left, right) = condition.operator, condition.args
    if operator == ".":
        is_match = isinstance(right, expressions.Function) and right.name == "matches"
        if not is_match or len(right.args) != 1:
            return None
        operator, right = "=~", right.args[0]
    elif operator in _MIRRORED and _subject(left) is None:
        operator, left, right = _MIRRORED[operator], right, left
    elif operator not in (*_MIRRORED, "in", "=~"):
        return None
    if (subject := _subject(left)) is None:
        return None
    constant = _evaluate(right, contract)
    return None if constant is None else (subject, operator, constant)


def _evaluate(expression: Any, contract: Any) -> Any:
    """Evaluate an expression that does not use ``$``; return JSON data, or None if it fails."""
    try:
        constant = check.evaluate_constant(expression, contract.engine, contract.root_context)
    except Exception:
        # The expression may call methods of the class, which need an object.
        return None
    if not contract_schemas.is_json(constant):
        return None
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
    """Return the keywords for a condition, and the types that the condition can accept.

    :param written: the types of the value, if the contract names them.
    :returns: no types if all are accepted; None if the condition cannot be translated.
    """
    is_number = isinstance(constant, int | float) and not isinstance(constant, bool)
    if subject.is_length:
        types = list(_MEASURED_TYPES)
        measured = [kind for kind in types if kind in (written or types)]
        if not is_number or not isinstance(constant, int) or operator not in _MIRRORED:
            return None
        return _length_bounds(measured, operator, constant), types
    if operator == "=~":
        return ({"pattern": constant}, ["string"]) if _is_pattern(constant) else None
    if operator in ("in", "="):
        values = [constant] if operator == "=" else constant
        if not isinstance(values, list) or not values:
            return None
        return {"enum": list({json.dumps(value): value for value in values}.values())}, []
    return (_bounds(operator, constant), ["number"]) if is_number else None


def _bounds(operator: str, constant: float) -> Schema:
    keyword, exclusive = (
        ("minimum", "exclusiveMinimum") if ">" in operator else ("maximum", "exclusiveMaximum")
    )
    return {keyword: constant, exclusive: "=" not in operator}


def _length_bounds(types: list[str], operator: str, constant: int) -> Schema:
    """Return the bounds of a length; they are inclusive, and at least 0."""
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
    if operator == "in":
        return None in constant
    return "<" in operator and not subject.is_length


def _restrict(schema: Schema, condition: Schema, types: list[str]) -> None:
    """Add the keywords of a condition to a schema, and its types if the schema has no type."""
    if "type" not in schema and types:
        nullable = [] if "_notNull" in schema else ["null"]
        schema["type"] = [*types, *nullable] if len(types) + len(nullable) > 1 else types[0]
        schema.pop("not", None)
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


def _accept_null(schema: Schema) -> Schema:
    """Return a schema that also accepts null."""
    found = {key: value for key, value in schema.items() if key not in ("_notNull", "not")}
    types = found.get("type", "null")
    if "null" not in (kinds := [types] if isinstance(types, str) else types):
        found["type"] = [*kinds, "null"]
    if None not in found.get("enum", [None]):
        found["enum"] = [*found["enum"], None]
    if "allOf" in found:
        found["allOf"] = list(map(_accept_null, found["allOf"]))
    return found
