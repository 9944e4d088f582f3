# SPDX-License-Identifier: Apache-2.0

"""What hostile code reaches after it has broken out of YAQL: nothing but what its cell may reach.

``break_outs.yaml`` has the programs. Each one runs in the cell of a task, with all walls and as on
a kernel without Landlock. ``make break-outs`` runs these tests as an ordinary user.
"""

import os
import pathlib
import platform
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from glare_murano.package.sandbox import children, limited_process, system_calls, walls
from loader.engine import tasks
from tests import packages
from tests.integration import publish
from tests.integration.break_out import Package, installed
from tests.integration.test_task_cells import SEND, error_of, package, result_of, sent
from tests.processes import wait_until

__all__ = ["installed", "package", "sent"]

pytestmark = pytest.mark.ordinary_user

SECRET = "planted-secret"
PROGRAMS = {
    program["name"]: program
    for group in yaml.safe_load(pathlib.Path(__file__).with_name("break_outs.yaml").read_text())
    for program in group["programs"]
}
_, PLACE = system_calls._PROCESSORS[platform.machine()]
# Python has no functions for these system calls.
CALL = (
    "import ctypes, resource\n"
    f"numbers = { ({name: found[PLACE] for name, found in system_calls._REFUSED.items()})!r}\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def call(name, *arguments):\n"
    "    failed = libc.syscall(numbers[name], *map(ctypes.c_long, arguments)) < 0\n"
    "    return ctypes.get_errno() if failed else 0\n"
)
PRIVATE = "org.test.secret"


@pytest.fixture(scope="module", autouse=True)
def ordinary_user() -> None:
    if os.geteuid() == 0:
        pytest.fail("root passes some walls; run 'make break-outs', which uses another user")
    assert walls.abi() >= 6, "these tests need Linux 6.12 with Landlock"


@pytest.fixture(scope="module")
def planted(
    engine_conf: Any, glare_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, str]]:
    """What the programs try to reach; at the end, nothing of it has changed."""
    folder = tmp_path_factory.mktemp("planted")
    secret = folder / "murano.conf"
    secret.write_text(f"password = {SECRET}")
    other = publish.client_of(glare_url, "mallory:other:member")
    content = packages.content(PRIVATE)
    publish.publish(other, [packages.write(folder / "private", content)], public=False)
    cached = folder / "cached.zip"
    cached.write_bytes(packages.zipped(content))
    before = {
        path: (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns)
        for path in (secret, cached)
    }
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(folder / "socket"))
        unix.listen()
        yield {
            "engine": str(os.getpid()),
            "secret": str(secret),
            "cache": str(cached),
            "port": str(port.getsockname()[1]),
            "socket": str(folder / "socket"),
            "private": PRIVATE,
        }
    for path, state in before.items():
        assert (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) == state


@pytest.fixture
def secrets(conf: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Passwords in the engine's environment and options, and in a class config."""
    (tmp_path / f"{PRIVATE}.yaml").write_text(f"password: {SECRET}")
    conf.set_override("class_configs", str(tmp_path), "engine")
    monkeypatch.setenv("OS_PASSWORD", SECRET)
    conf.set_override("transport_url", f"rabbit://murano:{SECRET}@127.0.0.1:5672/")
    for option, value in {"login": "murano", "password": SECRET, "host": "127.0.0.1"}.items():
        conf.set_override(option, value, "rabbitmq")


@pytest.fixture
def left_behind() -> Iterator[None]:
    """Check that a program leaves no shared memory, semaphores or message queues behind."""
    before = _left_behind()
    yield
    assert _left_behind() == before


def _left_behind() -> Mapping[str, int]:
    """Return how many objects of each kind live longer than their processes."""
    tables = ("shm", "sem", "msg")
    return {
        name: len(pathlib.Path("/proc/sysvipc", name).read_text().splitlines()) for name in tables
    }


@pytest.fixture
def other_cell(package: Package, sent: list[tuple[str, Any]]) -> Iterator[str]:
    """The id of the process of another cell, which has a secret."""
    report = {"id": "x", "text": "@", "details": None, "level": "info"}
    code = (
        f"{SEND}secret = {SECRET!r}\n"
        f"report = dict({report!r}, text=str(os.getpid()))\n"
        "send({'query': 'notification', 'event': 'murano.report_notification',"
        " 'payload': report})\n"
        "time.sleep(60)"
    )
    thread = threading.Thread(target=package.act, args=[code])
    thread.start()
    wait_until(lambda: sent, "the other cell")
    yield sent[0][1]["text"]
    tasks.running.interrupt(tasks.EngineStopped())
    thread.join()


def run(package: Package, program: Mapping[str, Any], places: Mapping[str, str]) -> Any:
    """Run a program; return its result, the name of its error, or the error of its task."""
    code = f"{SEND}{CALL}{program['code']}"
    for place, value in places.items():
        code = code.replace(f"@{place}@", value)
    answer = package.act(code)
    return {"error": error_of(answer)} if answer["action"]["isException"] else result_of(answer)


def is_stopped(program: Mapping[str, Any], found: Any) -> bool:
    """Return whether a program got what the table says."""
    if "error" in program:
        return isinstance(found, dict) and program["error"] in found.get("error", "")
    return bool(found == program.get("gets", "PermissionError"))


@pytest.mark.usefixtures("secrets", "left_behind")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_break_out_reaches_nothing(
    program: Mapping[str, Any],
    package: Package,
    planted: Mapping[str, str],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = {**planted}
    if "@cell@" in program["code"]:
        places["cell"] = request.getfixturevalue("other_cell")
    found = run(package, program, places)
    assert is_stopped(program, found), found
    # As on a kernel without Landlock.
    monkeypatch.setattr(children, "_WALLS", (limited_process.SYSTEM_CALLS,))
    found = run(package, program, places)
    assert is_stopped(program, found) == (program.get("without") != "nothing"), found


def test_the_table_has_enough_programs() -> None:
    assert len(PROGRAMS) >= 40
