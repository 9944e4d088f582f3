# SPDX-License-Identifier: Apache-2.0

"""Read a parameter of a HOT template: its type, and the constraints on its value.

Types and constraints are those of Heat's template guide. This module reads the constraints that
MuranoPL and forms can check. It skips ``custom_constraint``, ``modulo``, all constraints of
``json`` parameters, and constraints that do not fit the type. Heat checks every value again.
"""

import contextlib
import dataclasses
import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from glare_murano.package.hot.yaql_dumper import literal
from glare_murano.package.patterns import PatternCheck

_LARGEST = 2**63
# String that Heat reads as a truth value, in lower case -> this value.
TRUTH_VALUES = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "off", "f", "false", "n", "no"), False),
}


class ParameterType(enum.StrEnum):
    """The type of a parameter.

    In forms and object models, values of the types ``LIST`` and ``JSON`` are strings.
    """

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "comma_delimited_list"
    JSON = "json"


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A rule for the value of a parameter.

    :param predicate: the rule in YAQL, where ``$`` is the value; None if every value satisfies the
        rule.
    :param lengths: the smallest and the largest length of a string. None means no limit.
    :param pattern: the regular expression that must be found in the value; None if the rule has no
        regular expression.
    :param description: the message for a value that breaks the rule; None for the default message.
    """

    predicate: str | None
    lengths: tuple[int | None, int | None] = (None, None)
    pattern: str | None = None
    description: str | None = None


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a HOT template.

    :param label: the title of the parameter for users; None without a title.
    :param has_default: whether the parameter has a default, so that a user may omit the value.
    :param default: the default value, as in the template; None without a default.
    """

    name: str
    kind: ParameterType
    label: str | None
    description: str | None
    has_default: bool
    default: Any
    constraints: tuple[Constraint, ...]


def read_constraints(
    value: object, kind: ParameterType, patterns: PatternCheck
) -> Iterator[Constraint]:
    """Read an entry of a parameter's list ``constraints``.

    An entry may contain several constraints. Unknown constraints, and constraints that do not fit
    the type of the parameter, are skipped.

    :param value: the entry.
    :param kind: the type of the parameter.
    :param patterns: the check for all regular expressions in the template.
    :raises ValueError: if the entry is malformed; the message says what was expected.
    """
    if not isinstance(value, dict):
        raise _unexpected("a mapping such as {length: {max: 8}}", value)
    description = value.get("description")
    for name, (kinds, read) in _CONSTRAINTS.items():
        if name in value and kind in kinds:
            try:
                constraint = read(value[name], kind)
                if constraint.pattern is not None:
                    _check_pattern(constraint.pattern, patterns)
                message = None if description is None else _string(description)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            yield dataclasses.replace(constraint, description=message)


def _length(value: object, kind: ParameterType) -> Constraint:
    low, high = (_whole(bound) for bound in _bounds(value))
    if kind is ParameterType.LIST:
        return Constraint(_between("len($.split(','))", low, high))
    return Constraint(_between("len($)", low, high), lengths=(low, high))


def _range(value: object, _kind: ParameterType) -> Constraint:
    return Constraint(_between("$", *_bounds(value)))


def _allowed_values(value: object, kind: ParameterType) -> Constraint:
    if not isinstance(value, list):
        raise _unexpected("a list of values", value)
    converters: Mapping[ParameterType, Callable[[object], str | float]] = {
        ParameterType.NUMBER: _number,
        ParameterType.BOOLEAN: _truth,
    }
    values = map(converters.get(kind, _string), value)
    allowed = f"in list({', '.join(map(literal, values))})"
    if kind is ParameterType.LIST:
        return Constraint(f"$ = '' or $.split(',').all($.trim() {allowed})")
    return Constraint(f"$ {allowed}")


def _allowed_pattern(value: Any, _kind: ParameterType) -> Constraint:
    if not isinstance(value, str):
        raise _unexpected("a regular expression", value)
    return Constraint(f"$.matches({literal(value)})", pattern=value)


def _check_pattern(pattern: str, patterns: PatternCheck) -> None:
    try:
        patterns.check(pattern)
    except ValueError as error:
        raise _unexpected("a regular expression", pattern, f": {error}") from error


# Name of a constraint -> the types of parameters for which it is read, and its reader.
_CONSTRAINTS: Mapping[
    str, tuple[Collection[ParameterType], Callable[[Any, ParameterType], Constraint]]
] = {
    "length": ({ParameterType.STRING, ParameterType.LIST}, _length),
    "range": ({ParameterType.NUMBER}, _range),
    "allowed_values": (set(ParameterType) - {ParameterType.JSON}, _allowed_values),
    "allowed_pattern": ({ParameterType.STRING}, _allowed_pattern),
}


def _truth(value: object) -> bool:
    found = TRUTH_VALUES.get(str(value).lower())
    if found is None:
        raise _unexpected("a truth value", value)
    return found


def _string(value: object) -> str:
    if isinstance(value, str | float | int):
        return str(value)
    raise _unexpected("a string", value)


def _number(value: object) -> float:
    number = _parsed(value) if isinstance(value, str) else value
    # NaN is refused as well, since the comparison is false for it.
    if isinstance(number, int | float) and abs(number) <= _LARGEST and not isinstance(number, bool):
        return number
    raise _unexpected(f"a number of at most {_LARGEST}", value)


def _parsed(text: str) -> float | None:
    for convert in (int, float):
        with contextlib.suppress(ValueError):
            return convert(text)
    return None


def _bounds(value: object) -> list[float | None]:
    if not isinstance(value, dict):
        raise _unexpected("a mapping of min and max", value)
    bounds = map(value.get, ("min", "max"))
    return [None if bound is None else _number(bound) for bound in bounds]


def _whole(value: float | None) -> int | None:
    if value is not None and not float(value).is_integer():
        raise _unexpected("a whole number", value)
    return None if value is None else int(value)


def _between(measured: str, low: float | None, high: float | None) -> str | None:
    limits = ((">=", low), ("<=", high))
    parts = [f"{measured} {sign} {literal(limit)}" for sign, limit in limits if limit is not None]
    return " and ".join(parts) or None


def _unexpected(expected: str, value: object, reason: str = "") -> ValueError:
    found = repr(value)
    found = found if len(found) <= 60 else f"{found[:57]}..."
    return ValueError(f"expected {expected}, found {found}{reason}")
