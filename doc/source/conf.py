# SPDX-License-Identifier: Apache-2.0

"""How the documentation is built."""

project = "glare-murano"
author = "the authors of glare-murano"
extensions = ["openstackdocstheme", "oslo_config.sphinxext", "sphinx.ext.autodoc"]
html_theme = "openstackdocs"
openstackdocs_auto_name = False
openstackdocs_use_storyboard = False
autodoc_member_order = "bysource"
# What is imported to document the artifact type would bring Glare with it.
autodoc_mock_imports = ["glare", "glance_store"]
