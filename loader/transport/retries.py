# SPDX-License-Identifier: Apache-2.0

"""Repeat requests after temporary failures; the waits between them grow."""

import email.utils
import logging

import requests
import tenacity

from glare_murano.package.errors import shown
from loader.transport.deadlines import Deadline
from loader.transport.failures import is_temporary, without_queries

LOG = logging.getLogger(__name__)

DEFAULT_ATTEMPTS = 5

_LONGEST_WAIT = 30.0
# A wait that is longer than these seconds is logged as a warning, which commands show.
_LOG_AFTER = 5.0


def retrying(attempts: int, deadline: Deadline) -> tenacity.Retrying:
    """Return an object that calls a function, and repeats the call after temporary failures.

    It raises the last failure if no attempt is left, or if the next wait would exceed the deadline.

    :param attempts: how often the function is called at most.
    """
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_temporary),
        stop=lambda state: (
            state.attempt_number >= attempts or state.upcoming_sleep >= deadline.left
        ),
        wait=_wait,
        before_sleep=_log,
        reraise=True,
    )


def _wait(state: tenacity.RetryCallState) -> float:
    """Return how many seconds to wait before the next attempt.

    The wait is random, and its upper limit doubles each time. If the server requests a longer wait,
    the requested wait is used.
    """
    usual = tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT)(state)
    response = getattr(state.outcome and state.outcome.exception(), "response", None)
    return usual if response is None else max(usual, _requested_wait(response))


def _requested_wait(response: requests.Response) -> float:
    """Return the seconds that a server requests with ``Retry-After``; 0 without this header.

    The header has a number of seconds, or a date.
    """
    requested = response.headers.get("Retry-After", "")
    if requested.isascii() and requested.isdigit():
        return float(requested)
    try:
        # The server's clock is used if it sends the time, since this host's clock may differ.
        then, now = (
            email.utils.parsedate_to_datetime(date).timestamp()
            for date in (requested, response.headers.get("Date", email.utils.formatdate()))
        )
    except (ValueError, OverflowError):
        return 0.0
    return then - now


def _log(state: tenacity.RetryCallState) -> None:
    error = state.outcome and state.outcome.exception()
    LOG.log(
        logging.WARNING if state.upcoming_sleep > _LOG_AFTER else logging.INFO,
        "%s; trying again in %.1f seconds",
        shown(without_queries(str(error))),
        state.upcoming_sleep,
    )
