# SPDX-License-Identifier: Apache-2.0

"""A plug-in of pytest: every test runs with this project's changes to Murano."""

# First of all: other modules of Murano read its options when they are imported.
from murano.common import config  # noqa: F401

from loader.engine import patches

patches.install()
