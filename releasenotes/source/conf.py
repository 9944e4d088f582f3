# SPDX-License-Identifier: Apache-2.0

"""How the release notes are built."""

project = "glare-murano release notes"
author = "the authors of glare-murano"
extensions = ["reno.sphinxext"]
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
html_theme_options = {"top_of_page_buttons": []}
