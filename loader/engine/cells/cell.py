# SPDX-License-Identifier: Apache-2.0

"""Serve a request of murano-api in a cell."""

import logging
import pathlib
import signal
from collections.abc import Callable
from typing import IO, Any

import oslo_messaging
from murano.common import auth_utils, config, engine
from murano.engine import execution_session, package_loader

from glare_murano.package.sandbox import Questions
from loader.engine import adapter, patches, watchdog
from loader.engine.cells import cell_log, crossing_errors
from loader.engine.cells.cell_packages import CellPackages, EngineCellPackageLoader, source_at
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
    # Requests are served here, and not in further cells.
    config.CONF.set_override("request_cells", False, "engine")
    # The plug-ins are imported once, and not in each cell.
    _ = engine.get_plugin_loader().packages


class Cell:
    """What the warm process has prepared for its cells."""

    def __call__(self, file: IO[bytes]) -> dict[str, Any]:
        """Serve a request, in the cell; see ``serve``."""
        return serve(file)

    def keep(self, path: str) -> None:
        """Parse all classes of a public package, in the warm process, so that no cell has to.

        A package that cannot be parsed is left out. Cells will say why. No cell is forked
        meanwhile, so parsing has a limit of time.

        :param path: the path of the package's archive or directory.
        """
        signal.signal(signal.SIGALRM, _stop_parsing)
        signal.setitimer(signal.ITIMER_REAL, _PARSING_SECONDS)
        try:
            types = PackageTypes(adapter.CONF.murano.enabled_plugins)
            package = types.load(source_at(pathlib.Path(path), pathlib.Path))
            for name in package.classes:
                adapter.parse_class(package, name)
        except Exception:
            LOG.debug("Not all classes of %s were parsed", path, exc_info=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _stop_parsing(*_: object) -> None:
    raise TimeoutError


def serve(file: IO[bytes]) -> dict[str, Any]:
    """Ask for a request, serve it, and return its result or its error.

    A request has the name of its endpoint, and the arguments that murano-api has sent.

    :param file: the socket to the engine's process.
    :returns: ``{"result": RESULT}``, or ``{"error": ERROR}`` with the result of
        ``crossing_errors.to_json``.
    """
    ask = Questions(file).ask
    logging.basicConfig(level=logging.INFO, handlers=[cell_log.QuestionHandler(ask)])
    request = ask({"question": "request"})
    packages = CellPackages(ask, pathlib.Path.cwd())

    def make_loader(_: execution_session.ExecutionSession) -> adapter.EnginePackageLoader:
        return EngineCellPackageLoader(packages)

    package_loader.CombinedPackageLoader = make_loader
    auth_utils.get_user = lambda _: packages.describe_owner("user")
    auth_utils.get_project = lambda _: packages.describe_owner("project")
    # The patched endpoints, which also check a request and limit its time.
    endpoints: dict[str, Callable[..., Any]] = {
        "schema": engine.SchemaEndpoint.generate_schema,
        "static action": engine.StaticActionEndpoint.call_static_action,
    }
    limits = config.CONF.engine
    with watchdog.watching(limits.blocking_seconds, limits.max_task_memory):
        try:
            endpoint = endpoints[request["endpoint"]]
            return {"result": endpoint(request["context"], **request["arguments"])}
        except Exception as error:
            return {"error": crossing_errors.to_json(error)}
