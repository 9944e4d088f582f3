# SPDX-License-Identifier: Apache-2.0

"""Every change to Murano 16's own modules, one function each.

Murano has no option for any of them. The classes put in place are in ``adapter``.
"""

import functools
import logging
import types
from typing import IO, Any

import semantic_version
from murano.common import engine
from murano.dsl import helpers, murano_package, murano_type
from murano.engine import package_loader
from murano.engine.system import resource_manager
from oslo_log import versionutils

from loader.engine import adapter

LOG = logging.getLogger(__name__)

# Of each cache of parsed ranges.
_MAX_RANGES = 1024
# In characters: a model can hold a range of any length, which must not stay in memory.
_MAX_RANGE_LENGTH = 1024

_MuranoPackageLoader = package_loader.CombinedPackageLoader
_murano_parse_version_spec = helpers.parse_version_spec


def install() -> None:
    """Apply every patch to this process; to be called before the first task."""
    choose_package_loader()
    replace_plugin_loader()
    read_text_resources()
    cache_range_parser()
    cache_package_ranges()


def choose_package_loader() -> None:
    """Choose the package loader by ``[engine] packages_service``.

    Murano 16 always makes a ``CombinedPackageLoader``, whose Glare client speaks an API of
    no released Glare. The specification "Murano versioning", section "Data model impact",
    moves packages to Glare; the mail before the specification wants the previous storage to
    stay selectable. Murano looks the class up by name at each call: a function of the same
    name makes our loader for ``glare``, and Murano's for any other value.
    """

    def combined_package_loader(execution_session: adapter.ExecutionSession) -> Any:
        service = adapter.CONF.engine.packages_service
        if service == "glance":
            versionutils.report_deprecated_feature(
                LOG, "[engine] packages_service = glance is deprecated, use glare"
            )
        if service in ("glare", "glance"):
            return adapter.EnginePackageLoader(execution_session)
        return _MuranoPackageLoader(execution_session)

    package_loader.CombinedPackageLoader = combined_package_loader


def replace_plugin_loader() -> None:
    """Load extension plug-ins on today's Python, as packages with a version.

    Murano 16 reads ``project_name`` of a distribution, which ``importlib.metadata`` calls
    ``name``, and so loads no extension. All get version 0.0.0 and no requirements, against
    the specification "Murano versioning", sections "Murano packages versioning" and "Package
    requirements". An ``adapter.PluginLoader`` takes the place of Murano's in the variable
    behind ``get_plugin_loader``.
    """
    engine.PLUGIN_LOADER = adapter.PluginLoader()


def read_text_resources() -> None:
    """Let ``io.murano.system.Resources`` read text on Python 3.11 and newer.

    Murano 16 opens text with the mode ``rU``, which Python 3.11 refuses. The example
    ``$resources.yaml('ExportConfig.template')`` of the MuranoPL reference, section
    "Murano actions", fails. An ``open`` in the module of the class drops the ``U``: universal
    newlines are the default.
    """

    def open_resource(path: str, mode: str) -> IO[Any]:
        return open(path, mode.replace("U", ""))

    resource_manager.open = open_resource


def cache_range_parser() -> None:
    """Parse a version range once in a process.

    Murano 16 parses the ranges of every package and class anew in each task, which takes
    longer than to load the packages. Its own parser stays in place, behind a cache.
    """
    parse = functools.lru_cache(_MAX_RANGES)(_murano_parse_version_spec)

    def parse_version_spec(version_spec: object) -> Any:
        if isinstance(version_spec, str) and len(version_spec) <= _MAX_RANGE_LENGTH:
            return parse(version_spec)
        return _murano_parse_version_spec(version_spec)

    helpers.parse_version_spec = parse_version_spec


def cache_package_ranges() -> None:
    """Parse a package's implicit requirements once in a process.

    Two modules of Murano 16 make them from ``semantic_version.Spec`` for each package and
    class anew. Both use nothing else of ``semantic_version``, and never change a ``Spec``:
    a namespace with a cached ``Spec`` takes the module's place.
    """
    ranges = types.SimpleNamespace(Spec=functools.lru_cache(_MAX_RANGES)(semantic_version.Spec))
    murano_package.semantic_version = murano_type.semantic_version = ranges
