# SPDX-License-Identifier: Apache-2.0

"""A parameter of a HOT template: its type, and the constraints upon its value.

The types and constraints are those of Heat's template guide. A constraint is
read here if both MuranoPL and a form can check it before Heat does. The rest
(``custom_constraint``, ``modulo``, any upon a ``json`` parameter, and those
that Heat has not for the type) is left to Heat, which checks every value
itself.
"""

import abc
import contextlib
import dataclasses
import enum
import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from glare_murano.package.hot.yaql import literal

_LARGEST = 2**63
# What Heat takes for a truth value.
_TRUTH = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "off", "f", "false", "n", "no"), False),
}


class Type(enum.StrEnum):
    """What a parameter's value is; of the last two, the form and the model hold a text."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "comma_delimited_list"
    JSON = "json"


@dataclasses.dataclass(frozen=True)
class Constraint(abc.ABC):
    """A rule that a value must keep.

    :param description: what to tell who breaks it, or None.
    """

    description: str | None

    @classmethod
    @abc.abstractmethod
    def read(cls, value: Any, kind: Type, description: str | None) -> Self:
        """Read it as a template has it.

        :param kind: the type of the parameter.
        :raises ValueError: saying what was expected.
        """

    @property
    @abc.abstractmethod
    def predicate(self) -> str | None:
        """The rule in YAQL, where ``$`` is the value; None if every value keeps it."""


@dataclasses.dataclass(frozen=True)
class Length(Constraint):
    """Bounds upon the characters of a text, or upon the items of a list."""

    minimum: int | None
    maximum: int | None
    of_items: bool = False

    @classmethod
    def read(cls, value: Any, kind: Type, description: str | None) -> Self:
        """See the interface."""
        low, high = (_whole(bound) for bound in _bounds(value))
        return cls(description, low, high, of_items=kind is Type.LIST)

    @property
    def predicate(self) -> str | None:
        """See the interface."""
        measured = "len($.split(','))" if self.of_items else "len($)"
        return _between(measured, self.minimum, self.maximum)


@dataclasses.dataclass(frozen=True)
class Range(Constraint):
    """Bounds upon a number."""

    minimum: float | None
    maximum: float | None

    @classmethod
    def read(cls, value: Any, kind: Type, description: str | None) -> Self:
        """See the interface."""
        return cls(description, *_bounds(value))

    @property
    def predicate(self) -> str | None:
        """See the interface."""
        return _between("$", self.minimum, self.maximum)


@dataclasses.dataclass(frozen=True)
class AllowedValues(Constraint):
    """What the value may be, or what each item of a list may be."""

    values: tuple[str | float | bool, ...]
    of_items: bool = False

    @classmethod
    def read(cls, value: Any, kind: Type, description: str | None) -> Self:
        """See the interface."""
        if not isinstance(value, list):
            raise ValueError(f"expected a list of values, found {_shown(value)}")
        convert = {Type.NUMBER: _number, Type.BOOLEAN: _truth}.get(kind, _text)
        return cls(description, tuple(map(convert, value)), of_items=kind is Type.LIST)

    @property
    def predicate(self) -> str | None:
        """See the interface."""
        allowed = f"in list({', '.join(map(literal, self.values))})"
        if self.of_items:
            return f"$ = '' or $.split(',').all($.trim() {allowed})"
        return f"$ {allowed}"


@dataclasses.dataclass(frozen=True)
class AllowedPattern(Constraint):
    """A regular expression that is found in the value."""

    pattern: str

    @classmethod
    def read(cls, value: Any, kind: Type, description: str | None) -> Self:
        """See the interface."""
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError, TypeError) as error:
            raise ValueError(
                f"expected a regular expression, found {_shown(value)}: {error}"
            ) from error
        return cls(description, value)

    @property
    def predicate(self) -> str | None:
        """See the interface."""
        return f"$.matches({literal(self.pattern)})"


_CONSTRAINTS: Mapping[Type, Mapping[str, type[Constraint]]] = {
    Type.STRING: {
        "length": Length,
        "allowed_values": AllowedValues,
        "allowed_pattern": AllowedPattern,
    },
    Type.NUMBER: {"range": Range, "allowed_values": AllowedValues},
    Type.BOOLEAN: {"allowed_values": AllowedValues},
    Type.LIST: {"length": Length, "allowed_values": AllowedValues},
    Type.JSON: {},
}


def read_constraints(value: Any, kind: Type) -> Iterator[Constraint]:
    """Read one entry of a parameter's ``constraints``.

    :param kind: the type of the parameter.
    :raises ValueError: saying what was expected.
    """
    if not isinstance(value, dict):
        raise ValueError(
            f"expected a mapping such as {{length: {{max: 8}}}}, found {_shown(value)}"
        )
    description = value.get("description")
    for name, constraint in _CONSTRAINTS[kind].items():
        if name in value:
            try:
                yield constraint.read(
                    value[name], kind, None if description is None else _text(description)
                )
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter.

    :param has_default: whether its value may be left out.
    :param default: the value then, as the template has it.
    """

    name: str
    kind: Type
    label: str | None
    description: str | None
    has_default: bool
    default: Any
    constraints: tuple[Constraint, ...]


def truth_or_none(value: Any) -> bool | None:
    """The truth value that Heat takes a value for, or None if it takes it for none."""
    return _TRUTH.get(str(value).lower())


def _truth(value: Any) -> bool:
    found = truth_or_none(value)
    if found is None:
        raise ValueError(f"expected a truth value, found {_shown(value)}")
    return found


def _text(value: Any) -> str:
    if isinstance(value, str | float | int):
        return str(value)
    raise ValueError(f"expected a text, found {_shown(value)}")


def _number(value: Any) -> float:
    number = _parsed(value) if isinstance(value, str) else value
    # Not a number, as YAML has one, is not below anything either.
    if isinstance(number, int | float) and abs(number) <= _LARGEST and not isinstance(number, bool):
        return number
    raise ValueError(f"expected a number of at most {_LARGEST}, found {_shown(value)}")


def _parsed(text: str) -> float | None:
    for convert in (int, float):
        with contextlib.suppress(ValueError):
            return convert(text)
    return None


def _whole(value: float | None) -> int | None:
    if value is not None and not float(value).is_integer():
        raise ValueError(f"expected a whole number, found {value}")
    return None if value is None else int(value)


def _bounds(value: Any) -> tuple[float | None, float | None]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a mapping of min and max, found {_shown(value)}")
    low, high = (
        None if value.get(name) is None else _number(value[name]) for name in ("min", "max")
    )
    return low, high


def _between(measured: str, low: float | None, high: float | None) -> str | None:
    limits = ((">=", low), ("<=", high))
    parts = [f"{measured} {sign} {literal(limit)}" for sign, limit in limits if limit is not None]
    return " and ".join(parts) or None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
