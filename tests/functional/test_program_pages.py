# SPDX-License-Identifier: Apache-2.0

"""Each program has a page, which is its manual page too, with the options that the program has."""

import configparser
import pathlib
import re
import subprocess
import sys

import pytest

from tests import prerequisites
from tests.processes import ROOT

pytestmark = pytest.mark.programs

PAGES = ROOT / "doc" / "source" / "reference" / "programs"
# Pages of programs that have the options of OpenStack's libraries too, which they only mention.
_OTHERS = "The options that are not on this page"
_FLAG = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def _programs() -> list[str]:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return re.findall(r"^(\S+) = ", setup["entry_points"]["console_scripts"], re.M)


def _shown(text: str) -> dict[str, set[str]]:
    """Return the options of a page: program with its commands -> options."""
    parts = re.split(r"^\.\. program:: (.+)$", text, flags=re.M)[1:]
    return {
        program: set(_FLAG.findall(" ".join(re.findall(r"^\.\. option:: (.+)$", part, re.M))))
        for program, part in zip(parts[::2], parts[1::2], strict=True)
    }


def _accepted(program: str) -> set[str]:
    """Return the options in the help of a program, or of a command of it."""
    name, *command = program.split()
    with_glance = name == "glare-murano-glance-status"
    folder = prerequisites.glance() if with_glance else pathlib.Path(sys.executable).parent
    done = subprocess.run(
        [folder / name, *command, "--help"], capture_output=True, text=True, check=True
    )
    lines = re.findall(r"^  (-.+?)(?:  |$)", done.stdout, re.M)
    return set(_FLAG.findall(" ".join(lines)))


def test_every_program_has_a_page() -> None:
    pages = {page.stem for page in PAGES.glob("*.rst")} - {"index", "openstack-murano"}
    assert pages == set(_programs())


@pytest.mark.parametrize("name", _programs())
def test_a_page_has_the_options_of_its_program(name: str) -> None:
    text = (PAGES / f"{name}.rst").read_text()
    shown = _shown(text)

    assert name in shown
    for program, options in shown.items():
        accepted = _accepted(program)
        assert options, program
        assert options <= accepted
        if _OTHERS not in text:
            assert options == accepted
