# SPDX-License-Identifier: Apache-2.0

"""Let only the core library read the engine's configuration."""

from typing import Any

from murano.common import engine

from loader.engine.adapter import EngineExtension, EnginePackage


def give_config_to_core_library() -> None:
    """Give the YAQL function ``config`` only to the package that was loaded as the core library.

    The function returns the value of any option, also of passwords. Murano 16 gives it to any
    package with the name ``io.murano``, such as a tenant's private package or an extension plug-in.
    Here, extension plug-ins never get it. A package from this project's loader gets it only if the
    package is the core library. For packages from Murano's own loader, Murano's rule applies.
    """
    give_by_name = engine.ContextManager.create_package_context
    give_nothing = engine.context_manager.ContextManager.create_package_context

    def create_package_context(manager: Any, package: Any) -> Any:
        if isinstance(package, EngineExtension):
            return give_nothing(manager, package)
        if isinstance(package, EnginePackage) and not package.is_core_library:
            return give_nothing(manager, package)
        return give_by_name(manager, package)

    engine.ContextManager.create_package_context = create_package_context
