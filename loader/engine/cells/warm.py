# SPDX-License-Identifier: Apache-2.0

"""Prepare the warm process, from which cells are forked: set options, and import Murano."""

from collections.abc import Callable
from typing import Any

from murano.common import config

from loader.engine.cells import cell_options

# The name of ``prepare``, for the sandbox.
NAME = f"{__name__}:prepare"


def prepare(values: cell_options.Values) -> Callable[..., Any]:
    """Set the options, import Murano and this project's patches, and return a ``cell.Cell``.

    The warm process calls this function once.

    :param values: the options of the engine that cells know.
    """
    config.CONF([], project="murano", default_config_files=[], default_config_dirs=[])
    # Modules of Murano read the options when they are imported.
    cell_options.apply(config.CONF, values)
    from loader.engine.cells import cell

    cell.install()
    # The patches have registered further options.
    cell_options.apply(config.CONF, values)
    return cell.Cell()
