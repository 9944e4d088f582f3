# SPDX-License-Identifier: Apache-2.0

"""Translate the conditions of contracts into schemas."""

import collections
from collections.abc import Mapping
from typing import Any

from murano.dsl.contracts import check
from yaql.language import expressions


def translate_every_condition() -> None:
    """Translate all conditions that ``and`` joins, and the length of strings, into schemas.

    The specification "MuranoPL forms", section "Schema generation", splits ``EXPR1 and ...
    and EXPRN``, and compares ``len($)``. Murano 16 translates the last one of three, and
    no length.
    """
    extract = check.extract_pattern

    def extract_each(condition: Any, yaql_engine: Any, context: Any) -> Any:
        if not isinstance(condition, expressions.BinaryOperator):
            return extract(condition, yaql_engine, context)
        if condition.operator == "and":
            found = [extract_each(part, yaql_engine, context) for part in condition.args]
            return dict(collections.ChainMap(*filter(None, found)))
        compared = [_measured(part) or part for part in condition.args]
        if compared == list(condition.args):
            return extract(condition, yaql_engine, context)
        lengths = {}
        for sign in (">=", "<=") if condition.operator == "=" else (condition.operator,):
            bounds = expressions.BinaryOperator(sign, *compared, None)
            lengths.update(_length_bounds(extract(bounds, yaql_engine, context) or {}))
        return lengths

    check.extract_pattern = extract_each


def _measured(expression: Any) -> Any:
    """Return ``$`` for ``len($)``, and None for any other expression."""
    is_length = isinstance(expression, expressions.Function) and expression.name == "len"
    if is_length and len(expression.args) == 1 and check.is_dollar(expression.args[0]):
        return expression.args[0]
    return None


def _length_bounds(bounds: Mapping[str, Any]) -> dict[str, int]:
    """Translate the bounds of a number into those of a string's length, which are inclusive."""
    found = {}
    if "minimum" in bounds:
        found["minLength"] = bounds["minimum"] + bounds["exclusiveMinimum"]
    if "maximum" in bounds:
        found["maxLength"] = bounds["maximum"] - bounds["exclusiveMaximum"]
    return found
