# SPDX-License-Identifier: Apache-2.0

"""The figures of the code, on small pieces of code and on this project."""

from tests import code_figures

_SOURCE = '''\
"""The docstring of a module."""

import os


def join(*names: str) -> str:
    """Join names.

    In two paragraphs.
    """
    # A comment.
    return os.path.join(  # with a comment behind it
        *names,
    )


TEXT = """
two lines
"""
'''


def test_docstrings_comments_and_empty_lines_are_not_counted() -> None:
    # The import, the function with its statement of three lines, and the string.
    assert code_figures.count_lines(_SOURCE) == 1 + 1 + 3 + 3


def test_imports_are_counted_between_directories() -> None:
    found = code_figures.find_imports("loader")

    assert ("commands", "publishing") in found
    assert all(importer != imported for importer, imported in found)
    assert not any("glare_murano" in pair for pair in found)


def test_a_drawing_is_repeated_exactly() -> None:
    drawn = code_figures.draw_docstrings("glare_murano", 80)

    assert len(drawn) == len(set(drawn)) == 80
    assert drawn == code_figures.draw_docstrings("glare_murano", 80)
