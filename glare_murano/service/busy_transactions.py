# SPDX-License-Identifier: Apache-2.0

"""Repeat a transaction while other transactions block it."""

from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

import tenacity
from oslo_db import exception

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# The longest time for which calls are repeated, in seconds.
MAX_SECONDS = 10
# PostgreSQL's code for a lock that was not free in time. oslo.db has no error for it.
_LOCK_NOT_AVAILABLE = "55P03"


def while_busy(
    busy: type[Exception],
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Return a decorator that repeats each call of a function while other transactions block it.

    A call is repeated if it raises an error of the class ``busy``, or if the database reports a
    deadlock or a lock that is not free. If the call still fails after ``MAX_SECONDS``, an error of
    the class ``busy`` is raised.

    :param busy: the class of the errors by which the function reports that it is blocked.
    """

    def give_up(state: tenacity.RetryCallState) -> NoReturn:
        raise busy from (state.outcome.exception() if state.outcome else None)

    repeat = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, busy) or _is_busy(error)),
        stop=tenacity.stop_after_delay(MAX_SECONDS),
        wait=tenacity.wait_random(0.05, 0.5),
        retry_error_callback=give_up,
    )
    return repeat.wraps


def _is_busy(error: BaseException) -> bool:
    code = getattr(getattr(error, "orig", None), "pgcode", None)
    # SQLite may refuse to write in a transaction that has read before. oslo.db does not wrap the
    # error.
    is_locked = "database is locked" in str(error)
    return is_locked or isinstance(error, exception.DBDeadlock) or code == _LOCK_NOT_AVAILABLE
