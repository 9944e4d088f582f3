# SPDX-License-Identifier: Apache-2.0

"""The results of tasks, when murano-api and RabbitMQ stop and start again.

The tests play murano-api; ``test_cloud.py`` stops the real one.
"""

import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import eventlet
import oslo_messaging
import pytest

from loader.engine import results
from tests.integration import services, slow_application
from tests.integration.broker import Broker
from tests.integration.slow_application import glare_url
from tests.processes import wait_until

__all__ = ["glare_url"]

# A restart of RabbitMQ takes ten seconds.
pytestmark = [pytest.mark.services, pytest.mark.timeout(240)]

_SECONDS = 30
_DURABLE = "?amqp_durable_queues=true"
_QUORUM = "?rabbit_quorum_queue=true"
_KEPT = "is kept and sent again"


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[Broker]:
    folder = tmp_path / "broker"
    folder.mkdir()
    with Broker(folder) as broker:
        yield broker


@pytest.fixture
def engine(queue: str, glare_url: str, tmp_path: pathlib.Path) -> Iterator[services.Engine]:
    with services.murano_engine(tmp_path, queue, glare_url) as engine:
        yield engine


def start(transport_url: str, engine: services.Engine) -> dict[str, Any]:
    """Start a deployment of eight seconds, and stop murano-api while it runs; return the model."""
    with services.MuranoApi(transport_url, engine) as api:
        return slow_application.start(api, engine, 8)


def wait_for(engine: services.Engine, words: str) -> None:
    wait_until(lambda: words in engine.log, f"'{words}' in the log")


def check_result(transport_url: str, model: Any) -> None:
    """Take the result of a deployment as a murano-api that starts, and check that it is alone."""
    with services.MuranoApi(transport_url) as api:
        result = api.result(model)
    assert not result["action"]["isException"]
    assert result["model"]["Objects"]["applications"][0]["stage"] == "done"
    assert services.messages(transport_url, "results") == 0


def test_a_result_without_a_queue_is_sent_again_until_murano_api_is_back(
    engine: services.Engine, queue: str
) -> None:
    model = start(queue, engine)
    services.delete_queue(queue, "results")
    wait_for(engine, _KEPT)

    assert services.environment_id(model) in engine.log
    check_result(queue, model)
    assert engine.terminate(_SECONDS) == 0


def test_a_result_without_a_queue_waits_in_a_new_one_when_the_engine_stops(
    engine: services.Engine, queue: str
) -> None:
    model = start(queue, engine)
    services.delete_queue(queue, "results")
    wait_for(engine, _KEPT)

    assert engine.terminate(_SECONDS) == 0
    assert services.messages(queue, "results") == 1
    check_result(queue, model)


def test_a_result_waits_in_a_durable_queue_while_rabbitmq_restarts(
    broker: Broker, glare_url: str, tmp_path: pathlib.Path
) -> None:
    url = broker.url + _DURABLE
    with services.murano_engine(tmp_path, url, glare_url) as engine:
        model = start(url, engine)
        wait_until(lambda: services.messages(url, "results") == 1, "the result")
        broker.stop()
        broker.start()
        check_result(url, model)
        assert _KEPT not in engine.log
        assert "amqp_durable_queues" not in engine.log


def test_a_result_waits_in_the_engine_while_rabbitmq_restarts(
    broker: Broker, glare_url: str, tmp_path: pathlib.Path
) -> None:
    with services.murano_engine(tmp_path, broker.url, glare_url) as engine:
        model = start(broker.url, engine)
        broker.stop()
        wait_for(engine, "ECONNREFUSED")
        broker.start()
        wait_for(engine, _KEPT)
        check_result(broker.url, model)


def test_a_result_that_rabbitmq_cannot_take_is_named_when_the_engine_stops(
    broker: Broker, glare_url: str, tmp_path: pathlib.Path
) -> None:
    with services.murano_engine(tmp_path, broker.url, glare_url) as engine:
        model = start(broker.url, engine)
        broker.stop()
        wait_for(engine, "ECONNREFUSED")
        engine.terminate(120)

        name = services.environment_id(model)
        assert f"The result for environment {name} is lost" in engine.log
        assert f"DELETE /v1/environments/{name}?abandon=true" in engine.log


def test_a_result_that_rabbitmq_refuses_is_sent_again_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = []

    # No message of a test is as long as one that RabbitMQ refuses.
    class Client:
        def prepare(self, **_: Any) -> Any:
            return self

        def cast(self, *_: Any, **__: Any) -> None:
            attempts.append(1)
            raise oslo_messaging.MessageDeliveryFailure

    monkeypatch.setattr(results.tasks.running, "is_stopping", True)
    monkeypatch.setattr(results.result_queue, "declare", lambda _: None)
    with eventlet.Timeout(1.2, False):
        results.ResultSender().send(Client(), {}, "test")
    assert 2 <= len(attempts) <= 3


@pytest.mark.parametrize(
    ("of_api", "of_engine", "option", "existing", "configured"),
    [
        ("", _DURABLE, "amqp_durable_queues", "'false'", "'true'"),
        (_DURABLE, "", "amqp_durable_queues", "'true'", "'false'"),
        (_DURABLE, _QUORUM, "rabbit_quorum_queue", "none", "the value 'quorum'"),
        ("", "?amqp_auto_delete=true", "amqp_auto_delete", "'false'", "'true'"),
    ],
)
def test_an_engine_that_declares_the_queue_in_another_way_does_not_start(
    queue: str,
    tmp_path: pathlib.Path,
    of_api: str,
    of_engine: str,
    option: str,
    existing: str,
    configured: str,
) -> None:
    with services.MuranoApi(queue + of_api):
        ended = run(tmp_path, queue + of_engine)

    assert ended.returncode == 1
    assert f"[oslo_messaging_rabbit] {option}" in ended.stderr
    assert f"= {existing}" in ended.stderr
    assert f"this configuration has {configured}" in ended.stderr


def test_a_queue_that_rabbitmq_loses_is_a_warning(engine: services.Engine) -> None:
    assert "[oslo_messaging_rabbit] amqp_durable_queues = false: when RabbitMQ" in engine.log
    assert "murano-api has not declared its queue results" in engine.log


def run(folder: pathlib.Path, transport_url: str) -> Any:
    """Run an engine whose start fails."""
    configuration = folder / "murano.conf"
    configuration.write_text(
        f"[DEFAULT]\ntransport_url = {transport_url}\n[engine]\n"
        f"packages_cache = {folder}/cache\n[glare]\nurl = http://127.0.0.1:9494\n"
    )
    command = pathlib.Path(sys.executable).with_name("murano-glare-engine")
    return subprocess.run(
        [command, "--config-file", configuration], capture_output=True, text=True, timeout=60
    )
