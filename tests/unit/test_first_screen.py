# SPDX-License-Identifier: Apache-2.0

"""The README, the first page of the documentation and the picture of both."""

import importlib.util
import pathlib
import re
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
README = (ROOT / "README.rst").read_text()
SOURCE = ROOT / "doc" / "source"
PAGE = (SOURCE / "index.rst").read_text()


def _draw() -> Any:
    """The program that draws, which is in no package."""
    spec = importlib.util.spec_from_file_location("draw", ROOT / "doc" / "pictures" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_fits_on_two_screens() -> None:
    assert len(README.splitlines()) <= 80


def test_both_begin_with_the_same_sentence_and_describe_the_picture() -> None:
    assert README.partition("\n.. image::")[0] == PAGE.partition("\n.. image::")[0]
    alts = re.findall(r"   :alt: (.+(?:\n {9}.+)*)", README + PAGE)
    assert len(alts) == 3
    assert len(set(alts)) == 1


def test_the_page_shows_the_rest_of_the_readme() -> None:
    marks = re.findall(r"^   :(?:start-after|end-before): (\.\. \w+)$", PAGE, re.MULTILINE)
    assert marks == [".. summary", ".. doors", ".. status"]
    assert re.findall(r"^\.\. \w+$", README, re.MULTILINE) == marks


def test_the_files_that_the_readme_names_exist() -> None:
    named = re.findall(r"``([\w./-]+\.(?:rst|txt))``|image:: (\S+)|<([\w./-]+)>`__", README)
    paths = ["".join(found) for found in named]
    assert len(paths) == 12
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_every_page_is_in_the_sidebar() -> None:
    listed = set(re.findall(r"^   ((?:[\w-]+/)+[\w-]+)$", PAGE, re.MULTILINE))
    pages = {
        str(path.relative_to(SOURCE).with_suffix(""))
        for path in SOURCE.rglob("*.rst")
        if path.parent.name not in ("commands", "programs") or path.stem == "index"
    }
    assert listed == pages - {"index"}


def test_the_pictures_are_as_described() -> None:
    drawings = _draw().drawings()
    assert len(drawings) == 9
    assert set(drawings) == set((SOURCE / "pictures").iterdir())
    for path, text in drawings.items():
        assert path.read_text() == text, "run 'make pictures'"
