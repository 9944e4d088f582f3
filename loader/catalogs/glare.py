# SPDX-License-Identifier: Apache-2.0

"""Packages in Glare: releases to load, and all packages for publishers, by Glare's own API.

Lists of releases are limited to active artifacts of the type ``murano`` that belong to the
caller's project or are public. Without this limit, an administrator's token would show
the packages of every project.
"""

import itertools
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import IO, Any

from oslo_config import cfg

from glare_murano import fields, wire
from glare_murano.package import GlareMuranoError, Version, parse_version
from glare_murano.wire import Release
from loader import errors
from loader.catalogs import base
from loader.catalogs.openstack import PlanningCatalog, name_lists
from loader.catalogs.repository import EVERY, PAGE, Repository, explained
from loader.catalogs.stored_package import ACTIVE, Selection, StoredPackage
from loader.transport.failures import NoSuchPath
from loader.transport.sessions import Scope

_ARTIFACTS = f"/artifacts/{fields.TYPE_NAME}"
_MAX_CLASS_NAME = 255
# How many values one filter has; all filters of a request may have 300 together.
_MAX_VALUES = 200


class GlareCatalog(PlanningCatalog):
    """The packages in a Glare that a project can use.

    A Glare without the filter of ``glare_murano`` has neither dependency queries nor batches.

    >>> catalog = GlareCatalog(session, project_id="my-project", region_name="north")
    """

    title = "Glare"
    service_type = "artifact"
    group = "glare"

    def releases(self, fqn: str) -> Iterable[Release]:
        # Glare refuses filters with longer names.
        return self._releases([("name", f"eq:{fqn}")]) if len(fqn) <= fields.MAX_NAME else ()

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return self._releases([("class_definitions", f"eq:{class_name}")])

    def releases_extending(self, class_names: Collection[str]) -> Iterator[Release]:
        for names in name_lists(class_names, _MAX_CLASS_NAME, "%2C"):
            for start in range(0, len(names), _MAX_VALUES):
                some = names[start : start + _MAX_VALUES]
                yield from self._releases([("inherits", f"in:{','.join(some)}")])

    def releases_of(self, fqns: Collection[str]) -> Iterator[Release]:
        for names in name_lists(fqns, fields.MAX_NAME, "%2C"):
            yield from self._releases([("name", f"in:{','.join(names)}")])

    def fetch(self, release: Release) -> Iterator[bytes]:
        path = f"{_ARTIFACTS}/{release.id}/{fields.ARCHIVE}"
        return self._client.download(path, f"the archive of {release} (artifact {release.id})")

    def _releases(self, filters: list[tuple[str, str]]) -> Iterator[Release]:
        """Yield the releases that match filters, in the order that the interface requires."""
        project = self.project()
        available = [
            *([("owner", f"or:eq:{project}")] if project else []),
            ("visibility", "or:eq:public" if project else "public"),
        ]
        query = [
            *filters,
            *available,
            ("status", "active"),
            ("sort", "version:desc"),
            ("limit", str(PAGE)),
        ]
        found = map(_release, self._client.items(_ARTIFACTS, "artifacts", query, _next_marker))
        # The database sorts pre-releases by its collation. Therefore all releases with the
        # same major, minor and patch are sorted again. In each version, the project's own
        # release comes before a public one.
        for _, peers in itertools.groupby(found, key=lambda r: r.version.truncate()):
            yield from base.newest_first(base.own_first(peers, project))


class GlareRepository(Repository):
    """The packages in one Glare, with the rights of one user."""

    title = GlareCatalog.title
    service_type = GlareCatalog.service_type
    filter_place = "glare-paste.ini"

    def packages(
        self,
        selection: Selection = EVERY,
        sort: str = "name:asc,version:desc",
        after: str | None = None,
        page: int | None = None,
    ) -> Iterator[StoredPackage]:
        return self._listed(_filters(selection), sort, after, page)

    def named(self, fqns: Collection[str], selection: Selection = EVERY) -> Iterator[StoredPackage]:
        for names in name_lists(fqns, fields.MAX_NAME, "%2C"):
            yield from self._listed([("name", f"in:{','.join(names)}"), *_filters(selection)])

    def requiring(self, fqns: Collection[str]) -> Iterator[StoredPackage]:
        found: dict[str, StoredPackage] = {}
        for names in name_lists(fqns, fields.MAX_NAME, "%2C"):
            query = [("requirements", f"in:{','.join(names)}"), *_filters(ACTIVE)]
            found |= {package.id: package for package in self._listed(query)}
        return iter(found.values())

    def get(self, package_id: str) -> StoredPackage:
        return _stored(self._document("GET", package_id))

    def create(self, fqn: str, version: Version, **values: Any) -> StoredPackage:
        body = {"name": fqn, "version": str(version), **values}
        return _stored(self._client.document("POST", _ARTIFACTS, f"{fqn} {version}", json=body))

    def upload(self, draft: StoredPackage, archive: IO[bytes], size: int) -> StoredPackage:
        path = f"{_path(draft.id)}/{fields.ARCHIVE}"
        return _stored(self._client.upload(path, archive, size, f"the archive of {draft}"))

    def change(self, package: StoredPackage, **values: Any) -> StoredPackage:
        patch = [
            {"op": "replace", "path": f"/{name}", "value": value} for name, value in values.items()
        ]
        headers = {"Content-Type": "application/json-patch+json"}
        with explained(f"cannot change {package}"):
            return _stored(self._document("PATCH", package.id, json=patch, headers=headers))

    def delete(self, package: StoredPackage) -> None:
        with explained(f"cannot delete {package}"):
            self._document("DELETE", package.id)

    def download(self, package: StoredPackage) -> Iterator[bytes]:
        path = f"{_path(package.id)}/{fields.ARCHIVE}"
        return self._client.download(path, f"the archive of {package}")

    def file(self, package: StoredPackage, name: str) -> Iterator[bytes]:
        if not package.fields.get(name):
            raise self._no_file(package, name)
        return self._client.download(f"{_path(package.id)}/{name}", f"the {name} of {package}")

    def _listed(
        self,
        filters: list[tuple[str, str]],
        sort: str = "name:asc,version:desc",
        after: str | None = None,
        page: int | None = None,
    ) -> Iterator[StoredPackage]:
        query = [*filters, ("sort", sort), ("limit", str(page or PAGE))]
        listed = self._client.items(_ARTIFACTS, "artifacts", query, _next_marker, after)
        return map(_stored, listed)

    def _document(self, method: str, artifact_id: str, **arguments: Any) -> Any:
        try:
            return self._client.document(method, _path(artifact_id), **arguments)
        except NoSuchPath as error:
            raise self._not_found(artifact_id) from error


def _next_marker(answer: Mapping[str, Any]) -> Any:
    """Return the marker of the page after a list of artifacts; None at the end."""
    # A short page need not be the last one: an operator may limit the length of pages.
    artifacts = answer["artifacts"]
    return artifacts[-1]["id"] if "next" in answer and artifacts else None


def _release(artifact: Any) -> Release:
    """Read a release from Glare's list; its digest and size are in the blob."""
    try:
        archive = wire.get(artifact, fields.ARCHIVE, wire.mapping)
        owner = "" if artifact.get("owner") is None else artifact["owner"]
        # A release without a visibility would be taken for one of the operator's.
        wire.get(artifact, "visibility", wire.string)
        digest = {"sha256": archive.get("sha256"), "size": archive.get("size")}
        return wire.release_from_json({**artifact, "owner": owner, **digest})
    except GlareMuranoError as error:
        raise errors.CatalogError(
            f"Glare sent an artifact that is not a valid package: {error}"
        ) from error


def _filters(selection: Selection) -> list[tuple[str, str]]:
    """Return conditions as filters for Glare's API."""
    # Glare allows no operator in a filter for tags.
    filters = [(f, v if f == "tags" else f"eq:{v}") for f, v in selection.values.items()]
    if "*" in selection.pattern:
        filters.append(("name", f"like:{selection.pattern.replace('*', '%')}"))
    elif selection.pattern:
        filters.append(("name", f"eq:{selection.pattern}"))
    if selection.yanked is not None:
        filters.append(("yanked", "neq:" if selection.yanked else ""))
    if selection.without_drafts:
        filters.append(("status", "in:active,deactivated"))
    if selection.newest:
        filters.append(("version", "latest"))
    return filters


def _path(artifact_id: str) -> str:
    return f"{_ARTIFACTS}/{urllib.parse.quote(artifact_id, safe='')}"


def _stored(artifact: Any) -> StoredPackage:
    try:
        return StoredPackage(
            id=wire.get(artifact, "id", wire.string),
            fqn=wire.get(artifact, "name", wire.string),
            version=wire.get(artifact, "version", lambda value: parse_version(wire.string(value))),
            status=wire.get(artifact, "status", wire.string),
            visibility=wire.get(artifact, "visibility", wire.string),
            owner=artifact.get("owner") or "",
            fields=artifact,
        )
    except GlareMuranoError as error:
        raise errors.CatalogError(f"Glare sent an unknown form of an artifact: {error}") from error


OPTIONS = GlareCatalog.service_options()


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[GlareCatalog]:
    """Make the catalogue of the entry point ``glare``."""
    return [GlareCatalog.configured(conf, scope)]
