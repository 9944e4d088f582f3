# SPDX-License-Identifier: Apache-2.0

"""Let the core library alone read the engine's configuration."""

from typing import Any

from murano.common import engine
from murano.dsl import helpers
from murano.engine.system import yaql_functions

from loader.engine.adapter import EnginePackage


def give_config_to_core_library() -> None:
    """Give the YAQL function ``config`` to the package that was loaded as the core library.

    Murano 16 gives it to any package whose name is ``io.murano``, such as a private one of a
    tenant or an extension plug-in of this name. The function returns every option, passwords
    included.
    """
    create = engine.context_manager.ContextManager.create_package_context

    def create_package_context(manager: Any, package: Any) -> Any:
        context = create(manager, package)
        if isinstance(package, EnginePackage) and package.is_core_library:
            return helpers.link_contexts(context, yaql_functions.get_restricted_context())
        return context

    engine.ContextManager.create_package_context = create_package_context
