# SPDX-License-Identifier: Apache-2.0

"""The page about the installation into Glance: its files, and its checks on the real Glance."""

import os
import pathlib
import re
import subprocess

from glare_murano.glance.configuration import ETC
from tests import prerequisites
from tests.functional import page_scripts
from tests.functional.glance.image_client import ImageClient

_TEXT = page_scripts.GLANCE.read_text()


def test_the_page_shows_every_file_whole() -> None:
    shown = re.findall(
        r"^\.\. literalinclude:: (\S+)\n   :language: \w+\n\n",
        _TEXT,
        re.M,
    )
    assert {(page_scripts.GLANCE.parent / path).resolve() for path in shown} == {*ETC.iterdir()}
    assert all(f"``{path.name}``" in _TEXT for path in ETC.glob("*.[!s]*"))


def test_the_checks_print_what_the_page_says(images: ImageClient, tmp_path: pathlib.Path) -> None:
    script = page_scripts.glance_checks()
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

    shown = page_scripts.blocks(page_scripts.glance_section("4. Check"), "text")
    assert (done.stdout, done.stderr) == (shown.replace("\n\n", "\n"), "")
