# SPDX-License-Identifier: Apache-2.0

"""The command ``glare-murano-server``, which runs the development server."""

import sys


def main() -> int:
    """Run the server.

    :returns: the exit code, 1 if Glare is not installed.
    """
    try:
        from glare_murano.glare import server
    except ModuleNotFoundError as error:
        print(
            f"glare-murano-server: {error}; run pip install 'glare-murano[glare]'", file=sys.stderr
        )
        return 1
    return server.main()


if __name__ == "__main__":
    sys.exit(main())
