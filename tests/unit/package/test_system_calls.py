# SPDX-License-Identifier: Apache-2.0

"""The system calls that a child process cannot use, on any kernel.

Each test tries the same with and without the filter; Landlock restricts nothing here.
"""

import os
import platform
import socket
import subprocess
import sys
import tempfile

import pytest

from glare_murano.package import sandbox
from glare_murano.package.sandbox import ChildSettings, children, limited_process, system_calls
from tests.unit.package import sandboxed

_PLACE = {"x86_64": 0, "aarch64": 1}[platform.machine()]
IMPORTS = f"""
import ctypes, errno, os, resource, signal, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(number, *map(ctypes.c_long, arguments))
    return ctypes.get_errno() if result < 0 else 0
def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result
numbers = { ({name: found[_PLACE] for name, found in system_calls._CHECKED.items()})!r}
"""

pytestmark = pytest.mark.usefixtures("temporary")


def act(code):
    """Run code in a child; return its result, or the name of the error that it raises."""
    code = "\n".join(f"    {line}" for line in code.splitlines())
    caught = "except (OSError, ValueError) as error:\n    result = type(error).__name__"
    code = f"{IMPORTS}try:\n{code}\n{caught}"
    with tempfile.TemporaryFile() as file:
        return sandbox.run(sandboxed.NAME, file, {"does": code}, ChildSettings()).content


@pytest.fixture(autouse=True)
def filtered(monkeypatch):
    monkeypatch.setattr(children, "_WALLS", (limited_process.SYSTEM_CALLS,))


@pytest.fixture
def refused(monkeypatch):
    """Check that code is refused, and that without the filter it is not."""

    def check(code, expected="PermissionError"):
        assert act(code) == expected
        with monkeypatch.context() as changed:
            changed.setattr(children, "_WALLS", ())
            assert act(code) != expected

    return check


def test_each_system_call_in_the_table_is_refused():
    numbers = [f[_PLACE] for f in system_calls._REFUSED.values() if f[_PLACE] is not None]
    # Most of them refuse such arguments anyway, with another error.
    found = act(f"result = {{n: call(n, -1, -1, -1, -1, -1, -1) for n in {numbers}}}")
    assert {int(number): error for number, error in found.items()} == dict.fromkeys(numbers, 1)


def test_new_system_calls_do_not_exist(refused):
    # fchmodat2 since Linux 6.6, and a number that x32 would have.
    refused("open('x', 'w').close(); result = call(452, -100, 0, 0, 0)", 38)
    assert act(f"result = call({0x40000000 + 1}, 1, 0, 0)") == 38
    assert act("result = call(numbers['clone3'], 0, 0)") == 38


def test_a_child_starts_no_process_but_threads(refused):
    # The limit of processes does not bind root.
    if os.geteuid() == 0:
        refused("pid = os.fork()\nif not pid: os._exit(0)\nresult = os.waitpid(pid, 0)[1]")
    code = "found = []\nt = threading.Thread(target=lambda: found.append(1))\nt.start(); t.join()"
    if os.geteuid() == 0:
        assert act(f"{code}\nresult = found") == [1]
    assert act("os.execv(sys.executable, [sys.executable])") == "PermissionError"


def test_a_child_changes_no_mode_owner_or_time(refused, tmp_path):
    file = tmp_path / "file"
    file.touch()
    for change in (
        f"os.chmod({str(file)!r}, 0o600)",
        f"os.chown({str(file)!r}, -1, -1)",
        f"os.utime({str(file)!r})",
        f"os.fchmod(os.open({str(file)!r}, os.O_RDONLY), 0o600)",
        f"os.setxattr({str(file)!r}, 'user.x', b'x')",
    ):
        refused(change)


def test_no_memory_of_a_child_outlives_it_or_escapes_its_limit(refused):
    for memory in (
        "os.close(os.memfd_create('x'))",
        "found = checked(libc.shmget(0, 4096, 0o1600)); libc.shmctl(found, 0, 0)",
        "found = checked(libc.semget(0, 1, 0o1600)); libc.semctl(found, 0, 0)",
        "found = checked(libc.msgget(0, 0o1600)); libc.msgctl(found, 0, 0)",
        # A key in the keyring of the process itself.
        f"checked(libc.syscall({(248, 217)[_PLACE]}, b'user', b'x', b'x', 1, -2))",
    ):
        refused(memory)


def test_a_child_changes_nothing_of_other_processes(refused):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        for change in (
            f"resource.prlimit({other.pid}, resource.RLIMIT_NOFILE, (64, 64))",
            f"os.setpriority(os.PRIO_PROCESS, {other.pid}, 1)",
            f"os.sched_setaffinity({other.pid}, os.sched_getaffinity(0))",
            f"os.kill({other.pid}, 0)",
            f"signal.pidfd_send_signal(os.pidfd_open({other.pid}), 0)",
            "os.setpriority(os.PRIO_PROCESS, 0, 1)",
        ):
            refused(change)
    refused(
        "soft, hard = resource.getrlimit(resource.RLIMIT_CORE)\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))",
        # Python's error for a refusal.
        "ValueError",
    )
    assert act("os.kill(os.getpid(), 0); signal.raise_signal(signal.SIGCHLD); result = 1") == 1


def test_the_kernel_signals_nobody_for_a_child(refused):
    owner = "import fcntl\nown = open('own', 'w')\n"
    refused(f"{owner}fcntl.fcntl(own, fcntl.F_SETOWN, os.getppid())")
    refused(f"{owner}one, _ = socket.socketpair()\nfcntl.ioctl(one, 0x8901, os.getppid())")
    assert act(f"{owner}result = fcntl.fcntl(own, fcntl.F_GETFD)") == 1
    assert act(f"{owner}fcntl.flock(own, fcntl.LOCK_EX)") is None


def test_a_child_uses_only_tcp_and_udp(refused, tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        refused(f"socket.socket(socket.AF_UNIX).connect({str(path)!r})")
    refused("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()")
    # Multipath TCP and UDP-Lite.
    for kind, protocol in (("STREAM", 262), ("DGRAM", 136)):
        assert act(f"socket.socket(type=socket.SOCK_{kind}, proto={protocol})") == "PermissionError"
    assert act("socket.socket(proto=socket.IPPROTO_TCP); socket.socket(socket.AF_INET6)") is None
    assert act("socket.socket(type=socket.SOCK_DGRAM).bind(('127.0.0.1', 0))") is None
    assert act("a, b = socket.socketpair(); a.send(b'x'); result = b.recv(1).decode()") == "x"


def test_a_child_connects_only_with_connect(refused):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        refused(f"socket.socket().sendto(b'x', socket.MSG_FASTOPEN, {address!r})")
        refused("socket.socket().setsockopt(socket.IPPROTO_TCP, 30, 1)")
        assert act("socket.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)") is None
        connect = f"s = socket.create_connection({address!r}); s.sendall(b'x')"
        assert act(connect) is None


def test_a_child_receives_nothing_and_watches_nothing(refused, tmp_path):
    refused("socket.socket().listen()")
    watch = f"checked(libc.inotify_add_watch(checked(libc.inotify_init()), {bytes(tmp_path)!r}, 2))"
    refused(watch)
    refused("one, _ = socket.socketpair(type=socket.SOCK_DGRAM)")


def test_a_child_sends_no_descriptors(refused):
    refused("a, _ = socket.socketpair()\nsocket.send_fds(a, [b'x'], [0])")


def test_a_child_uses_no_epoll_and_no_large_pipes(refused):
    refused("import select\nselect.epoll().close()")
    refused("import fcntl\nfcntl.fcntl(os.pipe()[1], fcntl.F_SETPIPE_SZ, 2**17)")


def test_a_child_makes_no_further_rules(refused):
    # The version of Landlock.
    refused("checked(libc.syscall(444, None, 0, 1))")


def test_a_child_cannot_delay_who_closes_its_socket(refused):
    linger = "socket.socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'1' * 8)"
    refused(linger)
    assert act("socket.socket().setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)") is None


def test_a_child_stays_hidden_and_ends_with_its_supervisor(refused):
    refused("checked(libc.prctl(1, 0, 0, 0, 0))")
    refused("checked(libc.prctl(4, 1, 0, 0, 0))")
    assert act("checked(libc.prctl(15, b'name', 0, 0, 0))") is None


def test_a_child_of_root_has_no_rights_of_root(refused):
    status = "result = open('/proc/self/status').read().split('CapEff:')[1].split()[0]"
    if os.geteuid() == 0:
        refused(status, "0" * 16)
    # FIFREEZE; the file system of the test must not freeze without the filter.
    freeze = "import fcntl\nfcntl.ioctl(os.open('.', os.O_RDONLY), 0xC0045877, 0)"
    assert act(freeze) == "PermissionError"
    assert act("result = os.isatty(0)") is False


def test_the_numbers_are_those_of_the_processor():
    for place, execute, others in ((0, 59, 221), (1, 221, 59)):
        steps = [*system_calls._filter(7, place, 42)]
        compared = {step.value for step in steps if step.code == system_calls._IS}
        assert execute in compared
        assert 42 in compared
        assert (others in compared) == (others in _refused_numbers(place))


def _refused_numbers(place):
    tables = {**system_calls._REFUSED, **system_calls._CHECKED}
    return {found[place] for found in tables.values()}


def test_other_processors_have_no_filter(monkeypatch):
    class Library:
        called = ()

        def capset(self, *_):
            self.called += ("capset",)
            return 0

        def prctl(self, *_):
            self.called += ("prctl",)
            return -1

    library = Library()
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    system_calls.restrict(library)
    assert library.called == ("capset",)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(OSError, match="the kernel refuses the filter"):
        system_calls.restrict(library)
