# SPDX-License-Identifier: Apache-2.0

"""The conditions of ``check()`` in contracts: bounds, lists of values, and other conditions.

``$ > 0 and $ in list(a, b)`` has two conditions. Bounds and lists are compared by their meaning.
Other conditions are compared as the strings that ``expressions.write`` returns.
"""

import dataclasses
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from loader.compatibility import expressions
from loader.compatibility.answers import Answer

# The value that a contract checks (``$``), as ``expressions.write`` writes it.
_VALUE = "#get_context_data('$')"
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# The name of a value's type, and the value. The type is needed, since True equals 1 in Python.
_Constant = tuple[str, object]


@dataclasses.dataclass(frozen=True)
class Bound:
    """A comparison with a number, such as ``$ > 0`` or ``len($) <= 8``.

    :param subject: the expression that is compared, such as ``len($)``, as ``expressions.write``
        writes it.
    """

    subject: str
    sign: str
    limit: float


@dataclasses.dataclass(frozen=True)
class OneOf:
    """A list of allowed values, such as ``$ in list(a, b)`` or ``$ = 1``."""

    subject: str
    values: frozenset[_Constant]


@dataclasses.dataclass(frozen=True)
class Other:
    """Any other condition, as ``expressions.write`` writes it."""

    text: str


Condition = Bound | OneOf | Other


def equals(value: object) -> OneOf:
    """Return the condition that the checked value has to equal the given value."""
    return OneOf(_VALUE, frozenset([_constant(value)]))


def read(predicate: Any, namespaces: Mapping[str, str]) -> Iterator[Condition]:
    """Yield the conditions that a predicate joins with ``and``.

    :param predicate: the expression in ``check()``.
    """
    from yaql.language import expressions as yaql

    match expressions.unwrapped(predicate):
        case yaql.BinaryOperator(operator="and", args=args):
            for each in args:
                yield from read(each, namespaces)
        case yaql.BinaryOperator(operator=sign, args=args):
            left, right = map(expressions.unwrapped, args)
            yield (
                _comparison(left, sign, right, namespaces)
                or _comparison(right, _FLIPPED.get(sign, sign), left, namespaces)
                or Other(expressions.write(predicate, namespaces))
            )
        case _:
            yield Other(expressions.write(predicate, namespaces))


def implied(wanted: Condition, given: Collection[Condition]) -> Answer:
    """Return whether every value that satisfies the ``given`` conditions also satisfies ``wanted``.

    If this cannot be proved, the answer is ``UNKNOWN`` if a given condition is an ``Other``, since
    its meaning is not known; else it is ``NO``.
    """
    if wanted in given or any(_implies(each, wanted) for each in given):
        return Answer.YES
    # An unknown condition may be the wanted condition, written in another way.
    return Answer.UNKNOWN if any(isinstance(each, Other) for each in given) else Answer.NO


def admit_null(conditions: Collection[Condition]) -> bool | None:
    """Return whether null satisfies all conditions; None if this is unknown.

    In YAQL, null is less than any number.
    """
    found: bool | None = True
    for each in conditions:
        if isinstance(each, Other) or each.subject != _VALUE:
            found = None
        elif isinstance(each, OneOf):
            if _constant(None) not in each.values:
                return False
        elif each.sign in (">", ">="):
            return False
    return found


def _comparison(
    left: Any, sign: str, right: Any, namespaces: Mapping[str, str]
) -> Condition | None:
    subject = expressions.write(left, namespaces)
    if _VALUE not in subject:
        return None
    if sign in _COMPARE:
        limit = _number(right)
        return None if limit is None else Bound(subject, sign, limit)
    values = [right] if sign == "=" else _listed(right) if sign == "in" else None
    if values is None or not all(map(_is_constant, values)):
        return None
    return OneOf(subject, frozenset(_constant(each.value) for each in values))


def _implies(given: Condition, wanted: Condition) -> bool:
    match given, wanted:
        case Bound(), Bound():
            return (
                given.subject == wanted.subject
                and given.sign[0] == wanted.sign[0]
                and (
                    _COMPARE[wanted.sign](given.limit, wanted.limit)
                    or (given.limit == wanted.limit and given.sign == wanted.sign[0])
                )
            )
        case OneOf(), OneOf():
            return given.subject == wanted.subject and given.values <= wanted.values
        case OneOf(), Bound():
            return given.subject == wanted.subject and all(
                kind in ("int", "float") and _COMPARE[wanted.sign](value, wanted.limit)
                for kind, value in given.values
            )
    return False


def _listed(expression: Any) -> Collection[Any] | None:
    from yaql.language import expressions as yaql

    names = ("list", "#list", "set")
    is_list = isinstance(expression, yaql.Function) and expression.name in names
    return [expressions.unwrapped(each) for each in expression.args] if is_list else None


def _number(expression: Any) -> float | None:
    from yaql.language import expressions as yaql

    if isinstance(expression, yaql.UnaryOperator) and expression.operator == "-":
        number = _number(expressions.unwrapped(expression.args[0]))
        return None if number is None else -number
    value = expression.value if _is_constant(expression) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_constant(expression: Any) -> bool:
    from yaql.language import expressions as yaql

    return isinstance(expression, yaql.Constant)


def _constant(value: object) -> _Constant:
    return type(value).__name__, value
