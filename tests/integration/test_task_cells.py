# SPDX-License-Identifier: Apache-2.0

"""Tasks in cells: deployments, deletions and actions of objects.

The code of the packages runs Python; see ``break_out``.
"""

import base64
import gc
import json
import os
import pathlib
import re
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import eventlet
import oslo_messaging
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from murano.common import engine as murano_engine
from murano.common import rpc

from examples import demo
from glare_murano.package.sandbox import Busy
from loader.engine import tasks
from loader.engine.cells import (
    agent_access,
    cell_calls,
    package_answers,
    task_answers,
    task_cells,
    waiting_tasks,
)
from loader.engine.cells.package_answers import PackageAnswers
from tests import packages
from tests.integration import tasks as murano_tasks
from tests.integration.break_out import NAME, Package, installed
from tests.processes import wait_until

pytestmark = pytest.mark.programs

__all__ = ["installed"]

PASSWORD = "planted-password"
# How code in a cell finds the packages of its cell.
PACKAGES = (
    "from loader.engine.cells.cell_packages import CellPackages\n"
    "packages = next(o for o in gc.get_objects() if isinstance(o, CellPackages))\n"
)
# How code in a cell sends a query.
SEND = f"{PACKAGES}send = packages._send\n"
# A task without work.
_TASK = {
    "id": "test",
    "action": None,
    "model": {"project_id": demo.PROJECT, "user_id": "alice"},
    **demo.USER,
}


@pytest.fixture
def package(conf: Any, installed: Package) -> Package:
    conf.set_override("load_packages_from", [str(installed.folder)], "engine")
    conf.set_override("task_cells", True, "engine")
    return installed


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The notifications that the engine's process sends to murano-api."""
    found: list[tuple[str, Any]] = []

    class Notifier:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def info(self, _: Any, event: str, payload: Any) -> None:
            found.append((event, payload))

    # No message broker is there.
    monkeypatch.setattr(rpc, "NOTIFICATION_TRANSPORT", object())
    monkeypatch.setattr(rpc, "initialized", lambda: True)
    monkeypatch.setattr(oslo_messaging, "Notifier", Notifier)
    return found


def result_of(answer: Any) -> Any:
    """Return the result of an action that has succeeded."""
    assert not answer["action"]["isException"], answer["action"]["result"]
    return answer["action"]["result"]


def error_of(answer: Any) -> str:
    """Return the message of an action that has failed."""
    assert answer["action"]["isException"]
    return str(answer["action"]["result"]["message"])


def test_an_action_runs_in_a_cell_and_changes_the_model(package: Package) -> None:
    answer = package.act("result = os.getpid()")
    assert result_of(answer) != os.getpid()
    assert answer["model"]["Objects"]["size"] == 5
    assert answer["model"]["project_id"] == demo.PROJECT
    assert answer["model"]["SystemData"]["Packages"]


def test_tasks_run_in_the_engine_if_an_option_says_so(package: Package, conf: Any) -> None:
    conf.set_override("task_cells", False, "engine")
    assert result_of(package.act("result = os.getpid()")) == os.getpid()


def test_code_of_a_task_finds_no_secret(
    package: Package, conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_PASSWORD", PASSWORD)
    conf.set_override("transport_url", f"rabbit://murano:{PASSWORD}@127.0.0.1:5672/services")
    code = (
        "from murano.common import config\n"
        "options = [str(v) for g in config.CONF._groups for v in dict(config.CONF[g]).values()]\n"
        "result = json.dumps([dict(os.environ), options, config.CONF.transport_url])"
    )
    assert PASSWORD not in result_of(package.act(code))
    read = f"open('/proc/{os.getpid()}/mem', 'rb')"
    assert result_of(package.act(read)) == "PermissionError"


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_cell_gets_the_password_of_agents_unless_services_have_it(
    package: Package, conf: Any, is_shared: bool
) -> None:
    user = "murano" if is_shared else "other"
    conf.set_override("transport_url", f"rabbit://{user}:{PASSWORD}@127.0.0.1:5672/services")
    for name, value in {"host": "127.0.0.1", "login": "murano", "password": PASSWORD}.items():
        conf.set_override(name, value, "rabbitmq")
    conf.set_override("ca_certs", "/etc/ssl/agents.pem", "rabbitmq")
    names = ("host", "login", "password", "ca_certs")
    code = (
        "from murano.common import config\n"
        f"result = [config.CONF.rabbitmq[name] for name in {names!r}]"
    )
    found = ["127.0.0.1", "murano", PASSWORD, "/etc/ssl/agents.pem"]
    without = ["127.0.0.1", "", "", "/etc/ssl/agents.pem"]
    assert result_of(package.act(code)) == (without if is_shared else found)
    conf.set_override("share_agent_password", True, "engine")
    assert result_of(package.act(code)) == found


def test_a_cell_knows_what_deployments_read(
    package: Package, conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        (None, "file_server"): "http://files.example.org",
        ("networking", "external_network"): "public",
        ("networking", "default_dns"): ["192.0.2.1"],
        # Cells know this group only for the sake of a plug-in.
        ("engine", "plugin_option_groups"): ["stats"],
        ("stats", "period"): 7,
    }
    for (group, option), value in given.items():
        conf.set_override(option, value, group)
    monkeypatch.setenv("no_proxy", "localhost")
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{PASSWORD}@127.0.0.1:1")
    code = (
        "from murano.common import config\n"
        f"names = {[*given]!r}\n"
        "options = [config.CONF[group or option] for group, option in names]\n"
        "options = [o[n] if g else o for (g, n), o in zip(names, options)]\n"
        "result = [*options, config.CONF.engine.signing_key, os.environ['no_proxy'],\n"
        "    'HTTPS_PROXY' in os.environ]"
    )
    expected = [*given.values(), "", "localhost", False]
    try:
        assert result_of(package.act(code)) == expected
    finally:
        for group, option in given:
            conf.clear_override(option, group)


def test_a_cell_can_connect_to_the_proxy(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = proxy.getsockname()
        code = f"socket.create_connection({address!r})\nresult = 'connected'"
        assert result_of(package.act(code)) == "PermissionError"
        # This process needs no proxy.
        monkeypatch.setenv("no_proxy", "*")
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{address[1]}")
        assert result_of(package.act(code)) == "connected"


def test_a_cell_can_have_a_connection_for_each_of_many_machines(package: Package) -> None:
    code = "files = [open('/dev/zero') for _ in range(1000)]\nresult = len(files)"
    assert result_of(package.act(code)) == 1000


def test_a_cell_reads_an_archive_that_the_operator_allows(
    package: Package, conf: Any, tmp_path: pathlib.Path
) -> None:
    content = packages.content("org.test.large", code="Name: org.test.large.Thing\n")
    content["Resources/zeros"] = bytes(3 * 1024**2)
    (tmp_path / "large.zip").write_bytes(packages.zipped(content))
    conf.set_override("load_packages_from", [str(tmp_path)], "engine")
    conf.set_override("max_archive_ratio", 10_000, "package_loader")
    try:
        answer = murano_tasks.run({"type": "org.test.large.Thing"})
    finally:
        conf.clear_override("max_archive_ratio", "package_loader")
    assert not answer["action"]["isException"], answer


def test_a_task_reports_for_its_own_environment_only(
    package: Package, sent: list[tuple[str, Any]]
) -> None:
    report = {"id": "x", "text": "hello", "details": None, "level": "info"}
    forged = {**report, "environment_id": "victim", "timestamp": "1970-01-01", "more": 1}
    track = {"instance": "i", "instance_type": 100, "type_name": "t", "type_title": None}
    queries = [
        ("murano.report_notification", forged),
        ("murano.track_instance", {**track, "unit_count": 1, "environment": "victim"}),
        ("murano.untrack_instance", {"instance": "i", "instance_type": 100, "environment": "v"}),
    ]
    code = (
        f"{SEND}for event, payload in {queries!r}:\n"
        "    send({'query': 'notification', 'event': event, 'payload': payload})"
    )
    result_of(package.act(code))
    (_, first), *others = sent
    timestamp = first.pop("timestamp")
    assert timestamp > "2026"
    assert first == {**report, "environment_id": "test"}
    assert others == [
        ("murano.track_instance", {**track, "unit_count": 1, "environment": "test"}),
        (
            "murano.untrack_instance",
            {"instance": "i", "instance_type": 100, "environment": "test"},
        ),
    ]


def test_a_notification_has_only_characters_that_a_database_stores(
    package: Package, sent: list[tuple[str, Any]]
) -> None:
    odd, escaped = "a\ud800\0\n", "a\\ud800\\0\n"
    report = {"id": odd, "text": odd, "details": odd, "level": "info"}
    track = {"instance": odd, "instance_type": 1, "type_name": odd, "type_title": odd}
    queries = [
        ("murano.report_notification", report),
        ("murano.track_instance", {**track, "unit_count": 1}),
    ]
    code = (
        f"{SEND}for event, payload in json.loads({json.dumps(queries)!r}):\n"
        "    send({'query': 'notification', 'event': event, 'payload': payload})"
    )
    result_of(package.act(code))
    (_, first), (_, second) = sent
    assert [first[name] for name in ("id", "text", "details")] == [escaped] * 3
    assert [second[name] for name in ("instance", "type_name", "type_title")] == [escaped] * 3


@pytest.mark.parametrize(
    "query",
    [
        {"query": "notification", "event": "murano.environment.delete.end", "payload": {}},
        {"query": "notification", "event": "murano.report_notification", "payload": {"id": 1}},
        {
            "query": "notification",
            "event": "murano.report_notification",
            "payload": {"id": "x", "text": "x", "details": None, "level": "critical"},
        },
        {
            "query": "notification",
            "event": "murano.untrack_instance",
            "payload": {"instance": "x", "instance_type": 2**31},
        },
        {
            "query": "notification",
            "event": "murano.untrack_instance",
            "payload": {"instance": "x", "instance_type": True},
        },
        {"query": "signature"},
        {"query": "request"},
        {"query": "password"},
    ],
)
def test_a_cell_that_sends_another_query_is_ended(
    package: Package, sent: list[tuple[str, Any]], query: Any
) -> None:
    answer = package.act(f"{SEND}send({query!r})")
    assert "the cell of the task was ended" in error_of(answer)
    assert "the environment keeps the model that the task began with" in error_of(answer)
    assert "size" not in answer["model"]["Objects"]
    assert [payload["environment_id"] for _, payload in sent] == ["test"]


def test_a_cell_sends_only_so_many_notifications(
    package: Package, conf: Any, sent: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    conf.set_override("max_messages", 10, "engine")
    monkeypatch.setattr(task_answers, "_MAX_NOTIFICATIONS", 100)
    code = (
        f"{SEND}for _ in range(111):\n"
        "    send({'query': 'notification', 'event': 'murano.untrack_instance',"
        " 'payload': {'instance': 'i', 'instance_type': 1}})"
    )
    assert "too many notifications" in error_of(package.act(code))
    assert [event for event, _ in sent].count("murano.untrack_instance") == 110


def test_a_cell_sends_only_so_many_lines_of_the_log(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_calls, "_MAX_LINES", 0.001)
    line = {"query": "log", "logger": "x", "level": 20, "text": "x"}
    code = f"{SEND}for _ in range(20): send({line!r})"
    assert "too many lines of the log" in error_of(package.act(code))


def test_a_cell_gets_the_core_library_with_a_package(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirers = []
    own = PackageAnswers.answer

    def answer(answers: PackageAnswers, query: Any) -> Any:
        if query["query"] == "requirement":
            assert query["fqn"] == "io.murano"
            requirers.append(query["requirer"])
        return own(answers, query)

    monkeypatch.setattr(PackageAnswers, "answer", answer)
    code = (
        f"{PACKAGES}"
        "from glare_murano.package import VersionSpec\n"
        "from glare_murano.resolver import PackageVersion\n"
        "db = packages.load_object_package('org.example.db', VersionSpec.of('*'))\n"
        "core = packages.load_requirement(PackageVersion(db.full_name, db.version), 'io.murano')\n"
        "result = [db.full_name, core.full_name]"
    )
    assert result_of(package.act(code)) == ["org.example.db", "io.murano"]
    # When this package was loaded, no core library was loaded yet.
    assert NAME in requirers
    assert "org.example.db" not in requirers


def test_a_cell_gets_only_so_many_bytes_of_packages(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_answers, "_MAX_COPIED", 100)
    assert "take more than 100 bytes in its cell" in error_of(package.act("result = 1"))


def test_a_cell_gets_only_so_many_tokens(package: Package) -> None:
    code = f"{SEND}for _ in range(201): send({{'query': 'token'}})"
    assert "too many tokens" in error_of(package.act(code))


@pytest.fixture
def signing_key(conf: Any, tmp_path: pathlib.Path) -> Iterator[rsa.RSAPublicKey]:
    """The public key for a key with which the engine signs."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = tmp_path / "key.pem"
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    conf.set_override("signing_key", str(file), "engine")
    yield key.public_key()
    conf.clear_override("signing_key", "engine")


def signed(queue: str, *messages: str) -> str:
    """Return Python that lets each message be signed for a queue, in parts of one character."""
    return (
        f"{SEND}result = []\n"
        f"for message in {messages!r}:\n"
        "    for n, part in enumerate(message):\n"
        f"        query = {{'query': 'signed part', 'queue': {queue!r}, 'part': part}}\n"
        "        answer = send({**query, 'is_first': n == 0})\n"
        "    result.append(answer if 'error' in answer else send({'query': 'signature'}))"
    )


def test_a_cell_lets_the_engine_sign_for_agents_of_its_environment(
    package: Package, signing_key: rsa.RSAPublicKey
) -> None:
    queue = "etest-hhost"
    found = result_of(package.act(signed(queue, "hello", "world")))
    for answer, message in zip(found, ("hello", "world"), strict=True):
        signature = base64.b64decode(answer["value"])
        signing_key.verify(
            signature, f"{queue}{message}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
    (refused,) = result_of(package.act(signed("eother-hhost", "hello")))
    assert "the agent's queue eother-hhost does not belong to environment test" in refused["error"]


@pytest.mark.usefixtures("signing_key")
@pytest.mark.parametrize(
    ("messages", "reason"),
    [(["x" * 40], "too many messages to be signed"), (["\ud800"], "is not valid text")],
)
def test_a_cell_lets_the_engine_sign_only_short_text(
    package: Package, messages: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    maximum = task_answers._PER_PART + len("etest-hhost") + 20
    monkeypatch.setattr(task_answers, "_MAX_SIGNED", maximum)
    assert reason in error_of(package.act(signed("etest-hhost", *messages)))


@pytest.mark.usefixtures("signing_key")
def test_the_name_of_a_queue_counts_for_what_is_signed(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = "etest-hhost"
    most = task_answers._PER_PART + len(queue) + 1
    monkeypatch.setattr(task_answers, "_MAX_SIGNED", most)
    (signature,) = result_of(package.act(signed(queue, "x")))
    assert "value" in signature
    monkeypatch.setattr(task_answers, "_MAX_SIGNED", most - 1)
    assert "too many messages to be signed" in error_of(package.act(signed(queue, "x")))


@pytest.mark.usefixtures("signing_key")
def test_the_name_of_a_queue_is_valid_text(package: Package) -> None:
    assert "a queue or a part of a message is not valid text" in error_of(
        package.act(signed("etest-h\ud800", "x"))
    )


def test_nothing_is_signed_without_a_key(package: Package) -> None:
    (refused,) = result_of(package.act(signed("etest-hhost", "hello")))
    assert "[engine] signing_key is not set" in refused["error"]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_class_config_has_no_password_of_the_services(conf: Any, is_shared: bool) -> None:
    user = "murano" if is_shared else "other"
    conf.set_override("transport_url", f"rabbit://{user}:{PASSWORD}@127.0.0.1:5672/services")
    for name, value in {"host": "127.0.0.1", "login": "murano", "password": PASSWORD}.items():
        conf.set_override(name, value, "rabbitmq")
    broker = {"host": "127.0.0.1", "login": "murano", "password": PASSWORD}
    values = {"regionConfigs": {"": {"agentRabbitMq": broker, "more": 1}, "x": {}}, "size": 5}
    given = {**broker, "login": "", "password": ""} if is_shared else broker
    expected = {"regionConfigs": {"": {"agentRabbitMq": given, "more": 1}, "x": {}}, "size": 5}
    assert agent_access.without_withheld(values, conf) == expected
    conf.set_override("share_agent_password", True, "engine")
    assert agent_access.without_withheld(values, conf) == values


def test_a_token_needs_a_trust(package: Package) -> None:
    found = result_of(package.act(f"{SEND}result = send({{'query': 'token'}})"))
    assert found == {"error": "the task has no trust", "is_missing": False}


FORGED = {
    "Objects": {"?": {"id": "object", "type": "x.Thing"}, "size": 7},
    "project_id": "victim",
    "user_id": "root",
    "SystemData": {"TrustId": "stolen", "Packages": {"x": ["1.0.0"]}},
}


class Code(str):
    """A Python expression in a forged result."""

    __repr__ = str.__str__


def forged(result: Any) -> str:
    """Return Python that ends a cell with a forged result."""
    written = f"json.dumps({{'result': {result!r}}}, ensure_ascii=False)"
    return f"open(3, 'w').write({written})\nos._exit(0)"


def test_a_forged_model_has_objects_only(package: Package) -> None:
    action = {"action": {"isException": False, "result": 1, "more": 2}, "model": "x"}
    answer = package.act(forged({"result": action, "model": FORGED}))
    assert answer["action"] == {"isException": False, "result": 1}
    assert answer["model"]["Objects"]["size"] == 7
    assert answer["model"]["project_id"] == demo.PROJECT
    assert answer["model"]["user_id"] == demo.USER["user_id"]
    assert answer["model"]["SystemData"].get("TrustId") is None
    assert "x" not in answer["model"]["SystemData"]["Packages"]


DEEP: list[Any] = []
for _ in range(101):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"result": {}, "model": None},
        {"result": {"action": {"isException": 1, "result": 1}}, "model": None},
        {"result": {"action": {"isException": False, "result": 1}}, "model": []},
        {"result": {"action": {"isException": True, "result": "x"}}, "model": None},
        {
            "result": {"action": {"isException": False, "result": 1}},
            "model": {"Objects": {"?": {"id": "victim", "type": "x.Thing"}}},
        },
        {"result": {"action": {"isException": False, "result": 1}}, "model": {"Objects": [1]}},
        {"result": {"action": {"isException": False, "result": 1}}, "model": {"Objects": []}},
        {"result": {"action": {"isException": False, "result": DEEP}}, "model": None},
        {
            "result": {"action": {"isException": False, "result": 1}},
            "model": {"Objects": None, "Attributes": DEEP},
        },
    ],
)
def test_a_forged_result_fails_the_task(package: Package, result: Any) -> None:
    answer = package.act(forged(result))
    assert re.search("cell has (not )?returned|deeper than 100 levels", error_of(answer))


@pytest.mark.parametrize("model", [None, {"Objects": None, "Attributes": Code("'é' * 400_000")}])
def test_a_result_that_is_too_long_for_a_message_fails_the_task(
    package: Package, model: Any
) -> None:
    # In the cell's answer, each character has two bytes, and in JSON six.
    text = Code("'é' * 400_000" if model else "'é' * 800_000")
    action = {"action": {"isException": False, "result": text}}
    answer = package.act(forged({"result": action, "model": model}))
    assert "the result and the model have more than 4194304 bytes in JSON" in error_of(answer)


def test_a_cell_that_is_killed_fails_its_task_with_the_former_model(package: Package) -> None:
    answer = package.act("os.kill(os.getpid(), 9)")
    assert "its exit status was -9" in error_of(answer)
    assert "resources that the task has created may be left" in error_of(answer)
    assert answer["model"]["Objects"]["?"]["id"] == "object"


def test_a_task_that_takes_too_long_keeps_its_objects(package: Package, conf: Any) -> None:
    conf.set_override("task_seconds", 1, "engine")
    answer = package.act("time.sleep(60)")
    assert "took more than 1 seconds ([engine] task_seconds)" in error_of(answer)
    assert answer["model"]["Objects"]["size"] == 5


def test_a_task_that_swallows_interruptions_is_killed(
    package: Package, conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf.set_override("task_seconds", 1, "engine")
    monkeypatch.setattr(task_cells, "_SECONDS_TO_END", 1)
    code = "while True:\n    try: time.sleep(60)\n    except BaseException: pass"
    answer = package.act(code)
    assert "the cell of the task took more than" in error_of(answer)
    assert "size" not in answer["model"]["Objects"]


def test_a_stop_of_the_engine_interrupts_a_task_in_its_cell(
    package: Package, sent: list[tuple[str, Any]]
) -> None:
    def stop() -> None:
        wait_until(lambda: sent, "the task")
        tasks.running.interrupt(tasks.EngineStopped())

    begun = (
        "send({'query': 'notification', 'event': 'murano.untrack_instance',"
        " 'payload': {'instance': 'i', 'instance_type': 1}})\n"
    )
    thread = threading.Thread(target=stop)
    thread.start()
    answer = package.act(f"{SEND}{begun}time.sleep(60)")
    thread.join()
    assert error_of(answer).startswith("the engine was stopped before this task ended")
    assert answer["model"]["Objects"]["size"] == 5


@pytest.fixture
def returned(conf: Any, sent: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that a worker sends back to the queue, since it does not wait for a turn."""
    found: list[Any] = []

    class Queue:
        def handle_task(self, task: Any) -> None:
            found.append(task)

    monkeypatch.setattr(rpc, "engine", Queue)
    monkeypatch.setattr(task_cells, "_SECONDS_TO_WAIT", 0)
    monkeypatch.setattr(waiting_tasks, "waiting", waiting_tasks.WaitingTasks())
    conf.set_override("task_cells", True, "engine")
    yield found
    waiting_tasks.waiting.send_back()
    while waiting_tasks.waiting:
        eventlet.sleep(0.01)


def test_a_task_without_a_turn_goes_back_to_the_queue(
    conf: Any, sent: list[tuple[str, Any]], returned: list[Any]
) -> None:
    for option, owner in (("max_project_task_cells", demo.PROJECT), ("max_task_cells", "other")):
        conf.set_override(option, 1, "engine")
        with task_cells.turn({"project_id": owner}), pytest.raises(Busy):
            task_cells.turn(_TASK).__enter__()
        with task_cells.turn({"project_id": owner}):
            murano_engine.TaskProcessingEndpoint.handle_task({}, _TASK)
        conf.clear_override(option, "engine")
    assert not returned
    eventlet.sleep(1.5)
    assert returned == [{**_TASK, "waits": True}] * 2
    assert not waiting_tasks.waiting
    # A task that has waited reports nothing more.
    conf.set_override("max_task_cells", 1, "engine")
    with task_cells.turn({"project_id": "other"}):
        murano_engine.TaskProcessingEndpoint.handle_task({}, returned[0])
    reports = [payload["text"] for _, payload in sent]
    assert reports == ["The task waits in the queue, since too many tasks run"] * 2


def test_a_stopping_engine_returns_a_task_without_a_wait(
    conf: Any, returned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks.running, "is_stopping", True)
    conf.set_override("max_task_cells", 1, "engine")
    with task_cells.turn({"project_id": "other"}):
        murano_engine.TaskProcessingEndpoint.handle_task({}, _TASK)
        assert returned == [_TASK]


def test_many_waiting_tasks_go_back_at_a_constant_rate(conf: Any, returned: list[Any]) -> None:
    conf.set_override("max_task_cells", 1, "engine")
    begun = time.monotonic()
    with task_cells.turn({"project_id": "other"}):
        for _ in range(8):
            murano_engine.TaskProcessingEndpoint.handle_task({}, {**_TASK, "waits": True})
        # The worker can handle other tasks meanwhile.
        assert time.monotonic() < begun + 1
        eventlet.sleep(2.2)
        assert 3 <= len(returned) <= 2 * (time.monotonic() - begun) + 1
        # Another project does not wait for them.
        murano_engine.TaskProcessingEndpoint.handle_task({}, {**_TASK, "project_id": "third"})
        eventlet.sleep(1.2)
        assert "third" in [task["project_id"] for task in returned]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, str]]:
    """The results of tasks that have ended, with the ids of their environments."""
    found = []

    class Api:
        def process_result(self, result: Any, environment_id: str) -> None:
            found.append((result, environment_id))

    monkeypatch.setattr(rpc, "api", Api)
    return found


def test_a_task_fails_if_too_many_of_its_project_wait(
    conf: Any, returned: list[Any], results: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_tasks, "MAX_WAITING", 2)
    conf.set_override("max_task_cells", 1, "engine")
    with task_cells.turn({"project_id": "other"}):
        for project in (demo.PROJECT, demo.PROJECT, demo.PROJECT, "third"):
            task = {**_TASK, "project_id": project}
            murano_engine.TaskProcessingEndpoint.handle_task({}, task)
        waiting_tasks.waiting.send_back()
        eventlet.sleep(0.1)
    ((result, environment_id),) = results
    assert environment_id == "test"
    assert result["model"] == _TASK["model"]
    message = result["action"]["result"]["message"]
    assert f"2 tasks of the project {demo.PROJECT} wait" in message
    assert [task["project_id"] for task in returned] == [demo.PROJECT] * 2 + ["third"]
    # Then other tasks of the project may wait.
    waiting_tasks.waiting.add(demo.PROJECT, json.dumps(_TASK))
    eventlet.sleep(0.1)
    assert len(returned) == 4


class _Model(dict[str, Any]):
    """A model to which a weak reference can refer."""


def _task_of(size: int, project: str = demo.PROJECT) -> dict[str, Any]:
    """Return a task that has a number of bytes in JSON."""
    task = {**_TASK, "project_id": project, "model": _Model(_TASK["model"], Objects="")}
    task["model"]["Objects"] = (size - len(json.dumps(task))) * "x"
    assert len(json.dumps(task)) == size
    return task


def test_a_task_that_is_too_large_fails_before_it_begins(
    conf: Any, returned: list[Any], results: list[Any]
) -> None:
    conf.set_override("max_task_cells", 1, "engine")
    limit = 5 * 1024**2
    allowed, refused = _task_of(limit), _task_of(limit + 1)
    for task in (refused, {**allowed, "waits": True}):
        with task_cells.turn({"project_id": "other"}):
            murano_engine.TaskProcessingEndpoint.handle_task({}, task)
    # With a free turn as well.
    murano_engine.TaskProcessingEndpoint.handle_task({}, refused)

    assert len(results) == 2
    for result, environment_id in results:
        assert (environment_id, result["model"]) == ("test", refused["model"])
        message = result["action"]["result"]["message"]
        assert f"the task has {limit + 1} bytes" in message
        assert f"at most {limit} are allowed" in message
        assert result["action"]["result"]["details"] == ""
    waiting_tasks.waiting.send_back()
    eventlet.sleep(0.1)
    assert returned == [{**allowed, "waits": True}]


def test_the_tasks_of_a_project_that_wait_have_a_size(
    conf: Any, returned: list[Any], results: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("MAX_TASK", 1000), ("MAX_SIZE", 2500), ("MAX_TOTAL_SIZE", 3000)):
        monkeypatch.setattr(waiting_tasks, name, size)
    conf.set_override("max_task_cells", 1, "engine")

    def refusals(*tasks: dict[str, Any]) -> list[str]:
        before = len(results)
        with task_cells.turn({"project_id": "other"}):
            for task in tasks:
                murano_engine.TaskProcessingEndpoint.handle_task({}, task)
        return [result["action"]["result"]["message"] for result, _ in results[before:]]

    assert refusals(*[_task_of(1000)] * 2, _task_of(500)) == []
    (refusal,) = refusals(_task_of(300))
    assert f"the tasks of the project {demo.PROJECT} that wait" in refusal
    assert "would have 2800 bytes, at most 2500 are allowed" in refusal
    # Another project is limited only when all tasks together exceed the limit.
    assert refusals(_task_of(400, "second")) == []
    assert refusals(_task_of(600, "second"), _task_of(1000, "third")) == []
    (refusal,) = refusals(_task_of(300, "second"))
    assert "would have 1300 bytes, at most 1000 are allowed" in refusal

    waiting_tasks.waiting.send_back()
    eventlet.sleep(0.1)
    assert len(returned) == 6
    waiting_tasks.waiting.add(demo.PROJECT, 2500 * "x")


def test_a_waiting_task_does_not_keep_its_model(conf: Any, returned: list[Any]) -> None:
    conf.set_override("max_task_cells", 1, "engine")
    task = _task_of(1000)
    model, content = weakref.ref(task["model"]), dict(task["model"])
    with task_cells.turn({"project_id": "other"}):
        murano_engine.TaskProcessingEndpoint.handle_task({}, task)
    del task
    gc.collect()
    assert model() is None

    waiting_tasks.waiting.send_back()
    eventlet.sleep(0.1)
    assert returned[0]["model"] == content


def test_tasks_go_back_one_after_another(
    returned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = []

    class Queue:
        def handle_task(self, task: Any) -> None:
            at_once.append(task)
            eventlet.sleep(0.01)
            returned.append(len(at_once))
            at_once.remove(task)

    monkeypatch.setattr(rpc, "engine", Queue)
    for _ in range(3):
        waiting_tasks.waiting.add(demo.PROJECT, json.dumps(_TASK))
    waiting_tasks.waiting.send_back()
    while waiting_tasks.waiting:
        eventlet.sleep(0.01)
    assert returned == [1, 1, 1]
