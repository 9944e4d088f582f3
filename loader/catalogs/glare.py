# SPDX-License-Identifier: Apache-2.0

"""Clients for packages in Glare: a catalogue for the loader, and a repository for publishers.

Lists of releases are limited to active artifacts of the type ``murano`` that belong to the
caller's project or are public. Without this limit, an administrator's token would show
the packages of every project.
"""

import urllib.parse
from collections.abc import Collection, Iterator, Mapping
from typing import IO, Any

from oslo_config import cfg

from glare_murano import fields, wire
from glare_murano.package import Version
from glare_murano.wire import Release
from loader.catalogs.openstack import PlanningCatalog, name_lists
from loader.catalogs.repository import Repository, explained, precondition
from loader.catalogs.stored_package import StoredPackage
from loader.transport.failures import NoSuchPath
from loader.transport.sessions import Scope

_ARTIFACTS = f"/artifacts/{fields.TYPE_NAME}"
_MAX_CLASS_NAME = 255
# How many values one filter has at most. Glare allows 300 values in all filters of a request.
_MAX_VALUES = 200
# The order of the packages in lists, and how many packages a page has.
_PAGES = [("sort", "version:desc"), ("limit", "100")]


class GlareCatalog(PlanningCatalog):
    """A catalogue of one Glare; it has the packages that a project can use.

    A Glare without the filter of ``glare_murano`` has neither dependency queries nor batches.

    >>> catalog = GlareCatalog(session, project_id="my-project", region_name="north")
    """

    title = "Glare"
    service_type = "artifact"
    group = "glare"

    def fetch(self, release: Release) -> Iterator[bytes]:
        path = f"{_ARTIFACTS}/{release.id}/{fields.ARCHIVE}"
        return self._client.download(path, f"the archive of {release} (artifact {release.id})")

    def _list(self, field: str, names: Collection[str]) -> Iterator[Release]:
        project = self.project()
        available = [
            *([("owner", f"or:eq:{project}")] if project else []),
            ("visibility", "or:eq:public" if project else "public"),
        ]
        # Glare refuses filters with longer names.
        max_length = fields.MAX_NAME if field == "name" else _MAX_CLASS_NAME
        for share in name_lists(names, max_length, "%2C"):
            for start in range(0, len(share), _MAX_VALUES):
                some = ",".join(share[start : start + _MAX_VALUES])
                query = [(field, f"in:{some}"), *available, ("status", "active"), *_PAGES]
                listed = self._client.items(_ARTIFACTS, "artifacts", query, _next_marker)
                yield from map(self.release, listed)


class GlareRepository(Repository):
    """A client that finds and changes the packages in one Glare, with the rights of one user."""

    title = GlareCatalog.title
    service_type = GlareCatalog.service_type
    filter_place = "glare-paste.ini"

    def get(self, package_id: str) -> StoredPackage:
        return self._stored(self._document("GET", package_id))

    def create(self, fqn: str, version: Version, **values: Any) -> StoredPackage:
        body = {"name": fqn, "version": str(version), **values}
        return self._stored(
            self._client.document("POST", _ARTIFACTS, f"{fqn} {version}", json=body)
        )

    def upload(self, draft: StoredPackage, archive: IO[bytes], size: int) -> StoredPackage:
        path = f"{_path(draft.id)}/{fields.ARCHIVE}"
        return self._stored(self._client.upload(path, archive, size, f"the archive of {draft}"))

    def change(self, package: StoredPackage, **values: Any) -> StoredPackage:
        patch = [
            {"op": "replace", "path": f"/{name}", "value": value} for name, value in values.items()
        ]
        headers = {"Content-Type": "application/json-patch+json", **precondition(package, values)}
        with explained(f"cannot change {package}"):
            return self._stored(self._document("PATCH", package.id, json=patch, headers=headers))

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

    def _stored(self, artifact: Any) -> StoredPackage:
        return StoredPackage.from_json(artifact, self.name)

    def _document(self, method: str, artifact_id: str, **arguments: Any) -> Any:
        try:
            return self._client.document(method, _path(artifact_id), **arguments)
        except NoSuchPath as error:
            raise self._not_found(artifact_id) from error


def _next_marker(answer: Mapping[str, Any]) -> str | None:
    """Return the marker of the page that follows an answer; None after the last page.

    :raises Malformed: if the last artifact of the answer has no id.
    """
    # A short page need not be the last one: an operator may limit the length of pages.
    artifacts = answer["artifacts"]
    if "next" not in answer or not artifacts:
        return None
    return wire.get(artifacts[-1], "id", wire.string)


def _path(artifact_id: str) -> str:
    return f"{_ARTIFACTS}/{urllib.parse.quote(artifact_id, safe='')}"


OPTIONS = GlareCatalog.service_options()


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[GlareCatalog]:
    """Make the catalogue of packages in Glare; this is an entry point."""
    return [GlareCatalog.configured(conf, scope)]
