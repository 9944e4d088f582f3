# SPDX-License-Identifier: Apache-2.0
"""Find catalogues by name.

Each catalogue is an entry point in the group ``glare_murano.catalogs``: a function that takes the
configuration and a scope, and returns catalogues. Only the requested entry points are imported.
"""

import functools
import importlib
import importlib.metadata
from collections.abc import Callable, Iterable, Iterator

from oslo_config import cfg

from loader import entry_points, errors
from loader.catalogs.base import Catalog
from loader.catalogs.options import Options
from loader.transport.sessions import Scope

NAMESPACE = "glare_murano.catalogs"

Factory = Callable[[cfg.ConfigOpts, Scope], Iterable[Catalog]]


def catalogs(names: Iterable[str], conf: cfg.ConfigOpts, scope: Scope) -> list[Catalog]:
    """Make the catalogues with the given names, in this order, and register their options.

    :raises UnknownCatalog: if a catalogue is not installed, or cannot be imported.
    :raises CatalogError: if a catalogue cannot be made.
    """
    factories = [_factory(name) for name in names]
    return [catalog for factory in factories for catalog in factory(conf, scope)]


def built_in_options() -> Iterator[Options]:
    """Yield the options of each catalogue that the distribution ``glare-murano`` registers."""
    for entry_point in importlib.metadata.entry_points(group=NAMESPACE):
        if entry_point.dist is not None and entry_point.dist.name == "glare-murano":
            yield importlib.import_module(entry_point.module).OPTIONS


@functools.cache
def _factory(name: str) -> Factory:
    installed = entry_points.installed(NAMESPACE)
    if name not in installed:
        raise errors.UnknownCatalog(
            f"the catalogue {name!r} is not installed; installed are "
            f"{', '.join(sorted(installed)) or 'none'}. Choose one of them, or install the "
            f"distribution that registers {name!r} as an entry point of the group {NAMESPACE}"
        )
    if len(installed[name]) > 1:
        owners = " and ".join(sorted(installed[name]))
        raise errors.UnknownCatalog(
            f"the catalogue {name!r} is registered by {owners}; uninstall all but one"
        )
    (entry_point,) = installed[name].values()
    try:
        factory: Factory = entry_point.load()
    except Exception as error:
        raise errors.UnknownCatalog(
            f"the catalogue {name!r} cannot be imported: {entry_point.value}: "
            f"{type(error).__name__}: {error}"
        ) from error
    return factory
