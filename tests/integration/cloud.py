# SPDX-License-Identifier: Apache-2.0

"""A small cloud on loopback: Murano with all services that it needs, and packages in Glare alone.

Keystone and Glare are installed by the guide. RabbitMQ and MariaDB are the host's own; the
cloud has a virtual host and a database there, which go away with it.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import requests
from keystoneauth1 import adapter
from keystoneauth1 import session as ksa_session

from examples import demo
from tests import packages, prerequisites, processes
from tests.functional import databases, installation, keystone, murano_api
from tests.integration import publish, services

_LOADER_CONF = processes.ROOT / "loader" / "engine" / "etc" / "murano.conf"
_CACHE = "/var/cache/murano/packages"
_ENGINES = 2
# For twenty environments at once, on a host that other tests use as well.
_DEPLOYMENT_SECONDS = 200
_STOP_SECONDS = 30
_PROJECTS = ("one", "other")

_MURANO_CONF = """\
[DEFAULT]
bind_host = 127.0.0.1
bind_port = {port}
transport_url = {transport_url}
use_stderr = true

[database]
connection = {database}

[engine]
engine_workers = 1
graceful_stop_seconds = 1

[keystone_authtoken]
{middleware}

[murano]
api_workers = 1

[murano_auth]
{middleware}
www_authenticate_uri = {keystone}

[paste_deploy]
config_file = {paste}
"""

# What the second murano-api has instead.
_STOCK_CONF = """\
[DEFAULT]
bind_port = {port}

[paste_deploy]
config_file = {paste}
"""
_STOCK_PASTE = prerequisites.MURANO / "etc" / "murano" / "murano-paste.ini"


@dataclasses.dataclass(frozen=True)
class Project:
    """The clients of a member of a project."""

    murano: adapter.Adapter
    glare: adapter.Adapter


@dataclasses.dataclass(frozen=True)
class Cloud:
    """A cloud that runs.

    :param operator: an administrator's client of murano-api.
    :param packages_cache: the directory that all engines share.
    :param queue: the transport URL of RabbitMQ.
    :param stock_api: runs a second murano-api, without the filter of this project, and yields
        its URL.
    """

    operator: adapter.Adapter
    project: Project
    other_project: Project
    packages_cache: pathlib.Path
    queue: str
    api: "Api"
    engines: "Engines"
    identity: keystone.Keystone
    stock_api: Callable[[], contextlib.AbstractContextManager[str]]
    _admin: adapter.Adapter
    _folder: pathlib.Path

    def publish(
        self,
        name: str,
        version: str,
        classes: Mapping[str, str],
        project: Project | None = None,
        **keys: Any,
    ) -> str:
        """Publish a package for one project, or for every project.

        :param classes: the MuranoPL code of each class.
        :param keys: more keys of the manifest.
        :returns: the path of the artifact.
        """
        files = {class_name: f"{class_name}.yaml" for class_name in classes}
        content = packages.content(name, version, Classes=files, **keys)
        content |= {f"Classes/{files[key]}": code.encode() for key, code in classes.items()}
        folder = packages.write(self._folder / uuid.uuid4().hex, content)
        glare = project.glare if project else self._admin
        (artifact,) = publish.publish(glare, [folder], public=not project)
        return f"{publish.ARTIFACTS}/{artifact['id']}"

    def remove(self, path: str) -> None:
        """Delete the release of an artifact, even if others require it."""
        self._admin.delete(path, headers={"X-Murano-Override-Checks": "true"})

    def yank(self, path: str, reason: str) -> None:
        """Yank the release of an artifact."""
        patch = [{"op": "replace", "path": "/yanked", "value": reason}]
        headers = {"Content-Type": "application/json-patch+json"}
        self._admin.patch(path, json=patch, headers=headers)

    def downloads(self) -> list[int]:
        """Return the number of archives that each engine has fetched so far."""
        found = (re.findall(r"(\d+) archives \(", log.read_text()) for log in self.engines.logs)
        return [sum(map(int, numbers)) for numbers in found]

    def tasks(self) -> list[int]:
        """Return the number of tasks that each engine has begun."""
        return [log.read_text().count("Starting processing task") for log in self.engines.logs]


class Api:
    """The murano-api of a cloud."""

    def __init__(
        self, stack: contextlib.ExitStack, command: Sequence[Any], port: int, output: pathlib.Path
    ) -> None:
        self._stack = stack
        self._command = command
        self._port = port
        self._output = output
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the service, and wait until it accepts connections."""
        listening = processes.listening(self._command, self._port, self._output)
        self._running = self._stack.enter_context(listening)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Kill the service, and start it again later."""
        assert self._running is not None
        os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait(_STOP_SECONDS)
        try:
            yield
        finally:
            self.start()


class Engines:
    """The engines of a cloud.

    :param logs: the outputs of those that have run.
    """

    def __init__(
        self, stack: contextlib.ExitStack, folder: pathlib.Path, command: Sequence[Any], queue: str
    ) -> None:
        self.logs: list[pathlib.Path] = []
        self._stack = stack
        self._folder = folder
        self._command = command
        self._queue = queue
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all engines, and wait until they take tasks."""
        logs = [self._folder / f"engine{len(self.logs) + n}.out" for n in range(_ENGINES)]
        self.logs += logs
        self._running = [
            self._stack.enter_context(processes.running(self._command, log)) for log in logs
        ]

        def ready() -> bool:
            ended = [
                log.read_text()
                for log, engine in zip(logs, self._running, strict=True)
                if engine.poll() is not None
            ]
            assert not ended, f"an engine ended: {ended}"
            return services.consumers(self._queue, "tasks") == _ENGINES

        processes.wait_until(ready, "the start of the engines")

    def stop(self, number: int) -> None:
        """Send a signal to all engines, and wait for their ends."""
        for engine in self._running:
            engine.send_signal(number)
        for engine in self._running:
            engine.wait(_STOP_SECONDS)


class Environment:
    """An environment of Murano, over REST.

    Its tasks begin in different seconds: Murano finds the last one by a time in whole
    seconds, and would hand the result of one to another.
    """

    def __init__(self, project: Project, environment_id: str | None = None) -> None:
        """Create an environment, or take the one with an id."""
        self._murano = project.murano
        self._last_task = 0
        if environment_id is None:
            created = self._murano.post("/v1/environments", json={"name": uuid.uuid4().hex})
            environment_id = str(created.json()["id"])
        self.id = environment_id
        self._path = f"/v1/environments/{self.id}"

    def configure(self) -> str:
        """Open a session, and return its id."""
        return str(self._murano.post(f"{self._path}/configure").json()["id"])

    def start(self, *applications: Mapping[str, Any]) -> Self:
        """Add applications, and start a deployment."""
        session = self.configure()
        headers = {"X-Configuration-Session": session}
        for application in applications:
            self._murano.post(f"{self._path}/services", json=application, headers=headers)
        self._begin("POST", f"{self._path}/sessions/{session}/deploy")
        return self

    def deploy_session(self, session: str) -> str:
        """Deploy a session, and return the environment's status at the end."""
        self._begin("POST", f"{self._path}/sessions/{session}/deploy")
        return self.wait()

    def model(self) -> Any:
        """Return the model of the environment."""
        return self._murano.get(f"{self._path}/model/").json()

    def patch_model(self, session: str, path: str, value: object) -> None:
        """Set a value of the model in a session."""
        headers = {
            "X-Configuration-Session": session,
            "Content-Type": "application/env-model-json-patch",
        }
        patch = [{"op": "add", "path": path, "value": value}]
        self._murano.patch(f"{self._path}/model/", json=patch, headers=headers)

    def deploy(self, *applications: Mapping[str, Any]) -> Self:
        """Add applications, and deploy the environment."""
        self.start(*applications)
        assert self.wait() == "ready", self.reports()
        return self

    def wait(self) -> str:
        """Wait for the end of a task, and return the environment's status, or ``deleted``."""

        def ended() -> str | None:
            status = self.status()
            return None if status in ("deploying", "deleting") else status

        return str(processes.wait_until(ended, "the end of a task", _DEPLOYMENT_SECONDS))

    def status(self) -> str:
        """Return the environment's status, or ``deleted``."""
        answer = self._murano.get(self._path, raise_exc=False)
        if answer.status_code == 404:
            return "deleted"
        # The API answers 500 while it removes the environment.
        return str(answer.json()["status"]) if answer.ok else "deleting"

    def delete(self) -> str:
        """Delete the environment with all that it has deployed, and return its status."""
        self.start_deletion()
        return self.wait()

    def start_deletion(self) -> None:
        """Start to delete the environment."""
        self._begin("DELETE", self._path)

    def abandon(self) -> None:
        """Have Murano forget the environment."""
        self._begin("DELETE", self._path, params={"abandon": "true"})

    def reports(self) -> list[str]:
        """Return the reports of the last deployment."""
        deployments = self._murano.get(f"{self._path}/deployments").json()["deployments"]
        path = f"{self._path}/deployments/{deployments[0]['id']}"
        return [report["text"] for report in self._murano.get(path).json()["reports"]]

    def application(self, name: str) -> dict[str, Any]:
        """Return the model of an application."""
        found = self._murano.get(f"{self._path}/services").json()
        (application,) = [model for model in found if model["name"] == name]
        return dict(application)

    def versions(self) -> set[str]:
        """Return the types, with versions, of all objects in the applications' models."""
        return set(_types(self._murano.get(f"{self._path}/services").json()))

    def run(self, application: str, method: str, **arguments: Any) -> dict[str, Any]:
        """Run an action of an application, and return its outcome."""
        actions = self.application(application)["?"]["_actions"]
        (action,) = [key for key, action in actions.items() if action["name"] == method]
        path = f"{self._path}/actions"
        task = self._begin("POST", f"{path}/{action}", json=arguments).json()["task_id"]
        self.wait()

        def outcome() -> Any:
            return self._murano.get(f"{path}/{task}").json()

        # After a task that another user began in the same second, the wait may end early.
        return dict(processes.wait_until(outcome, "the outcome of an action", _DEPLOYMENT_SECONDS))

    def act(self, application: str, method: str, **arguments: Any) -> Any:
        """Run an action of an application, and return its result."""
        outcome = self.run(application, method, **arguments)
        assert not outcome["isException"], outcome
        return outcome["result"]

    def wait_for_next_second(self) -> None:
        """Wait until the sessions of this second are older than any later one.

        Murano takes the status from the last session by a time in whole seconds: an open
        session of the second in which a deployment ends hides the deployment's outcome.
        It stores an outcome in the last task by such a time as well: of two tasks that begin
        in one second, one may never get its outcome.
        """
        self._wait_until_after(int(time.time()))

    def _begin(self, method: str, path: str, **request: Any) -> requests.Response:
        self._wait_until_after(self._last_task)
        response = self._murano.request(path, method, **request)
        self._last_task = int(time.time())
        return response

    def _wait_until_after(self, second: int) -> None:
        def passed() -> bool:
            return int(time.time()) > second

        processes.wait_until(passed, "the next second", 2)


def _types(model: Any) -> Iterator[str]:
    if isinstance(model, dict):
        if "?" in model:
            yield model["?"]["type"]
        model = list(model.values())
    if isinstance(model, list):
        for value in model:
            yield from _types(value)


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Cloud]:
    """Run all services, with the core library and the examples published."""
    with contextlib.ExitStack() as stack:
        identity = stack.enter_context(installation.installed(folder)).identity
        for project in _PROJECTS:
            identity.add_project(project)
        port = processes.free_port()
        identity.add_service("murano", "application-catalog", f"http://127.0.0.1:{port}")
        admin = publish.client(identity.session())
        publish.publish(admin, demo.PACKAGES.glob("*/*/"), public=True)
        cache = folder / "packages-cache"
        transport_url = stack.enter_context(services.message_queue())
        murano_conf = folder / "murano.conf"
        murano_conf.write_text(
            _MURANO_CONF.format(
                port=port,
                transport_url=transport_url,
                database=stack.enter_context(databases.mariadb(folder)),
                keystone=identity.url,
                middleware=identity.middleware,
                paste=murano_api.PASTE_FILE,
            )
        )
        loader_conf = folder / "loader.conf"
        loader_conf.write_text(_LOADER_CONF.read_text().replace(_CACHE, str(cache)))

        def command(name: str, *more: pathlib.Path) -> list[Any]:
            files = (f"--config-file={conf}" for conf in (murano_conf, loader_conf, *more))
            return [installation.BIN / name, *files]

        @contextlib.contextmanager
        def stock_api() -> Iterator[str]:
            port = processes.free_port()
            conf = folder / "stock.conf"
            conf.write_text(_STOCK_CONF.format(port=port, paste=_STOCK_PASTE))
            with processes.listening(command("murano-api", conf), port, folder / "stock-api.out"):
                yield f"http://127.0.0.1:{port}"

        subprocess.run([*command("murano-db-manage"), "upgrade"], check=True)
        api = Api(stack, command("murano-api"), port, folder / "murano-api.out")
        api.start()
        engines = Engines(stack, folder, command("murano-glare-engine"), transport_url)
        engines.start()
        projects = (_project(identity.session(name)) for name in _PROJECTS)
        operator = _murano(identity.session())
        published = folder / "published"
        yield Cloud(
            operator,
            *projects,
            cache,
            transport_url,
            api,
            engines,
            identity,
            stock_api,
            admin,
            published,
        )


def _project(session: ksa_session.Session) -> Project:
    return Project(_murano(session), publish.client(session))


def _murano(session: ksa_session.Session) -> adapter.Adapter:
    return adapter.Adapter(session, service_type="application-catalog")
