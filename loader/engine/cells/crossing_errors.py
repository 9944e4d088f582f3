# SPDX-License-Identifier: Apache-2.0

"""Errors that cross from a cell to the engine's process: a fixed list of names, each with a text.

murano-api decides by the name of an error's class which HTTP status to answer.
"""

import builtins
from collections.abc import Mapping

from murano.dsl import dsl_exception, exceptions
from yaql.language import exceptions as yaql_exceptions

from glare_murano.package.errors import escaped
from loader.engine import task_usage, tasks

# The longest text of an error, in characters.
_MAX_TEXT = 20_000


class CellError(Exception):
    """A request has failed in its cell, with an error that is not in the list."""


_CLASSES: Mapping[str, type[Exception]] = {
    each.__name__: each
    for each in (
        CellError,
        builtins.LookupError,
        builtins.ValueError,
        dsl_exception.MuranoPlException,
        exceptions.ContractViolationException,
        exceptions.MethodNotExposed,
        exceptions.NoClassFound,
        exceptions.NoMethodFound,
        exceptions.NoPackageForClassFound,
        exceptions.NoPackageFound,
        tasks.TaskLimitExceeded,
        yaql_exceptions.NoMatchingMethodException,
    )
}


def to_json(error: Exception) -> dict[str, str]:
    """Describe an error, in the cell."""
    bases = (base.__name__ for base in type(error).__mro__)
    name = next((name for name in bases if name in _CLASSES), CellError.__name__)
    return {"name": name, "text": str(error)[:_MAX_TEXT]}


def make(name: str, text: str) -> Exception:
    """Make an error from what a cell has returned.

    :param name: the name of its class. Any name that is not in the list becomes ``CellError``.
    :param text: its text.
    """
    kind = _CLASSES.get(name, CellError)
    # The constructors of some classes take other arguments, and would add to the text.
    error = kind.__new__(kind)
    # The log shows the text, in which no line may look like an entry of the log.
    error.args = (task_usage.mark_lines(escaped(text[:_MAX_TEXT], keep="\n")),)
    return error
