# SPDX-License-Identifier: Apache-2.0

"""A plug-in of pytest: every test runs with this project's changes to Murano."""

# First of all: other modules of Murano read its options when they are imported.
from murano.common import config as murano_config

from loader.engine import patches

patches.install()
# What an operator sets to allow what the tests do.
murano_config.CONF.set_default("decrypt_data", True, "engine")
murano_config.CONF.set_default("reachable_endpoints", ["test_host:123"], "engine")
# Murano's tests of its own loader.
murano_config.CONF.set_default("package_loader", "murano", "engine")
