# SPDX-License-Identifier: Apache-2.0

"""Making a loader from the operator's configuration (oslo.config).

Murano's own options keep their names and meanings; the others are in the group
``package_loader``. The options of a catalogue are in its module. No request is sent.
"""

import collections
import logging
from collections.abc import Collection, Sequence

from keystoneauth1 import loading as ksa_loading
from keystoneauth1.identity.base import BaseIdentityPlugin
from oslo_config import cfg

from loader import fetcher
from loader.cache.store import Cache, TemporaryCache
from loader.catalogs import options, registry
from loader.catalogs.base import Catalog
from loader.fetcher import Fetcher
from loader.formats.registry import PackageTypes
from loader.loader import PackageLoader
from loader.offline import OfflineIndex
from loader.transport import sessions
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

_MEBIBYTE = 1024**2

OPTIONS: options.Options = {
    options.GROUP: [
        cfg.ListOpt(
            "catalogs",
            default=["directory", "glare"],
            help="The catalogues to look for packages in, such as directory, glare or murano; "
            f"each is an entry point of the group {registry.NAMESPACE}. If several contain the "
            "same version, the first is used.",
        ),
        cfg.IntOpt(
            "max_cache_size",
            min=1,
            help="Maximum size of the package cache in MiB. The least recently used packages are "
            "removed, except those that a running engine uses. By default the size is not limited.",
        ),
        cfg.IntOpt(
            "fetch_workers",
            min=1,
            max=64,
            default=fetcher.DEFAULT_WORKERS,
            help="How many archives are fetched at the same time.",
        ),
        cfg.BoolOpt(
            "use_cache_when_offline",
            default=False,
            help="If a catalogue does not answer, load the packages that were resolved before for "
            "the same project and are still in the cache. They may be out of date: newer versions "
            "and deletions are not seen. No pin is changed.",
        ),
    ],
    **options.CACHE,
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """List the options of the loader and of its own catalogues for oslo-config-generator.

    :returns: pairs of a group's name and its options.
    """
    found: dict[str, dict[str, cfg.Opt]] = collections.defaultdict(dict)
    for known in (OPTIONS, *registry.built_in_options()):
        for group, in_group in known.items():
            found[group] |= {option.name: option for option in in_group}
    found["glare"] |= {o.name: o for o in ksa_loading.get_auth_common_conf_options()}
    return [(group, list(in_group.values())) for group, in_group in found.items()]


def package_loader(
    conf: cfg.ConfigOpts,
    scope: Scope | None = None,
    enabled_plugins: Collection[str] | None = None,
) -> PackageLoader:
    """Make a loader from a configuration; close it at the end.

    :param scope: the project to load packages for; by default the project of the
        credentials in the group ``glare``.
    :param enabled_plugins: distributions whose package types may be used; None for all.
    :raises UnknownCatalog: if a catalogue is not installed.
    :raises CatalogError: if a catalogue cannot be made.
    :raises CacheError: if the cache's directory cannot be used.
    """
    options.register(conf, OPTIONS)
    chosen = conf[options.GROUP]
    scope = scope or _own_scope(conf)
    catalogs = registry.catalogs(chosen.catalogs, conf, scope)
    package_types = PackageTypes(enabled_plugins)
    # Made last: an error after it would leave it open.
    cache = _cache(conf)
    is_offline_allowed = chosen.use_cache_when_offline
    return PackageLoader(
        catalogs,
        cache,
        package_types=package_types,
        fetcher=Fetcher(cache, chosen.fetch_workers),
        offline_index=_offline_index(catalogs, cache, scope) if is_offline_allowed else None,
    )


def _offline_index(catalogs: Sequence[Catalog], cache: Cache, scope: Scope) -> OfflineIndex | None:
    """Return the offline index of a scope; None if the scope cannot be identified.

    The credentials identify the project, since Keystone may not answer either.
    """
    project_id = scope.project_id
    auth = scope.session.auth if scope.session is not None else None
    if project_id is None and isinstance(auth, BaseIdentityPlugin):
        credentials = auth.get_cache_id()
        if credentials is None:
            LOG.warning(
                "use_cache_when_offline has no effect: the project of credentials of the type %s "
                "cannot be identified. Use other credentials, such as v3password",
                type(auth).__name__,
            )
            return None
        project_id = f"credentials {credentials}"
    # Without Keystone there is no project: only public packages are found.
    return OfflineIndex(catalogs, cache, project_id)


def _own_scope(conf: cfg.ConfigOpts) -> Scope:
    """Return the scope of the credentials in the configuration."""
    ksa_loading.register_session_conf_options(conf, "glare")
    auth = sessions.credentials(conf, "glare")
    return Scope(session=sessions.configured(conf, "glare", auth) if auth is not None else None)


def _cache(conf: cfg.ConfigOpts) -> Cache:
    """Open the cache in the operator's directory, or a temporary cache."""
    limit = conf[options.GROUP].max_cache_size
    directory = options.cache_directory(conf)
    if conf.engine.enable_packages_cache:
        return Cache(directory, max_size=limit * _MEBIBYTE if limit is not None else None)
    return TemporaryCache(directory)
