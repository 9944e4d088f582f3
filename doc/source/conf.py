# SPDX-License-Identifier: Apache-2.0

"""How the documentation is built."""

import pathlib
import sys
from typing import Any

from docutils import nodes

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ext"))

project = "glare-murano"
author = "the authors of glare-murano"
extensions = [
    "cliff.sphinxext",
    "command_pages",
    "oslo_config.sphinxext",
    "module_map",
    "attack_tables",
    "rule_tables",
    "sphinx.ext.autodoc",
    "sphinxcontrib.openapi",
]
# Options of every command, which the overview explains once.
autoprogram_cliff_ignored = [
    "--help",
    "--max-width",
    "--fit-width",
    "--print-empty",
    "--noindent",
    "--prefix",
    "--quote",
    "--sort-ascending",
    "--sort-descending",
]
# A block without a language is a command or its output.
highlight_language = "text"
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_theme_options = {"top_of_page_buttons": []}
_PROGRAMS = pathlib.Path(__file__).parent / "reference" / "programs"
# Their pages are in section 1 of the manual. The others are in section 8, for administrators.
_FOR_USERS = {"glare-murano-server", "murano-glare-test-runner", "openstack-murano"}


def _summary(page: pathlib.Path) -> str:
    """Return the first sentence of a program's page, which is the name of its manual page."""
    sentence = page.read_text().split("\n\n")[2].strip(" .")
    return sentence[0].lower() + sentence[1:]


man_pages = [
    (
        f"reference/programs/{page.stem}",
        *(page.stem, _summary(page), author, 1 if page.stem in _FOR_USERS else 8),
    )
    for page in sorted(_PROGRAMS.glob("*-*.rst"))
]
autodoc_member_order = "bysource"
# What is imported to document the artifact type would bring Glare with it.
autodoc_mock_imports = ["glare", "glance_store"]


def _drop_internal_links(app: Any, tree: nodes.document, _: str) -> None:
    """Leave the titles of other pages in a manual page, which cannot link to them."""
    if app.builder.name == "man":
        for link in [*tree.findall(nodes.reference)]:
            if not link.get("refuri"):
                link.replace_self(link.children)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("doctree-resolved", _drop_internal_links)
