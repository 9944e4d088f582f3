# SPDX-License-Identifier: Apache-2.0

"""Give YAQL a safe ``format``, and apply the memory quota to every function."""

import random
import re
import warnings
from collections.abc import Iterator
from typing import Any

from murano.dsl import (
    helpers,
    macros,
    murano_method,
    virtual_exceptions,
    yaql_integration,
)
from murano.engine.system import yaql_functions
from yaql.language import specs, utils, yaqltypes
from yaql.standard_library import date_time, math

from loader.engine import yaql_format, yaql_guards, yaql_quota

_ROOTS = (yaql_integration.ROOT_CONTEXT_10, yaql_integration.ROOT_CONTEXT_12)


def provide_format() -> None:
    """Add the function ``format`` to YAQL, for all versions of MuranoPL.

    YAQL 3 has no ``format``, but Murano's core library and most applications use it. The function
    that is added reads no attributes of values, see ``yaql_format``.
    """
    for root in _ROOTS:
        root.register_function(_format, name="format")


def enforce_quota() -> None:
    """Refuse a value that is larger than YAQL's memory quota, before the value is made.

    YAQL 3 counts a list or a dictionary without the values in it, and does not limit some
    functions: ``list(1) * 10000000000`` or ``shiftBitsLeft(1, 40000000000)`` use up all memory.
    Here, a list or a dictionary counts with all values in it, and functions of ``yaql_quota`` and
    ``yaql_guards`` replace those of YAQL and Murano.
    """
    utils.limit_memory_usage = yaql_quota.limit_memory_usage
    utils.limit_iterable = yaql_quota.limit_iterable
    utils.memorize = yaql_quota.memorize
    helpers.evaluate = yaql_quota.evaluate
    yaql_functions._convert_macro_parameter = yaql_guards.fill_macro
    yaql_functions.patch_.__yaql_function__.payload = yaql_guards.patch
    for definition in _definitions():
        replacement = yaql_guards.REPLACEMENTS.get(definition.payload)
        if replacement is not None:
            definition.payload = replacement


def reserve_variables() -> None:
    """Refuse names of loop variables, arguments and caught exceptions that belong to the engine.

    Murano 16 takes any name. A loop over ``?type``, for example, would let its body read and write
    the private data of another class.
    """
    run_for, run_catch = macros.ForMacro.execute, virtual_exceptions.CatchBlock.execute
    make_argument = murano_method.MuranoMethodArgument.__init__

    def execute_for(loop: Any, context: Any) -> None:
        yaql_guards.check_variable(loop._var)
        run_for(loop, context)

    def execute_catch(block: Any, context: Any) -> Any:
        yaql_guards.check_variable(block._as)
        return run_catch(block, context)

    def make(argument: Any, method: Any, method_name: str, name: str, declaration: Any) -> None:
        yaql_guards.check_variable(name)
        make_argument(argument, method, method_name, name, declaration)

    macros.ForMacro.execute = execute_for
    virtual_exceptions.CatchBlock.execute = execute_catch
    murano_method.MuranoMethodArgument.__init__ = make


def ignore_warnings() -> None:
    """Ignore Python's warnings about what packages write.

    Python would keep the text of each such warning for ever, and write it to the standard error
    without the limit of messages.
    """
    # A regular expression with the beginning of a set in a set.
    warnings.filterwarnings(
        "ignore", category=FutureWarning, module=re.escape(yaql_guards.__name__)
    )
    # A time in an unknown zone.
    warnings.filterwarnings("ignore", category=date_time.parser.UnknownTimezoneWarning)


def draw_from_system() -> None:
    """Let ``random`` and ``randomName`` take their numbers from the operating system.

    In Murano 16, all tasks of a process share Python's own generator of random numbers. If a
    package knows 624 numbers, it can compute all later ones, and so the names and passwords that
    other packages draw. The numbers of the operating system cannot be computed.
    """
    math.random = yaql_functions.random = random.SystemRandom()


def _definitions() -> Iterator[specs.FunctionDefinition]:
    """Yield the definitions of all YAQL functions in the contexts of all versions of MuranoPL."""
    for context in _ROOTS:
        while context is not None:
            for definitions in context._functions.values():
                yield from definitions
            context = context.parent


@specs.parameter("__template", yaqltypes.String())  # type: ignore[untyped-decorator]
@specs.extension_method  # type: ignore[untyped-decorator]
def _format(__template: str, /, *args: Any, **kwargs: Any) -> str:
    return yaql_format.format_text(__template, args, kwargs)
