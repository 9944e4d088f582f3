# SPDX-License-Identifier: Apache-2.0

"""Write values in strings, for example by the YAQL function ``format``.

YAQL 2 passed the values to Python's ``str.format``. This let an expression read attributes of
Python's objects, and so every password in the process (CVE-2024-29156). YAQL 3 has no ``format``,
but Murano's core library needs it. Here, a template can contain only names or numbers of values.
The type of a value decides how it is written; attributes and ``repr`` of objects are never used.

These values can be written: strings, numbers, booleans, null, times, versions, collections of such
values, and anything in MuranoPL that has a class or a name.
"""

import datetime
import itertools
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import semantic_version
from murano.dsl import dsl_types
from yaql.language import utils

from loader.engine import yaql_quota

MAX_WIDTH = 1000

# Python's format specification. Python refuses parts that the type of a value does not support.
_SPEC = re.compile(
    r"(?:.?[<>=^])?[-+ ]?z?#?0?(?P<width>[0-9]*)[,_]?(?:\.(?P<precision>[0-9]+))?[a-zA-Z%]?",
    re.DOTALL,
)
_CONVERSIONS = (None, "s", "r", "a")
_NUMBERS = (bool, int, float)
# Types of values that ``str`` writes with digits, letters and punctuation only.
_WRITTEN = (
    bytes,
    datetime.date,
    datetime.timedelta,
    semantic_version.Version,
    semantic_version.Spec,
)
# Types of values that reflection returns; each such value has a name, which is written.
_NAMED = (
    dsl_types.MuranoType,
    dsl_types.MuranoPackage,
    dsl_types.MuranoMethod,
    dsl_types.MuranoProperty,
    dsl_types.MuranoMethodArgument,
)
# Type -> the strings before and after the elements. Iterators are written as tuples.
_BRACKETS = {
    list: ("[", "]"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    tuple: ("(", ")"),
}


def format_text(template: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Replace the fields ``{0}``, ``{name}`` and ``{}`` of a template with values.

    For strings and numbers, the result is the same as that of ``str.format``.

    :raises IndexError: if a field has a number for which there is no value.
    :raises KeyError: if a field has a name for which there is no value.
    :raises ValueError: if the template is invalid, or a field has an attribute or an index.
    :raises TypeError: if a value cannot be written in a string.
    :raises loader.engine.yaql_quota.QuotaExceeded: if the result is too large.
    """
    return _joined(_filled(template, args, kwargs))


def write(value: Any) -> str:
    """Return a value as a string, in the way in which ``format`` writes it.

    :raises TypeError: if the value cannot be written in a string.
    :raises loader.engine.yaql_quota.QuotaExceeded: if the string is too large.
    """
    return str(value) if isinstance(value, str) else _joined(_pieces(value))


def _filled(template: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[str]:
    numbers = itertools.count()
    kinds = set()
    for literal, field, spec, conversion in string.Formatter().parse(template):
        yield literal
        if field is None:
            continue
        if not field or (field.isascii() and field.isdigit()):
            kinds.add(bool(field))
            if len(kinds) > 1:
                raise ValueError("format: the fields are numbered either all or not at all")
            value = args[int(field) if field else next(numbers)]
        elif field.isidentifier():
            value = kwargs[field]
        else:
            raise ValueError(
                f"format: the field {{{field}}} is invalid: a field is a name or a number, "
                f"without attributes and indexes"
            )
        yield _formatted(value, spec or "", conversion)


def _formatted(value: Any, spec: str, conversion: str | None) -> str:
    _check_spec(spec)
    if conversion is None and isinstance(value, _NUMBERS):
        return format(value, spec)
    if conversion not in _CONVERSIONS:
        raise ValueError(f"format: the conversion !{conversion} is unknown; use !s, !r or !a")
    is_quoted = conversion in ("r", "a") and isinstance(value, str)
    text = repr(str(value)) if is_quoted else write(value)
    if conversion == "a":
        text = text.encode("ascii", "backslashreplace").decode()
    return format(text, spec)


def _check_spec(spec: str) -> None:
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(
            f"format: {spec[:100]!r} is not a valid format specification; it cannot contain fields"
        )
    for name, digits in match.groupdict().items():
        if digits and (len(digits) > 9 or int(digits) > MAX_WIDTH):
            raise ValueError(
                f"format: the {name} {digits[:20]} is too large; at most {MAX_WIDTH} is allowed"
            )


def _pieces(value: Any) -> Iterator[str]:
    """Yield the pieces that make up the string for a value; each string gets quotes."""
    if value is None or isinstance(value, _NUMBERS):
        yield str(value)
    elif isinstance(value, str):
        yield repr(str(value))
    elif isinstance(value, utils.MappingType):
        yield "{"
        for number, (key, item) in enumerate(value.items()):
            yield ", " if number else ""
            yield from _pieces(key)
            yield ": "
            yield from _pieces(item)
        yield "}"
    elif isinstance(value, _WRITTEN):
        yield str(value)
    elif utils.is_iterable(value):
        yield from _items(value)
    else:
        yield _name(value)


def _items(values: Iterable[Any]) -> Iterator[str]:
    kind = next((kind for kind in _BRACKETS if isinstance(values, kind)), tuple)
    if kind in (set, frozenset) and not values:
        yield f"{kind.__name__}()"
        return
    opening, closing = _BRACKETS[kind]
    yield opening
    count = 0
    for each in values:
        yield ", " if count else ""
        yield from _pieces(each)
        count += 1
    yield "," if kind is tuple and count == 1 else ""
    yield closing


def _name(value: Any) -> str:
    if isinstance(value, dsl_types.MuranoObjectInterface):
        value = value.object
    if isinstance(value, dsl_types.MuranoObject):
        return str(value.real_this.type.name)
    if isinstance(value, dsl_types.MuranoTypeReference):
        return str(value.type.name)
    if isinstance(value, _NAMED):
        return str(value.name)
    raise TypeError(
        f"a value of the type {type(value).__name__} cannot be written in a string; write a "
        f"string, a number, a boolean, a list, a dictionary or an object"
    )


def _joined(pieces: Iterable[str]) -> str:
    found, length = [], 0
    for piece in pieces:
        length += len(piece)
        if length > yaql_quota.QUOTA:
            yaql_quota.check_size(length)
        found.append(piece)
    return "".join(found)
