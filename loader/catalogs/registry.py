# SPDX-License-Identifier: Apache-2.0
"""The catalogues that are installed, and those that an operator has chosen.

A catalogue is an entry point of the group ``glare_murano.catalogs``: a function
that takes the configuration and a scope, and returns catalogues. Only those
that are asked for are imported.
"""

import functools
import importlib.metadata
from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg
from stevedore import named

from loader import entry_points, errors
from loader.catalogs.base import Catalog
from loader.transport.sessions import Scope

NAMESPACE = "glare_murano.catalogs"

Factory = Callable[[cfg.ConfigOpts, Scope], Iterable[Catalog]]


def catalogs(names: Iterable[str], conf: cfg.ConfigOpts, scope: Scope) -> list[Catalog]:
    """Make the catalogues of these names, in this order.

    :param conf: where each finds its options, which it registers itself.
    :raises UnknownCatalog: if one is not installed, or cannot be imported.
    :raises CatalogError: if one cannot be made.
    """
    factories = [_factory(name) for name in names]
    return [catalog for factory in factories for catalog in factory(conf, scope)]


@functools.cache
def _factory(name: str) -> Factory:
    installed = entry_points.distributions(NAMESPACE)
    if name not in installed:
        raise errors.UnknownCatalog(
            f"there is no catalogue {name!r}; installed are "
            f"{', '.join(sorted(installed)) or 'none'}. "
            f"Choose among them, or install the distribution that registers it as an entry "
            f"point of the group {NAMESPACE}"
        )
    if len(installed[name]) > 1:
        owners = " and ".join(sorted(owner.name for owner in installed[name]))
        raise errors.UnknownCatalog(
            f"the catalogue {name!r} is registered by {owners}; uninstall all but one"
        )
    failures: list[str] = []

    def remember(_: Any, failed: importlib.metadata.EntryPoint, error: BaseException) -> None:
        failures.append(f"{failed.value}: {type(error).__name__}: {error}")

    found: named.NamedExtensionManager[Any] = named.NamedExtensionManager(
        NAMESPACE, names=[name], on_load_failure_callback=remember
    )
    if failures:
        raise errors.UnknownCatalog(f"the catalogue {name!r} cannot be used: {failures[0]}")
    factory: Factory = found[name].plugin
    return factory
