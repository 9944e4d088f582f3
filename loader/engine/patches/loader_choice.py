# SPDX-License-Identifier: Apache-2.0

"""Use this project's package loader and plug-in loader."""

import logging
from typing import Any

from murano.common import engine
from murano.engine import package_loader
from oslo_log import versionutils

from loader.engine import adapter, credentials

LOG = logging.getLogger(__name__)

_MuranoPackageLoader = package_loader.CombinedPackageLoader


def choose_package_loader() -> None:
    """Choose the package loader by ``[engine] packages_service``.

    Murano 16 always makes a ``CombinedPackageLoader``, whose Glare client uses an API that no
    released Glare has. A subclass with the same name replaces the class. For ``glare``, and for
    the deprecated ``glance``, it makes this project's loader. For any other value, it makes
    Murano's, so that operators can keep the previous storage. The specification "Murano
    versioning", section "Data model impact", moves packages to Glare.
    """

    class CombinedPackageLoader(_MuranoPackageLoader):  # type: ignore[misc, valid-type]
        def __new__(cls, execution_session: credentials.ExecutionSession) -> Any:
            service = adapter.CONF.engine.packages_service
            if service == "glance":
                versionutils.report_deprecated_feature(
                    LOG, "[engine] packages_service = glance is deprecated, use glare"
                )
            if service in ("glare", "glance"):
                return adapter.EnginePackageLoader.for_task(execution_session)
            return super().__new__(cls)

    package_loader.CombinedPackageLoader = CombinedPackageLoader


def replace_plugin_loader() -> None:
    """Load extension plug-ins on today's Python, as packages with a version.

    Murano 16 reads ``project_name`` of a distribution, but ``importlib.metadata`` calls it
    ``name``, so no extension is loaded. Each would get the version 0.0.0 and no requirements,
    against the specification "Murano versioning", sections "Murano packages versioning" and
    "Package requirements". An ``adapter.PluginLoader`` replaces Murano's in the variable that
    ``get_plugin_loader`` reads.
    """
    engine.PLUGIN_LOADER = adapter.PluginLoader()
