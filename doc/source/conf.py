# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
