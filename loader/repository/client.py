# SPDX-License-Identifier: Apache-2.0

"""The packages in Glare, for those who publish them and look after them.

Unlike a catalogue, a repository also has drafts and deactivated packages, and changes
them. It does not choose: see ``catalogs.glare`` for the releases that may be loaded.
"""

import dataclasses
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import IO, Any, Literal

from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session

from glare_murano import fields, wire
from glare_murano.package import GlareMuranoError, Version, VersionSpec, parse_version
from glare_murano.package.errors import shown
from glare_murano.resolver import PackageVersion
from loader import errors
from loader.catalogs.glare import ARTIFACTS_PATH, next_marker
from loader.catalogs.name_lists import name_lists
from loader.counters import Counters
from loader.references import AmbiguousReference, PackageReference
from loader.transport import download, retries, sessions
from loader.transport.adapter import ServiceAdapter
from loader.transport.failures import NoSuchPath

_PAGE = 100


Visibility = Literal["private", "public"]


@dataclasses.dataclass(frozen=True)
class StoredPackage:
    """A package in Glare, in any state.

    :param status: ``drafted``, ``active`` or ``deactivated``.
    :param fields: all that Glare says of it, by the names of its fields.
    """

    id: str
    fqn: str
    version: Version
    status: str
    visibility: str
    owner: str
    fields: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The SHA-256 of its archive, in hexadecimal; empty before the upload."""
        archive = self.fields.get(fields.ARCHIVE) or {}
        return str(archive.get("sha256") or "")

    @property
    def yanked(self) -> str:
        """Why its owner withdrew it; empty if it may be chosen for any range."""
        return self.fields.get("yanked") or ""

    @property
    def size(self) -> int | None:
        """The size of its archive in bytes; None before the upload."""
        archive = self.fields.get(fields.ARCHIVE) or {}
        return archive.get("size")

    @property
    def key(self) -> PackageVersion:
        """Name and version."""
        return PackageVersion(self.fqn, self.version)

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


class Repository:
    """The packages in one Glare, by the rights of one user.

    >>> repository = Repository(session)
    >>> draft = repository.create("org.example.db", Version("1.2.0"))
    >>> with open("org.example.db.zip", "rb") as archive:
    ...     draft = repository.upload(draft, archive)
    >>> repository.publish([draft], "private")
    """

    def __init__(
        self,
        session: ksa_session.Session,
        *,
        project_id: str | None = None,
        endpoint: str | None = None,
        interface: str | None = None,
        region_name: str | None = None,
    ) -> None:
        """Make a repository; no request is sent.

        :param session: a keystoneauth session with credentials.
        :param project_id: the user's project; by default the project of the session.
        :param endpoint: Glare's URL; by default the URL in Keystone's catalogue.
        :param interface: ``public``, ``internal`` or ``admin``.
        :param region_name: the region to look the URL up in; by default any.
        """
        self.name = f"Glare at {endpoint}" if endpoint else "Glare"
        self._project_id = project_id
        self._client = ServiceAdapter(
            session,
            self.name,
            Counters(),
            retries.DEFAULT_ATTEMPTS,
            sessions.DEFAULT_REQUEST_TIMEOUT,
            download.DEFAULT_MIN_RATE,
            service_type="artifact",
            endpoint_override=endpoint,
            interface=interface,
            region_name=region_name,
        )

    def project(self) -> str | None:
        """Return the id of the user's project; None if it is unknown.

        :raises CatalogError: if the user cannot authenticate.
        """
        return self._project_id or self._client.authenticated_project()

    def packages(
        self, filters: Iterable[tuple[str, str]] = (), sort: str = "name:asc,version:desc"
    ) -> Iterator[StoredPackage]:
        """Yield the packages that match all filters; pages are requested as needed.

        :param filters: of Glare's API, such as ``("tags", "store")``.
        :raises CatalogError: if Glare refuses a filter, or does not answer.
        """
        query = [*filters, ("sort", sort), ("limit", str(_PAGE))]
        return map(_stored, self._client.items(ARTIFACTS_PATH, "artifacts", query, next_marker))

    def named(
        self, fqns: Collection[str], filters: Iterable[tuple[str, str]] = ()
    ) -> Iterator[StoredPackage]:
        """Yield the packages of these names that match all filters, in any order.

        :raises CatalogError: if Glare does not answer.
        """
        for names in name_lists(fqns, fields.MAX_NAME, "%2C"):
            yield from self.packages([("name", f"in:{','.join(names)}"), *filters])

    def subclasses(self, class_name: str) -> set[PackageVersion]:
        """Return the packages with direct or indirect subclasses of a class.

        :raises CatalogError: if Glare refuses the name, or does not answer.
        """
        query = [("class", class_name), ("limit", str(_PAGE))]
        listed = self._client.items(wire.SUBCLASSES_PATH, "subclasses", query, _next_class)
        try:
            return {
                PackageVersion(fqn, version)
                for item in listed
                for fqn, versions in wire.get(item, "packages", wire.versions_from_json).items()
                for version in versions
            }
        except NoSuchPath as error:
            raise self._without_filter() from error

    def get(self, artifact_id: str) -> StoredPackage:
        """Return a package by the id of its artifact.

        :raises NotFound: if there is none, or it is private to another project.
        """
        return _stored(self._document("GET", artifact_id))

    def find(
        self, reference: PackageReference, filters: Iterable[tuple[str, str]] = ()
    ) -> list[StoredPackage]:
        """Return the packages that a reference means, the newest first.

        :param filters: more filters, such as ``("status", "active")``.
        :raises NotFound: if there are none; the message has the versions out of the range.
        """
        if reference.id:
            return [self.get(reference.id)]
        named = list(self.named([reference.fqn], filters))
        named.sort(key=lambda package: package.version.precedence_key, reverse=True)
        found = [package for package in named if reference.spec.match(package.version)]
        if not found:
            versions = errors.listed(str(package.version) for package in named)
            raise errors.NotFound(
                f"package {reference} was not found in {self.name} (available: {versions}); check "
                f"the name and the range, or whether it is private to another project"
            )
        return found

    def find_one(self, reference: PackageReference) -> StoredPackage:
        """Return the one package that a reference means, the project's own before others.

        :raises NotFound: if there is none.
        :raises AmbiguousReference: if there are several versions, or several owners.
        """
        found = self.find(reference)
        if len(found) > 1:
            project = self.project()
            own = [package for package in found if package.owner == project]
            found = own if len(own) == 1 and len({p.version for p in found}) == 1 else found
        if len(found) > 1:
            listed = errors.listed(f"{p} ({p.id}, {p.visibility})" for p in found)
            raise AmbiguousReference(f"{reference} means several packages: {listed}; name one")
        return found[0]

    def name_and_range(self, reference: PackageReference) -> tuple[str, VersionSpec]:
        """Return a reference as a name and a range, for a catalogue.

        :raises NotFound: if there is no package of this id.
        """
        if not reference.id:
            return reference.fqn, reference.spec
        package = self.get(reference.id)
        return package.fqn, VersionSpec.exactly(package.version)

    def create(self, fqn: str, version: Version, **values: Any) -> StoredPackage:
        """Create a draft without an archive.

        :param values: mutable fields, such as ``categories``.
        :raises CatalogError: if the project has a package of this name and version.
        """
        body = {"name": fqn, "version": str(version), **values}
        return _stored(self._client.document("POST", ARTIFACTS_PATH, f"{fqn} {version}", json=body))

    def upload(self, draft: StoredPackage, archive: IO[bytes], size: int) -> StoredPackage:
        """Upload the archive of a draft; Glare reads all other fields from it.

        :param archive: the ZIP file, which can be read again from its beginning.
        :param size: its size in bytes.
        :raises CatalogError: if Glare refuses the package.
        """
        path = f"{_path(draft.id)}/{fields.ARCHIVE}"
        return _stored(self._client.upload(path, archive, size, f"the archive of {draft}"))

    def publish(
        self,
        packages: Iterable[StoredPackage],
        visibility: Visibility,
        *,
        is_dry_run: bool = False,
    ) -> list[Any]:
        """Activate packages, and make them public; all of them, or none.

        :param is_dry_run: whether Glare only checks the packages.
        :returns: for each package what was changed, as Glare says it.
        :raises CatalogError: if Glare refuses; the message has a line for each problem.
        """
        ids = [package.id for package in packages]
        body = {"ids": ids, "visibility": visibility, "dry_run": is_dry_run}
        try:
            answer = self._client.document("POST", wire.PUBLICATIONS_PATH, "publish", json=body)
        except NoSuchPath as error:
            raise self._without_filter() from error
        except errors.CatalogError as error:
            raise _with_lines(error) from error
        return wire.get(answer, "artifacts", wire.sequence)

    def change(self, package: StoredPackage, **values: Any) -> StoredPackage:
        """Change fields of a package, such as ``display_name``, ``status`` or ``yanked``.

        :raises CatalogError: if Glare refuses the change.
        """
        patch = [
            {"op": "replace", "path": f"/{name}", "value": value} for name, value in values.items()
        ]
        headers = {"Content-Type": "application/json-patch+json"}
        return _stored(self._document("PATCH", package.id, json=patch, headers=headers))

    def delete(self, package: StoredPackage) -> None:
        """Delete a package.

        :raises CatalogError: if Glare refuses, since other packages require it.
        """
        self._document("DELETE", package.id)

    def download(self, package: StoredPackage) -> Iterator[bytes]:
        """Yield the archive of a package, piece by piece; its digest is not checked.

        :raises CatalogError: if the download fails.
        """
        path = f"{_path(package.id)}/{fields.ARCHIVE}"
        return self._client.download(path, f"the archive of {package}")

    def _without_filter(self) -> errors.CatalogError:
        return errors.CatalogError(
            f"{self.name} serves artifacts only; ask its operator to add the filter of "
            f"glare-murano to the pipeline in glare-paste.ini"
        )

    def _document(self, method: str, artifact_id: str, **arguments: Any) -> Any:
        try:
            return self._client.document(method, _path(artifact_id), **arguments)
        except NoSuchPath as error:
            raise errors.NotFound(
                f"package {artifact_id} was not found in {self.name}; check the id, or whether the "
                f"package is private to another project"
            ) from error


def _next_class(answer: Mapping[str, Any]) -> Any:
    classes = answer["subclasses"]
    return wire.get(classes[-1], "class", wire.string) if "next" in answer and classes else None


def _with_lines(error: errors.CatalogError) -> errors.CatalogError:
    """Return a refusal with all lines of Glare's message, and nothing else."""
    refusal = error.__cause__
    if not isinstance(refusal, ksa_exceptions.HttpError) or not refusal.message:
        return error
    return type(error)("\n".join(map(shown, refusal.message.splitlines())))


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
