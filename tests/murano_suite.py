# SPDX-License-Identifier: Apache-2.0

"""Murano's own unit tests, without and with this project's changes to Murano.

    python -m tests.murano_suite

The tests of Murano's source distribution, for its engine, language and packages, run twice, each
time in a process of its own. A test that passes without ``loader.engine.patches`` must pass with
them. A few tests need what today's Python no longer has, and fail both times.
"""

import os
import pathlib
import shutil
import subprocess
import sys
from xml.etree import ElementTree

from tests import prerequisites, suites

# Those of the API, of its database and of the checker of Murano's own code are left out.
_PARTS = ("common", "core_library", "dsl", "engine", "packages", "policy", "services")
_FILES = ("test_actions.py", "test_engine.py", "test_heat_stack.py", "test_utils.py")

# On Python 3.11, 726 pass without the patches.
_FEWEST = 700

# The plug-ins of pytest: one adds what Murano had from YAQL 2, the other installs the patches.
PLAIN = "tests.murano_plain"
PATCHED = "tests.murano_patched"


def start(folder: pathlib.Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start Murano's tests in a copy of its source distribution, since they write into it."""
    for name in ("murano", "meta"):
        shutil.copytree(prerequisites.MURANO / name, folder / name)
    tests = folder / "murano/tests/unit"
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={folder}"]
    command += ["-p", "no:cacheprovider", "-p", "no:warnings", "--timeout=120", "--tb=short"]
    command += [f"--junit-xml={folder / 'results.xml'}", *arguments]
    command += [str(tests / name) for name in (*_PARTS, *_FILES)]
    # The current directory comes first in the path of modules, and so the copy.
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[1])}
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )


def passed(folder: pathlib.Path, process: subprocess.Popen[bytes]) -> set[str]:
    """Wait for the tests, and return the names of those that pass.

    :raises tests.suites.SuiteError: if not all tests could be run.
    """
    process.wait()
    suites.wait(process, (folder / "output").read_text(errors="replace"), may_fail=True)
    cases = ElementTree.parse(folder / "results.xml").iter("testcase")
    return {f"{case.get('classname')}.{case.get('name')}" for case in cases if not len(case)}


def compare(without: set[str], patched: set[str]) -> str:
    """Return the counts of the tests that pass; see ``suites.compare``."""
    return suites.compare(_FEWEST, "Murano", "the patches", without, patched)


def run(folder: pathlib.Path) -> str:
    """Run both at the same time, and compare them."""
    folders = [folder / name for name in ("without", "patched")]
    for each in folders:
        each.mkdir()
    processes = [start(folders[0], "-p", PLAIN), start(folders[1], "-p", PATCHED)]
    with suites.running(*processes):
        return compare(*map(passed, folders, processes))


if __name__ == "__main__":
    sys.exit(suites.report("murano-tests", run))
