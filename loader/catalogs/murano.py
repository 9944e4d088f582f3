# SPDX-License-Identifier: Apache-2.0
"""Releases in Murano's own API, the storage of packages before Glare.

It keeps one archive of each package for each project, and public ones. Its
listings say neither version nor requirements: they stand in the archive, which
is downloaded for that and kept to be fetched. An archive never changes under
its id, so that each is read once on a host.

It is asked by keystoneauth alone: python-muranoclient reads a download into
memory as a whole.
"""

import contextlib
import dataclasses
import logging
import urllib.parse
from collections.abc import Iterator
from typing import Any, TypeGuard

import requests
from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from glare_murano import wire
from glare_murano.package import InvalidPackage
from loader import errors
from loader.catalogs import base, options
from loader.catalogs.metadata_cache import Fact, Facts
from loader.catalogs.spool import Archives
from loader.transport import adapter, download
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

SERVICE_TYPE = "application-catalog"

OPTIONS: options.Options = {
    "murano": adapter.options_of("Murano's API", SERVICE_TYPE),
    "DEFAULT": [options.HOME_REGION],
    **options.FACTS,
}

_PATH = "/v1/catalog/packages"
_PAGE = 100
# Of one list. A server whose lists have no end is not asked for ever.
_MOST_PAGES = 1000


class MuranoCatalog(base.Catalog):
    """The packages that one project can use in a Murano API: its own, and public ones."""

    def __init__(
        self,
        session: ksa_session.Session,
        *,
        project_id: str | None = None,
        endpoint: str | None = None,
        interface: str | None = None,
        region_name: str | None = None,
        facts: Facts | None = None,
        attempts: int = download.DEFAULT_ATTEMPTS,
    ) -> None:
        """Make a catalogue; nothing is asked yet.

        :param session: a keystoneauth session that authenticates.
        :param project_id: the project whose private packages may be used;
            by default the one that the session is scoped to.
        :param endpoint: the API's URL, where the service catalogue of the
            session is not to be asked for it.
        :param interface: ``public``, ``internal`` or ``admin``.
        :param region_name: the region whose service is asked, where no URL is
            given; by default any.
        :param facts: what is known already; by default nothing.
        :param attempts: how often a request is made that fails for a passing
            reason.
        """
        super().__init__(adapter.named("Murano's API", endpoint, region_name))
        self._project_id = project_id
        self._facts = facts or Facts()
        self._archives = Archives()
        self._attempts = attempts
        self._client = ksa_adapter.Adapter(
            session,
            service_type=SERVICE_TYPE,
            endpoint_override=endpoint,
            interface=interface,
            region_name=region_name,
        )

    def releases(self, fqn: str) -> list[wire.Release]:
        """See the interface."""
        return [release for release in self._releases("fqn", fqn) if release.fqn == fqn]

    def releases_defining(self, class_name: str) -> list[wire.Release]:
        """See the interface."""
        found = self._releases("class_name", class_name)
        return [release for release in found if class_name in release.classes]

    def fetch(self, release: wire.Release) -> Iterator[bytes]:
        """See the interface."""
        return self._archives.take(release.digest) or self._download(release.id)

    def _releases(self, key: str, value: str) -> list[wire.Release]:
        project = self._project()
        listed = [package for package in self._list(key, value) if _is_usable(package, project)]
        # Of one version, the project's own before a public one.
        listed.sort(key=lambda package: (package["owner_id"] != project, package["id"]))
        found = (release for package in listed if (release := self._release(package)))
        return base.newest_first(base.one_of_each(found))

    def _release(self, package: dict[str, Any]) -> wire.Release | None:
        """What the archive of a package holds; None if it is not to be used."""
        reference = package["id"]
        known = self._facts.get(f"{self.name} {reference}")
        release = None
        if known is not None:
            with contextlib.suppress(wire.Malformed):
                release = wire.release_from_json(known.document)
        if release is None:
            try:
                release = self._archives.add(self._download(reference), reference)
            except InvalidPackage as error:
                LOG.warning("Left out package %s of %s: %s", reference, self.name, error)
                return None
            except OSError as error:
                raise errors.CatalogError(
                    f"package {reference} of {self.name} cannot be kept: {error}"
                ) from error
            self._facts.put(f"{self.name} {reference}", Fact(wire.release_to_json(release)))
        visibility = "public" if package["is_public"] else "private"
        return dataclasses.replace(release, owner=package["owner_id"], visibility=visibility)

    def _list(self, key: str, value: str) -> Iterator[Any]:
        """What the API lists, of all pages."""
        query = {key: value, "catalog": "true", "limit": str(_PAGE)}
        for _ in range(_MOST_PAGES):
            page = self._page(query)
            yield from page["packages"]
            if not page["packages"] or "next_marker" not in page:
                return
            query["marker"] = page["next_marker"]
        raise errors.CatalogError(f"{self.name} gave a list of more than {_MOST_PAGES} pages")

    def _page(self, query: dict[str, str]) -> dict[str, Any]:
        try:
            page = download.retrying(self._attempts)(self._listed, query)
        except (*download.FAILURES, ValueError, RecursionError) as error:
            raise download.failed(error, f"{self.name} did not answer") from error
        if not isinstance(page, dict) or not isinstance(page.get("packages"), list):
            raise errors.CatalogError(f"{self.name} answered with no list of packages")
        return page

    def _download(self, reference: str) -> Iterator[bytes]:
        path = f"{_PATH}/{urllib.parse.quote(reference, safe='')}/download"

        def open_at(headers: dict[str, str]) -> requests.Response:
            return self._get(path, headers=headers, stream=True)

        try:
            for piece in download.Download(open_at, self._attempts):
                self.counters.count(bytes=len(piece))
                yield piece
        except download.FAILURES as error:
            message = f"{self.name} did not give the archive of package {reference}"
            raise download.failed(error, message) from error

    def _listed(self, query: dict[str, str]) -> Any:
        return download.document(self._get(_PATH, params=query, stream=True))

    def _get(self, path: str, **arguments: Any) -> requests.Response:
        return adapter.send(self._client, self.counters, "GET", path, **arguments)

    def _project(self) -> str | None:
        if self._project_id is None:
            self._project_id = adapter.project_id(self._client, self.name, self._attempts)
        return self._project_id


def _is_usable(package: Any, project: str | None) -> TypeGuard[dict[str, Any]]:
    """Whether an entry of a list is a package, and the project's own or public."""
    if not isinstance(package, dict) or not isinstance(package.get("id"), str):
        return False
    if package.get("is_public") is True:
        return isinstance(package.get("owner_id"), str)
    return project is not None and package.get("owner_id") == project


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> Iterator[base.Catalog]:
    """The catalogue of the entry point ``murano``.

    :raises CatalogError: if there is no session to ask with.
    """
    options.register(conf, OPTIONS)
    yield MuranoCatalog(
        adapter.session(conf, "murano", scope),
        project_id=scope.project_id,
        endpoint=conf.murano.url,
        interface=conf.murano.endpoint_type,
        region_name=scope.region_name or conf.home_region,
        facts=options.facts(conf),
    )
