# SPDX-License-Identifier: Apache-2.0

"""The command ``murano-glare-engine``: Murano's engine, with the loader in place.

It takes the options and the configuration of ``murano-engine``.
"""

import sys


def main() -> None:
    """Run the engine's service."""
    # Murano's own module comes first: it makes the standard library
    # cooperative, before the engine and its adapter are imported.
    from murano.cmd import engine as command

    from loader.engine import adapter

    adapter.install()
    # By this name oslo.config looks for configuration files.
    sys.argv[0] = "murano-engine"
    command.main()


if __name__ == "__main__":
    main()
