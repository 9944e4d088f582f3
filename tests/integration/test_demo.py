# SPDX-License-Identifier: Apache-2.0

"""The demo as a user runs it: real processes, a real port."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.programs

COMMAND = [sys.executable, "-W", "ignore", "-m"]


def environment(tmp_path: pathlib.Path) -> dict[str, str]:
    """Return an environment in which temporary files are in a directory of the test's own."""
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}


def _transcript(printed: list[str], clone: pathlib.Path) -> bool:
    """Return whether the lines of the README's transcript were printed, in this order.

    :param clone: a directory in place of the clone that the README names.
    """
    readme = (pathlib.Path(__file__).parents[2] / "README.rst").read_text()
    readme = readme.replace("file:///home/you/glare-murano", clone.as_uri())
    _, _, after = readme.partition("From its output::\n\n")
    block = textwrap.dedent(re.split(r"\n(?=\S)", after)[0])
    shown = [line for line in block.splitlines() if line not in {"", "..."}]
    rest = iter(printed)
    return len(shown) > 5 and all(line in rest for line in shown)


@pytest.mark.parametrize(
    "program",
    ["examples.demo", pytest.param("examples.demo_glance", marks=pytest.mark.services)],
)
def test_the_demo_shows_what_the_whole_is_for(
    core_library: pathlib.Path,
    tmp_path: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
    program: str,
) -> None:
    clone = tmp_path_factory.mktemp("clone")
    pages = clone / "build" / "catalogue"
    finished = subprocess.run(
        [*COMMAND, program, core_library, "--pages", pages],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(tmp_path),
    )

    assert finished.returncode == 0, finished.stderr
    for line in (
        r"'status' returns .*\"uses\": \{\"org.example.db\": \"1.2.0\"\}",
        r"side by side: the wiki uses org.example.db 1.2.0, the shop 2.0.0",
        r"first keeps its pins: the wiki uses org.example.db 1.2.0",
        r"second takes the new version: the wiki uses org.example.db 1.3.0",
        r"deploy first +murano 0.0.0, db 1.2.0 and 2.0.0, .* \d+ +[\d,]+ +\d",
    ):
        assert re.search(line, finished.stdout), line
    assert list(tmp_path.iterdir()) == []
    page = (pages / "index.html").as_uri()
    assert finished.stdout.endswith(
        f"Open the pages about the packages in a browser:\n    {page}\n"
    )
    assert "org.example.wiki" in (pages / "index.html").read_text()

    if program == "examples.demo":
        assert _transcript(finished.stdout.splitlines(), clone)


def test_a_demo_without_the_core_library_says_so(tmp_path: pathlib.Path) -> None:
    finished = subprocess.run(
        [*COMMAND, "examples.demo", tmp_path / "nothing"],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert finished.returncode == 1
    assert "nothing" in finished.stderr
    assert "Traceback" not in finished.stderr
