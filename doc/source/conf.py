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
    "openstackdocstheme",
    "oslo_config.sphinxext",
    "module_map",
    "attack_tables",
    "rule_tables",
    "sphinx.ext.autodoc",
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
html_theme = "openstackdocs"
openstackdocs_auto_name = False
openstackdocs_use_storyboard = False
autodoc_member_order = "bysource"
# What is imported to document the artifact type would bring Glare with it.
autodoc_mock_imports = ["glare", "glance_store"]
