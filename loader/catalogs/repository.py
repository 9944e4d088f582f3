# SPDX-License-Identifier: Apache-2.0

"""Find, create, upload, publish, change, download and delete packages in a service.

Unlike a catalogue, a repository also has drafts and deactivated packages. Publishers and the filter
for murano-api use repositories; the loader uses catalogues.
"""

import abc
import contextlib
import dataclasses
import random
import time
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar, NamedTuple

from keystoneauth1 import exceptions as ksa_exceptions

from glare_murano import preconditions, wire
from glare_murano.package import Version, VersionSpec
from glare_murano.package.errors import shown
from glare_murano.package_order import BY_NAME, Order
from glare_murano.resolver import PackageVersion
from glare_murano.selection import Selection
from loader import errors
from loader.catalogs.base import own_first
from loader.catalogs.openstack import ServiceClient, name_lists, packages_in
from loader.catalogs.stored_package import ACTIVE, EVERY, StoredPackage, Visibility
from loader.references import AmbiguousReference, PackageReference
from loader.transport import failures
from loader.transport.failures import Conflict, NoSuchPath

# The most characters that the name of a package can have.
_MAX_NAME = 255
# The longest time before each further attempt to edit a package, in seconds.
_EDIT_WAITS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
# For these errors, the service sends a message that says what to do.
_REFUSALS = (
    ksa_exceptions.BadRequest,
    ksa_exceptions.Forbidden,
    ksa_exceptions.Conflict,
    ksa_exceptions.RequestEntityTooLarge,
)


class Category(NamedTuple):
    """A category of packages.

    :ivar packages: how many packages have the category; all versions of a package count once.
    :ivar created_at: when the oldest package with the category was created.
    :ivar updated_at: when the newest package with the category was created.
    """

    packages: int
    created_at: str
    updated_at: str


class RefusedPackage(errors.CatalogError):
    """The service refused the archive of a package, since the archive breaks a rule."""


class Repository(ServiceClient, abc.ABC):
    """A client that finds and changes the packages in one service, with the rights of one user.

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

    def packages(
        self,
        selection: Selection = EVERY,
        order: Order = BY_NAME,
        marker: str | None = None,
        page: int | None = None,
    ) -> Iterator[StoredPackage]:
        """Yield the packages that meet a selection.

        A page of the list is requested when its first package is needed.

        :param marker: the place in the order after which packages are listed; see ``Order.marker``.
        :param page: how many packages one request returns at most.
        :raises CatalogError: if the service refuses a condition, or does not answer.
        """
        query = [*selection.parameters(), ("sort", str(order))]
        try:
            for item in packages_in(self._client, query, marker, page):
                yield StoredPackage.from_json(item, self.name)
        except NoSuchPath as error:
            raise self._without_filter() from error

    def named(self, fqns: Collection[str], selection: Selection = EVERY) -> Iterator[StoredPackage]:
        """Yield the packages that have one of the given names and meet a selection, in any order.

        :raises CatalogError: if the service does not answer.
        """
        return self._with_one_of("name", fqns, selection)

    def _with_one_of(
        self, condition: str, fqns: Collection[str], selection: Selection
    ) -> Iterator[StoredPackage]:
        """Yield the packages that meet a selection, and one more condition.

        :param condition: the name of this condition, such as ``name`` or ``requirements``.
        :param fqns: the values of this condition: a package has to meet it with one of them.
        """
        for names in name_lists(fqns, _MAX_NAME, f"&{condition}="):
            values = {**selection.values, condition: names}
            yield from self.packages(dataclasses.replace(selection, values=values))

    def categories(self, statuses: Collection[str]) -> Mapping[str, Category]:
        """Return the categories of all packages that have one of the given statuses.

        :returns: a mapping of the categories' names to the categories.
        :raises CatalogError: if the service does not answer.
        """
        query = urllib.parse.urlencode([("status", status) for status in statuses])
        try:
            answer = self._client.document("GET", f"{wire.CATEGORIES_PATH}?{query}", "categories")
        except NoSuchPath as error:
            raise self._without_filter() from error
        return {
            wire.get(item, "name", wire.string): Category(
                wire.get(item, "packages", wire.size),
                wire.get(item, "created_at", wire.string),
                wire.get(item, "updated_at", wire.string),
            )
            for item in wire.get(answer, "categories", wire.sequence)
        }

    @abc.abstractmethod
    def get(self, package_id: str) -> StoredPackage:
        """Return a package by its id.

        :raises NotFound: if no package has this id, or the package is private to another project.
        """

    def find(
        self, reference: PackageReference, selection: Selection = EVERY
    ) -> list[StoredPackage]:
        """Return the packages that match a reference, the newest first.

        Of equal versions, the project's own package comes first, since the loader prefers it.

        :param selection: further conditions; for an id, they are not checked.
        :raises NotFound: if no package matches; the message lists the versions outside the range.
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
        """Return the only package that matches a reference.

        If several owners have the same version, the project's own package is returned.

        :raises NotFound: if no package matches.
        :raises AmbiguousReference: if several versions match, or packages of several other owners.
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
        """Return the newest release that matches a reference; for an id, the package with this id.

        Only active packages are releases. A yanked release is chosen only if all releases in the
        range are yanked. A package with the given id is returned in any state.

        :raises NotFound: if no package matches.
        """
        if reference.id:
            return self.get(reference.id)
        found = self.find(reference, ACTIVE)
        return next((package for package in found if not package.yanked), found[0])

    def name_and_range(self, reference: PackageReference) -> tuple[str, VersionSpec]:
        """Return the name and the range in a reference, for a search in a catalogue.

        A catalogue cannot search for ids. So for an id, the package is read, and its name and a
        range of only its version are returned.

        :raises NotFound: if no package has the id in the reference.
        """
        if not reference.id:
            return reference.fqn, reference.spec
        package = self.get(reference.id)
        return package.fqn, VersionSpec.exactly(package.version)

    def blocked(self, packages: Sequence[PackageVersion]) -> Mapping[PackageVersion, str]:
        """Return which packages can no longer be created in the service, and why.

        :param packages: packages that the service does not have.
        :returns: a mapping of the packages that cannot be created to the reasons.
        :raises CatalogError: if the service does not answer.
        """
        return {}

    def checks(self) -> Mapping[str, str]:
        """Return the value of each option in ``wire.CHECKS``, as the service's operator has set it.

        The options say which checks the service enforces, such as ``check_requirements``.

        :raises CatalogError: if the service does not answer, or lacks the filter.
        """
        try:
            answer = self._client.document("GET", wire.VERSION_PATH)
        except NoSuchPath as error:
            raise self._without_filter() from error
        version = wire.get(answer, "version", wire.mapping)
        return wire.get(version, "checks", wire.checks_from_json)

    def requiring(self, fqns: Collection[str]) -> Iterator[StoredPackage]:
        """Yield the active packages that require one of the given packages, in any range.

        They come in any order.

        :raises CatalogError: if the service does not answer.
        """
        found = self._with_one_of("requirements", fqns, ACTIVE)
        return iter({package.id: package for package in found}.values())

    @abc.abstractmethod
    def create(self, fqn: str, version: Version, **values: Any) -> StoredPackage:
        """Create a draft without an archive; in Glance, return the draft if it exists already.

        :param values: the values of mutable fields, such as ``categories``. They are not set for a
            draft that exists already.
        :raises CatalogError: if the project has a release with this name and version, or, in
            Glare, a draft.
        """

    @abc.abstractmethod
    def upload(self, draft: StoredPackage, archive: IO[bytes], size: int) -> StoredPackage:
        """Upload the archive of a draft; the service reads all other fields from the archive.

        :param archive: the ZIP file, which can be read again from its beginning.
        :param size: the size of the ZIP file in bytes.
        :raises RefusedPackage: if Glance refuses the archive, since it breaks a rule.
        :raises CatalogError: if the upload fails, or if Glare refuses the archive, since it breaks
            a rule.
        """

    def publish(
        self,
        packages: Iterable[StoredPackage],
        visibility: Visibility,
        *,
        is_dry_run: bool = False,
    ) -> Mapping[str, str]:
        """Activate all packages or none; with the visibility ``public``, make them public.

        :param is_dry_run: if true, the service only checks whether it would do so.
        :returns: a mapping of each package's id to the SHA-256 of its archive, in hexadecimal.
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

        :raises Conflict: if a value is a list, such as the tags, and another client has changed
            this list since the package was read.
        :raises CatalogError: if the service refuses the change.
        """

    def edit(
        self, package: StoredPackage, edit: Callable[[StoredPackage], Mapping[str, Any]]
    ) -> StoredPackage:
        """Change fields of a package to values that depend on their present values, such as tags.

        If another client changes the package at the same time, the package is read again, and
        the edit is repeated.

        :param edit: a function that takes the package, and returns the new values of fields; if it
            returns no value, nothing is changed.
        :raises Conflict: if other clients keep changing the package.
        :raises CatalogError: if the service refuses the change.
        """
        for wait in _EDIT_WAITS:
            values = edit(package)
            if not values:
                return package
            try:
                return self.change(package, **values)
            except Conflict:
                time.sleep(random.uniform(0, wait))  # noqa: S311 - no secret
                package = self.get(package.id)
        return self.change(package, **edit(package))

    @abc.abstractmethod
    def delete(self, package: StoredPackage) -> None:
        """Delete a package.

        :raises CatalogError: if the service refuses, for example since other packages require the
            package.
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


@contextlib.contextmanager
def explained(subject: str = "") -> Iterator[None]:
    """Raise an error with the service's own message, if the service refuses a request.

    This applies to all requests in the ``with`` block. Other errors are not changed.

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


def precondition(package: StoredPackage, values: Mapping[str, Any]) -> dict[str, str]:
    """Return a header for a request that changes lists of a package, such as its tags.

    With this header, the service refuses the request if another client has changed one of the lists
    since the package was read. ``glare_murano.preconditions`` describes the header.

    :param package: the package, as it was read.
    :param values: the new values of fields.
    :returns: an empty mapping if no value is a list.
    """
    lists = {
        name: package.fields.get(name) or []
        for name, value in values.items()
        if isinstance(value, list)
    }
    return {preconditions.HEADER: preconditions.write(lists)} if lists else {}
