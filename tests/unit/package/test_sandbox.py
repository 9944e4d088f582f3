# SPDX-License-Identifier: Apache-2.0

"""The function of a package type, in a child process that is not trusted."""

import dataclasses
import json
import logging
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest
import yaml

from glare_murano.package import Archive, InvalidPackage, Limits, Rule, read_contents, sandbox
from glare_murano.package.classes import ClassDefinition
from glare_murano.package.manifest import FUNCTION_NAMESPACE, Format, registered_formats
from glare_murano.package.sandbox import Sandbox
from tests import packages
from tests.plugins import site

__all__ = ["site"]

NAME = "org.app"

# The rest of each plug-in: what it does before it describes a package with one class.
PLUGIN = """
import json, os, signal, subprocess, sys, time
from glare_murano.package import Description, InvalidPackage, Problem

def describe(manifest, archive):
    {does}
    return Description({{manifest.full_name: []}}, {{}})
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The only directory for temporary files."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture
def folder(tmp_path):
    """A package of the format ``Test.Made``."""
    content = packages.manifest(NAME, "1.2.0", Format="Test.Made/1.0", Classes=None)
    return packages.write(tmp_path / "package", {**packages.files(content), "a/b.txt": b"text"})


@pytest.fixture
def read(site, folder, tmp_path):
    """Read a package whose plug-in does something."""

    def read(does, limits=Sandbox()):  # noqa: B008 - it never changes
        point = {"Test.Made/1.0": "made_plugin:describe"}
        code = PLUGIN.format(does="\n    ".join(does.splitlines()))
        if not registered_formats(FUNCTION_NAMESPACE).keys() & {Format.of("Test.Made/1.0")}:
            site.install("made", "1.0", {FUNCTION_NAMESPACE: point}, {"made_plugin": code})
        with Archive.open(folder) as archive, (tmp_path / "package.zip").open("w+b") as packed:
            archive.pack(packed)
            with Archive.open(packed) as opened:
                return read_contents(opened, limits.describe)

    return read


def test_a_generator_describes_classes_requirements_and_the_form(read):
    found = read(
        "text = archive.read('a/b.txt', 10).decode()\n"
        "classes = {f'{manifest.full_name}.{n}': ['x.Base', 'x.Other'] for n in range(2)}\n"
        "return Description(classes, {'io.murano': '>=1', 'org.db': None}, ui=f'Version: {text}')"
    )
    bases = ("x.Base", "x.Other")
    assert found.classes == (
        ClassDefinition("org.app.0", bases),
        ClassDefinition("org.app.1", bases),
    )
    assert found.inherits == dict.fromkeys(bases, ("org.app.0", "org.app.1"))
    ranges = {fqn: spec.text for fqn, spec in found.requirements.items()}
    assert ranges == {"io.murano": ">=1", "org.db": "0", NAME: "1"}
    assert found.ui == b"Version: text"


def test_a_child_runs_by_the_interpreter_that_is_named(read):
    with pytest.raises(InvalidPackage, match="failed; see the log"):
        read("pass", Sandbox(python="/nowhere/python3"))
    assert read("pass", Sandbox(python=sys.executable)).classes


def test_a_child_gets_no_secret(read, monkeypatch, tmp_path, temporary):
    monkeypatch.setenv("OS_PASSWORD", "secret")
    with (tmp_path / "password").open("w") as file, socket.socket() as connection:
        os.set_inheritable(file.fileno(), True)
        os.set_inheritable(connection.fileno(), True)
        found = read(
            "opened = {n: os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
            " if os.path.lexists(f'/proc/self/fd/{n}')}\n"
            "seen = [dict(os.environ), opened, os.getcwd(), os.listdir(), sys.argv]\n"
            "open('left', 'w').write('x')\n"
            "return Description({}, {}, ui=json.dumps(seen))"
        )
    environment, opened, directory, listed, arguments = json.loads(found.ui)
    # The locale is Python's own.
    assert set(environment) - {"LC_CTYPE"} == {"PYTHONPATH", "HOME", "TMPDIR"}
    assert pathlib.Path(directory).parent == temporary
    assert listed == []
    own = [target for target in opened.values() if not target.startswith("/proc")]
    assert len(own) == 4  # the archive, the answer twice, and the output
    assert not any("password" in target or "socket" in target for target in own)
    assert "secret" not in json.dumps(arguments)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("time.sleep(60)", "took more than 1 seconds [package-type-limit]"),
        ("while True: pass", "took more than 1 seconds [package-type-limit]"),
        ("bytearray(1024**3)", "took more than 536870912 bytes of memory [package-type-limit]"),
        (
            "return Description({}, {}, ui='x' * 5_000_000)",
            "the result has more than 4194304 bytes [package-type-limit]",
        ),
        ("os.write(3, b'garbage')", "failed; see the log [package-type-failure]"),
        ("os.write(3, b'[' * 100_000); os._exit(0)", "[package-type-failure]"),
        ('os.write(3, b\'{"problems": [["x", "", "", 0]]}\'); os._exit(0)', "-failure]"),
        ("os._exit(0)", "[package-type-failure]"),
        ("sys.exit()", "[package-type-failure]"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "[package-type-failure]"),
        ("return None", "[package-type-failure]"),
        ("return Description({'a.B': 'c.D'}, {})", "[package-type-failure]"),
        ("return Description({'a.B': [1]}, {})", "[package-type-failure]"),
        ("os.write(0, b'the archive is read-only')", "[package-type-failure]"),
        ("open('large', 'wb').truncate(1024**3)", "[package-type-failure]"),
    ],
)
def test_what_a_child_does_wrong_is_a_refusal_and_leaves_nothing(read, temporary, does, words):
    with pytest.raises(InvalidPackage) as refusal:
        read(does, Sandbox(seconds=1 if "seconds" in words else 20))
    assert str(refusal.value).endswith(words)
    assert list(temporary.iterdir()) == []


def test_a_child_ends_by_itself_if_its_parent_is_killed(site, folder):
    point = {"Test.Made/1.0": "made_plugin:describe"}
    code = PLUGIN.format(does="time.sleep(60)")
    site.install("made", "1.0", {FUNCTION_NAMESPACE: point}, {"made_plugin": code})
    settings = json.dumps([0, sandbox.DEFAULT_MEMORY, dataclasses.astuple(Limits())])
    with Archive.open(folder) as archive, archive.open_zip() as package:
        ended = subprocess.run(
            [sys.executable, "-m", "glare_murano.package.type_process", settings],
            stdin=package,
            env={"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
            timeout=30,
            check=False,
        )
    assert ended.returncode == -signal.SIGALRM


def test_a_scratch_directory_of_a_stopped_server_is_removed_a_day_later(read, temporary):
    for name, age in (("stopped", 25 * 3600), ("running", 23 * 3600)):
        scratch = temporary / f"{sandbox._SCRATCH}{name}"
        scratch.mkdir()
        (scratch / "made").touch()
        os.utime(scratch, times=(time.time() - age,) * 2)
    read("pass")
    assert [path.name for path in temporary.iterdir()] == [f"{sandbox._SCRATCH}running"]


def test_what_a_plug_in_prints_is_not_its_answer(read):
    found = read("print('reading'); print('done', flush=True)")
    assert found.classes == (ClassDefinition(NAME, ()),)


def test_a_childs_own_processes_end_with_it(read, tmp_path):
    number = tmp_path / "number"
    does = (
        f"number = os.fork()\n"
        f"if not number: time.sleep(60)\n"
        f"open({str(number)!r}, 'w').write(str(number))"
    )
    if os.geteuid() != 0:
        # Only root may start processes there at all.
        with pytest.raises(InvalidPackage, match="package-type-failure"):
            read(does)
        return
    read(does)
    status = pathlib.Path("/proc", number.read_text(), "stat")
    deadline = time.monotonic() + 10
    # Until the container's first process has reaped it.
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_traceback_is_for_the_log_alone(read, caplog):
    with caplog.at_level(logging.ERROR), pytest.raises(InvalidPackage) as refusal:
        read("raise RuntimeError('a secret\\n2026-01-01 ERROR forged\\x1b[1m')")
    assert str(refusal.value) == (
        "Format: the package type Test.Made/1.0.0 failed; see the log [package-type-failure]"
    )
    (record,) = caplog.records
    first, *lines = record.getMessage().split("\n")
    assert first.endswith("on org.app 1.2.0:")
    assert lines[0].startswith("    Traceback")
    assert any("made_plugin.py" in line for line in lines)
    assert "    '2026-01-01 ERROR forged" in record.getMessage()
    assert all(line.startswith("    ") and line.isprintable() for line in lines)


def test_a_plug_in_refuses_a_package_with_problems_of_its_own(read):
    with pytest.raises(InvalidPackage) as refusal:
        read("raise InvalidPackage([Problem('package-type-result', 'a/b.txt', 'is empty', 3)])")
    assert str(refusal.value) == "a/b.txt, line 3: is empty [package-type-result]"


@pytest.mark.parametrize(
    ("classes", "requirements", "ui", "where"),
    [
        ({"no name": []}, {}, None, "class no name"),
        ({"a.B": ["x;y"]}, {}, None, "class a.B"),
        ({"a.B": ["x.Y"] * 65}, {}, None, "class a.B"),
        ({}, {"a b": "1"}, None, "requirement a b"),
        ({}, {"a.b": ">>1"}, None, "requirement a.b"),
        ({}, {f"a.b{n}": "1" for n in range(257)}, None, "requirements"),
        ({}, {}, "x" * (1024**2 + 1), "form"),
        # Half of a pair of UTF-16, which JSON carries.
        ({}, {}, "\ud800", "form"),
    ],
)
def test_a_description_is_checked_as_a_manifest_is(folder, classes, requirements, ui, where, site):
    point = {FUNCTION_NAMESPACE: {"Test.Made/1.0": "no.such:function"}}
    site.install("made", "1.0", point, {})
    description = sandbox.Description(classes, requirements, ui)
    with Archive.open(folder) as archive, pytest.raises(InvalidPackage) as refusal:
        read_contents(archive, lambda *_: description)
    (problem,) = refusal.value.problems
    assert (problem.rule, problem.where) == (Rule.PACKAGE_TYPE_RESULT, where)


def test_a_fifth_child_waits_for_its_turn(read, monkeypatch):
    turns = threading.BoundedSemaphore(1)
    turns.acquire()
    monkeypatch.setattr(sandbox, "_turns", turns)
    with pytest.raises(InvalidPackage, match="other packages were read for"):
        read("pass", Sandbox(seconds=0.1))
    turns.release()
    for _ in range(2):
        assert read("pass").classes == (ClassDefinition(NAME, ()),)


def test_a_directory_is_packed_for_the_child_of_a_plug_in(site, folder):
    point = {"Test.Made/1.0": "made_plugin:describe"}
    code = PLUGIN.format(does="return Description({f'x.{os.getppid()}': []}, {})")
    site.install("made", "1.0", {FUNCTION_NAMESPACE: point}, {"made_plugin": code})
    with Archive.open(folder) as archive:
        found = read_contents(archive)
    assert [each.name for each in found.classes] == [f"x.{os.getpid()}"]


def test_a_heat_template_is_described_alike_in_both_processes(tmp_path):
    content = packages.manifest(NAME, Format="Heat.HOT/1.0", Type="Application", Classes=None)
    template = b"heat_template_version: 2013-05-23\nresources: {}\nparameters: {a: {type: string}}"
    files = {**packages.files(content), "template.yaml": template}
    with Archive.open(packages.write(tmp_path / "hot", files)) as archive:
        here, there = read_contents(archive), read_contents(archive, Sandbox().describe)
    assert here == there
    assert here.inherits == {"io.murano.Application": (NAME,)}
    assert yaml.safe_load(here.ui.replace(b"!!yaql", b"").replace(b"!yaql", b""))["Version"] == 2
