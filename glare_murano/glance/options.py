# SPDX-License-Identifier: Apache-2.0

"""The options of this project in Glance's configuration: the group ``[murano_packages]``."""

from typing import Any

from oslo_config import cfg

from glare_murano.service import archive_settings, requirement_checks, settings

GROUP = "murano_packages"

OPTIONS = [
    *requirement_checks.OPTIONS,
    *settings.OPTIONS,
    *archive_settings.OPTIONS,
    cfg.IntOpt(
        "import_timeout",
        min=1,
        default=300,
        help="The time, in seconds, after which the staging or the import of a package that makes "
        "no progress may be begun anew: its process was killed.",
    ),
]


def group() -> Any:
    """Return the values of the options."""
    cfg.CONF.register_opts(OPTIONS, GROUP)
    return cfg.CONF[GROUP]


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for ``oslo-config-generator``."""
    return [(GROUP, OPTIONS)]
