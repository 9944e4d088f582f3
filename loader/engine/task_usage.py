# SPDX-License-Identifier: Apache-2.0

"""Limit what a task uses: nested calls, iterations, green threads, messages, and its model's size.

``yaql_quota`` limits the size of single values.
"""

import contextlib
import itertools
import math
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import eventlet
from murano.dsl import dsl_exception, helpers
from oslo_config import cfg

from loader.engine import yaql_format
from loader.engine.yaql_quota import LimitExceeded

# Python's recursion limit. Its default, 1000, allows about 20 nested calls of MuranoPL.
RECURSION_LIMIT = 2000
# A call of MuranoPL takes 40 frames of Python. The remaining 300 are kept to report the error.
_MAX_FRAMES = RECURSION_LIMIT - 300
# An iteration takes at least 0.1 ms, so this number of iterations takes at least ten seconds.
MAX_ITERATIONS = 100_000
# The most characters of a message. A column of text in MariaDB has 64 KiB, and a character has at
# most 4 bytes.
MAX_MESSAGE = 16_000
# The largest size of a model, in bytes of Python's objects. An application of the core library
# takes about 5 KiB.
MAX_MODEL = 64 * 1024**2
MAX_LOGGERS = 100
# The longest wait, in seconds. No task takes so long.
MAX_WAIT = 10 * 24 * 3600
MAX_LOGGER_NAME = 255

_TOO_DEEP = (
    "calls or expressions are nested too deep: {used} frames of Python, at most {limit} are allowed"
)


class TaskUsage:
    """The resources that one task has used so far, in all its green threads."""

    def __init__(self) -> None:
        self._green_threads = 0
        self._messages = 0
        self._loggers: set[str] = set()

    @contextlib.contextmanager
    def green_threads(self, wanted: int) -> Iterator[int]:
        """Reserve green threads while the block runs.

        :param wanted: how many green threads the block could use.
        :returns: how many green threads the block may run at a time; perhaps fewer than wanted.
        :raises LimitExceeded: if the task may start no more green threads.
        """
        limit = cfg.CONF.engine.max_green_threads
        granted = min(wanted, limit - self._green_threads)
        if granted <= 0:
            raise LimitExceeded(
                f"the task runs {limit} green threads at a time, the limit of [engine] "
                f"max_green_threads"
            )
        self._green_threads += granted
        try:
            yield granted
        finally:
            self._green_threads -= granted

    def count_message(self) -> None:
        """Count one message: a log line or a report.

        :raises LimitExceeded: if the task has written too many messages.
        """
        limit = cfg.CONF.engine.max_messages
        self._messages += 1
        if self._messages > limit:
            raise LimitExceeded(
                f"the task has written {limit} lines of the log and reports, the limit of [engine] "
                f"max_messages"
            )

    def add_logger(self, name: str) -> None:
        """Count a logger, which Python keeps until the process ends.

        :raises LimitExceeded: if the task has too many loggers, or the name is too long.
        """
        if len(name) > MAX_LOGGER_NAME:
            raise LimitExceeded(
                f"the name of a logger has {len(name)} characters, at most {MAX_LOGGER_NAME} are "
                f"allowed"
            )
        self._loggers.add(name)
        if len(self._loggers) > MAX_LOGGERS:
            raise LimitExceeded(f"the task has more than {MAX_LOGGERS} loggers")


_usages: "weakref.WeakKeyDictionary[Any, TaskUsage]" = weakref.WeakKeyDictionary()


def current() -> TaskUsage:
    """Return the usage of the task to which the current green thread belongs.

    Without a task, a new object is returned.
    """
    executor = helpers.get_executor()
    # Without a task, as in tests of a single class, each call returns a new object.
    return TaskUsage() if executor is None else _usages.setdefault(executor, TaskUsage())


def check_frames() -> None:
    """Refuse a call if calls are nested too deep.

    A call is refused while enough of Python's frames are left to report the error.

    :raises LimitExceeded: if more than ``_MAX_FRAMES`` frames are used.
    """
    # ``_getframe`` raises ValueError if fewer frames exist.
    with contextlib.suppress(ValueError):
        sys._getframe(_MAX_FRAMES)
        raise LimitExceeded(_TOO_DEEP.format(used=_MAX_FRAMES, limit=_MAX_FRAMES))


def explain_recursion(error: BaseException) -> BaseException:
    """Return ``LimitExceeded`` for a ``RecursionError``; return any other error unchanged."""
    if not isinstance(error, RecursionError):
        return error
    return LimitExceeded(_TOO_DEEP.format(used=RECURSION_LIMIT, limit=RECURSION_LIMIT))


def check_iterations(count: int) -> None:
    """Refuse a loop with too many iterations.

    :raises LimitExceeded: if there are more than ``MAX_ITERATIONS``.
    """
    if count > MAX_ITERATIONS:
        raise LimitExceeded(f"a loop has more than {MAX_ITERATIONS:,} iterations")


def check_model(model: Any) -> None:
    """Check that a model is not too large to be saved.

    :raises LimitExceeded: if the model has more than ``MAX_MODEL`` bytes.
    """
    size, rest = 0, [model]
    while rest:
        value = rest.pop()
        size += sys.getsizeof(value)
        if size > MAX_MODEL:
            raise LimitExceeded(
                f"the model of the environment has more than {MAX_MODEL:,} bytes, the limit of "
                f"all properties together"
            )
        if isinstance(value, dict):
            rest += itertools.chain(value.keys(), value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            rest += value


def seconds_to_wait(seconds: float) -> float:
    """Return how long to wait: the given number of seconds, but at most ``MAX_WAIT``.

    :raises LimitExceeded: if the number is NaN.
    """
    if math.isnan(seconds):
        raise LimitExceeded("nan is not a number of seconds to wait for")
    return min(seconds, MAX_WAIT)


def shorten(value: Any) -> str:
    """Return a message as a string.

    If the string is too long, it is cut, and ends with the number of missing characters.
    """
    text = yaql_format.write(value)
    if len(text) <= MAX_MESSAGE:
        return text
    return f"{text[:MAX_MESSAGE]}... ({len(text) - MAX_MESSAGE} more characters)"


def log_lines(value: Any) -> str:
    """Return a message for the log, with a mark before each line but the first.

    Without the mark, a package could write lines that look like entries of the log.
    """
    return mark_lines(shorten(value))


def mark_lines(text: str) -> str:
    """Put a mark before each line of a text but the first; see ``log_lines``."""
    return "\n| ".join(text.splitlines())


def select(
    parallel_select: Callable[..., Iterable[Any]],
    collection: Iterable[Any],
    function: Callable[[Any], Any],
    limit: int,
) -> Iterable[Any]:
    """Run a function for all elements, in green threads of the task.

    If one green thread exceeds a limit of ``task_usage`` or ``yaql_quota``, all of them end at
    once. The others could otherwise run for a long time.

    :param parallel_select: Murano's function that runs green threads.
    :param limit: how many green threads may run at a time.
    :returns: the results, in the order of the elements.
    :raises ValueError: if ``limit`` is less than 1.
    :raises LimitExceeded: if the task may start no more green threads, or a green thread exceeds a
        limit.
    """
    if limit < 1:
        raise ValueError(f"Limit = {limit}: at least one green thread is needed")
    elements = list(collection)
    if not elements:
        # A pool without green threads would wait for ever.
        return elements
    block = _Block(function)
    with current().green_threads(min(limit, len(elements))) as granted:
        try:
            return parallel_select(elements, block.run, granted)
        except Exception as error:
            block.stop_at_limit(error)
            raise


class _Block:
    """The green threads in which one call of this module's ``select`` runs a function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._threads: set[Any] = set()
        self._exceeded: Exception | None = None

    def run(self, element: Any) -> Any:
        """Call the function with an element, in the current green thread.

        :raises LimitExceeded: if another green thread of the same call of ``select`` has exceeded a
            limit.
        """
        if self._exceeded is not None:
            raise self._exceeded
        thread = eventlet.getcurrent()
        self._threads.add(thread)
        try:
            return self._function(element)
        except Exception as error:
            self.stop_at_limit(error)
            raise
        finally:
            self._threads.discard(thread)

    def stop_at_limit(self, error: Exception) -> None:
        """If an error says that a limit was exceeded, end the other green threads of the call."""
        if _is_limit(error):
            self._exceeded = error
            for thread in self._threads - {eventlet.getcurrent()}:
                eventlet.spawn(eventlet.kill, thread, error)


def _is_limit(error: Exception) -> bool:
    if isinstance(error, dsl_exception.MuranoPlException):
        error = getattr(error, "original_exception", error)
    return isinstance(error, LimitExceeded)
