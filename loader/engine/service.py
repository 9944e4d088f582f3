# SPDX-License-Identifier: Apache-2.0

"""The command ``murano-glare-engine``: Murano's engine, which loads packages by ours.

It takes the options and the configuration of ``murano-engine``.
"""

import sys


def main() -> int:
    """Run the engine's service.

    :returns: the exit code, 1 if Murano is not installed.
    """
    try:
        # First of all: eventlet patches the standard library for the modules after it.
        from murano.cmd import engine

        from loader.engine import patches
    except ModuleNotFoundError as error:
        print(
            f"murano-glare-engine: {error}; run pip install 'glare-murano[engine]'",
            file=sys.stderr,
        )
        return 1
    patches.install()
    # oslo.config looks for configuration files of this name.
    sys.argv[0] = "murano-engine"
    engine.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
