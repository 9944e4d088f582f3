# SPDX-License-Identifier: Apache-2.0

"""Lock files that were edited by hand: their values, and the errors of mistakes."""

import dataclasses
import itertools
import pathlib
import textwrap

import pytest

import loader
from glare_murano.package import Version, VersionSpec
from glare_murano.wire import Release
from loader.lockfiles import lock_form
from tests.processes import ROOT

_DIGEST = "a" * 64
_CORE = Release("io.murano", Version("0.1.0"), {}, frozenset(), digest=_DIGEST)
_DATABASE = Release(
    "org.db",
    Version("1.1.0"),
    {"io.murano": VersionSpec.of("*")},
    frozenset(["org.db.Thing"]),
    digest=_DIGEST,
    size=427,
)
_REQUIREMENTS = {"org.db": VersionSpec.of("1")}
_TEXT = lock_form.dump(_REQUIREMENTS, [_CORE, _DATABASE], {}).decode()


def _load(tmp_path: pathlib.Path, text: str) -> loader.Lock:
    (tmp_path / "lock").write_text(text)
    return loader.Lock.load(tmp_path / "lock")


def _edited(before: str, after: str) -> str:
    start, found, end = _TEXT.rpartition(before)
    assert found
    return start + after + end


def _read(release: Release) -> Release:
    return dataclasses.replace(release, id=release.digest)


def _dumped(*releases: Release) -> str:
    return lock_form.dump(_REQUIREMENTS, releases, {}).decode()


def test_the_same_content_may_be_written_otherwise(tmp_path: pathlib.Path) -> None:
    database = dataclasses.replace(_DATABASE, version=Version("1.10.0"))
    text = _dumped(_CORE, database).replace("version: 1.10.0", "'version':   1.10")

    lock = _load(tmp_path, text.replace("org.db: '1'", "org.db: 1"))

    assert [str(release) for release in lock.releases] == ["io.murano 0.1.0", "org.db 1.10.0"]
    assert lock.releases[1].digest == _DIGEST
    assert lock.releases[1].size == 427
    assert lock.requirements == _REQUIREMENTS


def test_the_documented_file_is_valid(tmp_path: pathlib.Path) -> None:
    page = (ROOT / "doc" / "source" / "reference" / "files.rst").read_text()
    _, _, block = page.partition(".. code-block:: yaml\n\n")
    lines = list(itertools.takewhile(lambda line: line.startswith("    "), block.splitlines()))

    lock = _load(tmp_path, textwrap.dedent("\n".join(lines)))

    assert lock_form.dump(
        lock.requirements, lock.releases, lock.external
    ).decode().splitlines() == [line.removeprefix("    ") for line in lines]


def test_versions_side_by_side_are_valid(tmp_path: pathlib.Path) -> None:
    older = dataclasses.replace(_DATABASE, version=Version("1.0.0"))

    lock = _load(tmp_path, _dumped(_CORE, older, _DATABASE))

    assert [str(r) for r in lock.releases] == ["io.murano 0.1.0", "org.db 1.0.0", "org.db 1.1.0"]


@pytest.mark.parametrize("number", range(3))
def test_a_file_that_was_cut_between_two_packages_is_refused(
    tmp_path: pathlib.Path, number: int
) -> None:
    some = [dataclasses.replace(_DATABASE, version=Version(f"1.{n}.0")) for n in range(2)]
    text = _dumped(_CORE, *some)
    parts = text.split("- name")
    cut = "- name".join(parts[: number + 1]) + (" []" if number == 0 else "")

    with pytest.raises(
        loader.LockError, match=f"it has {number} releases, but its count is '3'; restore"
    ):
        _load(tmp_path, cut)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("org.db: '1'", "org.db: '1.1'"),
        ("org.db: '1'", "org.db: '1'\n  io.murano: '0'"),
        ("io.murano: '*'", "io.murano: '0'"),
        ("io.murano: '*'", "io.murano: '>=0'"),
        ("    io.murano: '*'\n", "    org.db: '1'\n"),
        ("org.db.Thing", "org.db.Other"),
        ("version: 1.1.0", "version: 1.2.0"),
        ("size: 427", "size: 428"),
        ("  size: 427\n", ""),
        (_DIGEST, "1" * 64),
    ],
)
def test_a_file_that_was_edited_is_refused(tmp_path: pathlib.Path, before: str, after: str) -> None:
    with pytest.raises(loader.LockError, match="it was edited: its content does not match its sha"):
        _load(tmp_path, _edited(before, after))


@pytest.mark.parametrize(
    ("releases", "reported"),
    [
        ([_CORE], "the lock requires org.db in the range 1, but the locked versions are none"),
        ([_DATABASE], r"org.db 1\.1\.0 requires io.murano in the range \*, but .* are none"),
        (
            [_CORE, dataclasses.replace(_DATABASE, version=Version("2.0.0"))],
            "the lock requires org.db in the range 1, but the locked versions are 2.0.0; create",
        ),
    ],
)
def test_a_closure_that_is_not_closed_is_refused(
    tmp_path: pathlib.Path, releases: list[Release], reported: str
) -> None:
    with pytest.raises(loader.LockError, match=reported):
        _load(tmp_path, _dumped(*releases))


def test_an_external_package_closes_a_closure(tmp_path: pathlib.Path) -> None:
    external = {"io.murano": (Version("0.2.0"), Version("0.1.0"))}
    text = lock_form.dump(_REQUIREMENTS, [_DATABASE], external).decode()

    assert _load(tmp_path, text) == loader.Lock(_REQUIREMENTS, (_read(_DATABASE),), external)
    for edited in (text.replace("  - 0.1.0\n", ""), text.replace("- 0.2.0", "- 0.3.0")):
        with pytest.raises(loader.LockError, match="it was edited"):
            _load(tmp_path, edited)


_WRONG = [
    ("count: 2\n", "", "count is missing"),
    ("count: 2", "count: two", "it has 2 releases, but its count is 'two'; restore"),
    ("form: 1", "form: 1\nlicence: MIT\nowner: me", "unknown keys: licence, owner; restore the"),
    ("size: 427", "size: 427\n  licence: MIT", "release 2 (org.db): unknown keys: licence; rest"),
    ("size: 427", "size: 427\n  id: a", "release 2 (org.db): unknown keys: id; restore"),
    (
        "size: 427",
        "owner: a\n  visibility: public",
        "release 2 (org.db): unknown keys: owner, visib",
    ),
    ("form: 1\n", "", "form is missing"),
    ("form: 1", "form: true", "the form is 'true', but only 1 is supported"),
    ("form: 1", "form: 1\nform: 1", "line 4: 'form' is written twice"),
    ("form: 1", "form: 1\n<<: {a: b}", "merge keys are not supported"),
    ("form: 1", "form: 1\n[a]: b", "line 4: a key is a sequence, not a string"),
    ("  org.db: '1'", "  - org.db", "requirements: expected a mapping, found a sequence"),
    ("  org.db: '1'\n", "", "requirements: expected a mapping, found nothing"),
    ("org.db: '1'", "org.db:", "requirements: org.db: expected a string, found nothing"),
    ("org.db: '1'", "org.db: ''", "requirements: org.db: expected a string, found nothing"),
    ("org.db: '1'", "org.db: x", "requirements: org.db: 'x' is not a valid range"),
    ("org.db: '1'", "org/wiki: 1", "requirements: 'org/wiki' is not a valid name"),
    ("  org.db: '1'", "  org.a: 1\n  org.a: 7", "line 8: 'org.a' is written twice"),
    ("count: 2", "count: 2\nreleases: []", "line 9: 'releases' is written twice"),
    ("- name: io.murano", "- io.murano\n- name: io.murano", "it has 3 releases, but its count is"),
    ("- name: org.db\n  version", "- version", "release 2: name is missing"),
    ("name: org.db", "name:", "release 2: name: expected a string, found nothing"),
    ("name: org.db", "name: ../db", "release 2 (../db): name: '../db' is not a valid name"),
    ("  version: 1.1.0\n", "", "release 2 (org.db): version is missing"),
    ("version: 1.1.0", "version:", "release 2 (org.db): version: expected a string, found nothing"),
    ("version: 1.1.0", "version: ''", "release 2 (org.db): version: expected a string, found noth"),
    ("version: 1.1.0", "version: [1]", "release 2 (org.db): version: expected a string, found a s"),
    ("version: 1.1.0", "version: v1", "release 2 (org.db): version: 'v1' is not a valid version"),
    (f"  sha256: {_DIGEST}\n", "", "release 2 (org.db): sha256 is missing"),
    (_DIGEST, "A" * 64, "release 2 (org.db): sha256: 'AAAAAAA"),
    ("size: 427", "size: true", "release 2 (org.db): size: 'true' is not a valid number of bytes"),
    ("size: 427", "size: -1", "release 2 (org.db): size: '-1' is not a valid number of bytes"),
    ("size: 427", "size: 1.5", "release 2 (org.db): size: '1.5' is not a valid number of bytes"),
    ("size: 427", "size:", "release 2 (org.db): size: expected a number of bytes, found nothing"),
    ("size: 427", "sha256: x", "line 17: 'sha256' is written twice"),
    ("io.murano: '*'", "io.murano: '>>1'", "release 2 (org.db): requirements: io.murano: '>>1' is"),
    (
        "\n  - org.db.Thing",
        "",
        "release 2 (org.db): class_definitions: expected a seq",
    ),
    (
        "\n  - org.db.Thing",
        " org.db.Thing",
        "release 2 (org.db): class_definitions: expected a se",
    ),
    (
        "- org.db.Thing",
        "- org db",
        "release 2 (org.db): class_definitions: 'org db' is no",
    ),
    (
        "- org.db.Thing",
        "- [a]",
        "release 2 (org.db): class_definitions: expected a str",
    ),
]


@pytest.mark.parametrize(("before", "after", "reported"), _WRONG)
def test_errors_name_the_package_and_the_key(
    tmp_path: pathlib.Path, before: str, after: str, reported: str
) -> None:
    with pytest.raises(loader.LockError) as refusal:
        _load(tmp_path, _edited(before, after))

    assert str(refusal.value).startswith(f"{tmp_path}/lock is not a valid lock file: {reported}")


@pytest.mark.parametrize("sha256", [_DIGEST, "1" * 64])
def test_a_duplicate_version_is_refused(tmp_path: pathlib.Path, sha256: str) -> None:
    text = _dumped(_CORE, _DATABASE, dataclasses.replace(_DATABASE, digest=sha256))

    with pytest.raises(loader.LockError) as refusal:
        _load(tmp_path, text)

    reported = "release 3 (org.db): release 2 is org.db 1.1.0 as well; remove one of them"
    assert str(refusal.value).endswith(f": {reported}")
