# SPDX-License-Identifier: Apache-2.0

"""How the release notes are built."""

project = "glare-murano release notes"
author = "the authors of glare-murano"
extensions = ["openstackdocstheme", "reno.sphinxext"]
html_theme = "openstackdocs"
openstackdocs_auto_name = False
openstackdocs_use_storyboard = False
