# SPDX-License-Identifier: Apache-2.0

"""Lock files that were edited by hand: their values, and the errors of mistakes."""

import pathlib

import pytest

import loader
from glare_murano.package import VersionSpec

_ZEROS = "0" * 64
_TEXT = f"""\
form: 1
requirements:
  org.wiki: '1'
releases:
- name: io.murano
  version: 0.1.0
  sha256: {_ZEROS}
  requirements: {{}}
  class_definitions: []
- name: org.db
  version: 1.1.0
  sha256: {_ZEROS}
  size: 427
  requirements:
    io.murano: '*'
  class_definitions:
  - org.db.Thing
"""
_DB = _TEXT[_TEXT.index("- name: org.db") :]


def _load(tmp_path: pathlib.Path, text: str) -> loader.Lock:
    (tmp_path / "lock").write_text(text)
    return loader.Lock.load(tmp_path / "lock")


def _edited(before: str, after: str) -> str:
    start, found, end = _TEXT.rpartition(before)
    assert found
    return start + after + end


def test_values_are_read_as_written(tmp_path: pathlib.Path) -> None:
    text = _edited("version: 1.1.0", "version: 1.10").replace("org.wiki: '1'", "org.wiki: 1.10")

    lock = _load(tmp_path, text)

    assert [str(release) for release in lock.releases] == ["io.murano 0.1.0", "org.db 1.10.0"]
    assert lock.releases[1].digest == _ZEROS
    assert lock.releases[1].size == 427
    assert lock.requirements == {"org.wiki": VersionSpec.of("1.10")}


def test_versions_side_by_side_are_valid(tmp_path: pathlib.Path) -> None:
    lock = _load(tmp_path, _TEXT + _DB.replace("1.1.0", "1.0.0"))

    assert [str(r) for r in lock.releases] == ["io.murano 0.1.0", "org.db 1.0.0", "org.db 1.1.0"]


_WRONG = [
    ("form: 1\n", "", "form is missing"),
    ("form: 1", "form: true", "the form is 'true', but only 1 is supported"),
    ("form: 1", "form: 1\nform: 1", "line 2: 'form' is written twice"),
    ("form: 1", "form: 1\n<<: {a: b}", "merge keys are not supported"),
    ("form: 1", "form: 1\n[a]: b", "line 2: a key is a sequence, not a string"),
    ("  org.wiki: '1'", "  - org.wiki", "requirements: expected a mapping, found a sequence"),
    ("  org.wiki: '1'\n", "", "requirements: expected a mapping, found nothing"),
    ("org.wiki: '1'", "org.wiki:", "requirements: org.wiki: expected a string, found nothing"),
    ("org.wiki: '1'", "org.wiki: ''", "requirements: org.wiki: expected a string, found nothing"),
    ("org.wiki: '1'", "org.wiki: x", "requirements: org.wiki: 'x' is not a valid range"),
    ("org.wiki: '1'", "org/wiki: 1", "requirements: 'org/wiki' is not a valid name"),
    ("  org.wiki: '1'", "  org.a: 1\n  org.a: 7", "line 4: 'org.a' is written twice"),
    ("releases:", "releases: {a: b}\nx:", "releases: expected a sequence, found a mapping"),
    ("releases:", "releases:\n- org.log", "release 1: expected a mapping, found a string"),
    ("- name: org.db\n  version", "- version", "release 2: name is missing"),
    ("name: org.db", "name:", "release 2: name: expected a string, found nothing"),
    ("name: org.db", "name: ../db", "release 2 (../db): name: '../db' is not a valid name"),
    ("  version: 1.1.0\n", "", "release 2 (org.db): version is missing"),
    ("version: 1.1.0", "version:", "release 2 (org.db): version: expected a string, found nothing"),
    ("version: 1.1.0", "version: ''", "release 2 (org.db): version: expected a string, found noth"),
    ("version: 1.1.0", "version: [1]", "release 2 (org.db): version: expected a string, found a s"),
    ("version: 1.1.0", "version: v1", "release 2 (org.db): version: 'v1' is not a valid version"),
    (f"  sha256: {_ZEROS}\n", "", "release 2 (org.db): sha256 is missing"),
    (_ZEROS, "A" * 64, "release 2 (org.db): sha256: 'AAAAAAA"),
    ("size: 427", "size: true", "release 2 (org.db): size: 'true' is not a valid number of bytes"),
    ("size: 427", "size: -1", "release 2 (org.db): size: '-1' is not a valid number of bytes"),
    ("size: 427", "size: 1.5", "release 2 (org.db): size: '1.5' is not a valid number of bytes"),
    ("size: 427", "size:", "release 2 (org.db): size: expected a number of bytes, found nothing"),
    ("size: 427", "sha256: x", "line 13: 'sha256' is written twice"),
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
    ("  - org.db.Thing\n", f"  - a\n{_DB}", "release 3 (org.db): release 2 is org.db 1.1.0 as w"),
]


@pytest.mark.parametrize(("before", "after", "reported"), _WRONG)
def test_errors_name_the_package_and_the_key(
    tmp_path: pathlib.Path, before: str, after: str, reported: str
) -> None:
    with pytest.raises(loader.LockError) as refusal:
        _load(tmp_path, _edited(before, after))

    assert str(refusal.value).startswith(f"{tmp_path}/lock is not a valid lock file: {reported}")


@pytest.mark.parametrize("sha256", [_ZEROS, "1" * 64])
def test_a_duplicate_version_is_refused(tmp_path: pathlib.Path, sha256: str) -> None:
    with pytest.raises(loader.LockError, match=r"release 2 is org\.db 1\.1\.0 as well; remove"):
        _load(tmp_path, _TEXT + _DB.replace(_ZEROS, sha256))
