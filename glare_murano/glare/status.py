# SPDX-License-Identifier: Apache-2.0

"""Run ``glare-murano-status``, which checks the configuration of Glare before an upgrade."""

import sys
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as logging

from glare_murano import upgrade_checks
from glare_murano.glare import start_checks
from glare_murano.upgrade_checks import UpgradeCheck

_COMMAND = "glare-murano-status"


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``upgrade check``.

    :returns: the exit code: 0 if no check has a finding, 1 after a warning, 2 if Glare would not
        start, 255 if the command itself fails.
    """
    logging.register_options(cfg.CONF)
    command = UpgradeCheck("Packages in Glare", start_checks.UPGRADE_CHECKS)
    arguments = sys.argv[1:] if argv is None else argv
    files = cfg.find_config_files("glare", "glare-api")
    return upgrade_checks.run(_COMMAND, cfg.CONF, "glare", command, arguments, files)


if __name__ == "__main__":
    sys.exit(main())
