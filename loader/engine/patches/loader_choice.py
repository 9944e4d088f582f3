# SPDX-License-Identifier: Apache-2.0

"""Use this project's package loader and plug-in loader."""

from typing import Any

from murano.common import engine
from murano.engine import package_loader

from loader import config
from loader.engine import adapter, credentials

_MuranoPackageLoader = package_loader.CombinedPackageLoader


def choose_package_loader() -> None:
    """Choose the package loader by ``[engine] package_loader``.

    The specification "Murano versioning", section "Data model impact", moves packages to Glare.
    Murano 16 always makes a ``CombinedPackageLoader``, whose Glare client uses an API that no
    released Glare has. Here, a subclass with the same name replaces this class. By default, the
    subclass makes this project's loader. If the option is ``murano``, it makes Murano's loader, so
    that operators can keep the previous storage. Murano's own option ``packages_service`` cannot
    choose the loader, since murano-api and murano-cfapi read it as well.
    """

    class CombinedPackageLoader(_MuranoPackageLoader):  # type: ignore[misc, valid-type]
        def __new__(cls, execution_session: credentials.ExecutionSession) -> Any:
            if adapter.CONF.engine.package_loader == config.MURANO:
                return super().__new__(cls)
            return adapter.EnginePackageLoader.for_task(execution_session)

    package_loader.CombinedPackageLoader = CombinedPackageLoader


def replace_plugin_loader() -> None:
    """Load extension plug-ins on today's Python, as packages with a version.

    Murano 16 reads ``project_name`` of a distribution, which ``importlib.metadata`` calls ``name``,
    so it loads no extension. It would also give each package of extensions the version 0.0.0 and no
    requirements. By the specification "Murano versioning", sections "Murano packages versioning"
    and "Package requirements", such a package has a version and requirements of its own. Here, an
    ``adapter.PluginLoader`` replaces Murano's plug-in loader, in the variable that
    ``get_plugin_loader`` reads.
    """
    engine.PLUGIN_LOADER = adapter.PluginLoader()
