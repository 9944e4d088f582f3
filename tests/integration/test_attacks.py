# SPDX-License-Identifier: Apache-2.0

"""Packages that a tenant publishes to read, stop or imitate what is not his own.

The packages are those of ``attacks``. One engine with one process runs them all, and beside each
an honest deployment of another tenant. Glare, RabbitMQ and the engine are the real ones; the
tests play murano-api.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import resource
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any

import keystoneauth1.exceptions
import pytest
import yaml

from examples import demo
from glare_murano import fields, wire
from tests import packages, processes
from tests.integration import attacks, publish, services
from tests.integration.attacks import Attack

pytestmark = [pytest.mark.services, pytest.mark.attacks]

HONEST = "org.honest"
MALLORY = {"token": "mallory:attackers:member", "project_id": "attackers", "user_id": "mallory"}

# What no package may read begins with it.
PLANTED = f"planted-{uuid.uuid4().hex}"
# What each package may read, by Murano's design.
AGENTS = f"agents-{uuid.uuid4().hex}"

# The limits of the engine, in seconds.
BLOCKING = 1
REQUEST = 9
TASK = 12
# Of the engine's processor time in seconds, for what an attack does before and after it is stopped.
# That took at most 1 second on a slow machine; an attack that is not stopped takes all of TASK.
_SLACK = 3
# Attacks that do not hold the engine.
_AT_ONCE = 6
_GIBIBYTE = 1024**3
# What the address space of the engine may grow to, so that this host survives.
_ADDRESS_SPACE = 3 * _GIBIBYTE
_MEMORY = _GIBIBYTE

_OPTIONS = """
[database]
connection = mysql+pymysql://murano:{planted}-database@127.0.0.1/murano

[engine]
agent_timeout = 5
blocking_seconds = {blocking}
class_configs = {configs}
load_packages_from = {directory}
max_green_threads = 200
max_messages = 500
max_task_memory = 256
request_seconds = {request}
task_seconds = {task}

[keystone_authtoken]
password = {planted}-keystone

[murano_auth]
password = {planted}-murano

[package_loader]
reserved_names_file = {reserved}

[rabbitmq]
host = 127.0.0.1
login = agents
password = {agents}
"""

_HONEST_CLASS = """\
Namespaces:
  std: io.murano
Name: org.honest.Application
Extends: std:Application
Properties:
  name:
    Contract: $.string().notNull()
  secret:
    Contract: $.string().notNull()
  agents:
    Usage: Out
    Contract: $.string()
  stage:
    Usage: Out
    Contract: $.string()
Methods:
  deploy:
    Body:
      - For: i
        In: range(4)
        Do:
          - $.stage: format('step {0} of {1}', $i, $.name)
          - sleep(0.1)
      - $.agents: $.find(std:Environment).regionConfigs.get('').agentRabbitMq.password
      - $.stage: done
"""


@dataclasses.dataclass
class Outcome:
    """What became of an attack, and of the honest deployment beside it.

    :param refusal: of the upload.
    :param error: the message and the details of an error.
    :param answer: all that the attacker sees.
    :param seconds: the processor time of the engine until the honest deployment ended.
    """

    error: str
    answer: str
    honest: Any
    seconds: float
    refusal: str = ""


@dataclasses.dataclass
class Site:
    """The services that run.

    :param places: what stands for the places in attacks.
    :param folder: has the engine's directories: ``cwd``, ``engine`` and ``tmp``.
    """

    glare_url: str
    queue: str
    engine: services.Engine
    api: services.MuranoApi
    trap: "Trap"
    places: dict[str, str]
    folder: pathlib.Path
    _reports: list[Any] = dataclasses.field(default_factory=list)

    def publish(self, attack: Attack) -> str:
        """Publish the package of an attack for the attacker's project, and return the refusal."""
        # The package that was published earlier keeps its version.
        patch = 1 if attack.past == "earlier" else 0
        return _publish(self.glare_url, attack.build(self.places, patch))

    @property
    def reports(self) -> list[Any]:
        """What the engine has reported to murano-api so far."""
        for message in services.take_messages(self.queue, "murano.info"):
            body = json.loads(json.loads(message.body)["oslo.message"])
            self._reports.append(body["payload"])
        return self._reports


VICTIM = uuid.uuid4().hex
# A class of the operator's, which has a file in class_configs.
CONFIGURED = "org.configured.Application"


class Trap:
    """A port at which nobody may connect."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]

    def is_sprung(self) -> bool:
        """Return whether somebody has connected since the last call."""
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Everything, with the honest package published."""
    folder = tmp_path_factory.mktemp("attacks")
    for name in ("cwd", "directory", "engine", "glare", "tmp"):
        (folder / name).mkdir()
    trap = Trap()
    places = {"victim": VICTIM, "trap": str(trap.port)}
    _write_packages(folder, places)
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(_glare(folder, places))
        queue = stack.enter_context(services.message_queue())
        engine = stack.enter_context(_engine(folder, queue, url))
        api = stack.enter_context(services.MuranoApi(queue, engine))
        yield Site(url, queue, engine, api, trap, places, folder)


def _write_packages(folder: pathlib.Path, places: dict[str, str]) -> None:
    """Write what comes to the engine past a service, and the operator's files."""
    for attack in attacks.attacks():
        if attack.past == "directory":
            packages.write(folder / "directory" / attack.slug, attack.build(places))
    (folder / "configs").mkdir()
    secret = json.dumps({"secret": f"{PLANTED}-configs"})
    (folder / "configs" / f"{CONFIGURED}.json").write_text(secret)
    content = packages.content(HONEST, Classes={f"{HONEST}.Application": "Application.yaml"})
    content["Classes/Application.yaml"] = _HONEST_CLASS.encode()
    packages.write(folder / "honest", content)


@contextlib.contextmanager
def _glare(folder: pathlib.Path, places: dict[str, str]) -> Iterator[str]:
    """Run Glare, with all packages that were published before their names were reserved."""
    state, reserved = folder / "glare", folder / "reserved-names.yaml"
    (state / "glare").mkdir(mode=0o700)
    option = f"[artifact_type:murano]\nreserved_names_file = {reserved}\n"
    local = state / "glare" / "local.conf"
    # Some of the earlier packages are older than the check of base classes.
    local.write_text(f"{option}check_requirements = off\n")
    reserved.write_text(attacks.reserved_names(MALLORY["project_id"]))
    with demo.DevelopmentServer(state) as url:
        services.publish_everything(url, folder / "honest")
        for attack in attacks.attacks():
            if attack.past == "earlier":
                refusal = _publish(url, attack.build(places))
                assert refusal == "", refusal
    reserved.write_text(attacks.reserved_names())
    local.write_text(option)
    with demo.DevelopmentServer(state) as url:
        yield url


@contextlib.contextmanager
def _engine(folder: pathlib.Path, queue: str, url: str) -> Iterator[services.Engine]:
    """Run an engine with secrets, strict limits and a bound of its memory."""
    options = _OPTIONS.format(
        agents=AGENTS,
        blocking=BLOCKING,
        configs=folder / "configs",
        directory=folder / "directory",
        planted=PLANTED,
        request=REQUEST,
        reserved=folder / "reserved-names.yaml",
        task=TASK,
    )
    environment = {"TMPDIR": str(folder / "tmp"), "PLANTED": f"{PLANTED}-environment"}
    with services.murano_engine(
        folder / "engine",
        queue,
        url,
        options=options,
        environment=environment,
        directory=folder / "cwd",
    ) as engine:
        resource.prlimit(engine.pid, resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
        yield engine


def _publish(url: str, files: Mapping[str, bytes]) -> str:
    """Publish a package for the attacker's project, and return the refusal.

    Nothing reads the package on this side.
    """
    glare = publish.client_of(url, MALLORY["token"])
    manifest = yaml.safe_load(files["manifest.yaml"])
    artifact = {"name": manifest["FullName"], "version": manifest["Version"]}
    try:
        draft = glare.post(publish.ARTIFACTS, json=artifact).json()["id"]
        glare.put(
            f"{publish.ARTIFACTS}/{draft}/{fields.ARCHIVE}",
            data=packages.zipped(files),
            headers={"Content-Type": "application/octet-stream"},
        )
        body = {"ids": [draft], "visibility": "private"}
        glare.post(wire.PUBLICATIONS_PATH, json=body)
    except keystoneauth1.exceptions.HttpError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def alone(site: Site) -> float:
    """The processor time of the honest deployment alone, once its package is loaded."""
    return [_run(site).seconds for _ in range(2)][-1]


@pytest.fixture(scope="module")
def outcomes(site: Site, alone: float, request: pytest.FixtureRequest) -> dict[str, Outcome]:
    """What became of the attacks that do not hold the engine, several at a time, by name."""
    chosen = [
        item.callspec.params["attack"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_attack.__name__
    ]
    together = [attack for attack in chosen if not attack.holds]
    # First those that take the longest.
    together.sort(key=lambda attack: attack.waits, reverse=True)
    with futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda attack: _attack(site, attack), together)
        return {attack.name: outcome for attack, outcome in zip(together, found, strict=True)}


@pytest.mark.parametrize("attack", [pytest.param(each, id=each.slug) for each in attacks.attacks()])
@pytest.mark.timeout(600)
def test_attack(attack: Attack, site: Site, alone: float, outcomes: dict[str, Outcome]) -> None:
    if attack.holds:
        outcome = _attack(site, attack)
        assert outcome.seconds < alone + attack.holds * BLOCKING + _SLACK
    else:
        outcome = outcomes[attack.name]

    _check_honest(outcome.honest)
    assert PLANTED not in outcome.answer
    assert PLANTED not in json.dumps(site.reports)
    assert [report for report in site.reports if _is_forged(report)] == []
    assert not site.trap.is_sprung()
    match attack.stopped:
        case "upload":
            assert attack.is_refusal(outcome.refusal), outcome.refusal
            assert attack.is_refusal_past_upload(outcome.error), outcome.error
        case "task":
            assert outcome.refusal == ""
            assert attack.is_refusal(outcome.error), outcome.error
            if attack.is_named:
                _check_place(attack, outcome.error)
        case _:
            assert outcome.refusal == ""
            assert outcome.error == ""
    assert _memory(site.engine, "VmHWM") < _MEMORY


def test_what_a_package_reads_is_seen(site: Site) -> None:
    """Read what every package may, so that the checks of all attacks are known to see it."""
    region = "$.find(std:Environment).regionConfigs.get('')"
    attack = Attack(
        name="control",
        tries="Nothing.",
        by="deploy",
        stopped="without effect",
        subject="control",
        module="",
        body=f"- $.out: {region}.agentRabbitMq.password\n"
        "- $.find(std:Environment).reporter.report($this, $.out)\n",
    )
    outcome = _attack(site, attack)

    assert outcome.refusal == ""
    assert outcome.error == ""
    assert AGENTS in outcome.answer
    assert AGENTS in json.dumps(site.reports)
    assert _is_forged({**site.reports[-1], "environment_id": VICTIM})
    socket.create_connection(("127.0.0.1", site.trap.port)).close()
    assert site.trap.is_sprung()


def test_nothing_is_left(site: Site, alone: float) -> None:
    """Run after all attacks: the engine answers, and has what it had before them."""
    assert _run(site).seconds < alone + _SLACK
    assert [*pathlib.Path(f"/proc/{site.engine.pid}/task").glob("*/children")]
    # The process from which cells are forked, a supervisor, and the cell for the next request.
    warm = "\0loader.engine.cells.warm:prepare\0"
    processes.wait_until(
        lambda: [warm in command for command in _commands(site)] == [True] * 3, "the last cells"
    )
    for name in ("cwd", "tmp"):
        assert [*(site.folder / name).iterdir()] == []
    written = {path.name for path in (site.folder / "engine").iterdir()}
    assert written == {"engine.out", "murano.conf", "murano-engine.log", "packages-cache"}
    # Of the services, and of the calls that await an answer.
    usual = re.compile(r"name|murano\.info|(tasks|results)(\..*|_fanout_.*)?|reply_.*")
    assert [name for name in services.queues(site.queue) if not usual.fullmatch(name)] == []
    assert "do not end" not in site.engine.log
    assert _memory(site.engine, "VmRSS") < _MEMORY / 2


def _commands(site: Site) -> list[str]:
    """Return the commands of the processes that the engine has started."""
    commands = []
    for pid in processes.descendants(site.engine.pid):
        # A cell may just be ending. Then its command is empty or missing.
        with contextlib.suppress(OSError):
            commands.append(pathlib.Path(f"/proc/{pid}/cmdline").read_text())
    return commands


def _check_place(attack: Attack, error: str) -> None:
    """Check that an error names the package, and the line of a class or a template."""
    assert attack.package in error
    # Metadata of schemas has the class alone.
    line = rf"(\.yaml|{re.escape(attack.package)}):\d+"
    assert attack.by == "schema" or re.search(line, error), error


def _attack(site: Site, attack: Attack) -> Outcome:
    """Publish the package of an attack, and use it even if that is refused."""
    refusal = site.publish(attack)
    return dataclasses.replace(_run(site, attack), refusal=refusal)


def _run(site: Site, attack: Attack | None = None) -> Outcome:
    """Use the package of an attack, and deploy the honest one beside it."""
    honest = _environment(f"{HONEST}.Application", demo.USER, {"secret": f"{PLANTED}-model"})
    started = _processor_time(site.engine)
    with futures.ThreadPoolExecutor() as pool:
        used = pool.submit(_use, attack, site) if attack else None
        result = site.api.run(honest, services.environment_id(honest), "deploy")
        seconds = _processor_time(site.engine) - started
        error, answer = used.result() if used else ("", None)
    error = " ".join(error.split())
    return Outcome(error, f"{error} {json.dumps(answer)}", result, seconds)


def _use(attack: Attack, site: Site) -> tuple[str, Any]:
    """Use the package of an attack; return the error and the answer."""
    match attack.by:
        case "schema":
            return _called(site.api.schema, attack.class_name, MALLORY)
        case "static action":
            call = site.api.call_static_action
            return _called(call, attack.class_name, "", "attack", MALLORY)
    result = site.api.result_of(_start(attack, site))
    if not result["action"]["isException"]:
        return "", result
    return "{message}\n{details}".format(**result["action"]["result"]), result


def _called(call: Callable[..., Any], *arguments: Any) -> tuple[str, Any]:
    """Call the engine; return the error and the answer."""
    try:
        return "", call(*arguments)
    except AssertionError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}", getattr(error, "traceback", None)


def _start(attack: Attack, site: Site) -> str:
    """Start the task of an attack, and return the id of its environment."""
    model = _environment(attack.class_name, MALLORY, attack.properties_in_model(site.places))
    name = services.environment_id(model)
    match attack.by:
        case "destroy":
            model |= {"Objects": None, "ObjectsCopy": model["Objects"]}
            site.api.start_deletion(name, model, MALLORY)
        case "action":
            site.api.start(model, f"{name}-app", "attack", MALLORY)
        case _:
            site.api.start(model, name, "deploy", MALLORY)
    return name


def _environment(class_name: str, user: Any, properties: Any) -> dict[str, Any]:
    name = uuid.uuid4().hex
    application = {"?": {"id": f"{name}-app", "type": class_name}, "name": "app", **properties}
    return {
        "Objects": {
            "?": {"id": name, "type": "io.murano.Environment"},
            "name": name,
            "applications": [application],
        },
        "SystemData": {},
        "project_id": user["project_id"],
        "user_id": user["user_id"],
    }


def _check_honest(result: Any) -> None:
    assert not result["action"]["isException"], result["action"]
    (application,) = result["model"]["Objects"]["applications"]
    assert application["stage"] == "done"
    assert application["secret"] == f"{PLANTED}-model"
    assert application["agents"] == AGENTS


def _is_forged(report: Any) -> bool:
    """Return whether an attacker has reported something for another tenant."""
    return VICTIM in (report.get("environment_id"), report.get("environment"))


def _memory(engine: services.Engine, name: str) -> int:
    """Return the bytes of the engine's memory in the kernel's table of this name."""
    status = pathlib.Path(f"/proc/{engine.pid}/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def _processor_time(engine: services.Engine) -> float:
    """Return the seconds that the engine has computed so far."""
    # After the name of the program, which may have spaces.
    fields = pathlib.Path(f"/proc/{engine.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
