# SPDX-License-Identifier: Apache-2.0

"""The command ``glare-murano-glance-status upgrade check``, with the real Glance."""

import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
from collections.abc import Callable

import pytest

from glare_murano.glance import configuration
from glare_murano.glance.ini_file import IniFile
from tests import prerequisites, processes
from tests.functional.glance import service

_CONF = "glance-api.conf"
_PASTE = "glance-api-paste.ini"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An SQLite file with the tables and the index of the installation guide."""
    folder = tmp_path_factory.mktemp("tables")
    file = _configure(folder)
    service.manage(folder, "db", "sync")
    with sqlite3.connect(file) as connection:
        connection.executescript((configuration.ETC / "glance-indexes.sql").read_text())
    return file


@pytest.fixture
def etc(database: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """The configuration of a Glance, as ``glare-murano-glance-configure`` writes it."""
    shutil.copy(database, _configure(tmp_path))
    configuration.configure(tmp_path)
    return tmp_path


def _configure(etc: pathlib.Path) -> pathlib.Path:
    """Write a file as Glance has it without packages, and return the path of the database."""
    file = etc / "glance.sqlite"
    (etc / _CONF).write_text(
        f"[DEFAULT]\n[database]\nconnection = sqlite:///{file}\n[paste_deploy]\nflavor = keystone\n"
    )
    return file


def _check(etc: pathlib.Path) -> tuple[int, dict[str, str]]:
    """Run the command, and return its exit code and the details of the checks that fail."""
    command = [prerequisites.glance() / "python", "-W", "ignore", "-m"]
    done = subprocess.run(
        [*command, "glare_murano.glance.status", "upgrade", "check", "--json"],
        env={
            **os.environ,
            "PYTHONPATH": str(processes.ROOT),
            "OS_GLANCE_CONFIG_DIR": str(etc),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    checks = json.loads(done.stdout.splitlines()[-1])["checks"]
    assert len(checks) == 9
    return done.returncode, {
        check["check"]: check["details"] for check in checks if check["result"]
    }


def test_a_configured_glance_passes(etc: pathlib.Path) -> None:
    assert _check(etc) == (0, {})


def _drop_index(etc: pathlib.Path) -> None:
    with sqlite3.connect(etc / "glance.sqlite") as connection:
        connection.execute("DROP INDEX murano_images")


def _remove_filter(etc: pathlib.Path) -> None:
    paste = (etc / _PASTE).read_text()
    assert " murano-images " in paste
    (etc / _PASTE).write_text(paste.replace(" murano-images ", " "))


def _replace_by_directory(etc: pathlib.Path) -> None:
    (etc / _PASTE).unlink()
    (etc / _PASTE).mkdir()


def _damage_database(etc: pathlib.Path) -> None:
    (etc / "glance.sqlite").write_text("This is not a database. " * 100)


def _leave_only_imports(etc: pathlib.Path) -> None:
    """Move all options into the file that Glance reads first."""
    with (etc / "glance-image-import.conf").open("a") as file:
        file.write((etc / _CONF).read_text())
    (etc / _CONF).unlink()


@pytest.mark.parametrize(
    ("change", "title", "message"),
    [
        (_replace_by_directory, "Pipelines and files", "Is a directory"),
        (_leave_only_imports, "Pipelines and files", "glance-api.conf was not found"),
        (_damage_database, "Index", "file is not a database"),
        (_drop_index, "Index", "the table images has no index of container_format and name"),
        (_remove_filter, "Pipelines and files", f"{_PASTE}: pipelines, protections or rules"),
    ],
)
def test_what_does_not_keep_glance_from_starting_is_a_warning(
    etc: pathlib.Path, change: Callable[[pathlib.Path], None], title: str, message: str
) -> None:
    change(etc)

    code, found = _check(etc)

    assert code == 1
    assert found.keys() == {title}
    assert message in found[title]


def test_what_keeps_glance_from_starting_is_an_error(etc: pathlib.Path) -> None:
    conf = IniFile(etc / _CONF)
    conf.set("image_format", "container_formats", "bare,ovf")
    conf.path.write_text(conf.text)

    code, found = _check(etc)

    assert code == 2
    assert "container_formats: add murano to the list" in found["Container formats"]
    # The command that configures Glance would add it.
    assert found.keys() == {"Container formats", "Pipelines and files"}
