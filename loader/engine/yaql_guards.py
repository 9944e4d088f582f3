# SPDX-License-Identifier: Apache-2.0

"""Functions of YAQL and of Murano that check the memory quota before they compute.

YAQL 3 compares the result of a function with its quota only after the function has made the result.
The functions here replace those that can take forever, or whose results can be much larger than
their arguments. They take their arguments as YAQL passes them, with defaults and injected
functions.

All other functions return results about as large as their arguments, or iterators, whose elements
``yaql_quota.limit_iterable`` counts.
"""

import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jsonpatch
import jsonpointer
from murano.dsl import dsl
from yaql.language import utils
from yaql.standard_library import (
    collections,
    date_time,
    legacy,
    math,
    queries,
    regex,
    strings,
    system,
)

from loader.engine import yaql_format, yaql_quota

_POINTER_SIZE = 8
# Limits of a regular expression; see ``_compile``.
_MAX_PATTERN = 4_000
_MAX_GROUPS = 100
_MAX_ASTRAL = 16
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]|\\[UN]")
# Variables with this first character belong to the engine, such as the class whose code runs.
_RESERVED = "?"


# Numbers


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        yaql_quota.check_bits(left.bit_length() + right.bit_length())
    return left * right


def _power(base: Any, exponent: Any, modulus: Any) -> Any:
    if modulus is None and isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
        # A negative exponent gives a fraction.
        yaql_quota.check_bits((base.bit_length() - 1) * exponent)
    return pow(base, exponent, modulus)


def _shift_left(value: int, bits: int) -> int:
    yaql_quota.check_bits(value.bit_length() + bits)
    return value << bits


def _round(number: Any, digits: int) -> Any:
    # For any number, Python computes 10 to the power of the digits.
    yaql_quota.check_bits(abs(digits) * 4)
    return round(number, digits)


# Lists


def _repeat_list(sequence: Sequence[Any], count: int, _: Any) -> Any:
    yaql_quota.check_size(len(sequence) * count * _POINTER_SIZE)
    return sequence * count  # type: ignore[operator]


# Strings


def _concatenate(*texts: str) -> str:
    yaql_quota.check_size(sum(map(len, texts)))
    return "".join(texts)


def _join(sequence: Iterable[Any], separator: str, to_string: Callable[[Any], str]) -> str:
    parts: list[str] = []
    size = 0
    for each in sequence:
        part = to_string(each)
        size += len(part) + len(separator)
        yaql_quota.check_size(size - len(separator))
        parts.append(part)
    return separator.join(parts)


def _replace(text: str, old: str, new: str, count: int) -> str:
    found = text.count(old)
    if count >= 0:
        found = min(found, count)
    yaql_quota.check_size(len(text) + found * (len(new) - len(old)))
    return text.replace(old, new, count)


def _replace_each(
    text: str, to_string: Callable[[Any], str], replacements: Mapping[Any, Any], count: int
) -> str:
    for old, new in replacements.items():
        text = _replace(text, to_string(old), to_string(new), count)
    return text


def _write(value: Any) -> str:
    """Return a value as a string, as YAQL's ``str`` does.

    An object is written as the name of its class.
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return yaql_format.write(value)


def _find_last(text: str, part: str, *bounds: int) -> int:
    # The time of ``rfind`` grows with the product of both lengths, that of ``find`` with their sum.
    if text.find(part, *bounds) < 0:
        return -1
    start, stop, _ = slice(*bounds, *[None] * (2 - len(bounds))).indices(len(text))
    end = text[start:stop][::-1].find(part[::-1])
    return stop - end - len(part)


def _find_last_within(text: str, part: str, start: int, length: int) -> int:
    if start < 0:
        start += len(text)
    if length < 0:
        length = len(text) - start
    return _find_last(text, part, start, start + length)


def _split_right(text: str, separator: str | None, most: int) -> list[str]:
    if separator is None:
        return text.rsplit(None, most)
    parts = text[::-1].split(separator[::-1], most)
    return [part[::-1] for part in reversed(parts)]


def _trim_left(text: str, characters: str | None) -> str:
    # For each character of the text, Python searches through all the characters to trim.
    if characters is None:
        return text.lstrip()
    return "".join(itertools.dropwhile(frozenset(characters).__contains__, text))


def _trim_right(text: str, characters: str | None) -> str:
    return _trim_left(text[::-1], characters)[::-1]


def _trim(text: str, characters: str | None) -> str:
    return _trim_right(_trim_left(text, characters), characters)


def _is_empty(text: str | None, trims: bool, characters: str | None) -> bool:
    return not (_trim(text, characters) if text and trims else text)


# Times


def _format_time(time: datetime.datetime, template: str) -> str:
    # The C library accepts widths such as ``%099999999d``. Python gives it a buffer that has at
    # most 256 times the length of the template.
    if len(template) > yaql_format.MAX_WIDTH:
        raise ValueError(
            f"format: the format of a time has {len(template)} characters, at most "
            f"{yaql_format.MAX_WIDTH} are allowed"
        )
    return time.strftime(template)


def _parse_time(text: str, template: str | None) -> datetime.datetime:
    # A long number is read in quadratic time, and Python's limit of digits does not apply here.
    if len(text) > yaql_format.MAX_WIDTH:
        raise ValueError(
            f"datetime: the text has {len(text)} characters, at most {yaql_format.MAX_WIDTH} are "
            f"allowed"
        )
    found: datetime.datetime = date_time.datetime_from_string(text, template)
    return found


# Generators


def _generate_many(engine: Any, initial: Any, producer: Callable[[Any], Any], *rest: Any) -> Any:
    # Python would store all that an endless iterator produces, before YAQL counts it.
    size = 0

    def produce(item: Any) -> Iterator[Any]:
        nonlocal size
        for each in utils.limit_iterable(producer(item), engine):
            size += yaql_quota.whole_size(each)
            yaql_quota.check_size(size, yaql_quota.WHOLE_QUOTA)
            yield each

    return queries.generate_many(engine, initial, produce, *rest)


# Regular expressions


def _compile(
    pattern: str, ignore_case: bool = False, multi_line: bool = False, dot_all: bool = False
) -> re.Pattern[str]:
    """Compile a regular expression that can be interrupted, and matches in a bounded memory.

    Python looks for an interruption after each 4,096 steps of a match only. A step stores the
    places of all groups, and compares with each character of a set that is beyond U+FFFF.

    :raises ValueError: if the expression is longer than ``_MAX_PATTERN``, has more than
        ``_MAX_GROUPS`` groups, or more than ``_MAX_ASTRAL`` characters beyond U+FFFF.
    """
    _check_pattern("characters", len(pattern), _MAX_PATTERN)
    _check_pattern("characters beyond U+FFFF", len(_ASTRAL.findall(pattern)), _MAX_ASTRAL)
    flags = re.IGNORECASE * ignore_case | re.MULTILINE * multi_line | re.DOTALL * dot_all
    compiled = re.compile(pattern, flags)
    _check_pattern("groups", compiled.groups, _MAX_GROUPS)
    return compiled


def _check_pattern(name: str, found: int, most: int) -> None:
    if found > most:
        raise ValueError(f"a regular expression has {found:,} {name}; at most {most:,} are allowed")


def _contains(text: str, pattern: str) -> bool:
    return _compile(pattern).search(text) is not None


def _substitute(pattern: re.Pattern[str], text: str, new: str, count: int) -> str:
    references = new.count("\\")

    def expand(match: re.Match[str]) -> str:
        longest = max(len(group or "") for group in (match.group(), *match.groups()))
        yaql_quota.check_size(len(new) + references * longest)
        return match.expand(new)

    return _substitute_by(pattern, text, expand, count)


def _substitute_by(
    pattern: re.Pattern[str], text: str, replace: Callable[[re.Match[str]], str], count: int
) -> str:
    size = len(text)

    def replace_one(match: re.Match[str]) -> str:
        nonlocal size
        part = replace(match)
        size += len(part) - len(match.group())
        yaql_quota.check_size(size)
        return part

    return pattern.sub(replace_one, text, count)


def _split(pattern: re.Pattern[str], text: str, most: int) -> list[str | None]:
    parts: list[str | None] = []
    end = 0
    # As in Python, a negative number allows no split, and 0 allows all splits.
    matches = pattern.finditer(text) if most >= 0 else ()
    for number, match in enumerate(matches, start=1):
        parts += text[end : match.start()], *match.groups()
        yaql_quota.check_size(len(parts) * _POINTER_SIZE)
        end = match.end()
        if number == most:
            break
    return [*parts, text[end:]]


def _limit_callback(function: Callable[..., str], pattern_position: int) -> Callable[..., str]:
    """Wrap a function of YAQL that replaces each match by the result of an expression.

    The wrapper limits the size of the whole string that the function returns.

    :param pattern_position: which argument of the function is the regular expression, from 0.
    """

    def replace_by(*args: Any) -> str:
        # YAQL's own function is still called, since it passes the match to the expression.
        bounded = list(args)
        bounded[pattern_position] = _LimitedPattern(args[pattern_position])
        return function(*bounded)

    return replace_by


class _LimitedPattern:
    """A regular expression; the result of a substitution with it cannot exceed the quota."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def sub(self, replace: Callable[[re.Match[str]], str], text: str, count: int) -> str:
        return _substitute_by(self._pattern, text, replace, count)


# Variables


def check_variable(name: Any) -> None:
    """Check that a package may set a variable: names that begin with ``?`` belong to the engine.

    By setting ``?type``, code could read and write private data of another class. ``let`` needs no
    check: it takes names as keywords, which do not begin with ``?``.

    :raises ValueError: if the variable belongs to the engine.
    """
    if isinstance(name, str) and name.lstrip("$").startswith(_RESERVED):
        raise ValueError(f"the variable {name[:100]} belongs to the engine; use another name")


def _unpack(sequence: Iterable[Any], context: Any, *names: str) -> Any:
    for name in names:
        check_variable(name)
    return system.unpack(sequence, context, *names)


def _set_from_pairs(context: Any, receiver: Any, *mappings: Callable[[Any], Any]) -> Any:
    """Set variables as YAQL's ``as`` does in MuranoPL 1.0 and 1.1.

    :raises ValueError: for a variable that belongs to the engine.
    """

    def checked(mapping: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def pair(value: Any) -> Any:
            found = mapping(value)
            check_variable(found.destination if isinstance(found, utils.MappingRule) else found[-1])
            return found

        return pair

    return legacy.as_(context, receiver, *map(checked, mappings))


# Functions of Murano


def fill_macro(macro: str, mappings: Mapping[Any, Any]) -> Any:
    """Return the value with which ``bind`` replaces a macro.

    :param macro: the macro without ``$``: the name of a value, or a template such as ``{a}-{b}``.
    :param mappings: the names with their values.
    :returns: the value with this name; for a template, a string in which values replace the names.
    """
    template = re.compile(r"{(\w+?)}")
    if not template.search(macro):
        return mappings[macro]
    return _substitute_by(
        template, macro, lambda match: yaql_format.write(mappings.get(match.group(1))), 0
    )


def patch(engine: Any, obj: Any, patch: Any) -> Any:
    """Apply a JSON patch to an object, and return the result.

    The size of the object is checked after each operation, since an operation such as ``copy`` can
    double the size.

    :returns: the unchanged object if a path in the patch does not exist.
    :raises QuotaExceeded: if the object becomes too large.
    """
    operations = patch if isinstance(patch, tuple) else (patch,)
    found = dsl.to_mutable(obj, engine)
    try:
        for operation in jsonpatch.JsonPatch(dsl.to_mutable(operations, engine)).patch:
            found = jsonpatch.JsonPatch([operation]).apply(found, in_place=True)
            yaql_quota.whole_size(found)
    except jsonpointer.JsonPointerException:
        return obj
    return found


REPLACEMENTS: dict[Callable[..., Any], Callable[..., Any]] = {
    math.multiplication: _multiply,
    math.pow_: _power,
    math.shift_bits_left: _shift_left,
    math.round_: _round,
    collections.list_by_int: _repeat_list,
    collections.int_by_list: lambda count, sequence, engine: _repeat_list(sequence, count, engine),
    strings.concat: _concatenate,
    strings.join: _join,
    strings.join_: lambda separator, sequence, write: _join(sequence, separator, write),
    strings.replace: _replace,
    strings.replace_with_dict: _replace_each,
    strings.str_: _write,
    strings.last_index_of: _find_last,
    strings.last_index_of_: _find_last_within,
    strings.right_split: _split_right,
    strings.trim: _trim,
    strings.trim_left: _trim_left,
    strings.trim_right: _trim_right,
    strings.norm: lambda text, trimmed: None if text is None else _trim(text, trimmed) or None,
    strings.is_empty: _is_empty,
    date_time.format_: _format_time,
    date_time.datetime_from_string: _parse_time,
    regex.replace: _substitute,
    regex.replace_string: lambda text, pattern, *rest: _substitute(pattern, text, *rest),
    regex.replace_by: _limit_callback(regex.replace_by, 1),
    regex.replace_by_string: _limit_callback(regex.replace_by_string, 2),
    regex.split: _split,
    regex.split_string: lambda text, pattern, most: _split(pattern, text, most),
    queries.generate_many: _generate_many,
    regex.regex: _compile,
    regex.matches_: _contains,
    regex.matches_operator_string: _contains,
    regex.not_matches_operator_string: lambda text, pattern: not _contains(text, pattern),
    system.unpack: _unpack,
    legacy.as_: _set_from_pairs,
}
