# SPDX-License-Identifier: Apache-2.0

"""The bundle on the page of files is one that this project writes and reads."""

import json
import pathlib
import re
import textwrap

from loader.publishing import bundles

PAGE = pathlib.Path(__file__).parents[3] / "doc" / "source" / "reference" / "files.rst"


def _example() -> str:
    (block,) = re.findall(r"code-block:: json\n\n((?:    .*\n)+)", PAGE.read_text())
    return textwrap.dedent(block)


def test_the_documented_bundle_is_read_and_written(tmp_path: pathlib.Path) -> None:
    bundle = tmp_path / "packages.bundle"
    bundle.write_text(_example())

    (entry,) = bundles.read(str(bundle))

    assert (entry.fqn, entry.version) == ("org.example.db", "1.2.0")
    assert entry.place == str(tmp_path / "org.example.db.1.2.0.zip")
    (listed,) = json.loads(_example())["Packages"]
    written = bundles.Entry(entry.fqn, entry.version, listed["Url"], entry.digest)
    bundles.write(bundle, [written])
    assert bundle.read_text() == _example()


def test_every_key_is_explained() -> None:
    (listed,) = json.loads(_example())["Packages"]
    explained = PAGE.read_text().split("\nBundles\n")[1]
    assert re.findall(r"^``(\w+)``$", explained, re.MULTILINE) == list(listed)


def test_the_documented_limit_is_that_of_the_code() -> None:
    (size,) = re.findall(r"A\s+bundle\s+has at most (\d+) MiB", PAGE.read_text())
    assert int(size) * 1024**2 == bundles._MAX_BUNDLE
