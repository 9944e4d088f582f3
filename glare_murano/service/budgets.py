# SPDX-License-Identifier: Apache-2.0

"""Limit the time of requests with the option ``plan_seconds``."""

import contextlib
from collections.abc import Iterator

from glare_murano.budget import Budget, PausingBudget
from glare_murano.package import Unplannable
from glare_murano.service.refusals import bad_request
from glare_murano.service.settings import Settings


@contextlib.contextmanager
def of_query(settings: Settings, remedy: str) -> Iterator[Budget]:
    """Yield the time budget of a query, such as a dependency query or a list of subclasses.

    The query runs in the ``with`` statement. It is refused if it exceeds the time budget, or
    another limit of planning.

    :param remedy: what the client can request instead, for the message.
    :raises RefusedRequest: if the query exceeds a limit; the message names the limit.
    """
    try:
        yield PausingBudget(settings.plan_seconds, remedy)
    except Unplannable as error:
        raise bad_request(str(error)) from error


def of_look_ups(settings: Settings) -> Budget:
    """Return a time budget for the database look-ups of a request that is not a query.

    Such a request is a change with its checks, or a batch. The time begins with this call, not with
    the request: a change may have waited for other changes, and a batch takes as long as its client
    needs. The budget never pauses to let other green threads run: the request may hold locks for
    which these threads would wait. When the time is over, the budget raises ``RefusedRequest``.
    """
    return Budget(settings.plan_seconds, "try again when the service is less busy", bad_request)
