# SPDX-License-Identifier: Apache-2.0

"""Archives that a service reads in child processes: the same result, and no cost for others."""

import contextlib
import io
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from glare_murano import archive_reading, archive_settings
from glare_murano.package import Archive, InvalidPackage, package_types, read_contents
from glare_murano.package.archive_process import MAX_REPORTED
from glare_murano.package.manifest import FUNCTION_NAMESPACE
from glare_murano.package.sandbox import turns
from glare_murano.package.ui_form import FormCheck
from glare_murano.stored_contents import StoredContents
from tests import packages
from tests.hostile import cases
from tests.plugins import Site, site

__all__ = ["site"]

OPTIONS = {option.name: option.default for option in archive_settings.OPTIONS}
NAME = "org.app"
PNG = b"\x89PNG\r\n\x1a\n..."

# The rest of a plug-in: what it does before it describes a package with one class.
PLUGIN = """
import base64, json, os, subprocess, sys, time
from glare_murano.package import Description, InvalidPackage, Problem

def describe(manifest, archive):
    {does}
    return Description({{manifest.fqn: []}}, {{}})
"""

pytestmark = [pytest.mark.usefixtures("temporary"), pytest.mark.programs]


def _read(
    data: bytes, project: str = "project", python: str = "", **options: Any
) -> StoredContents:
    with tempfile.TemporaryFile() as archive:
        archive.write(data)
        return archive_reading.read({**OPTIONS, **options}, archive, project, "a label", python)


@pytest.fixture
def read_plugin(site: Site) -> Callable[..., StoredContents]:
    """Read a package whose plug-in does something."""

    def read(does: str, **options: Any) -> StoredContents:
        code = PLUGIN.format(does="\n    ".join(does.splitlines()))
        point = {FUNCTION_NAMESPACE: {"Test.Made/1.0": "made_plugin:describe"}}
        site.install("made", "1.0", point, {"made_plugin": code})
        manifest = packages.manifest(NAME, "1.2.0", Format="Test.Made/1.0", Classes=None)
        return _read(packages.zipped(packages.files(manifest)), **options)

    return read


def _hot() -> bytes:
    manifest = packages.manifest(NAME, Format="Heat.HOT/1", Type="Application", Classes=None)
    template = b"heat_template_version: 2013-05-23\nresources: {}\nparameters: {a: {type: string}}"
    return packages.zipped({**packages.files(manifest), "template.yaml": template})


def _complete() -> bytes:
    manifest = packages.manifest(NAME, "1.2.0", Require={"org.db": "1"}, Other="x")
    images = {"logo.png": PNG, "supplier_logo.png": PNG, "UI/ui.yaml": packages.FORM}
    return packages.zipped({**packages.files(manifest), **images})


@pytest.mark.parametrize("build", [_hot, _complete, cases.good])
def test_a_package_is_read_as_in_this_process(build: Callable[[], bytes]) -> None:
    data = build()

    found = _read(data)

    with Archive.open(io.BytesIO(data)) as archive:
        here = read_contents(archive, package_types.describe, FormCheck.ENFORCE)
    assert found == StoredContents.of(here)


def test_a_refusal_is_that_of_this_process() -> None:
    data = cases.with_manifest(cases.manifest(FullName=None, Type="x", Tag="y"))

    with pytest.raises(InvalidPackage) as refusal:
        _read(data)

    with Archive.open(io.BytesIO(data)) as archive, pytest.raises(InvalidPackage) as here:
        read_contents(archive)
    assert str(refusal.value) == str(here.value)
    assert refusal.value.problems == here.value.problems
    assert refusal.value.warnings == here.value.warnings


@pytest.mark.parametrize("case", cases.DATA, ids=[case.name for case in cases.DATA])
def test_every_file_is_checked(case: cases.Case) -> None:
    with pytest.raises(InvalidPackage, match=rf"\[{case.rule}\]"):
        _read(case.build())


def test_the_limits_of_archives_are_those_of_the_operator() -> None:
    with pytest.raises(InvalidPackage, match="archive-entries"):
        _read(cases.good(), max_archive_entries=1)


def test_the_check_of_forms_is_that_of_the_operator() -> None:
    data = packages.package(NAME, more={"UI/ui.yaml": packages.FORM + b"Parameters: x\n"})

    with pytest.raises(InvalidPackage, match="form-section"):
        _read(data, check_forms="enforce")
    assert [str(problem.rule) for problem in _read(data).warnings] == ["form-section"]


def test_only_some_problems_and_warnings_are_reported() -> None:
    wrong = "".join(f"- {{a{number}: 1}}\n" for number in range(1200))
    with pytest.raises(InvalidPackage) as refusal:
        _read(cases.with_manifest(cases.manifest() + f"Tags:\n{wrong}"))
    assert len(refusal.value.problems) == MAX_REPORTED

    fields = "".join(f"    - {{name: a{n}, type: b}}\n" for n in range(1200))
    form = f"{packages.FORM.decode().replace('Forms: []', 'Forms:')}- p:\n    fields:\n{fields}"
    found = _read(packages.package(NAME, more={"UI/ui.yaml": form.encode()}))
    assert len(found.warnings) == MAX_REPORTED


def test_a_plug_in_describes_a_package(read_plugin: Callable[..., StoredContents]) -> None:
    found = read_plugin(
        "print('reading')\n"
        "form = 'Application: {\"?\": {type: a.B}}'\n"
        "return Description({'a.B': ['c.D']}, {'org.db': '1'}, ui=form)"
    )

    assert found.class_names == ["a.B"]
    assert found.values["inherits"] == {"c.D": "a.B"}
    assert found.values["requirements"] == {"org.db": "1", "io.murano": "0", NAME: "1"}
    assert found.blobs == {"ui_definition": b'Application: {"?": {type: a.B}}'}


@pytest.mark.parametrize(
    ("does", "words"),
    [
        (
            "while True: pass",
            "archive: reading it took more than 1 seconds of processor time, or more than 3 "
            "seconds in all; simplify the package [reading-limit]",
        ),
        (
            "bytearray(1024**3)",
            "took more than 536870912 bytes of memory; simplify the package [reading-limit]",
        ),
        ("raise RuntimeError('trouble')", "the package type Test.Made/1.0.0 failed; see the log"),
        ("os._exit(0)", "archive: the archive could not be read; see the log of the service"),
        ("time.sleep(60)", "seconds in all"),
        ("os.fork()", "the package type Test.Made/1.0.0 failed; see the log"),
        ("subprocess.run(['true'])", "the package type Test.Made/1.0.0 failed; see the log"),
        ("open('large', 'wb').truncate(1024**3)", "the package type Test.Made/1.0.0 failed"),
    ],
)
def test_what_a_plug_in_does_wrong_is_a_refusal(
    read_plugin: Callable[..., StoredContents], does: str, words: str
) -> None:
    with pytest.raises(InvalidPackage) as refusal:
        read_plugin(does, max_reading_seconds=1)

    assert words in str(refusal.value)
    assert "trouble" not in str(refusal.value)


@pytest.mark.parametrize(
    "change",
    [
        "answer['result']['fqn'] = 1",
        "answer['result']['values']['requirements'] = {'a.b': '>>1'}",
        "answer['result']['values']['class_definitions'] = ['no name']",
        "answer['result']['blobs']['logo'] = 'x'",
        "answer['result'] = None",
    ],
)
def test_a_result_that_a_plug_in_forges_is_refused(
    read_plugin: Callable[..., StoredContents], caplog: pytest.LogCaptureFixture, change: str
) -> None:
    with Archive.open(io.BytesIO(cases.good())) as archive:
        answer = json.dumps({"result": StoredContents.of(read_contents(archive)).to_json()})

    with caplog.at_level(logging.ERROR), pytest.raises(InvalidPackage) as refusal:
        read_plugin(
            f"answer = json.loads({answer!r})\n{change}\n"
            f"os.write(3, json.dumps(answer).encode()); os._exit(0)"
        )

    assert str(refusal.value).endswith("[reading-failure]")
    assert caplog.records[0].getMessage().startswith("The child that read the archive of a label ")


def test_a_type_without_a_function_needs_its_classes_listed(site: Site) -> None:
    point = {"io.murano.plugins.packages": {"Test.Names/1.0": "no.such:Class"}}
    site.install("names", "1.0", point, {})
    manifest = packages.manifest(NAME, Format="Test.Names/1", Classes=None)

    with pytest.raises(InvalidPackage, match="class-unlisted"):
        _read(packages.zipped(packages.files(manifest)))


def test_the_interpreter_can_be_named() -> None:
    with pytest.raises(InvalidPackage, match="reading-failure"):
        _read(cases.good(), python="/nowhere/python3")
    assert _read(cases.good(), python=sys.executable).fqn == cases.NAME


def test_a_project_that_gets_no_turn_in_time_learns_that_the_service_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = turns.Turns()
    monkeypatch.setattr(archive_reading, "_turns", held)
    with held.turn("one", 1, 1, 0):
        start = time.monotonic()
        with pytest.raises(archive_reading.ServiceBusy) as refusal:
            _read(cases.good(), "two", max_readings=1, max_reading_wait=1)
        with pytest.raises(archive_reading.ServiceBusy):
            _read(cases.good(), "one", max_project_readings=1, max_reading_wait=0)
        assert 0.9 < time.monotonic() - start < 30
        assert str(refusal.value) == (
            "archive: the service is reading other packages; upload the archive again later "
            "[service-busy]"
        )
        assert _read(cases.good(), "two", max_reading_wait=0).fqn == cases.NAME
    assert _read(cases.good(), "two", max_readings=1, max_reading_wait=0).fqn == cases.NAME


def test_a_forked_process_has_turns_of_its_own() -> None:
    with archive_reading._turns.turn("project", 1, 1, 0):
        pid = os.fork()
        if not pid:
            busy = 1
            with contextlib.suppress(BaseException):
                _read(cases.good(), max_readings=1, max_reading_wait=0)
                busy = 0
            os._exit(busy)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_other_threads_run_while_an_archive_is_read(
    read_plugin: Callable[..., StoredContents],
) -> None:
    gaps: list[float] = []
    begin = time.monotonic()
    done = threading.Event()

    def tick() -> None:
        last = time.monotonic()
        while not done.wait(0.001):
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        # A regular expression keeps the whole interpreter waiting.
        read_plugin("import re; re.match('(a|aa)+$', 'a' * 34 + 'b')")
    finally:
        done.set()
        thread.join()
    assert max(gaps) < (time.monotonic() - begin) / 2
