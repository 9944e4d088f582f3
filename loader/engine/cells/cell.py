# SPDX-License-Identifier: Apache-2.0

"""Serve a request of murano-api in a cell."""

import contextlib
import logging
import pathlib
import signal
from collections.abc import Callable, Mapping
from typing import IO, Any

import oslo_messaging
from eventlet import hubs
from murano.common import auth_utils, config, engine
from murano.engine import execution_session, package_loader

from glare_murano.package.sandbox import Queries
from loader import config as loader_config
from loader.archive_indexes import Identity
from loader.catalogs import options
from loader.engine import adapter, patches, watchdog
from loader.engine.cells import cell_log, cell_tasks, core_library, crossing_errors, endpoints
from loader.engine.cells.cell_packages import (
    CellPackages,
    EngineCellPackageLoader,
    load_at,
    read_limits,
)
from loader.formats.base import Package
from loader.formats.registry import PackageTypes

LOG = logging.getLogger(__name__)

# How long the classes of a package may be parsed in advance, in seconds. Those of the core library
# take one second.
_PARSING_SECONDS = 2.0
# The queue that the engine's functions would use; nothing is sent to it.
_NO_QUEUE = "fake://"


def install() -> None:
    """Apply the patches of Murano. The warm process calls this, before it forks cells."""
    oslo_messaging.get_rpc_transport(config.CONF, _NO_QUEUE)
    config.CONF.set_override("transport_url", _NO_QUEUE)
    patches.install()
    # A cell unpacks archives, which have limits.
    options.register(config.CONF, loader_config.OPTIONS)
    # Cells send what is to be signed to the engine's process.
    config.CONF.set_override("signing_key", "", "engine")
    # Requests are served here, and not in further cells.
    for option in ("request_cells", "task_cells"):
        config.CONF.set_override(option, False, "engine")
    # The plug-ins are imported once, and not in each cell.
    _ = engine.get_plugin_loader().packages


class Cell:
    """What the warm process has prepared for its cells."""

    def __call__(self, file: IO[bytes]) -> dict[str, Any]:
        """Serve a request, in the cell; see ``serve``."""
        return serve(file)

    def preload(self, package: Mapping[str, Any]) -> None:
        """Parse all classes of a public package, in the warm process, so that no cell has to.

        The classes of the core library are also made; see ``core_library``. A package that cannot
        be parsed is left out. Cells will say why. No cell is forked meanwhile, so parsing has a
        limit of time.

        :param package: a mapping with the keys ``path``, the package's archive or directory, and
            ``is_core_library``, whether it is the core library, and can be trusted.
        """
        signal.signal(signal.SIGALRM, _stop_parsing)
        # The signal can also come while the inner block ends.
        with contextlib.suppress(TimeoutError):
            # A parser may catch the first error.
            signal.setitimer(signal.ITIMER_REAL, _PARSING_SECONDS, _PARSING_SECONDS / 10)
            try:
                _parse(**package)
            except Exception:
                LOG.debug("Not all classes of %s were parsed", package, exc_info=True)
            signal.setitimer(signal.ITIMER_REAL, 0)
        # If the signal came while the block ended, the timer still runs.
        signal.setitimer(signal.ITIMER_REAL, 0)


def _parse(path: str, is_core_library: bool) -> None:
    identity = Identity.of(pathlib.Path(path), read_limits())
    package = _load(path)
    for name in package.classes:
        adapter.parse_class(package, name)
    if is_core_library:
        core_library.keep(identity, package)


def _load(path: str) -> Package:
    """Load the package at a path."""
    types = PackageTypes(adapter.CONF.murano.enabled_plugins)
    return load_at(pathlib.Path(path), pathlib.Path.cwd(), types)


def _described(path: str) -> dict[str, Any]:
    """Return what ``described_packages`` needs of the package at a path."""
    package = _load(path)
    ranges = package.requirements.items()
    return {
        "requirements": {fqn: None if range is None else str(range) for fqn, range in ranges},
        "classes": list(package.classes),
    }


def _stop_parsing(*_: object) -> None:
    raise TimeoutError


def serve(file: IO[bytes]) -> dict[str, Any]:
    """Request the request of murano-api, serve it, and return its result or its error.

    A request has the name of its endpoint, and the arguments that murano-api has sent.

    :param file: the socket to the engine's process.
    :returns: ``{"result": RESULT}``, or ``{"error": ERROR}`` with the result of
        ``crossing_errors.to_json``.
    """
    # The hub of the warm process may wait for sockets of that process.
    hubs.use_hub()
    queries = Queries(file)
    logging.basicConfig(level=logging.INFO, handlers=[cell_log.QueryHandler(queries.cast)])
    request = queries.send({"query": "request"})
    packages = CellPackages(queries.send, pathlib.Path.cwd())

    def make_loader(_: execution_session.ExecutionSession) -> adapter.EnginePackageLoader:
        return EngineCellPackageLoader(packages)

    package_loader.CombinedPackageLoader = make_loader
    auth_utils.get_user = lambda _: packages.describe_owner("user")
    auth_utils.get_project = lambda _: packages.describe_owner("project")
    # The patched endpoints, which also check a request and limit its time.
    functions: dict[str, Callable[[], Any]] = {
        endpoints.SCHEMA: lambda: engine.SchemaEndpoint.generate_schema(
            request["context"], **request["arguments"]
        ),
        endpoints.STATIC_ACTION: lambda: engine.StaticActionEndpoint.call_static_action(
            request["context"], **request["arguments"]
        ),
        endpoints.TASK: lambda: cell_tasks.run(request, packages, queries),
        endpoints.DESCRIPTION: lambda: _described(request["path"]),
        # See ``cell_calls.check``.
        endpoints.CHECK: lambda: None,
    }
    limits = config.CONF.engine
    with watchdog.watching(limits.blocking_seconds, limits.max_task_memory):
        try:
            return {"result": functions[request["endpoint"]]()}
        except Exception as error:
            return {"error": crossing_errors.to_json(error)}
