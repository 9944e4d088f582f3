# SPDX-License-Identifier: Apache-2.0

"""Prepare the warm process, from which cells are forked: set options, and import Murano."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import eventlet
from eventlet import hubs

from loader.engine.cells import cell_options

# The name of ``prepare``, for the sandbox.
NAME = f"{__name__}:prepare"


def prepare(preparation: Mapping[str, Any]) -> Callable[..., Any]:
    """Set the options, import Murano and this project's patches, and return a ``cell.Cell``.

    The warm process calls this function once.

    :param preparation: a mapping with the keys ``options``, see ``cell_options.read``, and
        ``environment``, see ``cell_reach.environment``.
    """
    os.environ.update(preparation["environment"])
    # Cells may not use epoll; see ``system_calls``.
    os.environ["EVENTLET_HUB"] = "poll"
    values = preparation["options"]
    # As in the engine, this comes first: modules that are imported later use green sockets.
    eventlet.monkey_patch()
    from murano.common import config

    config.CONF([], project="murano", default_config_files=[], default_config_dirs=[])
    # Modules of Murano read the options when they are imported.
    cell_options.apply(config.CONF, values)
    from loader.engine.cells import cell

    cell.install()
    # The patches have registered further options.
    cell_options.apply(config.CONF, values)
    # eventlet has made a hub, which the cells must not share.
    hubs.use_hub()
    return cell.Cell()
