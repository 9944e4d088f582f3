# SPDX-License-Identifier: Apache-2.0

"""The command ``murano-glare-engine``: it runs Murano's engine with this project's package loader.

The command takes the options and the configuration files of ``murano-engine``, and checks
them before the service starts.
"""

import importlib.metadata
import logging
import sys
from typing import TYPE_CHECKING

from glare_murano import extras

if TYPE_CHECKING:
    from oslo_config import cfg

LOG = logging.getLogger(__name__)

_COMMAND = "murano-glare-engine"
_DESCRIPTION = (
    "Run Murano's engine with packages in several versions, from Glare, Glance, directories or "
    "other catalogues. The options and the configuration files are those of murano-engine."
)


class InvalidConfiguration(Exception):
    """The service cannot start; the message names the wrong option and its value."""


def main() -> int:
    """Check the configuration, and run the engine's service.

    :returns: the exit code: 1 if Murano is not installed, an option is invalid, or RabbitMQ has the
        queue for results with other options; else 0.
    """
    try:
        # This import comes first. It makes eventlet patch the standard library, and all modules
        # that are imported later use the patched one.
        from murano.cmd import engine

        from loader.engine import patches, result_queue, shutdown
    except ModuleNotFoundError as error:
        print(f"{_COMMAND}: {error}; {extras.remedy('engine')}", file=sys.stderr)
        return 1
    from oslo_config import cfg

    patches.install()
    try:
        _parse_arguments(engine.CONF)
        check(engine.CONF)
        if not engine.CONF.check:
            result_queue.check(engine.CONF)
    except (InvalidConfiguration, result_queue.OtherDeclaration, cfg.Error) as error:
        print(f"{_COMMAND}: {error}", file=sys.stderr)
        return 1
    if not engine.CONF.check:
        shutdown.serve(engine.CONF)
    return 0


def check(conf: "cfg.ConfigOpts") -> None:
    """Run the checks of ``start_checks``, and log what they find.

    Among others, the checks make a loader as a task does, and import the enabled plug-ins. No
    request is sent, so the engine starts even if a service is down.

    :raises InvalidConfiguration: if a check finds an error.
    """
    from loader.engine import shutdown, start_checks

    for find in start_checks.upgrade_checks(conf).values():
        for finding in find():
            if finding.is_error:
                raise InvalidConfiguration(finding.message)
            LOG.warning("%s", finding.message)
    LOG.info("After SIGTERM, the engine ends within %d seconds", shutdown.longest_stop(conf))


def _parse_arguments(conf: "cfg.ConfigOpts") -> None:
    from oslo_config import cfg
    from oslo_log import log

    log.register_options(conf)
    conf.register_cli_opt(
        cfg.BoolOpt("check", default=False, help="Check the configuration, and exit.")
    )
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("glare-murano", "murano")]
    conf(
        project="murano",
        prog=_COMMAND,
        version=", ".join(versions),
        description=_DESCRIPTION,
        default_config_files=cfg.find_config_files("murano", "murano-engine"),
        default_config_dirs=cfg.find_config_dirs("murano", "murano-engine"),
    )
    log.setup(conf, "murano")


if __name__ == "__main__":
    sys.exit(main())
