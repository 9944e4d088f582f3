# SPDX-License-Identifier: Apache-2.0

"""The plug-in of the ``openstack`` command; the commands themselves are entry points."""

import argparse

# Read by the openstack command.
API_NAME = "murano_packages"
API_VERSION_OPTION = "os_murano_packages_api_version"
API_VERSIONS = ("1",)
DEFAULT_API_VERSION = "1"


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser of the global options unchanged: the plug-in has no global option."""
    return parser
