# SPDX-License-Identifier: Apache-2.0

"""Check and declare the queue in RabbitMQ from which murano-api takes the results of tasks.

When murano-api starts, it declares the queue with the options in its own configuration. The engine
declares the exchange with the options in its configuration. If an exchange or a queue exists,
RabbitMQ refuses a declaration with other options. oslo.messaging ignores the refusal, and uses the
existing queue, even if RabbitMQ loses this queue when it restarts.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import oslo_messaging
from amqp import exceptions as amqp_exceptions
from kombu import entity
from kombu import exceptions as kombu_exceptions
from oslo_config import cfg
from oslo_messaging._drivers import common, impl_rabbit

LOG = logging.getLogger(__name__)

# The names that murano.common.server.ApiService uses.
_EXCHANGE = "murano"
_QUEUE = "results"
_GROUP = "[oslo_messaging_rabbit]"
# An argument of a declaration -> the option that sets it.
_OPTIONS = {
    "durable": "amqp_durable_queues (or rabbit_quorum_queue, which includes it)",
    "auto_delete": "amqp_auto_delete",
    "x-ha-policy": "rabbit_ha_queues",
    "x-queue-type": "rabbit_quorum_queue",
    "x-delivery-limit": "rabbit_quorum_delivery_limit",
    "x-max-in-memory-length": "rabbit_quorum_max_memory_length",
    "x-max-in-memory-bytes": "rabbit_quorum_max_memory_bytes",
}
# RabbitMQ's words for a declaration that differs from the existing one.
_DIFFERENCE = re.compile(
    r"inequivalent arg '(?P<argument>[^']*)' for (?P<kind>exchange|queue) '(?P<name>[^']*)' "
    r"in vhost '(?P<vhost>[^']*)': received (?P<configured>.*) but current is (?P<existing>.*)"
)

# The errors that a connection to RabbitMQ may raise.
FAILURES = (
    amqp_exceptions.AMQPError,
    kombu_exceptions.KombuError,
    oslo_messaging.MessagingException,
    OSError,
)


class OtherDeclaration(Exception):
    """The exchange or the queue exists, and was declared with other options than the engine's."""


def check(conf: cfg.ConfigOpts) -> None:
    """Check that the exchange and the queue have the engine's options, if they exist.

    If the queue is missing or not durable, this is logged. If RabbitMQ is down, or oslo.messaging
    uses another message broker, the options cannot be compared, and a warning is logged.

    :raises OtherDeclaration: if the exchange or the queue was declared with other options.
    """
    try:
        with _connection(conf) as connection:
            if connection is None:
                LOG.warning(
                    "transport_url: only RabbitMQ reports a message that reaches no queue; with "
                    "this driver, a result is lost if murano-api is not connected"
                )
                return
            _check(connection)
    except FAILURES as error:
        LOG.warning("Whether RabbitMQ keeps results for murano-api is not known: %s", error)


def declare(conf: cfg.ConfigOpts) -> None:
    """Declare the exchange and the queue as murano-api does, with the engine's options.

    If oslo.messaging uses another message broker than RabbitMQ, nothing is declared.

    :raises OtherDeclaration: if the exchange or the queue was declared with other options before.
    """
    with _connection(conf) as connection, _naming_options():
        if connection is not None:
            connection.declaration.declare(channel=connection.connection.channel())


class _Connection(impl_rabbit.Connection):  # type: ignore[misc]
    """A connection of oslo.messaging that records the declaration of a queue, and does not send it.

    :ivar declaration: the queue, with its exchange.
    """

    declaration: Any

    def declare_consumer(self, consumer: Any) -> None:
        self.declaration = entity.Queue(  # type: ignore[no-untyped-call]
            consumer.queue_name,
            consumer.exchange,
            consumer.routing_key,
            durable=consumer.durable,
            auto_delete=consumer.queue_auto_delete,
            queue_arguments=consumer.queue_arguments,
        )


@contextlib.contextmanager
def _connection(conf: cfg.ConfigOpts) -> Iterator[_Connection | None]:
    """Connect to RabbitMQ for a ``with`` block, with two attempts.

    Yield None if oslo.messaging uses another message broker.
    """
    transport = oslo_messaging.get_rpc_transport(conf)
    driver = transport._driver
    if not isinstance(driver, impl_rabbit.RabbitDriver):
        transport.cleanup()
        yield None
        return
    connection = _Connection(driver.conf, driver._url, common.PURPOSE_LISTEN, retry=1)
    try:
        connection.declare_topic_consumer(_EXCHANGE, _QUEUE)
        yield connection
    finally:
        connection.close()
        transport.cleanup()


def _check(connection: _Connection) -> None:
    queue = connection.declaration
    has_exchange = _is_declared(connection, queue.exchange.declare)
    if not (has_exchange and _is_declared(connection, queue.queue_declare)):
        LOG.info("murano-api has not declared its queue %s; results wait until it does", _QUEUE)
    if not queue.durable:
        LOG.warning(
            "%s amqp_durable_queues = false: when RabbitMQ restarts, the tasks and results that "
            "wait in it are lost; set the option to true for murano-api and the engines",
            _GROUP,
        )


def _is_declared(connection: _Connection, declare: Callable[..., Any]) -> bool:
    """Return whether an exchange or a queue exists; if it does, check its options.

    :param declare: the function that declares the exchange or the queue.
    :raises OtherDeclaration: if it was declared with other options.
    """
    try:
        # A passive declaration compares no arguments.
        declare(passive=True, channel=connection.connection.channel())
    except amqp_exceptions.NotFound:
        return False
    with _naming_options():
        declare(channel=connection.connection.channel())
    return True


@contextlib.contextmanager
def _naming_options() -> Iterator[None]:
    """If RabbitMQ refuses a declaration in the block, raise an error that names the option.

    :raises OtherDeclaration: if the declaration differs from an existing one.
    """
    try:
        yield
    except amqp_exceptions.PreconditionFailed as error:
        found = _DIFFERENCE.search(str(error))
        if found is None:
            raise
        argument, kind, name, vhost, configured, existing = found.groups()
        option = _OPTIONS.get(argument, "")
        raise OtherDeclaration(
            f"{_GROUP} {option or argument}: the {kind} {name} in RabbitMQ's virtual host {vhost} "
            f"was declared with {argument} = {existing}, by murano-api or an earlier "
            f"configuration, and this configuration has {configured}; set the same for murano-api "
            f"and the engines, stop all of them, delete the exchange {_EXCHANGE} and the queues "
            f"tasks and {_QUEUE}, and start again"
        ) from error
