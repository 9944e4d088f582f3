# SPDX-License-Identifier: Apache-2.0

"""The plug-in of the ``openstack`` command; the commands themselves are entry points."""

import argparse
import os

# The ``openstack`` command reads these four names.
API_NAME = "murano_packages"
API_VERSION_OPTION = "os_murano_packages_api_version"
API_VERSIONS = ("1",)
DEFAULT_API_VERSION = "1"


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add this project's global option to the parser of ``openstack``, and return the parser."""
    parser.add_argument(
        "--os-murano-catalog",
        metavar="<glare|glance>",
        # An empty string would replace the setting in clouds.yaml.
        default=os.environ.get("OS_MURANO_CATALOG") or None,
        help="The service that keeps the packages of Murano: glare or glance "
        "(Env: OS_MURANO_CATALOG). By default, the only one that the cloud has.",
    )
    return parser
