# SPDX-License-Identifier: Apache-2.0

"""All packages in a service: find, create, upload, publish, change, download and delete them.

Unlike a catalogue, a repository also has drafts and deactivated packages. It chooses no release
to load: that is the task of catalogues.
"""

import abc
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar

from keystoneauth1 import exceptions as ksa_exceptions

from glare_murano import wire
from glare_murano.package import Version, VersionSpec
from glare_murano.package.errors import shown
from glare_murano.resolver import PackageVersion
from loader import errors
from loader.catalogs.base import own_first
from loader.catalogs.openstack import ServiceClient
from loader.catalogs.stored_package import ACTIVE, Selection, StoredPackage, Visibility
from loader.references import AmbiguousReference, PackageReference
from loader.transport import failures
from loader.transport.failures import NoSuchPath

EVERY = Selection()
# How many packages one page of a list has.
PAGE = 100
# The messages of these errors say what to do.
_REFUSALS = (
    ksa_exceptions.BadRequest,
    ksa_exceptions.Forbidden,
    ksa_exceptions.Conflict,
    ksa_exceptions.RequestEntityTooLarge,
)


class RefusedPackage(errors.CatalogError):
    """The service refused the archive of a package, since the archive breaks a rule."""


class Repository(ServiceClient, abc.ABC):
    """The packages in one service, with the rights of one user.

    >>> repository = GlareRepository(session)
    >>> draft = repository.create("org.example.db", Version("1.2.0"))
    >>> path = pathlib.Path("org.example.db.zip")
    >>> with path.open("rb") as archive:
    ...     draft = repository.upload(draft, archive, path.stat().st_size)
    >>> repository.publish([draft], "private")

    :cvar replaces_archives: whether the archive of a draft can be uploaded again.
    :cvar filter_place: the file in which an operator adds this project's filter to the service.
    """

    filter_place: ClassVar[str]
    replaces_archives: ClassVar[bool] = True

    @abc.abstractmethod
    def packages(
        self,
        selection: Selection = EVERY,
        sort: str = "name:asc,version:desc",
        after: str | None = None,
        page: int | None = None,
    ) -> Iterator[StoredPackage]:
        """Yield the packages that match; pages are requested as needed.

        :param sort: keys with directions, as in Glare's API.
        :param after: the id of a package; only packages that follow it are listed.
        :param page: how many packages one request returns at most; by default a hundred.
        :raises CatalogError: if the service refuses a condition, or does not answer.
        """

    @abc.abstractmethod
    def named(self, fqns: Collection[str], selection: Selection = EVERY) -> Iterator[StoredPackage]:
        """Yield the packages that have one of these names and match, in any order.

        :raises CatalogError: if the service does not answer.
        """

    @abc.abstractmethod
    def get(self, package_id: str) -> StoredPackage:
        """Return a package by its id.

        :raises NotFound: if no package has this id, or it is private to another project.
        """

    def subclasses(self, class_name: str) -> set[PackageVersion]:
        """Return the packages that have direct or indirect subclasses of a class.

        :raises CatalogError: if the service refuses the name, or does not answer.
        """
        # All subclasses are requested at once: the service would search for all of them again for
        # each page.
        query = [("class", class_name), ("limit", str(wire.MAX_SUBCLASSES))]
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

    def find(
        self, reference: PackageReference, selection: Selection = EVERY
    ) -> list[StoredPackage]:
        """Return the packages for a reference, the newest first.

        In each version, the project's own package comes first, since it would be loaded.

        :param selection: further conditions.
        :raises NotFound: if no package matches; the message has the versions that are not in the
            range.
        """
        if reference.id:
            return [self.get(reference.id)]
        named = list(self.named([reference.fqn], selection))
        if len({package.version for package in named}) < len(named):
            named = own_first(named, self.project())
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
        """Return the single package for a reference; the project's own is preferred.

        :raises NotFound: if no package matches.
        :raises AmbiguousReference: if packages of several versions or several owners match.
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

    def find_release(self, reference: PackageReference) -> StoredPackage:
        """Return the newest release for a reference; for an id, any package.

        A draft is not a release, and a yanked release is chosen only if no other matches.

        :raises NotFound: if no package matches.
        """
        if reference.id:
            return self.get(reference.id)
        found = self.find(reference, ACTIVE)
        return next((package for package in found if not package.yanked), found[0])

    def name_and_range(self, reference: PackageReference) -> tuple[str, VersionSpec]:
        """Return a reference as a name and a range, for a catalogue.

        :raises NotFound: if no package has this id.
        """
        if not reference.id:
            return reference.fqn, reference.spec
        package = self.get(reference.id)
        return package.fqn, VersionSpec.exactly(package.version)

    def blocked(self, packages: Sequence[PackageVersion]) -> Mapping[PackageVersion, str]:
        """Return which of some missing packages can no longer be created, and why.

        :param packages: packages that the service does not have.
        :returns: package -> reason, without the packages that can be created.
        :raises CatalogError: if the service does not answer.
        """
        return {}

    @abc.abstractmethod
    def requiring(self, fqns: Collection[str]) -> Iterator[StoredPackage]:
        """Yield, in any order, the active packages that require one of these names in any range.

        :raises CatalogError: if the service does not answer.
        """

    @abc.abstractmethod
    def create(self, fqn: str, version: Version, **values: Any) -> StoredPackage:
        """Create a draft without an archive.

        :param values: mutable fields, such as ``categories``.
        :raises CatalogError: if the project has a package with this name and version.
        """

    @abc.abstractmethod
    def upload(self, draft: StoredPackage, archive: IO[bytes], size: int) -> StoredPackage:
        """Upload the archive of a draft; the service reads all other fields from the archive.

        :param archive: the ZIP file, which can be read again from its beginning.
        :param size: its size in bytes.
        :raises RefusedPackage: if Glance refuses the archive, since it breaks a rule.
        :raises CatalogError: if the service refuses the package; Glare answers with 400 if the
            archive breaks a rule.
        """

    def publish(
        self,
        packages: Iterable[StoredPackage],
        visibility: Visibility,
        *,
        is_dry_run: bool = False,
    ) -> Mapping[str, str]:
        """Activate all packages or none; with the visibility ``public``, make them public.

        :param is_dry_run: whether the service only checks the packages.
        :returns: id -> the SHA-256 of the published archive, in hexadecimal.
        :raises CatalogError: if the service refuses; the message has a line for each problem.
        """
        ids = [package.id for package in packages]
        body = {"ids": ids, "visibility": visibility, "dry_run": is_dry_run}
        try:
            with explained():
                answer = self._client.document("POST", wire.PUBLICATIONS_PATH, "publish", json=body)
        except NoSuchPath as error:
            raise self._without_filter() from error
        return {
            wire.get(item, "id", wire.string): wire.get(item, "sha256", wire.digest)
            for item in wire.get(answer, "artifacts", wire.sequence)
        }

    def yank(self, package: StoredPackage, reason: str) -> None:
        """Yank a package; with an empty reason, end the yank.

        :raises CatalogError: if the service refuses.
        """
        body = {"id": package.id, "reason": reason}
        try:
            with explained(f"cannot {'yank' if reason else 'unyank'} {package}"):
                self._client.document("POST", wire.YANKS_PATH, f"yank {package}", json=body)
        except NoSuchPath as error:
            raise self._without_filter() from error

    @abc.abstractmethod
    def change(self, package: StoredPackage, **values: Any) -> StoredPackage:
        """Change fields of a package, such as ``display_name`` or ``status``.

        :raises CatalogError: if the service refuses the change.
        """

    @abc.abstractmethod
    def delete(self, package: StoredPackage) -> None:
        """Delete a package.

        :raises CatalogError: if the service refuses, since other packages require this one.
        """

    @abc.abstractmethod
    def download(self, package: StoredPackage) -> Iterator[bytes]:
        """Yield the archive of a package, piece by piece.

        :raises CatalogError: if the download fails.
        """

    @abc.abstractmethod
    def file(self, package: StoredPackage, name: str) -> Iterator[bytes]:
        """Yield a file of a package, piece by piece.

        :param name: ``logo``, ``supplier_logo`` or ``ui_definition``.
        :raises NotFound: if the package does not have the file.
        :raises CatalogError: if the download fails.
        """

    def _without_filter(self) -> errors.CatalogError:
        return errors.CatalogError(
            f"{self.name} lacks the filter of glare-murano; its operator has to add the filter to "
            f"the pipeline in {self.filter_place}"
        )

    def _no_file(self, package: StoredPackage, name: str) -> errors.NotFound:
        return errors.NotFound(f"package {package} in {self.name} has no {name}")

    def _not_found(self, package_id: str) -> errors.NotFound:
        return errors.NotFound(
            f"package {package_id} was not found in {self.name}; check the id, or whether the "
            f"package is private to another project"
        )


def _next_class(answer: Mapping[str, Any]) -> Any:
    classes = answer["subclasses"]
    return wire.get(classes[-1], "class", wire.string) if "next" in answer and classes else None


@contextlib.contextmanager
def explained(subject: str = "") -> Iterator[None]:
    """Raise a refusal with the service's reason as its message, in all its lines.

    :param subject: what was refused; the message begins with it.
    """
    try:
        yield
    except errors.CatalogError as error:
        reason = failures.message_of(error.__cause__)
        if not reason or not isinstance(error.__cause__, _REFUSALS):
            raise
        lines = "\n".join(map(shown, reason.splitlines()))
        raise type(error)(f"{subject}: {lines}" if subject else lines) from error
