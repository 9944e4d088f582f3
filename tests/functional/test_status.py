# SPDX-License-Identifier: Apache-2.0

"""The command ``glare-murano-status upgrade check``, with the files of an installation."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from glare_murano.glare import server
from tests import processes
from tests.functional import sites

pytestmark = pytest.mark.programs

_PASTE = "glare-paste.ini"
_POLICY = "policy.yaml"
_RULE = '"artifact:upload"'
_TITLES = {"Artifact type", "Options", "Pipelines", "Policy", "Indexes", "Landlock", "Libraries"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A directory with an SQLite file that has Glare's tables."""
    folder = tmp_path_factory.mktemp("tables")
    _configure(folder)
    sites.create_tables(folder)
    return folder


@pytest.fixture
def folder(tables: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """The directory of a host with the shipped files."""
    shutil.copy(tables / "glare.sqlite", tmp_path)
    _configure(tmp_path)
    return tmp_path


def _configure(folder: pathlib.Path) -> None:
    for name in (_PASTE, _POLICY):
        shutil.copy(server.ETC / name, folder)
    (folder / "glare.conf").write_text(
        f"""\
[DEFAULT]
custom_artifact_types_modules = glare_murano.glare.artifact
enabled_artifact_types = murano
[database]
connection = sqlite:///{folder}/glare.sqlite
[oslo_policy]
policy_file = {folder / _POLICY}
[paste_deploy]
config_file = {folder / _PASTE}
"""
    )


def _check(folder: pathlib.Path, options: str = "") -> tuple[int, dict[str, str]]:
    """Run the command, and return its exit code and the details of the checks that fail."""
    with (folder / "glare.conf").open("a") as conf:
        conf.write(options)
    command = [sys.executable, "-W", "ignore", "-m", "glare_murano.glare.status"]
    command += ["--config-file", str(folder / "glare.conf"), "upgrade", "check", "--json"]
    done = subprocess.run(
        command, cwd=processes.ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout, done.stderr
    checks = json.loads(done.stdout.splitlines()[-1])["checks"]
    assert {check["check"] for check in checks} == _TITLES
    return done.returncode, {
        check["check"]: check["details"] for check in checks if check["result"]
    }


def test_the_shipped_files_pass(folder: pathlib.Path) -> None:
    assert _check(folder) == (0, {})


def test_a_pipeline_without_a_filter_of_packages_is_a_warning(folder: pathlib.Path) -> None:
    paste = (folder / _PASTE).read_text()
    (folder / _PASTE).write_text(paste.replace("context murano glarev1api", "context glarev1api"))

    code, found = _check(folder)

    assert code == 1
    assert found.keys() == {"Pipelines"}
    assert f"{folder / _PASTE}: [pipeline:api] pipeline: expected" in found["Pipelines"]


def test_a_policy_without_a_shipped_rule_is_a_warning(folder: pathlib.Path) -> None:
    lines = (folder / _POLICY).read_text().splitlines(keepends=True)
    (folder / _POLICY).write_text("".join(line for line in lines if not line.startswith(_RULE)))

    code, found = _check(folder)

    assert code == 1
    assert found.keys() == {"Policy"}
    assert "the rules artifact:upload are missing" in found["Policy"]


def test_a_database_that_does_not_answer_is_a_warning(folder: pathlib.Path) -> None:
    code, found = _check(
        folder, "[database]\nconnection = sqlite:////proc/missing/file\nmax_retries = 0\n"
    )

    assert code == 1
    assert found.keys() == {"Indexes"}
    assert "the database does not answer" in found["Indexes"]


@pytest.mark.parametrize(
    ("options", "title", "message"),
    [
        (
            "[DEFAULT]\nenabled_artifact_types = images\n",
            "Artifact type",
            "enabled_artifact_types = images: add murano",
        ),
        (
            "[artifact_type:murano]\nprovided_packages = org.example\n",
            "Options",
            "provided_packages: 'org.example' is not a name and a version",
        ),
    ],
)
def test_what_keeps_glare_from_starting_is_an_error(
    folder: pathlib.Path, options: str, title: str, message: str
) -> None:
    code, found = _check(folder, options)

    assert code == 2
    assert found.keys() == {title}
    assert message in found[title]
