# SPDX-License-Identifier: Apache-2.0

"""The command on a terminal and in a pipe: progress, questions, Ctrl-C, tracebacks."""

import contextlib
import io
import os
import pathlib
import pty
import random
import re
import select
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import TextIO

import pytest
import rich.live

from tests import packages, processes
from tests.functional import proxy
from tests.functional.client import Client
from tests.functional.openstack_command import OpenStack

pytestmark = pytest.mark.programs

PROGRAM = pathlib.Path(sys.executable).with_name("openstack")
# More than the buffers of the connections take, but few seconds of packing.
BIG = 24 * 1024**2
LIMIT = 1024**2
CTRL_C, CTRL_D = b"\x03", b"\x04"


class Terminal:
    """The keyboard and the screen of a pseudo-terminal."""

    def __init__(self, keyboard: int) -> None:
        self._keyboard = keyboard
        self.screen = ""

    def press(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def read(self) -> bool:
        """Read what arrives soon; False after the end."""
        if not self._is_readable():
            return True
        try:
            read = os.read(self._keyboard, 65536)
        except OSError:
            # EIO: nobody has the terminal open any more.
            return False
        self.screen += read.decode()
        return bool(read)

    def read_all(self) -> None:
        """Read what has been written, while the terminal stays open."""
        while self._is_readable():
            self.read()

    def _is_readable(self) -> bool:
        return bool(select.select([self._keyboard], [], [], 0.1)[0])


@contextlib.contextmanager
def _terminal() -> Iterator[tuple[Terminal, int]]:
    keyboard, program = pty.openpty()
    try:
        yield Terminal(keyboard), program
    finally:
        os.close(keyboard)


@contextlib.contextmanager
def _attached() -> Iterator[tuple[Terminal, TextIO]]:
    """A terminal for a command in this process."""
    with (
        _terminal() as (terminal, program),
        os.fdopen(program, "r+b", buffering=0) as raw,
        io.TextIOWrapper(raw, write_through=True) as stream,
    ):
        yield terminal, stream


def _write(folder: pathlib.Path, name: str, size: int) -> pathlib.Path:
    content = packages.content(name, more={"Resources/data": random.Random(name).randbytes(size)})
    return packages.write(folder / name, content)


def test_ctrl_c_stops_an_upload_at_once_and_the_next_run_goes_on(
    openstack: OpenStack, glare: Client, name: str, tmp_path: pathlib.Path
) -> None:
    paths = [_write(tmp_path, name, BIG), _write(tmp_path, f"{name}.small", 10)]
    names = f"in:{name},{name}.small"

    def is_uploaded() -> bool:
        listed = glare.request("GET", "", params={"name": f"{name}.small"}).json()["artifacts"]
        return bool(listed and listed[0]["archive"])

    port = urllib.parse.urlsplit(glare.url).port
    with proxy.stalling(port or 80, LIMIT) as slow, _terminal() as (terminal, program):
        openstack.add_cloud("slow", f"http://127.0.0.1:{slow}", glare.token)
        command = [PROGRAM, "--os-cloud", "slow", "murano", "package", "publish", *paths]
        environment = {**os.environ, **openstack.environment, "TERM": "xterm"}
        process = subprocess.Popen(
            ["setsid", "--ctty", *command],
            stdin=program,
            stdout=program,
            stderr=program,
            env=environment,
            cwd=processes.ROOT,
        )
        os.close(program)
        while not (f"{name} 1.0.0" in terminal.screen and is_uploaded()):
            assert terminal.read(), terminal.screen
        terminal.press(CTRL_C)
        start = time.monotonic()
        while terminal.read():
            pass
        assert process.wait(timeout=10) == 130, terminal.screen
        assert time.monotonic() - start < 20
    # The bar.
    assert "\x1b[" in terminal.screen
    assert "━" in terminal.screen
    assert "Uploaded packages stay as drafts" in terminal.screen
    assert "Traceback" not in terminal.screen
    assert glare.names(name=names, status="drafted") == [
        (name, "1.0.0"),
        (f"{name}.small", "1.0.0"),
    ]
    rows = openstack.json("package", "publish", *paths)
    assert {row["Name"]: row["Result"] for row in rows} == {
        name: "published",
        f"{name}.small": "published, was uploaded before",
    }


def test_a_pipe_gets_plain_lines(openstack: OpenStack, name: str, tmp_path: pathlib.Path) -> None:
    path = _write(tmp_path, name, 10)
    environment = {**os.environ, **openstack.environment, "TERM": "xterm"}
    command = [PROGRAM, "murano", "package", "publish", path]
    result = subprocess.run(
        command, capture_output=True, check=True, env=environment, cwd=processes.ROOT, text=True
    )
    assert f"uploaded {name} 1.0.0" in result.stderr.splitlines()
    assert f"| {name} | 1.0.0   | published |" in result.stdout.splitlines()
    assert "\x1b" not in result.stdout + result.stderr


def test_a_package_counts_as_uploaded_when_the_server_has_accepted_it(
    openstack: OpenStack,
    name: str,
    tmp_path: pathlib.Path,
    set_option: Callable[[str, object], None],
) -> None:
    # Only the server knows the names of extension plug-ins.
    set_option("provided_packages", [f"{name}.bad:1.0.0"])
    bad, good = _write(tmp_path, f"{name}.bad", 10), _write(tmp_path, f"{name}.good", 10)
    result = openstack.fails("package", "publish", bad, good)
    assert f"uploaded {name}.good 1.0.0\n" in result.err
    assert f"uploaded {name}.bad" not in result.err
    assert "[plugin-name]" in result.err


@pytest.mark.parametrize(
    ("keys", "code"), [(b"y\n", 0), (b"YES\n", 0), (b"n\n", 1), (b"\n", 1), (CTRL_D, 1)]
)
def test_only_a_yes_deletes(
    openstack: OpenStack, glare: Client, name: str, keys: bytes, code: int
) -> None:
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0"))
    with _attached() as (terminal, stream):
        terminal.press(keys)
        result = openstack.run("package", "delete", name, terminal=stream)
        terminal.read_all()
    assert result.code == code
    assert f"{name} 1.0.0 (active, private): required by no package" in terminal.screen
    assert "Delete 1 package(s)? [y/N] " in terminal.screen
    assert ("nothing was changed" in terminal.screen) == bool(code)
    assert glare.names(name=name) == ([(name, "1.0.0")] if code else [])


def test_a_terminal_gets_bars(openstack: OpenStack, name: str, tmp_path: pathlib.Path) -> None:
    with _attached() as (terminal, stream):
        result = openstack.run("package", "publish", _write(tmp_path, name, 10), terminal=stream)
        terminal.read_all()
    assert result.code == 0
    assert f"{name} 1.0.0 ━━━" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.screen)
    assert "\x1b" not in result.out


def test_ctrl_c_while_the_bars_begin_leaves_no_hidden_cursor(
    openstack: OpenStack, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: rich.live.Live) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(rich.live.Live, "refresh", interrupted)
    with _attached() as (terminal, stream):
        result = openstack.run("package", "publish", _write(tmp_path, name, 10), terminal=stream)
        terminal.read_all()
    assert result.code == 130
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert terminal.screen.rindex(shown) > terminal.screen.rindex(hidden)


def test_debug_shows_a_traceback(openstack: OpenStack, name: str) -> None:
    line = openstack.fails("package", "show", name, code=3)
    assert "Traceback" not in line.err
    environment = {**os.environ, **openstack.environment}
    command = [PROGRAM, "--debug", "murano", "package", "show", name]
    shown = subprocess.run(
        command, capture_output=True, env=environment, cwd=processes.ROOT, text=True, check=False
    )
    assert shown.returncode == 3
    assert "Traceback" in shown.stderr
    assert line.err.splitlines()[-1] in shown.stderr


def test_a_locale_without_utf_8_and_a_closed_standard_input(
    openstack: OpenStack, glare: Client, name: str
) -> None:
    library = f"{name}.library"
    glare.publish(library, "1.0.0", packages.package(library, "1.0.0", Name="Bücherei"))
    glare.publish(name, "1.0.0", packages.package(name, "1.0.0", Require={library: "1"}))
    environment = {**os.environ, **openstack.environment, "PYTHONIOENCODING": "ascii"}
    script = 'o="$0"; "$o" murano package tree $1; "$o" murano package show $1.library -f value'
    shown = subprocess.run(
        ["sh", "-c", f'{script}; "$o" murano package delete $1 <&-', PROGRAM, name],
        capture_output=True,
        env=environment,
        cwd=processes.ROOT,
        text=True,
        check=False,
    )
    assert f"`-- {library} 1.0.0  [1]" in shown.stdout.splitlines()
    assert "B\\xfccherei" in shown.stdout.splitlines()
    assert "there is no terminal to ask on; add --yes" in shown.stderr
    assert shown.returncode == 1
