# SPDX-License-Identifier: Apache-2.0

"""Check the engine's settings.

If a check finds an error, ``murano-glare-engine`` prints the error, and does not start.
``murano-glare-status upgrade check`` prints what all checks find. No check sends a request.
"""

import functools
import importlib.metadata
import logging
from collections.abc import Callable, Iterator, Mapping

from keystoneauth1 import session, token_endpoint
from murano.common import engine
from oslo_config import cfg
from yaql.standard_library import strings

from glare_murano.package import GlareMuranoError
from glare_murano.package.manifest import PLUGIN_NAMESPACE
from glare_murano.upgrade_checks import (
    Check,
    Finding,
    find_missing_walls,
    find_unmet_requirements,
)
from loader import config, entry_points
from loader.catalogs import options
from loader.engine import agent_brokers, destinations, extensions, tasks
from loader.engine.cells import cell_calls, cell_reach, request_cells, task_cells
from loader.engine.cells.crossing_errors import CellError
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

# How long murano-api waits for the answer of an engine (murano.common.rpc.EngineClient).
_API_SECONDS = 15


def upgrade_checks(conf: cfg.ConfigOpts) -> Mapping[str, Check]:
    """Return the checks by their titles, in the order in which they have to run.

    An error that one check finds may make later checks fail.
    """
    for known in (config.OPTIONS, config.SERVICE_OPTIONS):
        options.register(conf, known)
    return {
        title: functools.partial(_caught, find, conf)
        for title, find in {
            "YAQL": _find_old_yaql,
            "Destinations of packages": _find_invalid_destinations,
            "RabbitMQ of the agents": _find_shared_brokers,
            "Limits of time": _find_limits,
            "Source of packages": _find_changed_source,
            "Reserved names": _find_invalid_names,
            "Plug-ins": _find_missing_plugins,
            "Cache and catalogues": _find_invalid_catalogues,
            # Cells import the plug-ins, and use many options.
            "Cells": _find_limits_of_cells,
            "Libraries": lambda _: find_unmet_requirements("engine"),
        }.items()
    }


def _caught(
    find: Callable[[cfg.ConfigOpts], Iterator[Finding]], conf: cfg.ConfigOpts
) -> Iterator[Finding]:
    try:
        yield from find(conf)
    except (GlareMuranoError, ValueError) as error:
        yield Finding(str(error))


def _find_old_yaql(_: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield an error if YAQL is older than version 3: its function ``format`` is not safe."""
    if hasattr(strings, "format_"):
        yield Finding(
            f"yaql {importlib.metadata.version('yaql')}: its function format returns every secret "
            f"of the engine to a package (CVE-2024-29156); run pip install 'yaql>=3'"
        )


def _find_invalid_destinations(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    destinations.reachable_endpoints(conf)
    yield from ()


def _find_shared_brokers(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    for message in agent_brokers.find_shared(conf):
        yield Finding(message, is_error=False)


def _find_limits_of_cells(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield an error if no cell can run, and warnings about what has no cell or cells do not have.

    The specification of cells requires that the engine does not start without them, unless an
    option says so.
    """
    yield from _find_code_without_cells(conf)
    if not (request_cells.are_enabled() or task_cells.are_enabled()):
        return
    try:
        cell_calls.check()
    except (CellError, tasks.TaskLimitExceeded) as error:
        yield Finding(
            f"{error}, so no package can be deployed; the log has more. Without cells, which "
            f"[engine] task_cells and request_cells turn off, code of packages would run in the "
            f"engine's process, which has its passwords"
        )
    yield from find_missing_walls(
        "if code of a package breaks out of YAQL, it can read murano.conf"
    )
    for group in cell_reach.GROUPS_OF_CLIENTS:
        if group in conf and "keyfile" in conf[group] and conf[group].keyfile:
            yield Finding(
                f"[{group}] keyfile: packages cannot use this key, since they run in cells; a "
                f"service that needs it refuses what packages send",
                is_error=False,
            )
    if cell_reach.withheld_proxies():
        yield Finding(
            "the proxy of the environment has a password, so packages, which run in cells, do not "
            "use this proxy",
            is_error=False,
        )


def _find_code_without_cells(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield a warning if an option lets code of packages run in the engine's process."""
    if not _is_ours(conf):
        options = f"[engine] package_loader = {config.MURANO}"
    else:
        off = [name for name in ("task_cells", "request_cells") if not conf.engine[name]]
        options = ", ".join(f"[engine] {name} = false" for name in off)
    if options:
        yield Finding(
            f"{options}: code of packages runs in the engine's process, which has its passwords "
            f"and the tokens of all users; do this only if you trust the authors of all packages",
            is_error=False,
        )


def _find_limits(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    limits = conf.engine
    if limits.task_seconds <= limits.agent_timeout:
        yield Finding(
            f"[engine] task_seconds = {limits.task_seconds:g}: a task would be interrupted before "
            f"agent_timeout ({limits.agent_timeout} seconds) is over; use more seconds"
        )
    if limits.request_seconds > _API_SECONDS - limits.blocking_seconds:
        yield Finding(
            f"[engine] request_seconds = {limits.request_seconds:g}: murano-api waits "
            f"{_API_SECONDS} seconds for an answer, of which another task may take "
            f"blocking_seconds ({limits.blocking_seconds:g}), so some answers may come too late",
            is_error=False,
        )


def _find_changed_source(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield an error if ``[engine] packages_service`` is set so that Murano's services fail.

    With any value but the default, murano-cfapi, and murano-api without the filter
    ``murano-packages``, send requests that no released Glare answers.
    """
    chosen = conf.engine.packages_service
    if chosen != config.MURANO:
        yield Finding(
            f"[engine] packages_service = {chosen}: murano-api and murano-cfapi read this option "
            f"as well, and work only with murano; remove the line. The engine loads packages from "
            f"the catalogues of [package_loader] catalogs, unless [engine] package_loader is murano"
        )
    if not _is_ours(conf):
        LOG.info("Packages come from Murano's API, by Murano's own loader")


def _find_invalid_names(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    if not _is_ours(conf):
        return
    reserved, path = config.reserved_names(conf), conf.package_loader.reserved_names_file
    if path is not None:
        LOG.info("Names under %d prefixes are reserved, by %s", len(reserved.reservations), path)
    yield from ()


def _find_missing_plugins(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield an error for each enabled distribution without usable plug-ins.

    Either it has no plug-ins, or none of its extensions can be loaded.
    """
    if not _is_ours(conf):
        return
    loaded = {package.name for package in engine.get_plugin_loader().packages}
    with_extensions, with_types = (
        {name for owners in entry_points.installed(group).values() for name in owners}
        for group in (extensions.NAMESPACE, PLUGIN_NAMESPACE)
    )
    for name in conf.murano.enabled_plugins or ():
        if name not in with_extensions | with_types:
            yield Finding(
                f"[murano] enabled_plugins = {name}: no installed distribution of this name has "
                f"plug-ins; the distributions with plug-ins are "
                f"{', '.join(sorted(with_extensions | with_types))}"
            )
        if name in with_extensions - loaded:
            yield Finding(
                f"[murano] enabled_plugins = {name}: none of its extensions can be loaded; the "
                f"log has the reasons"
            )


def _find_invalid_catalogues(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Make a loader as a task does. If this fails, ``_caught`` yields the error."""
    if not _is_ours(conf):
        return
    with config.open_cache(conf) as cache, cache.staging_directory():
        pass
    with config.package_loader(conf, _scope(conf), conf.murano.enabled_plugins) as loader:
        LOG.info("Packages come from %s, and are kept in %s", loader.source, cache.folder)
    yield from ()


def _is_ours(conf: cfg.ConfigOpts) -> bool:
    """Return whether the engine loads packages with this project's loader."""
    return bool(conf.engine.package_loader != config.MURANO)


def _scope(conf: cfg.ConfigOpts) -> Scope:
    """Return a session, a project and a region, as a task has them. The token is never sent."""
    auth = token_endpoint.Token(conf.glare.url, token="")
    return Scope(session.Session(auth), "project", conf.home_region)
