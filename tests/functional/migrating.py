# SPDX-License-Identifier: Apache-2.0

"""A migration of the packages of Murano's API, without a command."""

import pathlib
import tempfile
from collections.abc import Callable

from keystoneauth1 import session as ksa_session

from loader.catalogs.base import Catalog
from loader.catalogs.repository import Repository
from loader.counters import Counters
from loader.publishing import migration
from loader.transport.adapter import ServiceAdapter

# By name and project: what became of a package, and why.
Results = dict[tuple[str, str], tuple[str, str]]


def murano(url: str, session: ksa_session.Session) -> ServiceAdapter:
    """A client of Murano's API."""
    place = {"service_type": "application-catalog", "endpoint_override": url}
    return ServiceAdapter(session, "Murano's API", Counters(), 3, 60, 1000, **place)


def migrate(
    source: ServiceAdapter,
    catalog: Catalog,
    repository: Repository,
    scope: Callable[[str], Repository],
    folder: pathlib.Path,
) -> Results:
    """Migrate the packages of all projects as an administrator.

    :param scope: the repository of a project, in which the administrator has a role.
    """
    place = pathlib.Path(tempfile.mkdtemp(dir=folder))
    entries = migration.read(source, migration.find(source, all_projects=True), place)
    migration.compare(entries, repository, scope)
    migration.check_requirements(entries, repository, catalog)
    migration.migrate(entries, repository)
    return {(e.package.fqn, e.package.owner): (e.result.value, e.reason) for e in entries}
