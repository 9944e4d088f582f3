# SPDX-License-Identifier: Apache-2.0

"""Uploaded packages, which murano-api reads in child processes."""

import dataclasses
import io
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

from glare_murano import archive_limits, archive_reading, archive_settings
from glare_murano.package import Archive, InvalidPackage
from glare_murano.package.sandbox import turns
from loader import errors
from loader.authoring import local_packages
from loader.murano_api import uploaded_package
from loader.murano_api.uploaded_package import UploadedPackage
from tests import packages, processes
from tests.hostile import cases, costly

_OPTIONS = {
    option.name: option.default
    for option in (*archive_settings.READING_OPTIONS, *archive_limits.OPTIONS)
}

pytestmark = [pytest.mark.usefixtures("temporary"), pytest.mark.programs]


def _read(folder: pathlib.Path, data: bytes, **options: Any) -> UploadedPackage:
    file = folder / "upload.zip"
    return UploadedPackage.read(io.BytesIO(data), file, {**_OPTIONS, **options}, "project")


def test_an_upload_is_read_as_an_author_reads_it(tmp_path: pathlib.Path) -> None:
    data = packages.package("org.app", "1.2.0", Require={"org.db": ">=1"}, Tags=["a"])

    found = _read(tmp_path, data)

    # A child process has read it, and the next one is ready.
    assert processes.readers(os.getpid())
    (tmp_path / "author").mkdir()
    pieces, file = [data], tmp_path / "author" / "upload.zip"
    expected = local_packages.receive(pieces, file, "the archive")
    names = {field.name for field in dataclasses.fields(expected)} - {"archive"}
    assert {n: getattr(found, n) for n in names} == {n: getattr(expected, n) for n in names}
    assert found.requirements == expected.requirements
    assert found.archive.read_bytes() == data


def test_a_form_that_the_dashboard_cannot_show_is_accepted(tmp_path: pathlib.Path) -> None:
    data = packages.package("org.app", more={"UI/ui.yaml": packages.FORM + b"Parameters: x\n"})
    assert [str(problem.rule) for problem in _read(tmp_path, data).warnings] == ["form-section"]


@pytest.mark.parametrize("case", cases.DATA, ids=[case.name for case in cases.DATA])
def test_every_file_is_checked(tmp_path: pathlib.Path, case: cases.Case) -> None:
    with pytest.raises(InvalidPackage, match=rf"\[{case.rule}\]"):
        _read(tmp_path, case.build())


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [("max_archive_size", 10, "archive-size"), ("max_archive_entries", 1, "archive-entries")],
)
def test_the_limits_are_those_of_the_operator(
    tmp_path: pathlib.Path, option: str, value: int, rule: str
) -> None:
    with pytest.raises(InvalidPackage, match=rf"\[{rule}\]"):
        _read(tmp_path, cases.good(), **{option: value})


def test_an_upload_that_takes_too_long_ends_at_its_limit(tmp_path: pathlib.Path) -> None:
    (case,) = [each for each in costly.COSTLY if "max_reading_seconds" in each.options]
    with pytest.raises(InvalidPackage, match=r"\[reading-limit\]"):
        _read(tmp_path, case.build(), **case.options)


def test_uploads_take_turns(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = _read(tmp_path, cases.good())
    held = turns.Turns()
    monkeypatch.setattr(archive_reading, "_turns", held)
    options = {"max_readings": 1, "max_reading_wait": 0}
    waiting = dataclasses.replace(package, options={**package.options, **options})
    (tmp_path / "other").mkdir()

    with held.turn("another", 1, 1, 0):
        with pytest.raises(archive_reading.ServiceBusy):
            _read(tmp_path / "other", cases.good(), **options)
        with pytest.raises(archive_reading.ServiceBusy), open(package.archive, "rb") as other:
            waiting.has_files_of(other)


def test_archives_of_different_tools_are_compared_by_their_files(tmp_path: pathlib.Path) -> None:
    package = _read(tmp_path, cases.good())
    same = tmp_path / "same.zip"
    with Archive.open(package.archive) as archive:
        local_packages.pack(archive, same)
    assert same.read_bytes() != package.archive.read_bytes()
    with same.open("rb") as other:
        assert package.has_files_of(other)

    different = tmp_path / "different.zip"
    different.write_bytes(packages.package("org.app"))
    with different.open("rb") as other:
        assert not package.has_files_of(other)

    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"x")
    with damaged.open("rb") as other, pytest.raises(InvalidPackage, match="archive"):
        package.has_files_of(other)


@pytest.fixture
def conf() -> Iterator[cfg.ConfigOpts]:
    """A configuration, for which the interpreter is looked for again."""
    made = cfg.ConfigOpts()
    made([])
    uploaded_package._python.cache_clear()
    yield made
    uploaded_package._python.cache_clear()


def test_in_uwsgi_the_interpreter_is_found(
    conf: cfg.ConfigOpts, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = tmp_path / "uwsgi"
    server.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(server))

    uploaded_package.configure(conf)

    assert conf.package_loader.max_readings == 4
    assert _read(tmp_path, cases.good()).fqn == cases.NAME


def test_without_an_interpreter_murano_api_does_not_start(
    conf: cfg.ConfigOpts, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    with pytest.raises(errors.LoaderError, match=rf"interpreter: , {tmp_path}/bin/python3"):
        uploaded_package.configure(conf)
