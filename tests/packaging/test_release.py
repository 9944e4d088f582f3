# SPDX-License-Identifier: Apache-2.0

"""The files of a release, which ``make release`` makes before it runs these tests."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
RELEASE = pathlib.Path(os.environ.get("RELEASE", ""))
VERSION = (ROOT / "VERSION").read_text().strip()
SDIST = RELEASE / f"glare_murano-{VERSION}.tar.gz"
WHEEL = RELEASE / f"glare_murano-{VERSION}-py3-none-any.whl"
# What pbr and reno add to the files of the commit.
GENERATED = {
    "AUTHORS",
    "ChangeLog",
    "PKG-INFO",
    "RELEASENOTES.rst",
    "releasenotes/notes/reno.cache",
}

pytestmark = pytest.mark.skipif(
    not os.environ.get("RELEASE"), reason="make release makes the files and runs this test"
)


def test_checksums_are_those_of_all_files() -> None:
    lines = [line.split() for line in (RELEASE / "SHA256SUMS").read_text().splitlines()]
    files = {path.name for path in RELEASE.iterdir()} - {"SHA256SUMS", "SHA256SUMS.sig"}

    assert {name for _, name in lines} == files
    for checksum, name in lines:
        assert hashlib.sha256((RELEASE / name).read_bytes()).hexdigest() == checksum
    assert {SDIST.name, WHEEL.name, f"glare_murano-{VERSION}-notes.html"} < files


def test_source_distribution_has_the_files_of_the_commit() -> None:
    commit = ["git", "ls-tree", "-r", "--name-only", "HEAD"]
    tracked = subprocess.run(commit, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    with tarfile.open(SDIST) as sdist:
        names = [member.name.partition("/")[2] for member in sdist if member.isfile()]
    assert {name for name in names if ".egg-info/" not in name} - GENERATED == {
        name for name in tracked.splitlines() if pathlib.PurePath(name).name != ".gitignore"
    }


def test_source_distribution_says_nothing_of_this_build() -> None:
    with tarfile.open(SDIST) as sdist:
        members = sdist.getmembers()

    assert len({member.mtime for member in members}) == 1
    assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, "", "")}
    assert {member.mode for member in members} <= {0o644, 0o755}
    names = [member.name for member in members]
    assert names == sorted(names, key=lambda name: name.split("/"))


@pytest.mark.parametrize("extra", ["none", "glare", "glance", "engine", "cli"])
def test_bill_of_materials_lists_the_wheel_by_its_digest(extra: str) -> None:
    text = (RELEASE / f"glare_murano-{VERSION}-{extra}.cdx.json").read_text()
    (ours,) = (c for c in json.loads(text)["components"] if c["name"] == "glare-murano")
    (wheel,) = (r for r in ours["externalReferences"] if r["type"] == "distribution")

    assert ours["version"] == VERSION
    assert wheel["url"] == WHEEL.name
    assert wheel["hashes"][0]["content"] == hashlib.sha256(WHEEL.read_bytes()).hexdigest()
    assert "file:" not in text


def test_notes_are_those_of_this_version() -> None:
    notes = (RELEASE / f"glare_murano-{VERSION}-notes.html").read_text()
    headings = re.findall("<h[12].*>(.*)</h[12]>", notes)

    assert headings[0] == f"glare-murano {VERSION}"
    assert {"Bug Fixes", "New Features"} & set(headings)
