# SPDX-License-Identifier: Apache-2.0

"""The version of an installation, and what ``make release`` refuses before it builds."""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = pathlib.Path(".ci", "release")


@pytest.fixture
def clone(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository with the script, of two commits."""
    repository = tmp_path / "clone"
    (repository / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, repository / SCRIPT)
    (repository / "VERSION").write_text("2.0.0\n")
    _git(repository, "init", "-q")
    _git(repository, "add", ".")
    for message in ("first", "second"):
        _git(repository, "commit", "-q", "--allow-empty", "-m", message)
    return repository


def test_an_installation_has_the_version_of_the_file() -> None:
    version = (ROOT / "VERSION").read_text().strip()

    assert importlib.metadata.version("glare-murano") == version


def test_another_version_than_that_of_the_file_is_refused(clone: pathlib.Path) -> None:
    (clone / "VERSION").write_text("3.0.0\n")

    assert "the last commit has 2.0.0, not 3.0.0" in _refused(clone, "3.0.0")


def test_a_version_is_released_once(clone: pathlib.Path) -> None:
    _git(clone, "tag", "2.0.0", "HEAD~1")

    assert "the tag 2.0.0 exists" in _refused(clone, "2.0.0")


@pytest.mark.parametrize("problem", ["not committed", "shallow"])
def test_a_release_is_the_whole_clone_and_a_dry_run_names_what_is_not(
    clone: pathlib.Path, problem: str
) -> None:
    if problem == "not committed":
        (clone / "new.py").touch()
    else:
        (clone / ".git" / "shallow").write_text(_git(clone, "rev-parse", "HEAD"))

    assert problem in _refused(clone, "2.0.0", key="key").splitlines()[-1]
    dry_run = _refused(clone, "2.0.0")
    assert problem in dry_run
    assert "accepted in a dry run" in dry_run


def _refused(clone: pathlib.Path, version: str, key: str = "") -> str:
    """Return the errors of the script, which ends before it builds, since no tools are there."""
    done = subprocess.run(
        [clone / SCRIPT, version],
        env={**os.environ, "SIGNING_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode
    return done.stderr


def _git(clone: pathlib.Path, *arguments: str) -> str:
    names = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org")
    command = ["git", "-C", clone, *names, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
