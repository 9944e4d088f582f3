# SPDX-License-Identifier: Apache-2.0

"""The command ``murano-glare-engine``: Murano's engine with this project's package loader.

The command takes the options and the configuration files of ``murano-engine``, and checks
them before the service starts.
"""

import importlib.metadata
import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oslo_config import cfg

    from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

# How long murano-api waits for the answer of an engine (murano.common.rpc.EngineClient).
_API_SECONDS = 15

_COMMAND = "murano-glare-engine"
_DESCRIPTION = (
    "Run Murano's engine with packages in several versions, from Glare, Glance, directories or "
    "other catalogues. The options and the configuration files are those of murano-engine."
)


class InvalidConfiguration(Exception):
    """The service cannot start; the message names the option and its value."""


def main() -> int:
    """Check the configuration, and run the engine's service.

    :returns: the exit code: 1 if Murano is not installed or an option is invalid.
    """
    try:
        # This import comes first: by it, eventlet patches the standard library for all modules
        # that are imported later.
        from murano.cmd import engine

        from loader.engine import patches, result_queue, shutdown
    except ModuleNotFoundError as error:
        print(f"{_COMMAND}: {error}; run pip install 'glare-murano[engine]'", file=sys.stderr)
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
    """Check the configuration: make a loader as a task does, and import the enabled plug-ins.

    The catalogues are logged. No request is sent, so the engine starts even if a service is down.

    :raises InvalidConfiguration: for an option with which every task would fail.
    """
    from glare_murano.package import GlareMuranoError
    from loader import config
    from loader.catalogs import options
    from loader.engine import agent_brokers, destinations, shutdown

    _check_yaql()
    options.register(conf, config.SERVICE_OPTIONS)
    LOG.info("After SIGTERM, the engine ends within %d seconds", shutdown.longest_stop(conf))
    try:
        destinations.reachable_endpoints(conf)
        agent_brokers.warn_if_shared(conf)
    except ValueError as error:
        raise InvalidConfiguration(str(error)) from error
    _check_limits(conf.engine)
    chosen = conf.engine.packages_service
    if chosen == "murano":
        LOG.info("Packages come from Murano's API, by Murano's own loader")
        return
    if chosen not in ("glare", "glance"):
        raise InvalidConfiguration(
            f"[engine] packages_service = {chosen}: expected glare, for packages in Glare or "
            f"Glance, or murano, for Murano's own package loader"
        )
    try:
        _log_reserved_names(conf)
        _check_plugins(conf.murano.enabled_plugins)
        with config.open_cache(conf) as cache, cache.staging_directory():
            pass
        with config.package_loader(conf, _scope(conf), conf.murano.enabled_plugins) as loader:
            LOG.info("Packages come from %s, and are kept in %s", loader.source, cache.folder)
    except GlareMuranoError as error:
        raise InvalidConfiguration(str(error)) from error


def _log_reserved_names(conf: "cfg.ConfigOpts") -> None:
    from loader import config

    reserved, path = config.reserved_names(conf), conf.package_loader.reserved_names_file
    if path is not None:
        LOG.info("Names under %d prefixes are reserved, by %s", len(reserved.reservations), path)


def _check_limits(limits: "cfg.ConfigOpts") -> None:
    if limits.task_seconds <= limits.agent_timeout:
        raise InvalidConfiguration(
            f"[engine] task_seconds = {limits.task_seconds:g}: a task would be interrupted before "
            f"agent_timeout ({limits.agent_timeout} seconds) is over; use more seconds"
        )
    longest = _API_SECONDS - limits.blocking_seconds
    if limits.request_seconds > longest:
        LOG.warning(
            "[engine] request_seconds = %g: murano-api waits %d seconds for an answer, of which "
            "another task may take blocking_seconds (%g), so some answers may come too late",
            limits.request_seconds,
            _API_SECONDS,
            limits.blocking_seconds,
        )


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


def _scope(conf: "cfg.ConfigOpts") -> "Scope":
    """Return the scope of a task, with an unused token."""
    from keystoneauth1 import session, token_endpoint

    from loader.transport.sessions import Scope

    auth = token_endpoint.Token(conf.glare.url, token="")
    return Scope(session.Session(auth), "project", conf.home_region)


def _check_yaql() -> None:
    """Check that YAQL has no ``format`` of its own; versions before 3 have one."""
    from yaql.standard_library import strings

    if hasattr(strings, "format_"):
        raise InvalidConfiguration(
            f"yaql {importlib.metadata.version('yaql')}: its function format returns every secret "
            f"of the engine to a package (CVE-2024-29156); run pip install 'yaql>=3'"
        )


def _check_plugins(enabled: "Sequence[str] | None") -> None:
    """Check that each enabled distribution has plug-ins, and that its extensions load."""
    from murano.common import engine

    from glare_murano.package.manifest import PLUGIN_NAMESPACE
    from loader import entry_points
    from loader.engine import extensions

    loaded = {package.name for package in engine.get_plugin_loader().packages}
    with_extensions, with_types = (
        {name for owners in entry_points.installed(group).values() for name in owners}
        for group in (extensions.NAMESPACE, PLUGIN_NAMESPACE)
    )
    for name in enabled or ():
        if name not in with_extensions | with_types:
            raise InvalidConfiguration(
                f"[murano] enabled_plugins = {name}: no installed distribution of this name has "
                f"plug-ins; the distributions with plug-ins are "
                f"{', '.join(sorted(with_extensions | with_types))}"
            )
        if name in with_extensions - loaded:
            raise InvalidConfiguration(
                f"[murano] enabled_plugins = {name}: none of its extensions can be loaded; the "
                f"log has the reasons"
            )


if __name__ == "__main__":
    sys.exit(main())
