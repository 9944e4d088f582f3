# SPDX-License-Identifier: Apache-2.0

"""Run ``glare-murano-server``, ``glare-murano-manage`` and ``glare-murano-status``."""

import importlib
import sys
from warnings import filterwarnings

from glare_murano import extras

# The exit code after Ctrl-C, as in a shell: 128 and the number of SIGINT.
_STOPPED = 130

# Glare imports eventlet, which warns at each start that it is deprecated.
filterwarnings("ignore", message=r"\s*Eventlet is deprecated")


def server() -> int:
    """Run ``glare-murano-server``, the development server.

    :returns: the exit code, 1 if Glare is not installed.
    """
    return _run("server")


def manage() -> int:
    """Run ``glare-murano-manage``, the command for operators.

    :returns: the exit code, 1 if Glare is not installed.
    """
    return _run("manage")


def status() -> int:
    """Run ``glare-murano-status``, which checks the configuration of Glare.

    :returns: the exit code, 1 if Glare is not installed.
    """
    return _run("status")


def _run(name: str) -> int:
    try:
        return _main(name)
    except KeyboardInterrupt:
        # The imports take seconds, and no program handles Ctrl-C yet.
        return _STOPPED


def _main(name: str) -> int:
    try:
        module = importlib.import_module(f"glare_murano.glare.{name}")
    except ModuleNotFoundError as error:
        print(f"glare-murano-{name}: {error}; {extras.remedy('glare')}", file=sys.stderr)
        return 1
    exit_code: int = module.main()
    return exit_code
