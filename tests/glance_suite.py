# SPDX-License-Identifier: Apache-2.0

"""Glance's own tests of its API for images, without and with packages.

    python -m tests.glance_suite

The tests are in Glance's wheel. They run twice, each time in a process of its own in Glance's
environment. A test that passes without packages must pass with them. A few need qemu-img or
the network, and fail both times.
"""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable

from tests import prerequisites, processes, suites

_PARTS = (
    "test_discovery",
    "test_download_from_store",
    "test_image_members",
    "test_images",
    "test_images_api_policy",
    "test_images_import_locking",
    "test_member_api_policy",
    "test_multi_store_images",
    "test_parallel_store_import",
    "test_property_protection",
    "test_schemas",
    "test_tasks",
    "test_tasks_api_policy",
)
_MODULES = [f"glance.tests.functional.v2.{part}" for part in _PARTS]

# Of Glance 33, some 140 pass without qemu-img and without a network.
_FEWEST = 120


def start(
    folder: pathlib.Path, *options: str, tests: Iterable[str] = _MODULES
) -> subprocess.Popen[bytes]:
    """Start tests of Glance in a new folder, into which they write."""
    folder.mkdir()
    python = prerequisites.glance() / "python"
    glance = next(python.parents[1].glob("lib/python3*/site-packages/glance"))
    # Their paths are relative.
    (folder / "glance").symlink_to(glance)
    (folder / "etc").symlink_to(python.parents[1] / "etc" / "glance")
    command = [str(python), "-W", "ignore", "-m", "tests.glance_with_packages"]
    environment = {**os.environ, "PYTHONPATH": str(processes.ROOT)}
    with (folder / "passed").open("wb") as passed, (folder / "errors").open("wb") as errors:
        return subprocess.Popen(
            [*command, *options, *tests],
            cwd=folder,
            env=environment,
            stdout=passed,
            stderr=errors,
        )


def passed(folder: pathlib.Path, process: subprocess.Popen[bytes]) -> set[str]:
    """Wait for the tests, and return the names of those that pass.

    :raises tests.suites.SuiteError: if they could not be run.
    """
    process.wait()
    suites.wait(process, (folder / "errors").read_text(errors="replace"))
    # Some names have addresses of objects.
    names = (folder / "passed").read_text().splitlines()
    return {re.sub("0x[0-9a-f]+", "0x", name) for name in names if name.startswith("glance.")}


def repeat(folder: pathlib.Path, names: set[str]) -> set[str]:
    """Run tests with packages once more, and return the names of those that pass.

    Some wait for a second at most, which is too short on a busy host.
    """
    return passed(folder, start(folder, "--packages", tests=sorted(names)))


def run(folder: pathlib.Path) -> str:
    """Run both at the same time, and compare them."""
    folders = [folder / "without", folder / "packages"]
    processes_ = [start(folders[0]), start(folders[1], "--packages")]
    with suites.running(*processes_):
        without, changed = map(passed, folders, processes_)
    if broken := without - changed:
        changed |= repeat(folder / "again", broken)
    return suites.compare(_FEWEST, "Glance", "packages", without, changed)


if __name__ == "__main__":
    sys.exit(suites.report("glance-tests", run))
