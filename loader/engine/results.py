# SPDX-License-Identifier: Apache-2.0

"""Send the results of tasks to murano-api.

RabbitMQ drops a message if no queue takes it. So each result is sent again until a queue has it.
"""

import itertools
import logging
from typing import Any

import eventlet
import oslo_messaging
from murano.common import config as murano_config

from loader.engine import result_queue, tasks

LOG = logging.getLogger(__name__)
CONF = murano_config.CONF

# The seconds between attempts to send a result: the first three waits, and every later wait.
_FIRST_WAITS = (0.5, 1, 2)
_WAIT = 5
_NOT_TAKEN = (oslo_messaging.MessageUndeliverable, oslo_messaging.MessageDeliveryFailure)


class ResultSender:
    """Sends the results of tasks to murano-api, and keeps each result until a queue has it."""

    def __init__(self) -> None:
        self._unsent: list[str] = []

    def send(self, client: oslo_messaging.RPCClient, result: Any, environment_id: str) -> None:
        """Send a result to murano-api, and return when a queue has it.

        RabbitMQ confirms a message that reaches a queue, and returns any other message. The sender
        repeats the message until RabbitMQ confirms it. If RabbitMQ is down, oslo.messaging waits
        until it is up again. When the engine stops, the sender declares the queue, so that the
        result waits there for murano-api.

        :param client: the client that calls murano-api.
        :param environment_id: the environment whose task has ended.
        """
        options = oslo_messaging.TransportOptions(at_least_once=True)
        cast = client.prepare(transport_options=options).cast
        self._unsent.append(environment_id)
        try:
            for wait in itertools.chain(_FIRST_WAITS, itertools.repeat(_WAIT)):
                try:
                    cast({}, "process_result", result=result, environment_id=environment_id)
                except _NOT_TAKEN as error:
                    _wait_for_queue(environment_id, error, wait)
                else:
                    return
        finally:
            self._unsent.remove(environment_id)

    def report_unsent(self) -> None:
        """Log an error for each result that no queue has; called when the process ends."""
        for environment_id in self._unsent:
            LOG.error(
                "The result for environment %s is lost: RabbitMQ did not take it before the "
                "engine stopped. The environment stays in deploying or deleting until it is "
                "abandoned (DELETE /v1/environments/%s?abandon=true)",
                environment_id,
                environment_id,
            )


def _wait_for_queue(environment_id: str, error: Exception, seconds: float) -> None:
    """Wait before the next attempt to send a result.

    If the engine is stopping, declare the queue, and wait only a moment if this succeeds. Before
    that, a result is safer in the engine's memory than in a queue that the engine declares:
    RabbitMQ may lose this queue when it restarts.

    :param error: why the last attempt failed, for the log.
    """
    reason: object = error
    if isinstance(error, oslo_messaging.MessageUndeliverable):
        reason = f"murano-api has no queue ({error.exception})"
    LOG.warning(
        "The result for environment %s is kept and sent again in %g seconds: %s",
        environment_id,
        seconds,
        reason,
    )
    if tasks.running.is_stopping:
        try:
            result_queue.declare(CONF)
        except (result_queue.OtherDeclaration, *result_queue.FAILURES) as failure:
            LOG.warning("No queue can be made for results: %s", failure)
        else:
            seconds = _FIRST_WAITS[0]
    eventlet.sleep(seconds)


# The sender of this process.
sender = ResultSender()
