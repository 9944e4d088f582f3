# SPDX-License-Identifier: Apache-2.0

"""Uploaded packages, which murano-api reads in child processes."""

import contextlib
import dataclasses
import io
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator

import pytest
from oslo_config import cfg

from glare_murano import archive_reading
from glare_murano.package import Archive, InvalidPackage
from glare_murano.package.sandbox import turns
from loader import errors
from loader.authoring import local_packages
from loader.murano_api import uploaded_package
from loader.murano_api.uploaded_package import UploadedPackage
from tests import packages
from tests.hostile import cases, costly

pytestmark = [pytest.mark.usefixtures("temporary"), pytest.mark.programs]

Read = Callable[..., UploadedPackage]


def _conf(folder: pathlib.Path, **values: object) -> cfg.ConfigOpts:
    file = folder / "murano.conf"
    lines = (f"{name} = {value}\n" for name, value in values.items())
    file.write_text("[package_loader]\n" + "".join(lines))
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(file)])
    return conf


@pytest.fixture
def read(tmp_path: pathlib.Path) -> Iterator[Read]:
    """Read an upload, with options of the operator."""
    with contextlib.ExitStack() as stack:

        def one(data: bytes, **values: object) -> UploadedPackage:
            settings = uploaded_package.configure(_conf(tmp_path, **values))
            file = stack.enter_context(tempfile.TemporaryFile())
            return UploadedPackage.read(io.BytesIO(data), file, settings, "project")

        yield one


def test_an_upload_is_read_as_an_author_reads_it(read: Read, tmp_path: pathlib.Path) -> None:
    data = packages.package("org.app", "1.2.0", Require={"org.db": ">=1"}, Tags=["a"])

    found = read(data)

    expected = local_packages.receive([data], tmp_path / "upload.zip", "the archive")
    names = {field.name for field in dataclasses.fields(expected)} - {"archive"}
    assert {n: getattr(found, n) for n in names} == {n: getattr(expected, n) for n in names}
    assert found.requirements == expected.requirements
    assert found.archive.read_bytes() == data


def test_an_upload_has_no_name_that_another_process_could_open(read: Read) -> None:
    assert not read(cases.good()).archive.resolve().exists()
    assert not [*pathlib.Path(tempfile.gettempdir()).glob("**/*.zip")]


def test_a_form_that_the_dashboard_cannot_show_is_accepted(read: Read) -> None:
    data = packages.package("org.app", more={"UI/ui.yaml": packages.FORM + b"Parameters: x\n"})
    assert [str(problem.rule) for problem in read(data).warnings] == ["form-section"]


@pytest.mark.parametrize("case", cases.DATA, ids=[case.name for case in cases.DATA])
def test_every_file_is_checked(read: Read, case: cases.Case) -> None:
    with pytest.raises(InvalidPackage, match=rf"\[{case.rule}\]"):
        read(case.build())


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [("max_archive_size", 10, "archive-size"), ("max_archive_entries", 1, "archive-entries")],
)
def test_the_limits_are_those_of_the_operator(
    read: Read, option: str, value: int, rule: str
) -> None:
    with pytest.raises(InvalidPackage, match=rf"\[{rule}\]"):
        read(cases.good(), **{option: value})


def test_an_upload_that_takes_too_long_ends_at_its_limit(read: Read) -> None:
    (case,) = [each for each in costly.COSTLY if "max_reading_seconds" in each.options]
    with pytest.raises(InvalidPackage, match=r"\[reading-limit\]"):
        read(case.build(), **case.options)


def test_uploads_take_turns(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"max_readings": 1, "max_reading_wait": 0}
    package = read(cases.good(), **options)
    held = turns.Turns()
    monkeypatch.setattr(archive_reading, "_turns", held)

    with held.turn("another", 1, 1, 0):
        with pytest.raises(archive_reading.ServiceBusy):
            read(cases.good(), **options)
        with pytest.raises(archive_reading.ServiceBusy):
            package.has_files_of(io.BytesIO())


def test_archives_of_different_tools_are_compared_by_their_files(
    read: Read, tmp_path: pathlib.Path
) -> None:
    package = read(cases.good())
    same, different, damaged = (tmp_path / name for name in ("same", "different", "damaged"))
    with Archive.open(package.archive) as archive:
        local_packages.pack(archive, same)
    assert same.read_bytes() != package.archive.read_bytes()
    different.write_bytes(packages.package("org.app"))
    damaged.write_bytes(b"x")

    with same.open("rb") as other:
        assert package.has_files_of(other)
    with different.open("rb") as other:
        assert not package.has_files_of(other)
    with (
        damaged.open("rb") as other,
        pytest.raises(uploaded_package.IncomparableArchive, match=r"cannot compare the stored"),
    ):
        package.has_files_of(other)


def test_an_option_that_is_not_valid_is_found_at_the_start(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.LoaderError, match=r"\[package_loader\].*max_readings"):
        uploaded_package.configure(_conf(tmp_path, max_readings=0))


@pytest.mark.parametrize("name", ["uwsgi", None])
def test_in_another_program_the_interpreter_is_found(
    read: Read, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    server = name and tmp_path / name
    if server:
        server.touch(0o755)
    monkeypatch.setattr(sys, "executable", server and str(server))

    assert read(cases.good()).fqn == cases.NAME


def test_without_an_interpreter_murano_api_does_not_start(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    with pytest.raises(errors.LoaderError, match=rf"no interpreter among {tmp_path}/bin/python3;"):
        uploaded_package.configure(_conf(tmp_path))
