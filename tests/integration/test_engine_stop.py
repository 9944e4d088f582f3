# SPDX-License-Identifier: Apache-2.0

"""The stop of ``murano-glare-engine``: what happens to its tasks, and to those in the queue.

The tests play murano-api; ``test_cloud.py`` stops engines behind the real one.
"""

import contextlib
import copy
import pathlib
import re
import signal
import uuid
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import pytest

from examples import demo
from loader.engine.extensions import NAMESPACE
from tests.integration import services
from tests.integration.slow_application import (
    CLASS,
    NAME,
    beginning,
    environment,
    glare_url,
    start,
)
from tests.plugins import Site
from tests.processes import wait_until

__all__ = ["glare_url"]

pytestmark = pytest.mark.services

LONG = 600
# For an engine to end, with nothing to wait for.
_SECONDS = 15
# A plug-in that waits for a lock that it has, which no signal interrupts. The signal to stop could
# also come just before it waits, so it is blocked. Other engines stop in more seconds than a test
# should take.
_STUCK = """\
import ctypes
import logging
import signal
from loader.engine import shutdown

shutdown._REPORT_SECONDS, shutdown._EXIT_SECONDS = 2, 1

class Plugin:
    def __init__(self):
        lock = ctypes.create_string_buffer(64)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        logging.getLogger("applications.plugin").info("it begins")
        for _ in range(2):
            ctypes.CDLL(None).pthread_mutex_lock(lock)
"""
# A plug-in whose process ends after its alarm, if there is one. When Python deletes what ``sys``
# has, no handler of a signal is left.
_SLOW_END = """\
import ctypes
import signal
import sys

class Plugin:
    def __del__(self, timer=signal.getitimer, sleep=ctypes.CDLL(None).sleep):
        seconds, _ = timer(0)
        sleep(int(seconds) + 1)

sys.plugin = Plugin()
"""
STOPPED = "the engine was stopped before this task ended"


class Engines:
    """Engines on one message queue."""

    def __init__(self, stack: contextlib.ExitStack, folder: pathlib.Path, *urls: str) -> None:
        self._stack = stack
        self._folder = folder
        self._urls = urls

    def start(self, **options: Any) -> services.Engine:
        folder = self._folder / uuid.uuid4().hex
        folder.mkdir()
        return self._stack.enter_context(services.murano_engine(folder, *self._urls, **options))


@pytest.fixture
def engines(queue: str, glare_url: str, tmp_path: pathlib.Path) -> Iterator[Engines]:
    with contextlib.ExitStack() as stack:
        yield Engines(stack, tmp_path, queue, glare_url)


@pytest.fixture
def api(queue: str) -> Iterator[services.MuranoApi]:
    with services.MuranoApi(queue) as api:
        yield api


@pytest.mark.parametrize("workers", [1, 2])
def test_a_running_deployment_ends_and_is_reported(
    engines: Engines, api: services.MuranoApi, workers: int
) -> None:
    engine = engines.start(workers=workers)
    model = start(api, engine, 2)

    # Workers get SIGTERM twice then: from systemd, and from their parent.
    engine.send(signal.SIGTERM)
    result = api.result(model)

    assert not result["action"]["isException"]
    assert result["model"]["Objects"]["applications"][0]["stage"] == "done"
    assert engine.wait(_SECONDS) == 0
    assert not engine.has_processes()


def test_a_deployment_that_takes_too_long_fails_with_its_objects_and_pins(
    engines: Engines, api: services.MuranoApi
) -> None:
    engine = engines.start(workers=2, graceful_stop_seconds=1)
    model = start(api, engine, LONG)

    assert engine.terminate(_SECONDS) == 0
    result = api.result(model)

    assert result["action"]["isException"]
    assert STOPPED in result["action"]["result"]["message"]
    # Neither Catch nor Finally of the package stops the interruption.
    assert result["model"]["Objects"]["applications"][0]["stage"] == "begun"
    assert result["model"]["SystemData"]["Packages"][NAME] == ["1.0.0"]
    assert result["model"]["project_id"] == demo.PROJECT
    assert "it cleans up" in engine.log
    assert not engine.has_processes()


def test_a_deletion_that_takes_too_long_fails_and_keeps_its_objects(
    engines: Engines, api: services.MuranoApi
) -> None:
    engine = engines.start(graceful_stop_seconds=0)
    model = environment(LONG)
    name, objects = services.environment_id(model), model.pop("Objects")
    model |= {"Objects": None, "ObjectsCopy": objects}
    with beginning(engine):
        api.start_deletion(name, model)

    assert engine.terminate(_SECONDS) == 0
    result = api.results(1)[name]

    assert STOPPED in result["action"]["result"]["message"]
    assert result["model"]["Objects"] is None
    assert result["model"]["ObjectsCopy"] == objects


def test_an_interrupted_task_destroys_nothing_that_stays(
    engines: Engines, api: services.MuranoApi
) -> None:
    engine = engines.start(graceful_stop_seconds=0)
    model = environment(LONG)
    removed = services.application(CLASS, "removed", seconds=LONG)
    model["ObjectsCopy"] = copy.deepcopy(model["Objects"])
    model["ObjectsCopy"]["applications"].append(removed)
    with beginning(engine):
        api.start(model, services.environment_id(model), "deploy")

    assert engine.terminate(_SECONDS) == 0
    result = api.result(model)

    assert STOPPED in result["action"]["result"]["message"]
    assert result["model"]["Objects"]["applications"] == model["Objects"]["applications"]
    assert result["model"]["ObjectsCopy"] == model["ObjectsCopy"]
    assert re.findall("to destroy (.*)", engine.log) == ["removed"]


def test_sigint_fails_running_deployments_at_once(
    engines: Engines, api: services.MuranoApi
) -> None:
    engine = engines.start(workers=2)
    model = start(api, engine, LONG)

    engine.send(signal.SIGTERM)
    wait_until(lambda: "Stopping" in engine.log, "the stop")
    engine.send(signal.SIGINT)

    assert STOPPED in api.result(model)["action"]["result"]["message"]
    assert engine.wait(_SECONDS) == 0


def test_a_static_action_that_takes_too_long_fails(
    engines: Engines, api: services.MuranoApi
) -> None:
    engine = engines.start(graceful_stop_seconds=0)

    with futures.ThreadPoolExecutor() as pool:
        with beginning(engine):
            answer = pool.submit(api.call_static_action, CLASS, "1", "wait", seconds=LONG)
        engine.terminate(_SECONDS)

        with pytest.raises(Exception, match=STOPPED):
            answer.result()


def test_a_stopping_engine_takes_no_new_tasks(
    engines: Engines, api: services.MuranoApi, queue: str
) -> None:
    stopping = engines.start()
    slow = start(api, stopping, LONG)
    stopping.send(signal.SIGTERM)
    wait_until(lambda: not services.consumers(queue, "tasks"), "the engine to leave the queue")

    models = [environment(0) for _ in range(4)]
    for model in models:
        api.start(model, services.environment_id(model), "deploy")
    other = engines.start()

    results = api.results(len(models))
    assert results.keys() == set(map(services.environment_id, models))
    assert not any(result["action"]["isException"] for result in results.values())
    assert stopping.has_processes()
    assert other.log.count("Starting processing task") == len(models)
    stopping.send(signal.SIGINT)
    assert STOPPED in api.result(slow)["action"]["result"]["message"]


def test_a_task_that_was_received_and_not_begun_returns_to_the_queue(
    engines: Engines, api: services.MuranoApi, queue: str
) -> None:
    engine = engines.start(tasks=1, graceful_stop_seconds=0)
    running = start(api, engine, LONG)
    received = environment(0)
    api.start(received, services.environment_id(received), "deploy")
    wait_until(lambda: not services.messages(queue, "tasks"), "the receipt of the second task")

    assert engine.terminate(_SECONDS) == 0
    assert STOPPED in api.result(running)["action"]["result"]["message"]
    assert services.messages(queue, "tasks") == 1

    engines.start()
    assert not api.result(received)["action"]["isException"]


def test_tasks_that_wait_for_a_turn_return_to_the_queue(
    engines: Engines, api: services.MuranoApi, queue: str
) -> None:
    engine = engines.start(max_project_task_cells=1, graceful_stop_seconds=0)
    running = start(api, engine, LONG)
    # The last of them would wait longer than the engine takes to stop.
    count = 40
    for _ in range(count):
        model = environment(0)
        api.start(model, services.environment_id(model), "deploy")
    wait_until(lambda: not services.messages(queue, "tasks"), "the receipt of all tasks")

    assert engine.terminate(_SECONDS) == 0
    assert STOPPED in api.result(running)["action"]["result"]["message"]
    # The broker does not count a task that it has sent to the engine, until it sees the end.
    wait_until(lambda: services.messages(queue, "tasks") == count, "the return of all tasks")


def test_a_result_waits_for_murano_api_without_an_end(engines: Engines, queue: str) -> None:
    engine = engines.start(graceful_stop_seconds=0)
    with services.MuranoApi(queue) as api:
        start(api, engine, LONG)

    assert engine.terminate(_SECONDS) == 0
    result = services.take_message(queue, "results")
    assert STOPPED in result.body
    assert "expiration" not in result.properties


def test_a_killed_engine_reports_nothing_and_its_task_is_lost(
    engines: Engines, api: services.MuranoApi, queue: str
) -> None:
    engine = engines.start()
    start(api, engine, LONG)
    engine.send(signal.SIGKILL)
    engine.wait(_SECONDS)

    wait_until(lambda: not services.consumers(queue, "tasks"), "the broker to see the end")
    assert services.messages(queue, "tasks") == 0
    ended = start(api, engines.start(), 0)
    assert api.result(ended)


def test_a_worker_that_no_signal_interrupts_is_killed_with_the_engine(
    engines: Engines, api: services.MuranoApi, tmp_path: pathlib.Path
) -> None:
    engine = _with_plugin(engines, tmp_path, _STUCK, task_cells=False)
    model = services.environment()
    name = services.environment_id(model)
    with beginning(engine):
        api.start(
            {**model, "Objects": {"?": {"id": name, "type": "org.test.Plugin"}}}, name, "wait"
        )

    engine.send(signal.SIGTERM)

    assert engine.wait(_SECONDS) == 1
    assert "Stopping: the workers that do not end are killed" in engine.log
    wait_until(lambda: not engine.has_processes(), "the end of the workers", 2)


def test_an_engine_whose_workers_have_ended_is_not_ended_by_its_alarm(
    engines: Engines, tmp_path: pathlib.Path
) -> None:
    engine = _with_plugin(engines, tmp_path, _SLOW_END)

    engine.send(signal.SIGTERM)

    assert engine.wait(_SECONDS) == 0


def _with_plugin(
    engines: Engines, folder: pathlib.Path, code: str, **options: bool
) -> services.Engine:
    """Run an engine with two workers, and a plug-in for the class ``org.test.Plugin``.

    :param code: the plug-in, which has the class ``Plugin``.
    """
    point = {"org.test.Plugin": "some_plugin:Plugin"}
    Site(folder).install("test-plugin", "1.0.0", {NAMESPACE: point}, {"some_plugin": code})
    environment = {"PYTHONPATH": str(folder)}
    return engines.start(workers=2, graceful_stop_seconds=0, environment=environment, **options)
