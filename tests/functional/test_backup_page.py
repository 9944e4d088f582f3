# SPDX-License-Identifier: Apache-2.0

"""The page about backups: its check finds a lost archive, which other commands do not find."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests import packages
from tests.functional import page_scripts, sites
from tests.functional.openstack_command import OpenStack

pytestmark = pytest.mark.programs


def _run(openstack: OpenStack, folder: pathlib.Path) -> "subprocess.CompletedProcess[str]":
    folder.mkdir()
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, **openstack.environment, "PATH": path, "NO_PROXY": "127.0.0.1"}
    return subprocess.run(
        ["bash", "-c", page_scripts.backup_check()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_check_saves_every_release_and_finds_a_lost_archive(tmp_path: pathlib.Path) -> None:
    archives = [packages.package("org.test.db", version) for version in ("1.0.0", "1.2.0")]
    # A Glare of its own, since the check saves all public packages.
    (tmp_path / "glare").mkdir()
    with sites.development(tmp_path / "glare") as site:
        client = site.client("project")
        openstack = OpenStack(tmp_path, client.url, client.token)
        for version, archive in zip(("1.0.0", "1.2.0"), archives, strict=True):
            client.publish("org.test.db", version, archive)
        openstack.ok("package", "yank", "org.test.db@1.2.0", "--reason", "broken")
        blobs = list((site.folder / "blobs").iterdir())
        (lost,) = (path for path in blobs if path.read_bytes() == archives[0])
        lost.unlink()

        done = _run(openstack, tmp_path / "checked")

        assert done.returncode == 123
        assert "did not send the archive of org.test.db 1.0.0" in done.stderr
        saved = [path.read_bytes() for path in (tmp_path / "checked" / "check").iterdir()]
        assert archives[1] in saved
        # The core library, too.
        assert len(saved) == 2
        # As the page says.
        lock = tmp_path / "packages.lock"
        openstack.ok("lock", "create", "org.test.db@1.0.0", "--file", lock)
        openstack.ok("lock", "check", "--file", lock)
