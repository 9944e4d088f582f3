# SPDX-License-Identifier: Apache-2.0

"""Where a tenant's package can make the engine connect to, and with whose credentials.

Keystone and RabbitMQ are the real ones. Small web servers play the other services: a service
that redirects to a foreign host, or that shows the token which it has got, is not to be had.
"""

import contextlib
import dataclasses
import json
import pathlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest
from castellan import options as castellan_options
from keystoneauth1 import loading as ksa_loading
from keystoneclient.v3 import client as keystone_client
from murano.common import auth_utils

from loader.engine import agent_brokers
from tests import packages, prerequisites, web
from tests.functional import keystone
from tests.integration import services, tasks

# Seconds for a test with its fixtures: the first one starts Keystone.
pytestmark = [pytest.mark.services, pytest.mark.timeout(120)]

# The environment of a task in these tests.
OWN = "test"
OTHER = "other-environment"
SECRET = "6d1f3a5c-7e9b-4d0f-8a2c-4e6b8d0f1a3c"

_TOOLS = """\
Namespaces:
  =: org.test.reach
  std: io.murano
  sys: io.murano.system
Name: Tools
Extends: std:Application
Properties:
  name:
    Contract: $.string()
  environment:
    Contract: $.class(std:Environment)
Methods:
  networks:
    Scope: Public
    Body:
      - $region: $.find(std:Environment).regions['']
      - Return: new(sys:NetworkExplorer, $region).listNetworks()
  workflow:
    Scope: Public
    Body:
      - new(sys:MistralClient, $this).upload('workflow')
  stack:
    Scope: Public
    Body:
      - $stack: new(sys:HeatStack, $this, name => 'a-stack')
      - $resource: dict(type => 'OS::Nova::Server',
          properties => dict(user_data => dict(get_file => 'file:///etc/passwd')))
      - $stack.setTemplate(dict(resources => dict(server => $resource)))
      - $stack.setFiles(dict('http://127.0.0.1:1/file' => 'its content'))
      - $stack.push()
  decrypt:
    Scope: Public
    Arguments:
      id:
        Contract: $.string()
    Body:
      - Return: decryptData($id)
  owner:
    Scope: Public
    Body:
      - Return:
          - std:User.getCurrent().id
          - std:User.getEnvironmentOwner().id
          - std:Project.getCurrent().id
          - std:Project.getEnvironmentOwner().id
"""

_HOST = """\
Namespaces:
  =: org.test.reach
  std: io.murano
  sys: io.murano.system
Name: {name}
Extends: std:Application
Properties:
  name:
    Contract: $.string()
  settings:
    Contract:
      $.string(): $
  neighbour:
    Contract: $.class(std:Object)
Methods:
  getRegion:
    Body:
      - Return: {region}
  getConfig:
    Body:
      - Return: dict(agentRabbitMq => $.settings)
  send:
    Scope: Public
    Body:
      - new(sys:Agent, $this, host => $this).sendRaw(dict(Body => hello))
  prepare:
    Scope: Public
    Body:
      - Return: new(sys:Agent, $this, host => $this).queueName()
"""

Answer = Callable[[web.Request], web.Answer]


@dataclasses.dataclass
class Cloud:
    """A Keystone, whose catalogue has one web server for every other service.

    :ivar answer: what that server answers.
    """

    identity: keystone.Keystone
    service: web.Recorder
    answer: Answer
    _owners: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)

    def owner(self, project: str = "one") -> dict[str, str]:
        """Return the credentials of a task."""
        if project not in self._owners:
            session = self.identity.session(project)
            token = session.auth.get_access(session)
            owner = {"project_id": token.project_id, "user_id": token.user_id}
            self._owners[project] = {"token": token.auth_token, **owner}
        return self._owners[project]

    def described(self, token: str | None) -> tuple[str, str]:
        """Return the user and the project of a token."""
        keystone = keystone_client.Client(session=self.identity.session())
        found = keystone.tokens.validate(token)
        return found.user_id, found.project_id


@pytest.fixture(scope="module")
def running_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with keystone.running(tmp_path_factory.mktemp("keystone")) as identity:
        for project in ("one", "other"):
            identity.add_project(project)

        def answer(request: web.Request) -> web.Answer:
            return cloud.answer(request)

        with web.recording(answer) as service:
            for kind in ("network", "workflowv2", "orchestration", "key-manager"):
                identity.add_service(kind, kind, service.url)
            cloud = Cloud(identity, service, lambda _: web.Answer(404))
            yield cloud


@pytest.fixture
def cloud(running_cloud: Cloud, conf: Any, tmp_path: pathlib.Path) -> Iterator[Cloud]:
    """The cloud, with an engine whose packages come from a directory."""
    classes = {
        "Tools": _TOOLS,
        "Host": _HOST.format(name="Host", region="$.find(std:Environment).regions['']"),
        "Spy": _HOST.format(name="Spy", region="$this"),
    }
    names = {f"org.test.reach.{name}": f"{name}.yaml" for name in classes}
    manifest = packages.manifest("org.test.reach", Classes=names)
    content = packages.files(manifest)
    content |= {f"Classes/{name}.yaml": code.encode() for name, code in classes.items()}
    packages.write(tmp_path / "packages", content)
    running_cloud.service.requests.clear()
    ksa_loading.register_auth_conf_options(conf, "murano_auth")
    password = ksa_loading.get_auth_plugin_conf_options("password")
    conf.register_opts(password, group="murano_auth")
    overrides = {
        "engine": {
            "load_packages_from": [str(prerequisites.core_library()), str(tmp_path / "packages")],
            "use_trusts": False,
            "task_cells": True,
        },
        "murano_auth": {
            **running_cloud.identity.credentials(),
            "auth_type": "password",
            "www_authenticate_uri": running_cloud.identity.url,
        },
        "package_loader": {"catalogs": ["directory"]},
    }
    for group, values in overrides.items():
        for option, value in values.items():
            conf.set_override(option, value, group)
    yield running_cloud
    for group, values in overrides.items():
        for option in values:
            conf.clear_override(option, group)


def _run(cloud: Cloud, kind: str, method: str, **properties: Any) -> Any:
    return _run_in(_model(kind, cloud.owner(), **properties), cloud.owner(), method)


def _run_in(model: Any, owner: dict[str, str], method: str, **arguments: Any) -> Any:
    return tasks.run_model(model, tasks.action("object", method, **arguments), owner)


def _model(kind: str, owner: dict[str, str], **properties: Any) -> Any:
    header = {"id": "object", "type": f"org.test.reach.{kind}"}
    environment = {
        "?": {"id": OWN, "type": "io.murano.Environment"},
        "name": "own",
        "applications": [{"?": header, "name": "an application", **properties}],
    }
    return {
        "Objects": environment,
        "SystemData": {"Packages": {}},
        "project_id": owner["project_id"],
        "user_id": owner["user_id"],
    }


def _result(answer: Any) -> Any:
    assert not answer["action"]["isException"], answer["action"]["result"]
    return answer["action"]["result"]


def _error(answer: Any) -> str:
    assert answer["action"]["isException"], answer["action"]["result"]
    return str(answer["action"]["result"]["message"])


# HTTP


def _networks(_: web.Request) -> web.Answer:
    return web.Answer(200, {"networks": [{"name": "a network"}]})


def test_a_service_of_the_catalogue_is_reached(cloud: Cloud) -> None:
    cloud.answer = _networks

    assert _result(_run(cloud, "Tools", "networks")) == [{"name": "a network"}]

    owner = cloud.owner()
    (request,) = cloud.service.requests
    assert cloud.described(request.token) == (owner["user_id"], owner["project_id"])


def _redirecting(url: str) -> Answer:
    """Redirect all requests but those for a discovery document."""
    redirection = web.Answer(302, location=f"{url}/elsewhere")
    return lambda request: web.Answer(404) if request.path == "/" else redirection


@pytest.mark.parametrize("method", ["networks", "workflow"])
def test_a_redirection_to_a_foreign_host_is_not_followed(cloud: Cloud, method: str) -> None:
    with web.recording(_networks) as foreign:
        cloud.answer = _redirecting(foreign.url)

        message = _error(_run(cloud, "Tools", method))

    assert foreign.requests == []
    address = foreign.url.removeprefix("http://")
    assert f"does not connect to {address}" in message
    assert "[engine] reachable_endpoints" in message


def test_a_redirection_to_a_host_that_the_operator_names_is_followed(
    cloud: Cloud, conf: Any
) -> None:
    with web.recording(_networks) as named:
        cloud.answer = _redirecting(named.url)
        address = named.url.removeprefix("http://")
        conf.set_override("reachable_endpoints", [address], "engine")

        assert _result(_run(cloud, "Tools", "networks")) == [{"name": "a network"}]

    assert [request.path for request in named.requests] == ["/elsewhere"]


def test_a_workflow_is_uploaded(cloud: Cloud) -> None:
    cloud.answer = lambda _: web.Answer(201, {"workflows": []})

    _result(_run(cloud, "Tools", "workflow"))

    (request,) = [request for request in cloud.service.requests if request.method == "POST"]
    assert request.path.startswith("/workflows")


def test_files_of_a_stack_are_sent_as_written_and_never_fetched(cloud: Cloud) -> None:
    def heat(request: web.Request) -> web.Answer:
        if request.method == "POST":
            return web.Answer(201, {"stack": {"id": "id"}})
        if not any(request.method == "POST" for request in cloud.service.requests):
            return web.Answer(404, {})
        stack = {"stack_name": "a-stack", "id": "id", "stack_status": "CREATE_COMPLETE"}
        times = {"creation_time": "now", "updated_time": None, "outputs": []}
        return web.Answer(200, {"stack": {**stack, **times}})

    cloud.answer = heat

    _result(_run(cloud, "Tools", "stack"))

    (created,) = [request for request in cloud.service.requests if request.method == "POST"]
    assert b'"get_file": "file:///etc/passwd"' in created.body
    assert b'"http://127.0.0.1:1/file": "its content"' in created.body
    assert b"root:" not in created.body


# RabbitMQ


@dataclasses.dataclass(frozen=True)
class Agents:
    """The RabbitMQ of the agents.

    :param settings: as ``getConfig`` of a region returns them.
    """

    url: str
    settings: dict[str, Any]

    @classmethod
    def at(cls, url: str) -> Self:
        """Return the agents of a virtual host."""
        host = {"host": "127.0.0.1", "port": 5672, "virtual_host": url.rpartition("/")[2]}
        return cls(url, {**host, "login": "guest", "password": "guest"})

    def received(self) -> bool:
        """Take a message for the agent of the host ``object``, and return whether it is there."""
        return services.take_message(self.url, f"e{OWN}-hobject") is not None


@pytest.fixture(scope="module")
def virtual_host() -> Iterator[str]:
    with services.message_queue() as url:
        yield url


@pytest.fixture
def agents(conf: Any, virtual_host: str) -> Agents:
    """A virtual host for the agents, which the engine's configuration names."""
    found = Agents.at(virtual_host)
    for option, value in found.settings.items():
        conf.set_override(option, value, "rabbitmq")
    return found


@contextlib.contextmanager
def _listening() -> Iterator[tuple[int, Callable[[], bool]]]:
    """Yield the port of a tenant's server, and whether anything has connected."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)

        def connected() -> bool:
            with contextlib.suppress(BlockingIOError):
                server.accept()[0].close()
                return True
            return False

        yield server.getsockname()[1], connected


def test_the_agents_of_the_own_environment_are_reached(cloud: Cloud, agents: Agents) -> None:
    _result(_run(cloud, "Host", "send"))

    assert agents.received()


def test_a_region_of_a_package_with_the_operators_settings_is_reached(
    cloud: Cloud, agents: Agents
) -> None:
    _result(_run(cloud, "Spy", "send", settings=agents.settings))

    assert agents.received()


def _foreign(port: int) -> dict[str, dict[str, Any]]:
    own = {"host": "127.0.0.1", "port": 5672, "login": "guest", "password": "guest"}
    return {
        "host and port": {**own, "port": port},
        "login": {**own, "login": f"x:y@127.0.0.1:{port}/?"},
        "password": {**own, "password": f"y@127.0.0.1:{port}/?"},
        "alternates": {**own, "login": f"x;amqp://guest:guest@127.0.0.1:{port}//"},
        "virtual host": {**own, "virtual_host": f"/;amqp://guest:guest@127.0.0.1:{port}//"},
        "list": {**own, "host": ["127.0.0.1", f"127.0.0.1:{port}"]},
        "url": {**own, "host": f"guest@127.0.0.1:{port}/?", "port": 5672},
        "nothing": {},
    }


@pytest.mark.parametrize("trick", _foreign(0))
@pytest.mark.usefixtures("agents")
def test_a_region_of_a_package_does_not_choose_the_host(cloud: Cloud, trick: str) -> None:
    with _listening() as (port, connected):
        message = _error(_run(cloud, "Spy", "send", settings=_foreign(port)[trick]))

        assert not connected()

    assert "does not connect to" in message or "agentRabbitMq" in message
    assert "guest:" not in message


def test_other_credentials_and_virtual_hosts_of_the_same_server_are_not_tried(
    cloud: Cloud, agents: Agents
) -> None:
    for change in ({"virtual_host": "/"}, {"password": "guess"}, {"login": "murano"}):
        settings = {**agents.settings, **change}

        message = _error(_run(cloud, "Spy", "send", settings=settings))

        assert "does not connect to 127.0.0.1:5672" in message


def test_the_class_config_of_environments_names_more(
    cloud: Cloud, agents: Agents, conf: Any, tmp_path: pathlib.Path
) -> None:
    with services.message_queue() as url:
        other = Agents.at(url)
        regions = "".join(f"\n    {key}: {value}" for key, value in other.settings.items())
        file = tmp_path / "class-configs" / "io.murano.Environment-0.yaml"
        file.parent.mkdir()
        file.write_text(f"regionConfigs:\n  '':\n   agentRabbitMq:{regions}\n")
        conf.set_override("class_configs", str(file.parent), "engine")

        _result(_run(cloud, "Host", "send"))

        assert other.received()


@pytest.mark.parametrize("place", ["options", "class config"])
@pytest.mark.parametrize("method", ["prepare", "send"])
def test_a_shared_password_reaches_no_cell_and_the_error_says_so(
    cloud: Cloud, agents: Agents, conf: Any, tmp_path: pathlib.Path, place: str, method: str
) -> None:
    conf.set_override("transport_url", agents.url)
    if place == "class config":
        file = tmp_path / "class-configs" / "io.murano.Environment-0.yaml"
        file.parent.mkdir()
        regions = {"": {"agentRabbitMq": agents.settings}}
        file.write_text(json.dumps({"regionConfigs": regions}))
        conf.set_override("class_configs", str(file.parent), "engine")

    message = _error(_run(cloud, "Host", method))

    assert "does not connect to 127.0.0.1:5672" in message
    assert "has the user guest of the services" in message
    assert "share_agent_password" in message
    # Other tasks go on.
    _result(_run(cloud, "Tools", "owner"))


def test_an_endpoint_that_the_operator_names_gets_the_settings_of_the_package(
    cloud: Cloud, agents: Agents, conf: Any
) -> None:
    with _listening() as (port, connected):
        conf.set_override("reachable_endpoints", [f"127.0.0.1:{port}"], "engine")
        settings = {**agents.settings, "port": port}
        broker = agent_brokers.select(settings, conf)

        assert broker.destination.port == port
        assert not connected()


def test_the_agents_of_another_environment_are_not_reached(cloud: Cloud, agents: Agents) -> None:
    owner = cloud.owner()
    model = _model("Tools", owner)
    (tools,) = model["Objects"]["applications"]
    host = {"?": {"id": "object", "type": "org.test.reach.Host"}, "name": "host"}
    tools["?"]["id"] = "tools"
    tools["environment"] = {
        "?": {"id": OTHER, "type": "io.murano.Environment"},
        "name": "forged",
        "applications": [host],
    }

    message = _error(_run_in(model, owner, "send"))

    assert f"e{OTHER}-hobject does not belong to environment {OWN}" in message


# Credentials


def test_a_user_is_that_of_the_task(cloud: Cloud) -> None:
    owner = cloud.owner()

    found = _result(_run(cloud, "Tools", "owner"))

    assert found == [owner["user_id"], owner["user_id"], owner["project_id"], owner["project_id"]]


def _barbican(request: web.Request) -> web.Answer:
    if SECRET not in request.path:
        link = {"rel": "self", "href": "/v1/"}
        version = {"id": "v1", "status": "CURRENT", "links": [link]}
        limits = {"min_version": "1.0", "max_version": "1.1", "updated": "2026-01-01T00:00:00Z"}
        return web.Answer(200, {"versions": [{**version, **limits}]})
    if request.path.endswith("/payload"):
        return web.Answer(200, "opened")
    secret = {"status": "ACTIVE", "secret_type": "passphrase", "name": None}
    content = {"default": "text/plain"}
    created = {"created": "2026-01-01T00:00:00", "updated": "2026-01-01T00:00:00"}
    return web.Answer(200, {**secret, **created, "content_types": content})


@pytest.fixture
def secrets(cloud: Cloud, conf: Any) -> Iterator[None]:
    """Barbican, which the operator has enabled for packages."""
    castellan_options.set_defaults(conf)
    conf.set_override("barbican_endpoint", cloud.service.url, "barbican")
    conf.set_override("decrypt_data", True, "engine")
    cloud.answer = _barbican
    yield
    conf.clear_override("barbican_endpoint", "barbican")


def test_a_secret_is_read_with_the_token_of_the_task(cloud: Cloud, secrets: None) -> None:
    owner = cloud.owner()

    answer = _run_in(_model("Tools", owner), owner, "decrypt", id=SECRET)

    assert "opened" in str(_result(answer))
    assert {cloud.described(request.token) for request in cloud.service.requests} == {
        (owner["user_id"], owner["project_id"])
    }


def test_the_id_of_a_secret_names_no_host(cloud: Cloud, secrets: None) -> None:
    owner = cloud.owner()
    with web.recording(_barbican) as foreign:
        for name in (f"{foreign.url}/v1/secrets/{SECRET}", f"../../{SECRET}", "nothing"):
            answer = _run_in(_model("Tools", owner), owner, "decrypt", id=name)

            assert "the argument is not the id of a secret" in _error(answer)

    assert foreign.requests == cloud.service.requests == []


@pytest.fixture
def trusts(conf: Any) -> None:
    """The default of Murano."""
    conf.set_override("use_trusts", True, "engine")


def _trust(owner: dict[str, str]) -> str:
    return str(auth_utils.create_trust(owner["token"], owner["project_id"]))


def test_the_trust_of_another_project_is_not_used(cloud: Cloud, trusts: None) -> None:
    owner, victim = cloud.owner(), cloud.owner("other")
    cloud.answer = _networks
    model = _model("Tools", owner)
    model["SystemData"]["TrustId"] = _trust(victim)

    message = _error(_run_in(model, owner, "networks"))

    assert f"the trust of the environment belongs to project {victim['project_id']}" in message
    assert cloud.service.requests == []


def test_the_trust_of_the_environment_is_used(cloud: Cloud, trusts: None) -> None:
    owner = cloud.owner()
    cloud.answer = _networks
    model = _model("Tools", owner)

    answer = _run_in(model, owner, "networks")

    assert _result(answer) == [{"name": "a network"}]
    assert answer["model"]["SystemData"]["TrustId"]
    (request,) = cloud.service.requests
    assert request.token != owner["token"]
    assert cloud.described(request.token) == (owner["user_id"], owner["project_id"])


@pytest.mark.usefixtures("trusts")
def test_an_administrators_task_leaves_no_trust_in_the_environment(cloud: Cloud) -> None:
    administrator = cloud.owner("admin")
    cloud.answer = _networks
    model = _model("Tools", cloud.owner())

    answer = _run_in(model, administrator, "networks")

    assert _result(answer) == [{"name": "a network"}]
    assert not answer["model"]["SystemData"].get("TrustId")
