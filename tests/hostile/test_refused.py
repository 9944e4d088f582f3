# SPDX-License-Identifier: Apache-2.0

"""Every hostile package is refused by its rule: soon, in little memory, without a trace."""

import collections
import functools
import io
import pathlib
import stat
from collections.abc import Callable, Iterator

import pytest

from glare_murano.package import Archive, InvalidPackage, Limits
from tests.hostile.cases import CASES, DATA, HARMLESS, Case
from tests.hostile.reader import SECONDS, Job, Outcome, Reader
from tests.hostile.views import VIEWS

# What an answer over HTTP, or one line of a log, can bear.
LONGEST_TEXT = 32 * 1024
# Larger archives need not be refused by the default limits.
LARGE = 5 * 1024**2
ALL = (*CASES, *VIEWS)

Read = Callable[..., Outcome]


@functools.cache
def _built(case: Case) -> bytes:
    """The archive of a case, made once."""
    return case.build()


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    reader = Reader()
    yield reader
    reader.close()


@pytest.fixture
def read(reader: Reader, tmp_path: pathlib.Path) -> Read:
    """Read an archive; where it is refused, nothing may be left but the archive."""

    def read_one(data: bytes, limits: Limits) -> Outcome:
        job = Job(tmp_path / "package.zip", tmp_path / "home/target", tmp_path / "scratch", limits)
        job.archive.write_bytes(data)
        job.target.parent.mkdir()
        job.scratch.mkdir()
        outcome = reader.read(job)
        expected = {job.archive, job.target.parent, job.scratch}
        if not outcome.rules and not outcome.failure:
            expected |= {job.target, *job.target.rglob("*")}
        if not outcome.failure:
            assert set(tmp_path.rglob("*")) == expected
        return outcome

    return read_one


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in ALL])
def test_is_refused(case: Case, read: Read) -> None:
    outcome = read(_built(case), case.limits)
    assert not outcome.failure
    assert case.rule in outcome.rules
    assert outcome.seconds < SECONDS
    assert outcome.printable
    assert outcome.length <= LONGEST_TEXT


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in DATA])
def test_what_only_unpacking_shows_is_found_without_unpacking(case: Case) -> None:
    with (
        Archive.open(io.BytesIO(case.build())) as archive,
        pytest.raises(InvalidPackage, match=rf"\[{case.rule}\]"),
    ):
        archive.verify()


@pytest.mark.parametrize("build", [pytest.param(build, id=name) for name, build in HARMLESS])
def test_what_only_looks_hostile_is_accepted(
    build: Callable[[], bytes], read: Read, tmp_path: pathlib.Path
) -> None:
    assert read(build(), Limits()).failure == ""
    modes = {path.stat().st_mode for path in (tmp_path / "home/target").rglob("*")}
    assert {stat.S_IMODE(mode) for mode in modes} <= {0o644, 0o755}
    assert (tmp_path / "home/target/manifest.yaml").is_file()


def test_each_case_has_a_name_of_its_own() -> None:
    twice = [name for name, count in collections.Counter(c.name for c in ALL).items() if count > 1]
    assert twice == []


def test_a_case_is_the_same_each_time() -> None:
    assert [case.name for case in ALL if case.build() != _built(case)] == []


def test_the_default_limits_are_the_rule() -> None:
    """A server with other limits than the defaults cannot be expected."""
    special = [case.name for case in ALL if case.limits != Limits()]
    assert special == ["large archive", "large unpacked"]


def test_no_case_is_large() -> None:
    assert [case.name for case in ALL if len(_built(case)) > LARGE] == []
