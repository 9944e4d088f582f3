# SPDX-License-Identifier: Apache-2.0

"""What a child process can reach: each test tries the same with and without Landlock."""

import os
import pathlib
import pwd
import socket
import sys
import tempfile

import pytest

from glare_murano.package import sandbox
from glare_murano.package.sandbox import ChildSettings, children, limited_process, walls
from tests.unit.package import sandboxed

# The ABI of Landlock that Linux 6.12 has. Older kernels restrict less.
ABI = 6
IMPORTS = "import ctypes, os, pathlib, signal, socket, subprocess, sys\n"

pytestmark = pytest.mark.usefixtures("temporary", "landlock")


@pytest.fixture
def landlock(monkeypatch):
    """Let Landlock alone restrict children, without the filter of system calls."""
    if walls.abi() < ABI:
        pytest.fail("these tests need Linux 6.12 with Landlock")
    monkeypatch.setattr(children, "_WALLS", (limited_process.LANDLOCK,))


def act(does, readable=(), ports=()):
    """Run code in a child; return its result, or the name of the error that it raises."""
    code = f"{IMPORTS}try:\n    {does}\nexcept OSError as error:\n    result = type(error).__name__"
    with tempfile.TemporaryFile() as file:
        file.write(b"the content of the file")
        file.seek(0)
        settings = ChildSettings(readable=readable, ports=ports)
        return sandbox.run(sandboxed.NAME, file, {"does": code}, settings).content


@pytest.fixture
def refused(monkeypatch):
    """Check that code is refused, and that without Landlock it is not."""

    def check(does):
        assert act(does) == "PermissionError"
        with monkeypatch.context() as changed:
            changed.setattr(children, "_WALLS", ())
            assert act(does) != "PermissionError"

    return check


def test_a_child_reads_its_file_and_modules_of_python(refused, tmp_path):
    secret = tmp_path / "clouds.yaml"
    secret.write_text("password: hunter2")
    assert act("result = file.read().decode()") == "the content of the file"
    assert act("import ftplib, _lzma; result = ftplib.__name__") == "ftplib"
    refused(f"result = open({str(secret)!r}).read()")
    refused(f"result = os.listdir({str(tmp_path)!r})")
    refused("result = open('/etc/passwd').read()")
    refused(f"result = open('/proc/{os.getpid()}/stat').read()")
    refused(f"os.symlink({str(secret)!r}, 'link'); result = open('link').read()")


def test_a_child_reads_what_its_caller_names(tmp_path):
    named = tmp_path / "named"
    named.mkdir()
    (named / "package.zip").write_text("content")
    (tmp_path / "package.zip").symlink_to(named / "package.zip")
    readable = [str(named), str(tmp_path / "missing")]

    def read(path, mode="r"):
        return act(f"result = open({str(path)!r}, {mode!r}).read()", readable)

    assert read(named / "package.zip") == "content"
    assert read(tmp_path / "package.zip") == "content"
    assert read(named / "package.zip", "r+") == "PermissionError"
    assert act(f"result = os.listdir({str(named)!r})", readable) == ["package.zip"]
    assert act(f"result = os.unlink({str(named / 'package.zip')!r})", readable) == "PermissionError"
    # A link would let the child write to the file. The kernel reports another file system.
    assert act(f"os.link({str(named / 'package.zip')!r}, 'own')", readable) == "OSError"


def test_a_child_writes_only_into_its_own_directory(refused, tmp_path, temporary):
    assert act("open('made', 'w').write('x'); os.mkdir('d'); os.rename('made', 'd/made')") is None
    assert act("open(os.devnull, 'w').write('x')") is None
    refused(f"open({str(tmp_path / 'made')!r}, 'w').close()")
    refused(f"os.mkdir({str(temporary / 'made')!r}); os.rmdir({str(temporary / 'made')!r})")
    refused("open('/proc/self/fd/0', 'r+b').close()")


def test_a_child_cannot_connect_or_listen(refused):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"socket.create_connection(('127.0.0.1', {port})).close()"
        refused(connect)
        # A child connects to the ports that its caller names.
        assert act(connect, ports=[port]) is None
        assert act(connect, ports=[port + 1]) == "PermissionError"
    refused("socket.create_server(('127.0.0.1', 0)).close()")


def test_a_child_cannot_connect_to_abstract_sockets(refused):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0glare-murano-test")
        server.listen()
        refused("socket.socket(socket.AF_UNIX).connect('\\0glare-murano-test')")


def test_a_child_cannot_signal_other_processes(refused):
    refused("os.kill(os.getppid(), 0)")
    refused(f"os.kill({os.getpid()}, 0)")
    assert act("os.kill(os.getpid(), 0)") is None


def test_the_kernel_ends_children_first_if_memory_runs_out():
    assert act("result = open('/proc/self/oom_score_adj').read()") == "1000\n"


def test_a_child_cannot_execute_programs(refused):
    # The limit of processes does not bind root.
    if os.geteuid() == 0:
        refused("result = subprocess.run([sys.executable, '-c', '']).returncode")
    assert act("os.execv(sys.executable, [sys.executable])") == "PermissionError"


@pytest.fixture
def directories():
    """Find the directories of modules again."""
    walls._directories_of_modules.cache_clear()
    yield walls._directories_of_modules
    walls._directories_of_modules.cache_clear()


def test_a_directory_around_the_home_directory_is_not_readable(directories, monkeypatch, tmp_path):
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    (home / "root").symlink_to("/")
    monkeypatch.setattr(walls, "_home", lambda: home)
    names = "/", "", ".", tmp_path, home, home / "root", home / "project"
    monkeypatch.setattr("sys.path", [*map(str, names)])
    found = {pathlib.Path(path) for path in directories()}
    assert home / "project" in found
    # However the tests are installed, the packages that they import are readable.
    assert pathlib.Path(sandbox.__file__).parents[2] in found
    assert not {pathlib.Path("/"), pathlib.Path.cwd(), tmp_path, home} & found


def test_the_home_directory_is_that_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert walls._home() == pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    monkeypatch.setattr(os, "getuid", lambda: 2**31)
    assert walls._home() is None


def test_a_kernel_without_landlock_restricts_nothing(monkeypatch):
    def refuse():
        raise PermissionError

    monkeypatch.setattr("landlockpy.abi_version", refuse)
    assert walls.abi() == 0
    # Otherwise, the missing directory would be an error.
    walls.restrict("/nowhere", [], [])


def test_a_path_of_python_may_be_missing_or_inside_of_a_file(directories, monkeypatch, tmp_path):
    (tmp_path / "modules.zip").touch()
    odd = [str(tmp_path / "modules.zip" / "inside"), str(tmp_path / "missing")]
    # The kernel refuses this path, as it does one inside of a closed directory, even for root.
    refused = str(tmp_path / ("x" * 300))
    monkeypatch.setattr("sys.path", [*sys.path, *odd, refused])
    assert refused not in directories()
    assert not {*odd} & {*directories()}
    # This error comes after all paths.
    with pytest.raises(FileNotFoundError, match="nowhere"):
        walls.restrict("/nowhere", odd, [])


def test_a_directory_inside_another_one_is_not_repeated(directories, monkeypatch, tmp_path):
    (tmp_path / "modules" / "inside").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "modules")
    paths = [str(tmp_path / name) for name in ("modules", "modules/inside", "link")]
    monkeypatch.setattr("sys.path", [*sys.path, *paths])
    assert {*paths} & {*directories()} == {str(tmp_path / "modules")}
