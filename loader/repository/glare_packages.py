# SPDX-License-Identifier: Apache-2.0

"""The packages in Glare, through Glare's own API."""

import urllib.parse
from collections.abc import Collection, Iterator
from typing import IO, Any

from glare_murano import fields, wire
from glare_murano.package import GlareMuranoError, Version, parse_version
from loader import errors
from loader.catalogs.glare import ARTIFACTS_PATH, next_marker
from loader.catalogs.name_lists import name_lists
from loader.repository.client import EVERY, PAGE, Repository, explained
from loader.repository.stored_package import ACTIVE, Selection, StoredPackage
from loader.transport.failures import NoSuchPath


class GlareRepository(Repository):
    """The packages in one Glare, with the rights of one user."""

    title = "Glare"
    service_type = "artifact"
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
        return _stored(self._client.document("POST", ARTIFACTS_PATH, f"{fqn} {version}", json=body))

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
        listed = self._client.items(ARTIFACTS_PATH, "artifacts", query, next_marker, after)
        return map(_stored, listed)

    def _document(self, method: str, artifact_id: str, **arguments: Any) -> Any:
        try:
            return self._client.document(method, _path(artifact_id), **arguments)
        except NoSuchPath as error:
            raise self._not_found(artifact_id) from error


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
    return f"{ARTIFACTS_PATH}/{urllib.parse.quote(artifact_id, safe='')}"


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
