# SPDX-License-Identifier: Apache-2.0

"""Child processes: what they get, what they can do, how they end, and what is left."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from glare_murano.package import sandbox
from glare_murano.package.sandbox import (
    Answer,
    ChildFailed,
    ChildSettings,
    LimitReached,
    children,
    warm_processes,
)
from tests import processes
from tests.unit.package import sandboxed

MEBIBYTE = 1024**2
CONTENT = b"the content of the file"
IMPORTS = "import ctypes, json, os, pathlib, resource, signal, subprocess, sys, time\n"

pytestmark = [pytest.mark.usefixtures("temporary"), pytest.mark.programs]


def act(does, meanwhile=lambda: None, **settings):
    with tempfile.TemporaryFile() as file:
        file.write(CONTENT)
        parameters = {"does": IMPORTS + does}
        answer = sandbox.run(sandboxed.NAME, file, parameters, ChildSettings(**settings), meanwhile)
        assert file.tell() == len(CONTENT)
        return answer


def warm_process():
    return warm_processes._processes[sandboxed.NAME]._process


@pytest.fixture
def without_walls(monkeypatch):
    """Children as on a kernel without Landlock."""
    monkeypatch.setattr(children, "_WALLS", ())


def is_gone(pid):
    """Whether a process has ended; its parent may not have reaped it."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_function_reads_the_file_from_its_beginning_and_answers():
    assert act("result = [file.read().decode(), {'a': None}]") == Answer(
        [CONTENT.decode(), {"a": None}], ""
    )


def test_each_file_gets_a_fresh_child_of_one_warm_process():
    pids = [act("result = os.getpid(); sys.modules['left'] = sys").content for _ in range(3)]
    assert len({*pids, warm_process().pid}) == 4
    assert all(map(is_gone, pids))
    assert act("result = 'left' in sys.modules").content is False


def test_a_child_gets_no_secret_and_no_descriptor(monkeypatch, tmp_path, temporary):
    monkeypatch.setenv("OS_PASSWORD", "hunter2")
    with (
        (tmp_path / "password").open("w") as file,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        os.set_inheritable(file.fileno(), True)
        os.set_inheritable(server.fileno(), True)
        # The warm process may run already: another one starts while these are open.
        act("pass")
        warm_processes._processes.pop(sandboxed.NAME).end()
        environment, opened, directory, listed, arguments = act(
            "opened = {n: os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
            " if os.path.lexists(f'/proc/self/fd/{n}')}\n"
            # Only root may read this of a process that cannot be traced.
            "path = pathlib.Path('/proc/self/environ')\n"
            "raw = path.read_text() if os.access(path, os.R_OK) else ''\n"
            "open('left', 'w').write('x')\n"
            "listed = [os.getcwd() == os.environ['HOME'] == os.environ['TMPDIR'], os.listdir()]\n"
            "result = [[dict(os.environ), raw], opened, os.getcwd(), listed, sys.orig_argv]"
        ).content
    # The locale is Python's own.
    assert set(environment[0]) - {"LC_CTYPE"} == {"PYTHONPATH", "HOME", "TMPDIR"}
    assert "hunter2" not in json.dumps([environment, arguments])
    assert pathlib.Path(directory).parent == temporary
    assert listed == [True, ["left"]]
    assert [*opened] == ["0", "1", "2", "3"]
    assert not any("password" in target or "socket" in target for target in opened.values())


def test_the_warm_process_inherits_nothing_and_is_alone(tmp_path):
    with (tmp_path / "password").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        act("pass")
        warm_processes._processes.pop(sandboxed.NAME).end()
        act("pass")
    pid = warm_process().pid
    assert os.getsid(pid) == pid
    if os.geteuid() == 0:
        # Nobody else may look into a process that cannot be traced.
        found = [each.readlink().name for each in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
        assert found.count("memfd:output (deleted)") == 2
        assert not any("password" in name for name in found)


def test_a_child_has_the_limits_of_a_process():
    does = (
        "names = ('CPU', 'AS', 'FSIZE', 'NOFILE', 'NPROC', 'CORE')\n"
        "result = {n: resource.getrlimit(getattr(resource, f'RLIMIT_{n}')) for n in names}"
    )
    limits = act(does, seconds=7, memory=300 * MEBIBYTE, file_size=5000).content
    assert limits == {
        "CPU": [7, 8],
        "AS": [300 * MEBIBYTE] * 2,
        "FSIZE": [5000, 5000],
        "NOFILE": [256, 256],
        "NPROC": [0, 0],
        "CORE": [0, 0],
    }


def test_a_lower_limit_of_the_service_stays(temporary):
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
        "act('pass')\n"
        "print(act('import resource; result = resource.getrlimit(resource.RLIMIT_NOFILE)'),"
        " flush=True)"
    )
    with running(program, temporary) as sender:
        assert sender.stdout.readline() == "[100, 100]\n"


def test_a_child_cannot_be_traced_and_gains_no_privileges():
    get_dumpable, get_no_new_privileges = 3, 39
    does = (
        f"prctl = ctypes.CDLL(None).prctl\n"
        f"result = [prctl({get_dumpable}), prctl({get_no_new_privileges}, 0, 0, 0, 0)]\n"
        f"result += [os.getsid(0) == os.getpid()]"
    )
    assert act(does).content == [0, 1, True]


@pytest.mark.parametrize(
    ("does", "seconds"),
    [
        pytest.param("while True: pass", 1, id="computes"),
        pytest.param("time.sleep(60)", 3, id="waits"),
        pytest.param(
            "signal.signal(signal.SIGXCPU, lambda *_: None)\nwhile True: pass", 2, id="on"
        ),
    ],
)
def test_a_child_ends_at_its_limit_of_time(does, seconds):
    start = time.monotonic()
    with pytest.raises(LimitReached, match="more than 1 seconds of processor time, or more than 3"):
        act(does, seconds=1)
    # A busy machine ends it later; without a limit it would not end.
    assert seconds - 0.5 < time.monotonic() - start < 30


def test_a_child_ends_at_its_limit_of_memory():
    with pytest.raises(LimitReached, match="took more than 209715200 bytes of memory"):
        act("bytearray(250 * 1024**2)", memory=200 * MEBIBYTE)
    assert act("result = len(bytearray(100 * 1024**2))", memory=200 * MEBIBYTE).content


@pytest.mark.parametrize(
    "does",
    [
        "os.write(0, b'the file is read-only')",
        "open('large', 'wb').truncate(2 * 1024**2)",
        "[open('/dev/null') for _ in range(300)]",
        "raise RuntimeError",
        "sys.exit()",
        "os._exit(5)",
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "result = {1, 2}",
        "result = 'x'\nos.write(3, b'garbage')",
        "os.write(3, b'[' * 100_000)\nos._exit(0)",
        "result = [[]] * 100_001",
        "os.write(3, b'\\xff')\nos._exit(0)",
        "os._exit(0)",
    ],
)
def test_what_a_child_does_wrong_is_its_failure(does):
    with pytest.raises(ChildFailed):
        act(does, file_size=MEBIBYTE)


def test_an_answer_is_limited():
    assert len(act(f"result = 'x' * {sandbox.MAX_ANSWER - 2}").content) == sandbox.MAX_ANSWER - 2
    with pytest.raises(LimitReached, match=f"a result of more than {sandbox.MAX_ANSWER} bytes"):
        act(f"result = 'x' * {sandbox.MAX_ANSWER - 1}")


def test_an_answer_with_many_values_is_not_parsed():
    assert len(act("result = [1] * 500_001").content) == 500_001
    assert len(act("result = ['[,' * 600_000]").content[0]) == 1_200_000
    with pytest.raises(ChildFailed, match="its answer has more than 500000 values"):
        act("result = [1] * 500_002")
    with pytest.raises(ChildFailed, match="its answer has more than 100000 lists and mappings"):
        act("result = [[]] * 100_000")


def test_what_a_child_prints_is_shown_with_an_indent():
    printed = act("print('one\\n2026-01-01 ERROR forged\\x1b[1m', flush=True)").output
    assert printed == "\n    one\n    '2026-01-01 ERROR forged\\x1b[1m'"
    with pytest.raises(ChildFailed) as failure:
        act("print('x' * 30_000)\nraise RuntimeError('a reason')")
    assert "exit status was 1" in str(failure.value)
    assert failure.value.output.endswith("\n    RuntimeError: a reason")
    assert len(failure.value.output) < 21_000


@pytest.mark.usefixtures("without_walls")
def test_the_processes_of_a_child_end_with_it(tmp_path):
    number = tmp_path / "number"
    does = (
        f"pid = os.fork()\n"
        f"if not pid: time.sleep(600)\n"
        f"pathlib.Path({str(number)!r}).write_text(str(pid))"
    )
    if os.geteuid() != 0:
        # Only root may start processes there at all.
        with pytest.raises(ChildFailed):
            act(does)
        return
    act(does)
    processes.wait_until(lambda: is_gone(int(number.read_text())), "the end of the process", 10)


def test_directories_are_removed_however_deep_they_are():
    # Python's own functions recurse.
    act("for n in range(5000): os.mkdir('d'); open('f', 'w').close(); os.chdir('d')")
    act("for n in range(300): os.mkdir('d'); os.chdir('d'); os.mkdir('x', 0)")
    with pytest.raises(ChildFailed):
        act("os.makedirs('a/b'); open('a/c', 'w'); os.chmod('a', 0); os.chmod('.', 0); os._exit(1)")


def test_nothing_outside_is_changed_with_a_directory(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(0o755)
    (outside / "file").touch()
    act(f"os.symlink({str(outside)!r}, 'link')")
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
    assert (outside / "file").exists()


@pytest.mark.usefixtures("without_walls")
def test_a_link_in_place_of_the_directory_is_removed(tmp_path, temporary):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    act(f"own = os.getcwd(); os.rename(own, own + 'x'); os.symlink({str(outside)!r}, own)")
    assert (outside / "file").exists()
    (left,) = temporary.iterdir()
    left.rmdir()


def test_a_directory_of_a_killed_supervisor_is_removed_a_day_later(temporary):
    for name, age in (("abandoned", 25 * 3600), ("running", 23 * 3600)):
        scratch = temporary / f"glare-murano-child-{name}"
        scratch.mkdir()
        (scratch / "made").touch()
        os.utime(scratch, times=(time.time() - age,) * 2)
    act("pass")
    # The supervisor does so after its report.
    processes.wait_until(lambda: len(list(temporary.iterdir())) == 1, "the removal")
    (left,) = temporary.iterdir()
    assert left.name == "glare-murano-child-running"
    (left / "made").unlink()
    left.rmdir()


@pytest.mark.parametrize(("seconds", "nice"), [(0, 0), (0.5, 19)])
def test_a_long_removal_has_the_lowest_priority(tmp_path, seconds, nice):
    program = (
        "import os, pathlib, sys, time\n"
        "from glare_murano.package.sandbox import fork_server\n"
        "fork_server._PROMPT_REMOVAL = 0.1\n"
        f"fork_server.scratch.remove = lambda _: time.sleep({seconds})\n"
        "fork_server._remove(pathlib.Path(sys.argv[1]))\n"
        "time.sleep(0.2)\n"
        "print(os.nice(0) - int(sys.argv[2]))\n"
    )
    own = os.nice(0)
    command = [sys.executable, "-c", program, str(tmp_path), str(own)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(found.stdout) == min(nice, 19 - own)


# The kernel does not kill the child with its supervisor.
_SURVIVE = "ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n"


@pytest.mark.usefixtures("without_walls")
@pytest.mark.parametrize("first", ["", _SURVIVE])
def test_a_child_that_kills_its_supervisor_ends(tmp_path, temporary, first):
    started = tmp_path / "started"
    does = (
        f"{first}open({str(started)!r}, 'a').write(f'{{os.getpid()}} ')\n"
        f"open('left', 'w').close()\n"
        f"os.kill(os.getppid(), signal.SIGKILL)\n"
        f"time.sleep(60)"
    )
    with pytest.raises(ChildFailed, match="its supervisor has ended"):
        act(does)
    pids = [int(pid) for pid in started.read_text().split()]
    # There is one more attempt, since the supervisor might have been killed by mistake.
    assert 1 <= len(pids) <= 2
    processes.wait_until(lambda: all(map(is_gone, pids)), "the end of the children")
    assert act("result = 1").content == 1
    # The next supervisor removes the directories, after its report.
    processes.wait_until(lambda: not list(temporary.iterdir()), "an empty directory", 10)


@pytest.mark.usefixtures("without_walls")
def test_a_child_that_stops_its_supervisor_ends(tmp_path, temporary, monkeypatch):
    monkeypatch.setattr(children, "_GRACE", 1)
    started = tmp_path / "started"
    does = (
        f"open({str(started)!r}, 'a').write(f'{{os.getpid()}} {{os.getppid()}}')\n"
        f"os.kill(os.getppid(), signal.SIGSTOP)\n"
        f"time.sleep(60)"
    )
    with pytest.raises(ChildFailed, match="its supervisor has not reported for 4 seconds"):
        act(does, seconds=1)
    pids = [int(pid) for pid in started.read_text().split()]
    processes.wait_until(lambda: all(map(is_gone, pids)), "the end of both", 10)
    processes.wait_until(lambda: not list(temporary.iterdir()), "an empty directory", 10)


def test_a_waiting_child_that_was_stopped_is_replaced(monkeypatch):
    monkeypatch.setattr(children, "_GRACE", 1)
    act("pass")
    former = warm_process().pid
    processes.wait_until(lambda: processes.descendants(former), "the next child")
    below = []
    for pid in processes.descendants(former):
        # The child of the first call may just be ending.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            below.append(pid)
    with pytest.raises(ChildFailed, match="its supervisor has not reported"):
        act("result = 1", seconds=1)
    processes.wait_until(lambda: all(map(is_gone, below)), "the end of the stopped ones", 10)
    assert is_gone(former)
    assert act("result = 2").content == 2


def test_a_child_cannot_look_into_the_process_of_the_service(temporary):
    """The kernel lets only root look into a process without this attribute."""
    get_dumpable = 3
    program = (
        "import ctypes\n"
        f"found = [ctypes.CDLL(None).prctl({get_dumpable})]\n"
        "act('pass')\n"
        f"print([*found, ctypes.CDLL(None).prctl({get_dumpable})], flush=True)"
    )
    with running(program, temporary) as sender:
        assert sender.stdout.readline() == "[1, 0]\n"


def test_the_warm_process_is_replaced_after_its_end():
    act("pass")
    former = warm_process().pid
    with concurrent.futures.ThreadPoolExecutor() as executor:
        running = executor.submit(act, "time.sleep(0.5); result = 1")
        time.sleep(0.2)
        os.kill(former, signal.SIGKILL)
        # The child that has the request goes on.
        assert running.result().content == 1
    assert [act("result = 2").content for _ in range(3)] == [2, 2, 2]
    assert warm_process().pid != former


def test_a_child_that_is_killed_before_the_request_is_replaced(temporary):
    act("pass")
    former = warm_process()
    found = pathlib.Path(f"/proc/{former.pid}/task/{former.pid}/children")
    processes.wait_until(found.read_text, "the supervisor")
    # The last one waits for the next request.
    os.kill(int(found.read_text().split()[-1]), signal.SIGKILL)
    assert act("result = 2").content == 2
    # The child may have taken the request already, and nobody is left to remove its directory.
    for scratch in temporary.iterdir():
        scratch.rmdir()


def test_a_warm_process_that_cannot_start_is_reported():
    with tempfile.TemporaryFile() as file, pytest.raises(ChildFailed) as failure:
        sandbox.run("no.such.module:act", file, {}, ChildSettings())
    assert "No module named 'no'" in failure.value.output
    with pytest.raises(ChildFailed, match=r"cannot be started.*nowhere"):
        act("pass", python="/nowhere/python3")
    assert act("result = 1", python=sys.executable).content == 1


def test_a_request_that_is_too_long_is_refused():
    with pytest.raises(ChildFailed, match="too long"):
        act("#" * 70_000)


@pytest.mark.usefixtures("without_walls")
def test_the_caller_does_something_meanwhile_and_can_end_the_child(tmp_path, temporary):
    calls = []
    assert act("time.sleep(2.5); result = 1", lambda: calls.append(1)).content == 1
    assert len(calls) == 2

    number = tmp_path / "number"

    def cancel():
        raise KeyError("cancelled")

    does = f"pathlib.Path({str(number)!r}).write_text(str(os.getpid())); time.sleep(60)"
    with pytest.raises(KeyError):
        act(does, cancel)
    processes.wait_until(lambda: is_gone(int(number.read_text())), "the end of the child", 5)
    processes.wait_until(lambda: not list(temporary.iterdir()), "an empty directory", 5)


def test_many_threads_have_children_at_once():
    with concurrent.futures.ThreadPoolExecutor(8) as executor:
        codes = [f"time.sleep(0.1); result = {number}" for number in range(24)]
        assert [answer.content for answer in executor.map(act, codes)] == list(range(24))


_PROGRAM = """
import json, os, sys, tempfile, threading, time
from glare_murano.package import sandbox
from glare_murano.package.sandbox import ChildSettings, children, warm_processes
from tests.unit.package import sandboxed

def act(does):
    with tempfile.TemporaryFile() as file:
        return sandbox.run(sandboxed.NAME, file, {"does": does}, ChildSettings()).content

def warm():
    return warm_processes._processes[sandboxed.NAME]._process.pid
"""


@contextlib.contextmanager
def running(program, temporary):
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM + program],
        cwd=processes.ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def test_no_process_is_left_after_the_sender_was_killed(temporary):
    does = "import os, time; print(os.getpid(), os.getppid(), flush=True); time.sleep(60)"
    program = (
        f"threading.Thread(target=act, args=[{does!r}], daemon=True).start()\n"
        f"while sandboxed.NAME not in warm_processes._processes: time.sleep(0.01)\n"
        f"path = f'/proc/{{warm()}}/task/{{warm()}}/children'\n"
        f"found = []\n"
        # The supervisor of the running child, and the next one.
        f"while len(found) < 2 or len(below) < 2:\n"
        f"    time.sleep(0.05)\n"
        f"    found = open(path).read().split()\n"
        f"    below = [c for p in found for c in open(f'/proc/{{p}}/task/{{p}}/children').read()"
        f".split()]\n"
        f"print(warm(), *found, *below, flush=True)\n"
        f"time.sleep(60)"
    )
    with running(program, temporary) as sender:
        pids = [int(pid) for pid in sender.stdout.readline().split()]
        assert len(pids) == 5
        assert not any(map(is_gone, pids))
        os.kill(sender.pid, signal.SIGKILL)
    processes.wait_until(lambda: all(map(is_gone, pids)), "the end of all processes", 10)
    processes.wait_until(lambda: not list(temporary.iterdir()), "an empty directory", 10)


def test_a_forked_process_has_a_warm_process_of_its_own(temporary):
    program = (
        "act('pass')\n"
        "first = warm()\n"
        "if not os.fork():\n"
        "    act('pass')\n"
        "    own = warm()\n"
        "    opened = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
        " if os.path.lexists(f'/proc/self/fd/{n}')]\n"
        "    sockets = sum('socket' in name for name in opened)\n"
        "    print(json.dumps([first, own, sockets]), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "act('pass')\n"
        "print(json.dumps([first, warm()]), flush=True)"
    )
    with running(program, temporary) as sender:
        first, own, sockets = json.loads(sender.stdout.readline())
        again = json.loads(sender.stdout.readline())
    assert own != first
    assert again == [first, first]
    # One for requests, and one for values to keep.
    assert sockets == 2
    processes.wait_until(lambda: is_gone(own) and is_gone(first), "the end of both", 10)


def test_a_thread_may_hold_the_lock_during_a_fork(temporary):
    program = (
        "act('pass')\n"
        "with warm_processes._lock:\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        act('pass')\n"
        "        os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)"
    )
    with running(program, temporary) as sender:
        assert sender.stdout.readline() == "7\n"


@pytest.mark.usefixtures("without_walls")
def test_signals_to_every_process_of_a_service_do_not_end_a_child():
    act("pass")
    with concurrent.futures.ThreadPoolExecutor() as executor:
        running = executor.submit(
            act,
            "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):\n"
            "    os.kill(os.getpid(), number); os.kill(os.getppid(), number)\n"
            "time.sleep(0.5); result = 1",
        )
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(warm_process().pid, number)
        assert running.result().content == 1
