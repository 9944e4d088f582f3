# SPDX-License-Identifier: Apache-2.0

"""Limit the size of values in MuranoPL.

Murano gives YAQL a memory quota. YAQL 3 counts a list without its elements, and checks the quota
only after the list was made. Here, the size of a value includes everything in it. If a list
contains another list twice, the other list counts twice, since it is copied, compared and written
twice.

``patches.yaql_limits`` lets YAQL check all results of functions and all evaluated values with this
module. ``yaql_guards`` checks some sizes before a function computes.
"""

import copy
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from murano.dsl import constants, dsl_types
from oslo_config import cfg
from yaql.language import exceptions, expressions, utils

# How many bytes a string may take, or a list without the values in it. This is Murano's own quota.
QUOTA: int = constants.EXPRESSION_MEMORY_QUOTA
# How many bytes a list or a dictionary may take with all values in it. A list of 2,000
# dictionaries, each with five values, is allowed. Murano takes a second to evaluate a value of
# twice this size.
WHOLE_QUOTA = 8 * QUOTA
# Python recurses when it hashes, compares and writes nested tuples. When it hashes, it does not
# check the stack, so a tuple that is nested too deep would crash the process.
MAX_DEPTH = 100
# Python refuses to read and to write integers with more digits.
MAX_DIGITS = 4300
_MAX_BITS = 14284

_COLLECTIONS = (tuple, list, utils.FrozenDict, dict, frozenset, set)
_EXPRESSIONS = (dsl_types.YaqlExpression, expressions.Statement)
_SCALARS = frozenset((str, int, bool, float, type(None)))
# Some of these types are abstract, for which ``issubclass`` is slow. So the results are kept for
# each type; a check of every value would take 2% of a deployment.
_is_collection: Callable[[type], bool]
_is_collection = functools.cache(lambda kind: issubclass(kind, _COLLECTIONS))
_is_mapping: Callable[[type], bool]
_is_mapping = functools.cache(lambda kind: issubclass(kind, utils.FrozenDict | dict))
_has_length: Callable[[type], bool]
_has_length = functools.cache(
    lambda kind: issubclass(kind, utils.SequenceType | utils.MappingType | utils.SetType)
)
# The smallest object of Python has 16 bytes.
_SMALLEST = 16


class LimitExceeded(exceptions.YaqlException):  # type: ignore[misc]
    """A package exceeds a limit; the message has the limit."""


class QuotaExceeded(LimitExceeded, exceptions.MemoryQuotaExceededException):  # type: ignore[misc]
    """A value is larger than YAQL's memory quota."""

    def __init__(self, needed: str, limit: str) -> None:
        exceptions.YaqlException.__init__(self, f"{needed}; YAQL's memory quota allows {limit}")


class TooManyElements(LimitExceeded, exceptions.CollectionTooLargeException):  # type: ignore[misc]
    """A collection has too many elements to be iterated."""

    def __init__(self, limit: int) -> None:
        exceptions.YaqlException.__init__(
            self,
            f"a collection has more than {limit} elements, the limit of [murano] "
            f"dsl_iterators_limit",
        )


def check_size(size: float, quota: int = QUOTA) -> None:
    """Refuse a size in bytes that is larger than the quota.

    :raises QuotaExceeded: if the size is larger; the message has the size.
    """
    if size > quota:
        raise QuotaExceeded(f"a value would take {size:,.0f} bytes", f"{quota:,} bytes")


def check_bits(bits: int) -> None:
    """Refuse an integer that has too many bits.

    :raises QuotaExceeded: if the integer would have more digits than Python can write.
    """
    if bits > _MAX_BITS:
        digits = int(bits * 0.30103)
        raise QuotaExceeded(f"an integer would have about {digits:,} digits", f"{MAX_DIGITS:,}")


def whole_size(value: Any) -> int:
    """Return the size of a value with everything in it, in bytes.

    :raises QuotaExceeded: if the value is too large or nested too deep.
    """
    if not _is_collection(type(value)):
        return _size(value)
    size, level = 0, [value]
    for _ in range(MAX_DEPTH):
        following: list[Any] = []
        for collection in level:
            size += _size(collection)
            # Do not visit the elements if they would be too large even at the smallest size.
            _check_whole(size + _SMALLEST * len(collection))
            for child in _children(collection):
                if _is_collection(type(child)):
                    following.append(child)
                else:
                    size += sys.getsizeof(child)
        _check_whole(size)
        if not following:
            return size
        level = following
    raise QuotaExceeded("a value is nested too deep", f"{MAX_DEPTH} levels")


def _check_whole(size: int) -> None:
    if size > WHOLE_QUOTA:
        raise QuotaExceeded(
            f"a value takes more than {WHOLE_QUOTA:,} bytes, with everything in it",
            f"{WHOLE_QUOTA:,} bytes",
        )


def limit_memory_usage(engine: Any, *values: tuple[int, Any]) -> None:
    """Check that the size of values does not exceed Murano's quota.

    If there is only one pair, everything in its value is counted as well. YAQL's own function
    counts only the value itself.

    :param engine: YAQL's engine; not used, since Murano gives the quota ``QUOTA`` to all engines.
    :param values: pairs of a count and a value. If there is only one, its count is 1.
    :raises QuotaExceeded: if the values are larger than ``QUOTA``, or if a single value with
        everything in it is larger than ``WHOLE_QUOTA``.
    """
    if len(values) == 1:
        ((_, value),) = values
        check = _check_of(type(value))
        if check is not None:
            check(value)
    else:
        check_size(sum(count * _size(value) for count, value in values))


def _find_check(kind: type) -> Callable[[Any], None] | None:
    """Return the function that checks the values of a type; None if all of them are small.

    YAQL checks 18,000 values in a deployment of 20 packages. Half of them need no check.
    """
    if issubclass(kind, _COLLECTIONS):
        return _check_collection
    # All values of such a type have the same size, without the values in them.
    if kind.__itemsize__ == 0 and kind.__sizeof__ is object.__sizeof__:
        return None
    return _check_own_size


_check_of: Callable[[type], Callable[[Any], None] | None] = functools.cache(_find_check)


def _check_collection(value: Any) -> None:
    _check_own_size(value)
    whole_size(value)


def _check_own_size(value: Any) -> None:
    check_size(_size(value))


def limit_iterable(iterable: Any, limit_or_engine: Any) -> Any:
    """Limit the number of elements in a collection; limit the number and the size for an iterator.

    YAQL's own function limits only the number.

    :param limit_or_engine: the largest number of elements, or YAQL's engine, which has it. A
        negative number means no limit.
    :returns: the same object for a collection; for an iterator, another iterator, which raises the
        errors when it is used.
    :raises TooManyElements: if there are more elements.
    :raises QuotaExceeded: if all elements of an iterator together are too large.
    """
    limit = limit_or_engine
    if not isinstance(limit, int):
        limit = utils.get_max_collection_size(limit)
    if _has_length(type(iterable)):
        if 0 <= limit < len(iterable):
            raise TooManyElements(limit)
        return iterable
    return _limited(iterable, limit)


def memorize(collection: Any, engine: Any) -> Any:
    """Return an iterator that remembers its elements, so that each new iteration has all of them.

    YAQL's own function makes a class for each iterator. The caches of this module would keep these
    classes, and so the elements, for ever. It also counts all elements again for each new one; here
    ``limit_iterable`` counts them, since YAQL calls it for whatever a function iterates.

    :param engine: YAQL's engine; not used, as in ``limit_memory_usage``.
    :returns: the same object if it is not an iterator.
    """
    if not utils.is_iterator(collection):
        return collection
    (start,) = itertools.tee(collection, 1)
    return _Remembering(start)


class _Remembering(Iterator[Any]):
    """An iterator that begins again in each new iteration.

    :ivar _start: an iterator at the first element, which is copied and never advances.
    """

    def __init__(self, start: Any) -> None:
        self._start = start
        self._next = copy.copy(start)

    def __iter__(self) -> "_Remembering":
        return _Remembering(self._start)

    def __next__(self) -> Any:
        return next(self._next)


def evaluate(value: Any, context: Any, freeze: bool = True) -> Any:
    """Evaluate a value as ``murano.dsl.helpers`` does, but stop as soon as the result is too large.

    :param freeze: whether to return immutable collections: tuples, frozen dictionaries and sets.
    :raises QuotaExceeded: if the value is too large or nested too deep.
    """
    return _Evaluation(context, freeze).of(value)


class _Evaluation:
    """The evaluation of one value, which may contain expressions.

    :ivar _size: the bytes that all values evaluated so far take.
    """

    def __init__(self, context: Any, freeze: bool) -> None:
        self._context = context
        self._list: Callable[..., Any] = tuple if freeze else list
        self._dict: Callable[..., Any] = utils.FrozenDict if freeze else dict
        self._set: Callable[..., Any] = frozenset if freeze else set
        self._size = 0
        self._depth = 0

    def of(self, value: Any) -> Any:
        if type(value) in _SCALARS:
            self._add(sys.getsizeof(value))
            return value
        if isinstance(value, _EXPRESSIONS):
            return self._counted(value(self._context))
        if isinstance(value, utils.MappingType):
            return self._collected(
                self._dict, ((self.of(key), self.of(item)) for key, item in value.items())
            )
        if utils.is_sequence(value):
            return self._collected(self._list, map(self.of, value))
        if isinstance(value, utils.SetType):
            return self._collected(self._set, map(self.of, value))
        if utils.is_iterable(value):
            limited = limit_iterable(value, cfg.CONF.murano.dsl_iterators_limit)
            return self._collected(self._list, map(self.of, limited))
        if isinstance(value, dsl_types.MuranoObjectInterface):
            value = value.object
        return self._counted(value)

    def _counted(self, value: Any) -> Any:
        self._add(whole_size(value))
        return value

    def _collected(self, make: Callable[..., Any], items: Iterator[Any]) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise QuotaExceeded("a value is nested too deep", f"{MAX_DEPTH} levels")
        found = make(items)
        self._depth -= 1
        self._add(_size(found))
        return found

    def _add(self, size: int) -> None:
        self._size += size
        if self._size > WHOLE_QUOTA:
            check_size(self._size, WHOLE_QUOTA)


def _limited(iterable: Iterable[Any], limit: int) -> Iterator[Any]:
    size = 0
    for count, each in enumerate(iterable):
        if 0 <= limit <= count:
            raise TooManyElements(limit)
        size += whole_size(each)
        check_size(size, WHOLE_QUOTA)
        yield each


def _size(value: Any) -> int:
    """Return the size of a value without the values in it, in bytes.

    :raises QuotaExceeded: if an integer has too many digits.
    """
    if type(value) is int:
        check_bits(value.bit_length())
    if type(value) is utils.FrozenDict:
        value = value._d
    return sys.getsizeof(value, 0)


def _children(collection: Any) -> Iterable[Any]:
    if _is_mapping(type(collection)):
        return itertools.chain(collection.keys(), collection.values())
    children: Iterable[Any] = collection
    return children
