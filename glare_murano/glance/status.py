# SPDX-License-Identifier: Apache-2.0

"""Run ``glare-murano-glance-status``, which checks the configuration of a Glance with packages."""

import os
import pathlib
import sys

from glare_murano import extras

_COMMAND = "glare-murano-glance-status"


def main() -> int:
    """Run ``upgrade check``.

    :returns: the exit code: 0 if no check has a finding, 1 after a warning or if Glance is not
        installed, 2 if Glance would not start, 255 if the command itself fails.
    """
    try:
        from oslo_config import cfg

        from glare_murano import upgrade_checks
        from glare_murano.glance import start_checks
        from glare_murano.upgrade_checks import UpgradeCheck
    except ModuleNotFoundError as error:
        print(f"{_COMMAND}: {error}; {extras.remedy('glance')}", file=sys.stderr)
        return 1
    command = UpgradeCheck("Packages in Glance", start_checks.UPGRADE_CHECKS)
    directory = pathlib.Path(os.environ.get("OS_GLANCE_CONFIG_DIR", "/etc/glance").strip())
    # The files that Glance reads, in the same order.
    paths = [directory / name for name in ("glance-image-import.conf", "glance-api.conf")]
    files = [str(path) for path in paths if path.exists()]
    return upgrade_checks.run(_COMMAND, cfg.CONF, "glance", command, sys.argv[1:], files)


if __name__ == "__main__":
    sys.exit(main())
