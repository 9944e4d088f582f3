# SPDX-License-Identifier: Apache-2.0

"""Define the options of this project in Glance's configuration: the group ``[murano_packages]``."""

from typing import Any

from oslo_config import cfg

from glare_murano import archive_settings
from glare_murano.service import requirement_checks, settings

GROUP = "murano_packages"

OPTIONS = [
    *requirement_checks.OPTIONS,
    *settings.OPTIONS,
    *archive_settings.OPTIONS,
    cfg.IntOpt(
        "import_timeout",
        min=1,
        default=300,
        help="The longest time that staging or importing a package may make no progress, in "
        "seconds. After that the package can be staged again, since the process may have been "
        "killed.",
    ),
]
cfg.CONF.register_opts(OPTIONS, GROUP)
# The values of the options.
SETTINGS = settings.Settings(GROUP)


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for ``oslo-config-generator``."""
    return [(GROUP, OPTIONS)]
