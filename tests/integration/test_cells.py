# SPDX-License-Identifier: Apache-2.0

"""Static actions and requests for schemas in cells.

The code of the packages runs Python; see ``break_out``.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from murano.common import auth_utils
from murano.dsl import dsl_exception, exceptions
from murano.engine import package_loader
from oslo_config import cfg

from examples import demo
from glare_murano.package import InvalidName, Version
from glare_murano.package.sandbox import warm_processes
from glare_murano.wire import Release
from loader.engine import adapter, tasks
from loader.engine.cells import (
    cell,
    cell_calls,
    cell_options,
    crossing_errors,
    request_cells,
    warm,
)
from tests import packages
from tests.integration import publish
from tests.integration import tasks as requested
from tests.integration.break_out import NAME, Package, installed
from tests.processes import wait_until

pytestmark = pytest.mark.programs

__all__ = ["installed"]

PASSWORD = "planted-password"
# A class file of the core library that no request of these tests needs.
UNUSED = "LinuxMuranoInstance"
CODE = """
Methods:
  add:
    Scope: Public
    Usage: Static
    Arguments:
      - a: {Contract: $.int().notNull()}
    Body:
      - Return: $a + 1
"""


@pytest.fixture(autouse=True)
def in_cells(conf: Any) -> None:
    """Static actions and schemas run in cells, as by default in an engine."""
    conf.set_override("request_cells", True, "engine")


@pytest.fixture
def run_python(conf: Any, installed: Package) -> Callable[[str], Any]:
    """Run Python in a cell, and return its result, or the name of the error that it raises."""
    conf.set_override("load_packages_from", [str(installed.folder)], "engine")
    return installed.call_static


def test_a_static_action_and_a_schema_are_made_in_cells(
    name: str, write_class: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_class(name, CODE)
    kinds = []
    run = request_cells.run

    def count(session: Any, request: Any) -> Any:
        kinds.append(request["endpoint"])
        return run(session, request)

    monkeypatch.setattr(request_cells, "run", count)
    assert requested.call_static(f"{name}.Thing", "add", a=2) == 3
    assert requested.schemas(f"{name}.Thing")[""]["type"] == "object"
    assert kinds == ["static action", "request for a schema"]


def test_a_parser_that_catches_its_interruption_is_interrupted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def parse() -> None:
        with contextlib.suppress(TimeoutError):
            time.sleep(10)
        time.sleep(10)

    monkeypatch.setattr(cell, "_PARSING_SECONDS", 0.1)
    monkeypatch.setattr(cell, "_parse", parse)
    start = time.monotonic()
    cell.Cell().preload({})
    assert time.monotonic() - start < 5
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize("is_core_library", [True, False])
def test_only_a_core_library_that_can_be_trusted_is_kept(
    conf: Any, core_library: pathlib.Path, monkeypatch: pytest.MonkeyPatch, is_core_library: bool
) -> None:
    kept: list[str] = []
    monkeypatch.setattr(cell.core_library, "keep", lambda _, package: kept.append(package))
    path = str(core_library / "io.murano")
    cell.Cell().preload({"path": path, "is_core_library": is_core_library})
    assert len(kept) == is_core_library


def test_no_interruption_comes_after_the_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr(cell, "_parse", interrupt)
    monkeypatch.setattr(cell.LOG, "debug", interrupt)
    cell.Cell().preload({})
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize("option", [("request_cells", False), ("package_loader", "murano")])
def test_requests_run_in_the_engine_if_an_option_says_so(
    conf: Any, option: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a cell is used")

    monkeypatch.setattr(request_cells, "run", refuse)
    conf.set_override(*option, "engine")
    monkeypatch.setattr(
        package_loader, "CombinedPackageLoader", adapter.EnginePackageLoader.for_task
    )
    assert requested.schemas("org.example.db.Database")[""]["type"] == "object"


def test_code_in_a_cell_finds_no_secret(
    run_python: Callable[[str], Any],
    conf: Any,
    glare: Any,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OS_PASSWORD", PASSWORD)
    conf.set_override("password", PASSWORD, "rabbitmq")
    secret = tmp_path / "murano.conf"
    secret.write_text(f"password = {PASSWORD}")
    assert run_python("result = 6 * 7") == 42
    assert run_python(f"result = open({str(secret)!r}).read()") == "PermissionError"
    cache = conf.engine.packages_cache
    assert run_python(f"result = os.listdir({cache!r})") == "PermissionError"
    assert run_python("result = open('/etc/passwd').read()") == "PermissionError"
    engine = os.getpid()
    for file in ("mem", "environ", "cmdline"):
        refused = run_python(f"result = open('/proc/{engine}/{file}', 'rb').read(1).decode()")
        assert refused == "PermissionError"
    assert run_python(f"os.kill({engine}, 0)") == "PermissionError"
    assert run_python("os.kill(os.getppid(), 0)") == "PermissionError"
    assert run_python("subprocess.run([sys.executable])") == "PermissionError"
    found = run_python(
        "from murano.common import config\n"
        "options = [str(v) for g in config.CONF._groups for v in dict(config.CONF[g]).values()]\n"
        "result = json.dumps([dict(os.environ), options])"
    )
    assert PASSWORD not in found


def test_only_classes_of_public_packages_are_parsed_for_all_cells(
    run_python: Callable[[str], Any], tenant: Any, tmp_path: pathlib.Path, name: str
) -> None:
    code = (
        "from loader.engine import parsed_classes\n"
        "result = sorted({str(key[1]) for key in parsed_classes.kept._kept})"
    )
    # Other tests let the process parse classes.
    warm_processes.end(warm.NAME)
    # The cell itself parses the classes that it needs.
    assert not any(UNUSED in file for file in run_python(code))
    publish.publish(
        tenant, [packages.write(tmp_path / "own", packages.content(f"{name}.own"))], public=False
    )
    for _ in range(2):
        requested.schemas("io.murano.Environment")
        requested.schemas(f"{name}.own.Thing")
    found = wait_until(
        lambda: [f for f in [run_python(code)] if any(UNUSED in file for file in f)],
        "the parsed classes",
    )
    assert not any(f"{name}.own" in file for file in found[0])


def test_the_classes_of_the_core_library_are_made_for_all_cells(
    run_python: Callable[[str], Any],
) -> None:
    # Whether the cell still has to make a class that it does not need, and what the core library
    # uses: the loader of the task, and the copy of its archive.
    code = (
        "from murano.dsl import helpers\n"
        "loader = helpers.get_executor().package_loader\n"
        "(core,) = [p for (name, _), p in loader._packages.items() if name == 'io.murano']\n"
        "uses = [core._engine_loader is loader, core._requirement_loader._loader is loader]\n"
        "copy = core.application_package.get_resource('scripts')\n"
        "result = ['io.murano.SharedIp' in core._load_queue, uses, copy.startswith(os.getcwd())]"
    )
    # Other tests let the process make the classes.
    warm_processes.end(warm.NAME)
    assert run_python(code) == [True, [True, True], True]
    found = wait_until(
        lambda: [found for found in [run_python(code)] if not found[0]], "the classes"
    )
    assert found == [[False, [True, True], True]]


def test_a_cell_reads_public_packages_by_indexes_that_were_made_before(
    run_python: Callable[[str], Any], tenant: Any, conf: Any, tmp_path: pathlib.Path, name: str
) -> None:
    # The archives with an index, and those whose index is used for a copy.
    code = (
        "from loader import archive_indexes\n"
        "indexes = archive_indexes._indexes.items()\n"
        "used = [key.path for key, index in indexes if index.identity != key]\n"
        "result = [[key.path for key in archive_indexes._indexes], used]"
    )
    warm_processes.end(warm.NAME)
    _, used = run_python(code)
    assert used == []
    publish.publish(
        tenant, [packages.write(tmp_path / "own", packages.content(f"{name}.own"))], public=False
    )
    for _ in range(2):
        requested.schemas(f"{name}.own.Thing")
    indexed, used = wait_until(
        lambda: [found for found in [run_python(code)] if found[1]], "the core library's index"
    )[0]
    assert [path for path in indexed if path.startswith(conf.engine.packages_cache)] == used
    assert len(used) == 1


def test_code_in_a_cell_connects_only_to_the_ports_of_services(
    run_python: Callable[[str], Any], conf: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"socket.create_connection(('127.0.0.1', {port})).close()"
        assert run_python(connect) == "PermissionError"
        conf.set_override("reachable_endpoints", [f"127.0.0.1:{port}"], "engine")
        assert run_python(connect) is None
    assert run_python("socket.create_server(('127.0.0.1', 0))") == "PermissionError"
    # What HTTP clients read.
    assert "localhost" in run_python("result = open('/etc/hosts').read()")


def test_code_in_a_cell_changes_nothing_outside(
    run_python: Callable[[str], Any], installed: Package, tmp_path: pathlib.Path
) -> None:
    assert run_python("open('own', 'w').write('x')") is None
    assert run_python(f"open({str(tmp_path / 'other')!r}, 'w')") == "PermissionError"
    original = next(installed.folder.rglob("manifest.yaml"))
    before = original.read_bytes(), original.stat().st_mode
    # The cell sees copies of packages. It could change their mode, since they are of its user.
    given = (
        "import glare_murano, gc\n"
        "from loader.engine.cells.cell_packages import CellPackages\n"
        "packages = next(o for o in gc.get_objects() if isinstance(o, CellPackages))\n"
        f"(loaded,) = (p for key, p in packages._loaded.items() if key.fqn == {NAME!r})\n"
        "path = loaded.description['path']\n"
        "path = pathlib.Path(path) / 'manifest.yaml'\n"
    )
    assert run_python(f"{given}path.chmod(0o600)\nopen(path, 'a')") == "PermissionError"
    assert run_python(f"{given}path.unlink()") == "PermissionError"
    assert (original.read_bytes(), original.stat().st_mode) == before


def test_a_cell_asks_only_for_what_its_request_may_know(
    run_python: Callable[[str], Any],
    tenant: Any,
    glare_url: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = (
        "import gc\n"
        "from loader.engine.cells.cell_packages import CellPackages\n"
        "packages = next(o for o in gc.get_objects() if isinstance(o, CellPackages))\n"
    )
    other = publish.client_of(glare_url, "mallory:other:member")
    private = packages.content("org.test.private")
    publish.publish(other, [packages.write(tmp_path / "private", private)], public=False)
    found = run_python(
        f"{send}result = packages._send({{'query': 'object package', "
        f"'fqn': 'org.test.private', 'range': '*'}})"
    )
    assert found["is_missing"]
    assert "org.test.private" in found["error"]
    with pytest.raises(crossing_errors.CellError, match="a query in a wrong form"):
        run_python(f"{send}packages._send({{'query': 'password'}})")
    with pytest.raises(crossing_errors.CellError, match="a query in a wrong form"):
        run_python(f"{send}packages._send({{'query': 'object package', 'fqn': 1, 'range': []}})")
    with pytest.raises(InvalidName):
        adapter.class_config(Release("org.test", Version("1.0.0"), {}, frozenset()), "../clouds")
    monkeypatch.setattr(cell_calls, "_MAX_QUERIES", 50)
    with pytest.raises(crossing_errors.CellError, match="too many queries"):
        run_python(f"{send}for _ in range(60): packages._send({{'query': 'user'}})")


def test_a_cell_gets_its_own_user_and_project(
    run_python: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth_utils, "get_user", lambda id_: {"id": id_, "name": "alice"})
    monkeypatch.setattr(auth_utils, "get_project", lambda id_: {"id": id_})
    code = (
        "from murano.common import auth_utils\n"
        "result = [auth_utils.get_user('root'), auth_utils.get_project('other')]"
    )
    user = {"id": demo.USER["user_id"], "name": "alice"}
    assert run_python(code) == [user, {"id": demo.PROJECT}]
    sent = []
    monkeypatch.setattr(auth_utils, "get_user", lambda id_: sent.append(id_) or 1 / 0)
    code = (
        "from murano.common import auth_utils\n"
        "for _ in range(3):\n"
        "    try: auth_utils.get_user('root')\n"
        "    except Exception as error: result = str(error)"
    )
    assert run_python(code) == "the engine's log has the reason"
    # Keystone is queried once, even if it does not answer.
    assert len(sent) == 1


def test_a_cell_gets_the_class_configs_of_its_classes(
    run_python: Callable[[str], Any], conf: Any, tmp_path: pathlib.Path
) -> None:
    send = (
        "import gc\n"
        "from loader.engine.cells.cell_packages import CellPackages\n"
        "packages = next(o for o in gc.get_objects() if isinstance(o, CellPackages))\n"
        "found = packages._send({{'query': 'object package', 'fqn': {!r}, 'range': '*'}})\n"
        "result = found['value']['class_configs']"
    )
    conf.set_override("class_configs", str(tmp_path), "engine")
    environment = tmp_path / "io.murano.Environment.yaml"
    environment.write_text("size: 5")
    (tmp_path / "io.murano.Missing.yaml").write_text("size: 6")
    assert run_python(send.format("io.murano")) == {"io.murano.Environment": {"value": {"size": 5}}}
    # JSON has no dates.
    environment.write_text("day: 2026-01-31")
    error = {"error": "the engine's log has the reason", "is_missing": False}
    assert run_python(send.format("io.murano")) == {"io.murano.Environment": error}
    # This file is for versions 0.x of the package. Version 1.0.0 does not learn that it exists.
    (tmp_path / f"{NAME}.Thing.yaml").write_text("size: 7")
    assert run_python(send.format(NAME)) == {}


def test_cells_of_a_project_take_turns(
    run_python: Callable[[str], Any], conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_python("result = 1") == 1
    conf.set_override("request_seconds", 1, "engine")
    for option, turns in (
        ("max_project_request_cells", [demo.PROJECT]),
        ("max_request_cells", ["other"]),
    ):
        with request_cells._turns.turn(*turns, 8, 4, 1):
            conf.set_override(option, 1, "engine")
            with pytest.raises(crossing_errors.CellError, match="too many requests"):
                run_python("result = 1")
            conf.clear_override(option, "engine")


def test_an_error_cannot_look_like_an_entry_of_the_log() -> None:
    error = crossing_errors.make("ValueError", "a\n2026-01-01 ERROR forged\x1b[1m")
    assert str(error) == "a\n| 2026-01-01 ERROR forged\\x1b[1m"
    assert len(str(crossing_errors.make("ValueError", "x" * 30_000))) == 20_000


def test_a_forged_result_is_no_traceback(run_python: Callable[[str], Any]) -> None:
    forge = "os.write(3, {!r})\nos._exit(0)"
    for written in ("1", "[]", "{}", '{"error": 5}', '{"error": {"name": ["x"], "text": 1}}'):
        with pytest.raises(crossing_errors.CellError, match="neither a result nor an error"):
            run_python(forge.format(written.encode()))
    with pytest.raises(tasks.TaskLimitExceeded, match="a result of more than"):
        run_python("os.write(3, b' ' * 5_000_000)\nos._exit(0)")
    with pytest.raises(crossing_errors.CellError, match="the cell of the static action has failed"):
        run_python("os._exit(9)")
    # murano-api decides by the name, and only these names cross.
    name = {"error": {"name": "SystemExit", "text": "x"}}
    with pytest.raises(crossing_errors.CellError, match="x"):
        run_python(forge.format(json.dumps(name).encode()))


def test_a_cell_has_limits(run_python: Callable[[str], Any], conf: Any) -> None:
    allocate = "result = len(bytearray(500 * 1024**2))"
    assert run_python(allocate) == 500 * 1024**2
    conf.set_override("max_task_memory", 64, "engine")
    assert run_python(allocate) == "MemoryError"
    conf.set_override("request_seconds", 2, "engine")
    # It neither returns nor lets the watchdog interrupt it.
    endless = "import time\nwhile True:\n  try: time.sleep(60)\n  except BaseException: 0"
    with pytest.raises(tasks.TaskLimitExceeded, match="cell of the static action took more than 6"):
        run_python(endless)


def test_a_cell_knows_no_secret_option(conf: Any) -> None:
    for group, name in (("murano", "planted"), (None, "home_region_planted")):
        conf.register_opt(cfg.StrOpt(name, secret=True), group)
        conf.set_override(name, PASSWORD, group)
    conf.set_override("password", PASSWORD, "rabbitmq")
    conf.set_override("max_green_threads", 1234, "engine")
    known = cell_options.read(conf)
    assert PASSWORD not in json.dumps(known)
    assert "transport_url" not in json.dumps(known)
    assert known["engine"]["max_green_threads"] == 1234
    conf.clear_override("password", "rabbitmq")


def test_an_option_that_murano_reads_at_its_import_reaches_cells(
    run_python: Callable[[str], Any], conf: Any
) -> None:
    conf.set_override("dsl_iterators_limit", 777, "murano")
    code = "from murano.dsl import yaql_integration as y\nresult = y.ENGINE_12_OPTIONS"
    assert run_python(code)["yaql.limitIterators"] == 777


@pytest.mark.parametrize(
    "error",
    [
        ValueError("text"),
        LookupError("text"),
        exceptions.NoPackageFound("org.test"),
        exceptions.ContractViolationException("text"),
        dsl_exception.MuranoPlException(["a.B"], "text", None),
        tasks.TaskLimitExceeded("text"),
    ],
)
def test_an_error_crosses_with_its_name_and_text(error: Exception) -> None:
    crossed = crossing_errors.make(**crossing_errors.to_json(error))
    assert (type(crossed), str(crossed)) == (type(error), str(error))


def test_another_error_crosses_as_a_failure() -> None:
    crossed = crossing_errors.make(**crossing_errors.to_json(OSError("text")))
    assert (type(crossed), str(crossed)) == (crossing_errors.CellError, "text")
