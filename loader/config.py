# SPDX-License-Identifier: Apache-2.0

"""Make a loader from the operator's configuration (oslo.config).

Murano's own options keep their names and meanings. The loader's other options are in the group
``package_loader``. The module of each catalogue defines the options of the catalogue. No function
here sends a request.
"""

import collections
import contextlib
import logging
from collections.abc import Collection, Iterator, Sequence

from keystoneauth1 import loading as ksa_loading
from keystoneauth1.identity.base import BaseIdentityPlugin
from oslo_config import cfg

from glare_murano import archive_limits, archive_settings, resolver
from glare_murano.package.reserved_names import (
    InvalidReservedNames,
    ReservedNames,
    read_reserved_names,
)
from loader import errors, fetcher, subclass_search
from loader.cache import locks
from loader.cache.store import Cache, TemporaryCache
from loader.catalogs import metadata_cache, options, registry
from loader.catalogs.base import Catalog
from loader.fetcher import Fetcher
from loader.formats.registry import PackageTypes
from loader.loader import PackageLoader
from loader.lockfiles.lock import Lock, LockedCatalog
from loader.offline import OfflineIndex
from loader.transport import sessions
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

# The values of [engine] package_loader.
CATALOGS = "catalogs"
MURANO = "murano"

_MEBIBYTE = 1024**2
# The groups of options that may have credentials. The first of them that has credentials is used.
_CREDENTIALS = ("glare", "glance")
# The visibilities of releases that only some projects can use.
_OF_PROJECTS = ("private", "shared")

OPTIONS: options.Options = {
    options.GROUP: [
        cfg.ListOpt(
            "catalogs",
            default=["directory", "glare"],
            help="The catalogues to look for packages in, such as directory, glare, glance or "
            f"murano; each is an entry point of the group {registry.NAMESPACE}. If several contain "
            "the same version, the first is used.",
        ),
        cfg.StrOpt(
            "lock_file",
            help="The path of a lock file. Only its releases are used, in every deployment; the "
            "catalogues are only used to fetch archives that the cache lacks. Every project can "
            "use the locked packages, so private ones are refused. Each deployment reads the file.",
        ),
        cfg.IntOpt(
            "max_cache_size",
            min=1,
            help="Maximum size of the package cache in MiB. The least recently used packages are "
            "removed, except those that a running engine uses. By default the size is not limited.",
        ),
        cfg.Opt(
            "lock_timeout",
            type=options.Seconds(min=1),
            default=locks.DEFAULT_TIMEOUT,
            help="How many seconds to wait for another process, or another thread, that fetches or "
            "unpacks the same package. After that, an error names that process.",
        ),
        cfg.IntOpt(
            "fetch_workers",
            min=1,
            max=64,
            default=fetcher.DEFAULT_WORKERS,
            help="How many archives are fetched at the same time.",
        ),
        cfg.Opt(
            "plan_seconds",
            type=options.Seconds(min=0.001),
            default=resolver.MAX_SECONDS,
            help="The longest time that planning a closure may take, in seconds, with all requests "
            "to catalogues. After that, the deployment fails, and the error names the package "
            "where planning stopped. The server has an option of its own.",
        ),
        cfg.IntOpt(
            "max_subclasses",
            min=1,
            default=subclass_search.DEFAULT_MAXIMUM,
            help="How many subclasses of a class a form may offer. The answer says whether there "
            "are more.",
        ),
        cfg.BoolOpt(
            "use_cache_when_offline",
            default=False,
            help="If a catalogue does not answer, load the packages that were resolved before for "
            "the same project and are still in the cache. They may be out of date: newer versions "
            "and deletions are not seen. No pin is changed.",
        ),
        cfg.StrOpt(
            "reserved_names_file",
            sample_default="/etc/murano/reserved-names.yaml",
            help="A YAML file with prefixes of package names, each with the ids of the projects "
            "that may publish under it. Packages of other projects under these names are not used. "
            "The file is read at the start. Give Glare or Glance the same file.",
        ),
        cfg.BoolOpt(
            "private_overrides",
            default=True,
            help="Whether a package that is not public may be used although a public package has "
            "the same name. If not, a project cannot replace a public package by one of its own, "
            "not even by a pin.",
        ),
        *archive_limits.OPTIONS,
    ],
    **metadata_cache.OPTIONS,
}

# Options that only murano-api has.
API_OPTIONS: options.Options = {options.GROUP: archive_settings.READING_OPTIONS}

# Options that only the command murano-glare-engine has.
SERVICE_OPTIONS: options.Options = {
    "engine": [
        cfg.StrOpt(
            "package_loader",
            choices=[
                (CATALOGS, "The loader of this project, with [package_loader] catalogs."),
                (MURANO, "The loader of Murano, with Murano's API and load_packages_from."),
            ],
            default=CATALOGS,
            help="How this engine loads packages. murano-api and murano-cfapi do not read this "
            "option. They read packages_service, which therefore stays murano.",
        ),
        cfg.BoolOpt(
            "request_cells",
            default=True,
            help="Whether each static action and each request for a schema runs in a process of "
            "its own, a cell, which has no secret of the engine.",
        ),
        cfg.BoolOpt(
            "task_cells",
            default=True,
            help="Whether each deployment, deletion and action of an object runs in a cell.",
        ),
        cfg.ListOpt(
            "plugin_option_groups",
            default=[],
            help="Groups of options that cells know, for the extension plug-ins that have "
            "registered these options. Cells never know secret options.",
        ),
        cfg.IntOpt(
            "max_task_cells",
            min=1,
            default=16,
            help="How many tasks in cells a worker runs at a time: deployments, deletions and "
            "actions. Further tasks wait in the queue.",
        ),
        cfg.IntOpt(
            "max_project_task_cells",
            min=1,
            default=4,
            help="How many tasks of one project in cells a worker runs at a time.",
        ),
        cfg.BoolOpt(
            "share_agent_password",
            default=False,
            help="Whether a cell gets the password of the agents' RabbitMQ if Murano's services "
            "have the same user or virtual host there.",
        ),
        cfg.IntOpt(
            "max_request_cells",
            min=1,
            default=8,
            help="How many static actions and requests for schemas a worker runs in cells at a "
            "time. Further requests wait for a turn, and fail after request_seconds. At most eight "
            "requests of a project wait.",
        ),
        cfg.IntOpt(
            "max_project_request_cells",
            min=1,
            default=4,
            help="How many static actions and requests for schemas of one project a worker runs in "
            "cells at a time.",
        ),
        cfg.BoolOpt(
            "decrypt_data",
            default=False,
            help="Whether packages may call decryptData, which reads a secret of Barbican. The "
            "token of the task is used, so a package gets what its user may read. A secret that "
            "the service account of a dashboard has stored needs an ACL for that user.",
        ),
        cfg.ListOpt(
            "reachable_endpoints",
            default=[],
            help="Hosts with ports, as HOST:PORT, that packages may make the engine connect to, "
            "beside the endpoints in Keystone's catalogue, those that this configuration names, "
            "and the RabbitMQ of the agents. Names are compared as they are written.",
        ),
        cfg.Opt(
            "graceful_stop_seconds",
            type=options.Seconds(min=0),
            default=60,
            help="How many seconds running tasks may go on after SIGTERM. Those that take longer "
            "are interrupted and reported as failed, which takes up to 20 seconds more. With the "
            "default, the engine stops within the 90 seconds that systemd allows a service "
            "(TimeoutStopSec); raise both together. The option takes the place of "
            "graceful_shutdown_timeout.",
        ),
        cfg.IntOpt(
            "max_green_threads",
            min=1,
            default=2000,
            help="How many green threads one task may have at a time, in Parallel blocks, pselect "
            "and psuper. Each takes about 50 KiB. If only a few are left, a block runs fewer at a "
            "time; if none is left, it fails.",
        ),
        cfg.IntOpt(
            "max_messages",
            min=1,
            default=10_000,
            help="How many lines of the log and reports to Murano's API one task may write. A task "
            "that writes more fails.",
        ),
        cfg.IntOpt(
            "max_task_memory",
            min=64,
            default=1024,
            help="How much memory one task may take, in MiB, such as for many objects with long "
            "strings. After that the task is interrupted, and fails with a report. A worker needs "
            "memory for all its tasks.",
        ),
        cfg.Opt(
            "blocking_seconds",
            type=options.Seconds(min=0.5),
            default=5,
            help="How many seconds of processor time a task may compute without letting other "
            "green threads run, such as in a loop or a regular expression of a package. After that "
            "the task is interrupted, and fails with a report. Without cells, other tasks of the "
            "worker wait for at most this time in a row.",
        ),
        cfg.Opt(
            "task_seconds",
            type=options.Seconds(min=1),
            default=7200,
            help="The longest time that a deployment, a deletion or an action of an environment "
            "may take, in seconds. After that it is interrupted, and fails with a report. The "
            "time must be greater than agent_timeout.",
        ),
        cfg.Opt(
            "request_seconds",
            type=options.Seconds(min=1, max=14),
            default=9,
            help="The longest time that a static action or a request for a schema may take, in "
            "seconds. murano-api waits 15 seconds for an answer. Choose a time that is shorter by "
            "at least blocking_seconds, since another task may delay the answer so long.",
        ),
    ],
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """List the options of the loader and of its own catalogues, for oslo-config-generator.

    :returns: pairs of a group's name and the options in the group.
    """
    found: dict[str, dict[str, cfg.Opt]] = collections.defaultdict(dict)
    for known in (OPTIONS, API_OPTIONS, SERVICE_OPTIONS, *registry.built_in_options()):
        for group, in_group in known.items():
            found[group] |= {option.name: option for option in in_group}
    for group in _CREDENTIALS:
        found[group] |= {o.name: o for o in ksa_loading.get_auth_common_conf_options()}
    return [(group, list(in_group.values())) for group, in_group in found.items()]


def package_loader(
    conf: cfg.ConfigOpts, scope: Scope | None = None, enabled_plugins: Collection[str] | None = None
) -> PackageLoader:
    """Make a loader from a configuration; the caller has to close it.

    :param scope: the project for which packages are loaded; by default, the project of the
        credentials in the group ``glare`` or ``glance``.
    :param enabled_plugins: the distributions whose package types may be used; None allows all.
    :raises UnknownCatalog: if a catalogue is not installed.
    :raises CatalogError: if there is no catalogue, or if a catalogue cannot be made.
    :raises CacheError: if the directory of the cache cannot be used.
    :raises LockError: if the lock file cannot be read, or is not valid.
    :raises LoaderError: if the file of reserved names is not valid.
    """
    options.register(conf, OPTIONS)
    chosen = conf[options.GROUP]
    scope = scope or own_scope(conf)
    with _naming_option("[package_loader] catalogs", ", ".join(chosen.catalogs)):
        catalogs = registry.catalogs(chosen.catalogs, conf, scope)
        if not catalogs:
            raise errors.CatalogError(
                "there is no catalogue. Name glare, glance, or directory with [engine] "
                "load_packages_from"
            )
    reserved = reserved_names(conf)
    is_offline_allowed = chosen.use_cache_when_offline
    if chosen.lock_file is not None:
        with _naming_option("[package_loader] lock_file", chosen.lock_file):
            catalogs = [LockedCatalog(_public_lock(chosen.lock_file), catalogs)]
        # A lock file has the releases already, so an offline index is not needed.
        is_offline_allowed = False
    package_types = PackageTypes(enabled_plugins)
    # The cache is opened last, since an error after this would leave it open.
    cache = open_cache(conf)
    return PackageLoader(
        catalogs,
        cache,
        package_types=package_types,
        plan_seconds=chosen.plan_seconds,
        max_subclasses=chosen.max_subclasses,
        fetcher=Fetcher(cache, chosen.fetch_workers),
        offline_index=_offline_index(catalogs, cache, scope) if is_offline_allowed else None,
        reserved_names=reserved,
        private_overrides=chosen.private_overrides,
    )


def reserved_names(conf: cfg.ConfigOpts) -> ReservedNames:
    """Return the names that the operator has reserved for projects.

    Each process reads the file once.

    :param conf: a configuration in which ``OPTIONS`` are registered.
    :raises LoaderError: if the file is not valid.
    """
    try:
        return read_reserved_names(conf[options.GROUP].reserved_names_file)
    except InvalidReservedNames as error:
        raise errors.LoaderError(f"[package_loader] reserved_names_file: {error}") from error


def _public_lock(path: str) -> Lock:
    """Read the lock file that the deployments of all projects use.

    :raises LockError: if the file has private packages, since every project could use them.
    """
    lock = Lock.load(path)
    if private := [str(release) for release in lock.releases if release.visibility in _OF_PROJECTS]:
        raise errors.LockError(
            f"{errors.listed(private)}: private to a project, but a locked package can be used by "
            f"every project; publish the package, and create the lock file again"
        )
    return lock


def _offline_index(catalogs: Sequence[Catalog], cache: Cache, scope: Scope) -> OfflineIndex | None:
    """Return the offline index for the project of a scope.

    If the scope has no project id, keystoneauth's cache id of its credentials identifies the
    project: the index is used when services cannot be reached, and this may include Keystone.

    :returns: None if the credentials have no cache id.
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
    # Without credentials for Keystone, the project is unknown: only public packages are found.
    return OfflineIndex(catalogs, cache, project_id)


def own_scope(conf: cfg.ConfigOpts) -> Scope:
    """Return the scope of the program's own account, with the credentials in the configuration.

    The group ``glare`` is read first. If it has no credentials, the group ``glance`` is read.

    :returns: a scope without a session if neither group has credentials.
    :raises CatalogError: if the credentials or the options of the session are invalid.
    """
    for group in _CREDENTIALS:
        # Murano has already registered some of these options.
        options.register(conf, {group: ksa_loading.get_session_conf_options()})
        auth = sessions.credentials(conf, group)
        if auth is not None:
            return Scope(session=sessions.configured(conf, group, auth), is_own=True)
    return Scope()


def open_cache(conf: cfg.ConfigOpts) -> Cache:
    """Open the cache in the configured directory; if caching is disabled, open a temporary cache.

    :raises CacheError: if the directory cannot be used.
    """
    options.register(conf, OPTIONS)
    chosen = conf[options.GROUP]
    limit, limits = chosen.max_cache_size, archive_limits.limits(chosen)
    directory = metadata_cache.package_cache_directory(conf)
    with _naming_option("[engine] packages_cache", directory):
        if conf.engine.enable_packages_cache:
            return Cache(
                directory,
                limits,
                max_size=limit * _MEBIBYTE if limit is not None else None,
                lock_timeout=chosen.lock_timeout,
            )
        return TemporaryCache(directory, limits)


@contextlib.contextmanager
def _naming_option(option: str, value: object) -> Iterator[None]:
    """Put the name and the value of an option in front of error messages of the ``with`` block."""
    try:
        yield
    except errors.LoaderError as error:
        error.args = (f"{option} = {value}: {error}",)
        raise
