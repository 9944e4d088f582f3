# SPDX-License-Identifier: Apache-2.0

"""The command ``murano-glare-status``, which checks an engine's settings before an upgrade."""

import sys

from glare_murano import extras

_COMMAND = "murano-glare-status"


def main() -> int:
    """Run ``upgrade check``.

    :returns: the exit code: 0 if no check finds a problem; 1 after a warning, or if Murano is not
        installed; 2 if the engine would not start; 255 if the command itself fails.
    """
    try:
        # This import comes first, as in ``loader.engine.service``.
        from murano.cmd import engine

        from loader.engine import patches, start_checks
    except ModuleNotFoundError as error:
        print(f"{_COMMAND}: {error}; {extras.remedy('engine')}", file=sys.stderr)
        return 1
    from oslo_config import cfg

    from glare_murano import upgrade_checks
    from glare_murano.upgrade_checks import UpgradeCheck

    patches.install()
    checks = start_checks.upgrade_checks(engine.CONF)
    command = UpgradeCheck("Engine with packages in several versions", checks)
    files = cfg.find_config_files("murano", "murano-engine")
    return upgrade_checks.run(_COMMAND, engine.CONF, "murano", command, sys.argv[1:], files)


if __name__ == "__main__":
    sys.exit(main())
