# SPDX-License-Identifier: Apache-2.0

"""How the documentation is built."""

import pathlib
import sys

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
autodoc_member_order = "bysource"
# What is imported to document the artifact type would bring Glare with it.
autodoc_mock_imports = ["glare", "glance_store"]
