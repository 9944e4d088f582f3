# SPDX-License-Identifier: Apache-2.0

"""The services around the engine's command, as tests run them.

RabbitMQ is the host's own; each engine gets a virtual host of its own there,
so that runs do not meet, and what was declared goes away with it.
"""

import contextlib
import os
import pathlib
import queue
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import kombu
import oslo_messaging
from oslo_config import cfg

from examples import demo
from tests import packages, prerequisites
from tests.integration import publish
from tests.processes import ROOT, running, wait_until

_RABBIT = "127.0.0.1:5672"
_RABBIT_USER = "guest"
_RABBIT_PASSWORD = "guest"

_ANSWER_SECONDS = 60


def publish_everything(url: str, *others: pathlib.Path) -> dict[str, Any]:
    """Publish Murano's core library, the examples and other packages for every project.

    :returns: the artifacts, by ``FQN version``.
    """
    glare = publish.client_of(url, demo.PUBLISHER_TOKEN)
    folders = [
        *prerequisites.core_library().glob("io.murano*"),
        *demo.PACKAGES.glob("*/*/"),
        *others,
    ]
    artifacts = publish.publish(glare, folders, public=True)
    return {f"{artifact['name']} {artifact['version']}": artifact for artifact in artifacts}


@contextlib.contextmanager
def glare_with(folder: pathlib.Path, name: str, classes: Mapping[str, str]) -> Iterator[str]:
    """Run the development server with ``publish_everything`` and a package; give its URL.

    :param classes: the code of the package's classes, by the last part of their names.
    """
    manifest = packages.manifest(
        name, Classes={f"{name}.{each}": f"{each}.yaml" for each in classes}
    )
    content = packages.files(manifest)
    content |= {f"Classes/{each}.yaml": code.encode() for each, code in classes.items()}
    with demo.DevelopmentServer(folder) as url:
        publish_everything(url, packages.write(folder / "package", content))
        yield url


@contextlib.contextmanager
def message_queue() -> Iterator[str]:
    """Make a virtual host of RabbitMQ, and give its transport URL."""
    name = f"glare-murano-test-{uuid.uuid4().hex}"
    prerequisites.rabbitmqctl("add_vhost", name)
    try:
        prerequisites.rabbitmqctl("set_permissions", "-p", name, _RABBIT_USER, ".*", ".*", ".*")
        yield f"rabbit://{_RABBIT_USER}:{_RABBIT_PASSWORD}@{_RABBIT}/{name}"
    finally:
        prerequisites.rabbitmqctl("delete_vhost", name)


class Engine:
    """A running engine, with a folder of its own."""

    def __init__(self, process: subprocess.Popen[bytes], folder: pathlib.Path) -> None:
        self.packages_cache = folder / "packages-cache"
        self._process = process
        self._files = [folder / "murano-engine.log", folder / "engine.out"]

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    @property
    def log(self) -> str:
        """Its log so far, and its other output."""
        return "\n".join(file.read_text() for file in self._files if file.exists())

    def terminate(self, seconds: float) -> int:
        """Send SIGTERM, and return the exit code; it is an error to take longer."""
        self._process.terminate()
        return self.wait(seconds)

    def send(self, number: int) -> None:
        """Send a signal to the engine and all its workers, as systemd and a terminal do."""
        os.killpg(self._process.pid, number)

    def wait(self, seconds: float) -> int:
        """Return the exit code; it is an error to take longer."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the engine runs on; its log:\n{self.log}") from error

    def has_processes(self) -> bool:
        """Return whether the engine or one of its workers runs."""
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True


_MURANO_CONF = """\
[DEFAULT]
executor_thread_pool_size = {tasks}
log_file = {folder}/murano-engine.log
transport_url = {transport_url}
use_stderr = false

[engine]
engine_workers = {workers}
graceful_stop_seconds = {graceful_stop_seconds}
packages_cache = {folder}/packages-cache
package_loader = {package_loader}
use_trusts = false
{limits}

[glare]
url = {glare_url}

[oslo_messaging_notifications]
driver = messagingv2
"""


@contextlib.contextmanager
def murano_engine(
    folder: pathlib.Path,
    transport_url: str,
    glare_url: str,
    package_loader: str = "catalogs",
    workers: int = 1,
    graceful_stop_seconds: int = 60,
    tasks: int = 64,
    options: str = "",
    environment: Mapping[str, str] | None = None,
    directory: pathlib.Path = ROOT,
    **limits: float,
) -> Iterator[Engine]:
    """Run ``murano-glare-engine`` as an operator does, until it waits for tasks.

    :param tasks: how many tasks a worker runs at once.
    :param options: what the configuration has after these options.
    :param environment: variables beside those of the tests.
    :param directory: where it runs.
    :param limits: other options of the group ``engine``.
    """
    configuration = folder / "murano.conf"
    configuration.write_text(
        _MURANO_CONF.format(
            folder=folder,
            transport_url=transport_url,
            glare_url=glare_url,
            package_loader=package_loader,
            workers=workers,
            graceful_stop_seconds=graceful_stop_seconds,
            tasks=tasks,
            limits="\n".join(f"{option} = {value}" for option, value in limits.items()),
        )
        + options
    )
    command = pathlib.Path(sys.executable).with_name("murano-glare-engine")
    arguments = [command, "--config-file", configuration]
    with running(arguments, folder / "engine.out", environment, directory) as process:
        engine = Engine(process, folder)

        def ready() -> bool:
            assert process.poll() is None, f"the engine ended: {engine.log}"
            return consumers(transport_url, "tasks") >= workers

        wait_until(ready, "the start of the engine")
        yield engine


def consumers(transport_url: str, name: str) -> int:
    """Return the number of processes that wait for messages of a queue."""
    with _connection(transport_url) as connection:
        try:
            return connection.default_channel.queue_declare(name, passive=True).consumer_count
        except connection.channel_errors:
            return 0


def messages(transport_url: str, name: str) -> int:
    """Return the number of messages that wait in a queue."""
    with _connection(transport_url) as connection:
        return connection.default_channel.queue_declare(name, passive=True).message_count


def take_message(transport_url: str, name: str) -> Any:
    """Take a message out of a queue; None if there is none."""
    return next(take_messages(transport_url, name), None)


def take_messages(transport_url: str, name: str) -> Iterator[Any]:
    """Take all messages out of a queue, which need not exist."""
    with _connection(transport_url) as connection:
        channel = connection.default_channel
        with contextlib.suppress(*connection.channel_errors):
            while (message := channel.basic_get(name, no_ack=True)) is not None:
                yield message


def queues(transport_url: str) -> set[str]:
    """Return the names of all queues."""
    virtual_host = transport_url.rpartition("/")[2]
    return set(prerequisites.rabbitmqctl("list_queues", "-p", virtual_host, "name").split())


def delete_queue(transport_url: str, name: str) -> None:
    """Delete a queue, as a restart of RabbitMQ deletes one that is not durable."""
    with _connection(transport_url) as connection:
        connection.default_channel.queue_delete(name)


def _connection(transport_url: str) -> kombu.Connection:
    # Without the options of oslo.messaging.
    url, _, _ = transport_url.partition("?")
    return kombu.Connection(url.replace("rabbit://", "amqp://"))


class _Results:
    """The receiver of the results of tasks."""

    def __init__(self) -> None:
        self._arrival = threading.Condition()
        self._results: list[tuple[str, Any]] = []

    def process_result(self, context: Any, result: Any, environment_id: str) -> None:
        with self._arrival:
            self._results.append((environment_id, result))
            self._arrival.notify_all()

    def take(self, name: str | None) -> tuple[str, Any]:
        """Wait for a result, and return it after the id of its environment.

        :param name: the id of the environment; None takes the first result of any.
        :raises queue.Empty: if none arrives in time.
        """

        def found() -> tuple[str, Any] | None:
            return next((each for each in self._results if name in (None, each[0])), None)

        with self._arrival:
            result = self._arrival.wait_for(found, _ANSWER_SECONDS)
            if result is None:
                raise queue.Empty
            self._results.remove(result)
            return result


class MuranoApi:
    """Plays the part of murano-api towards the engine."""

    def __init__(self, transport_url: str, engine: Engine | None = None) -> None:
        # Part of oslo.messaging reads its options here only.
        conf = cfg.CONF
        self._engine = engine
        self._results = _Results()
        self._rpc = oslo_messaging.get_rpc_transport(conf, url=transport_url)
        self._client = oslo_messaging.get_rpc_client(
            self._rpc, oslo_messaging.Target("murano", "tasks"), timeout=_ANSWER_SECONDS
        )
        self._server = oslo_messaging.get_rpc_server(
            self._rpc,
            oslo_messaging.Target("murano", "results", server=uuid.uuid4().hex),
            [self._results],
            executor="threading",
        )

    def __enter__(self) -> "MuranoApi":
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._server.wait()
        self._rpc.cleanup()

    def start(
        self,
        model: Any,
        object_id: str,
        method: str,
        user: Mapping[str, str] = demo.USER,
        **arguments: Any,
    ) -> None:
        """Have the engine run a method of an object in a model."""
        action = {"object_id": object_id, "method": method, "args": arguments}
        task = {"id": environment_id(model), "action": action, "model": model, **user}
        self._client.cast({}, "handle_task", task=task)

    def start_deletion(self, name: str, model: Any, user: Mapping[str, str] = demo.USER) -> None:
        """Have the engine delete an environment with all objects in a model."""
        task = {"id": name, "action": None, "model": model, **user}
        self._client.cast({}, "handle_task", task=task)

    def result(self, model: Any) -> Any:
        """Wait for the result of what was started with a model."""
        return self.result_of(environment_id(model))

    def result_of(self, name: str) -> Any:
        """Wait for the result of what was started for an environment; threads may wait at once."""
        with self._answering():
            return self._results.take(name)[1]

    def results(self, number: int) -> dict[str, Any]:
        """Wait for the next results, and return them by environment."""
        with self._answering():
            return dict(self._results.take(None) for _ in range(number))

    def run(self, model: Any, object_id: str, method: str) -> Any:
        """Have the engine run a method of an object in a model, and wait for the result."""
        self.start(model, object_id, method)
        return self.result(model)

    def call_static_action(
        self,
        class_name: str,
        class_version: str,
        method: str,
        user: Mapping[str, str] = demo.USER,
        **arguments: Any,
    ) -> Any:
        """Have the engine run a static method."""
        action = {
            "class_name": class_name,
            "class_version": class_version,
            "pkg_name": None,
            "method": method,
            "args": arguments,
        }
        task = {"id": uuid.uuid4().hex, "action": action, **user}
        with self._answering():
            return self._client.call({}, "call_static_action", task=task)

    def schema(self, class_name: str, user: Mapping[str, str] = demo.USER) -> Any:
        """Request the schema of a class."""
        credentials = {"token": user["token"], "project_id": user["project_id"]}
        with self._answering():
            return self._client.call(
                credentials, "generate_schema", class_name=class_name, method_names=[],
                class_version=None, package_name=None,
            )  # fmt: skip

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (queue.Empty, oslo_messaging.MessagingTimeout) as error:
            log = self._engine.log if self._engine else "not known here"
            raise AssertionError(f"the engine did not answer; its log:\n{log}") from error


def application(class_name: str, name: str = "app", **properties: Any) -> dict[str, Any]:
    """Return an object of a model; its name is also its id."""
    return {"?": {"id": name, "type": class_name}, "name": name, **properties}


def environment(*applications: dict[str, Any]) -> dict[str, Any]:
    """Return the model of a new environment with applications."""
    name = f"environment-{uuid.uuid4().hex}"
    return {
        "Objects": {
            "?": {"id": name, "type": "io.murano.Environment"},
            "name": name,
            "applications": list(applications),
        },
        "SystemData": {},
        "project_id": demo.PROJECT,
        "user_id": demo.USER["user_id"],
    }


def environment_id(model: Any) -> str:
    """The id of the environment that a model describes."""
    return str(model["Objects"]["?"]["id"])
