# SPDX-License-Identifier: Apache-2.0

"""A loader as an operator has configured it, by oslo.config.

The options that Murano has keep Murano's names and meanings; the group
``package_loader`` holds those that it does not have. Each catalogue's own options
are in its module. Nothing is asked or fetched here.
"""

import collections
import logging
import pathlib
import tempfile
from collections.abc import Collection, Sequence

from keystoneauth1 import loading as ksa_loading
from keystoneauth1.identity.base import BaseIdentityPlugin
from oslo_config import cfg

from loader import fetcher
from loader.cache.store import Cache, TemporaryCache
from loader.catalogs import directory, glare, murano, options, registry
from loader.catalogs.base import Catalog
from loader.fetcher import Fetcher
from loader.formats.registry import PackageTypes
from loader.loader import PackageLoader
from loader.offline import Memory
from loader.transport import sessions
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

_MEBIBYTE = 1024**2

OPTIONS: options.Options = {
    options.GROUP: [
        cfg.ListOpt(
            "catalogs",
            default=["directory", "glare"],
            help="Where packages are looked for, in this order: directory, glare, murano, "
            "or what another distribution registers as an entry point of the group "
            f"{registry.NAMESPACE}. Of a version that several have, the first one's is taken.",
        ),
        cfg.IntOpt(
            "max_cache_size",
            min=1,
            help="How large the cache of packages may grow, in MiB. The packages that were not "
            "used for the longest time are removed, but none that a running engine uses. By "
            "default it grows without end.",
        ),
        cfg.IntOpt(
            "fetch_workers",
            min=1,
            max=64,
            default=fetcher.DEFAULT_WORKERS,
            help="How many archives are fetched at once.",
        ),
        cfg.BoolOpt(
            "use_cache_when_offline",
            default=False,
            help="Where a catalogue does not answer, load what was resolved before for the same "
            "project and still lies in the cache. It may be out of date: a newer version, or "
            "that a package was deleted, is not seen. No pin changes by it.",
        ),
    ],
    **options.FACTS,
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """The options of the loader and its own catalogues, for ``oslo-config-generator``."""
    found: dict[str, dict[str, cfg.Opt]] = collections.defaultdict(dict)
    for known in (OPTIONS, *(catalog.OPTIONS for catalog in (directory, glare, murano))):
        for group, in_group in known.items():
            found[group] |= {option.name: option for option in in_group}
    found["glare"] |= {o.name: o for o in ksa_loading.get_auth_common_conf_options()}
    return [(group, list(in_group.values())) for group, in_group in found.items()]


def package_loader(
    conf: cfg.ConfigOpts,
    scope: Scope | None = None,
    enabled_plugins: Collection[str] | None = None,
) -> PackageLoader:
    """Make the loader that a configuration describes; close it at the end.

    :param scope: for whom packages are loaded; by default for whom the group
        ``glare`` of the configuration has credentials.
    :param enabled_plugins: which distributions' package types may be used;
        None means all.
    :raises UnknownCatalog: if a catalogue is not installed.
    :raises CatalogError: if one cannot be made.
    :raises CacheError: if the cache's folder cannot be used.
    """
    options.register(conf, OPTIONS)
    chosen = conf[options.GROUP]
    scope = scope or _own_scope(conf)
    catalogs = registry.catalogs(chosen.catalogs, conf, scope)
    package_types = PackageTypes(enabled_plugins)
    # The last that can fail, since it is to be closed.
    cache = _cache(conf)
    return PackageLoader(
        catalogs,
        cache,
        package_types=package_types,
        fetcher=Fetcher(cache, chosen.fetch_workers),
        memory=_memory(catalogs, cache, scope) if chosen.use_cache_when_offline else None,
    )


def _memory(catalogs: Sequence[Catalog], cache: Cache, scope: Scope) -> Memory | None:
    """What is remembered for a scope; nothing, if it cannot be told from others.

    Keystone is not asked for the project, since it may not answer either: the
    credentials stand for it.
    """
    if scope.project_id is not None:
        return Memory(catalogs, cache, scope.project_id)
    auth = scope.session.auth if scope.session is not None else None
    if not isinstance(auth, BaseIdentityPlugin):
        # No Keystone, no project: what is found is public.
        return Memory(catalogs, cache, None)
    credentials = auth.get_cache_id()
    if credentials is None:
        LOG.warning(
            "Nothing is remembered for when no catalogue answers: credentials of the type %s "
            "cannot be told from others",
            type(auth).__name__,
        )
        return None
    return Memory(catalogs, cache, f"credentials {credentials}")


def _own_scope(conf: cfg.ConfigOpts) -> Scope:
    """The scope of the credentials in the configuration itself."""
    ksa_loading.register_session_conf_options(conf, "glare")
    auth = sessions.credentials(conf, "glare")
    return Scope(session=sessions.configured(conf, "glare", auth) if auth is not None else None)


def _cache(conf: cfg.ConfigOpts) -> Cache:
    """The cache in the operator's folder, or one that goes with the loader."""
    limit = conf[options.GROUP].max_cache_size
    folder = pathlib.Path(
        conf.engine.packages_cache or pathlib.Path(tempfile.gettempdir(), "murano-packages-cache")
    )
    if conf.engine.enable_packages_cache:
        return Cache(folder, max_size=limit * _MEBIBYTE if limit is not None else None)
    return TemporaryCache(folder)
