# SPDX-License-Identifier: Apache-2.0

"""The page about the installation into Glance: its files, and its checks on the real Glance."""

import os
import pathlib
import re
import subprocess

from glare_murano.glance.configuration import ETC
from tests import prerequisites, processes
from tests.functional.glance.image_client import ImageClient

PAGE = processes.ROOT / "doc" / "source" / "guides" / "operators" / "glance.rst"


def _section(title: str) -> str:
    """Return the section of a title, up to the next one."""
    _, found, after = PAGE.read_text().partition(f"\n{title}\n{'=' * len(title)}\n")
    assert found
    return re.split(r"\n[^\n]+\n==+\n", after)[0]


def _blocks(text: str, language: str) -> str:
    found = re.findall(rf"^\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", text, re.M)
    return re.sub("^    ", "", "".join(found), flags=re.M)


def test_the_page_shows_every_file_whole() -> None:
    shown = re.findall(
        r"^\.\. literalinclude:: (\S+)\n   :language: \w+\n\n", PAGE.read_text(), re.M
    )
    assert {(PAGE.parent / path).resolve() for path in shown} == {*ETC.iterdir()}
    assert all(f"``{path.name}``" in PAGE.read_text() for path in ETC.glob("*.[!s]*"))


def test_the_checks_print_what_the_page_says(images: ImageClient, tmp_path: pathlib.Path) -> None:
    checks = _section("4. Check")
    script = _blocks(checks, "sh")
    for shown, here in (
        ("http://glance.example.org:9292", images.url),
        ("$(openstack token issue -f value -c id)", images.token),
        ("$(openstack token issue -f value -c project_id)", images.project),
        ("/opt/glance/bin/python", str(prerequisites.glance() / "python")),
    ):
        assert shown in script
        script = script.replace(shown, here)

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout.split("\n"), done.stderr) == (
        _blocks(checks, "text").replace("\n\n", "\n").split("\n"),
        "",
    )
