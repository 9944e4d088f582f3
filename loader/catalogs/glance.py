# SPDX-License-Identifier: Apache-2.0

"""Clients for packages in Glance: a catalogue for the loader, and a repository for publishers.

A package is an image with the container format ``murano``. The client uses python-glanceclient,
except for requests that the WSGI filter of ``glare_murano`` in Glance answers.

Glance's rules of visibility apply: a project can use its own packages, public packages, and
shared packages that it has accepted. Any project can publish packages with the visibility
``community``, so they are used only if an option allows it. For an administrator's token, Glance
lists the images of every project; images that the project itself cannot see are left out.
"""

import contextlib
import functools
import hashlib
import importlib.util
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

import cachetools
from keystoneauth1 import session as ksa_session
from oslo_config import cfg
from oslo_log import log as logging

from glare_murano import fields, images, wire
from glare_murano.package import (
    Archive,
    GlareMuranoError,
    Version,
    parse_version,
    read_contents,
)
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release
from loader import errors
from loader.catalogs.openstack import PlanningCatalog, ServiceClient, name_lists
from loader.catalogs.options import Options, register
from loader.catalogs.repository import RefusedPackage, Repository, explained, precondition
from loader.catalogs.stored_package import StoredPackage
from loader.transport.failures import Conflict, NoSuchPath
from loader.transport.image_import import QUEUED, import_archive, is_busy
from loader.transport.sessions import Scope

if TYPE_CHECKING:
    from loader.transport.image_service import ImageService

LOG = logging.getLogger(__name__)

# The most characters that an image's name can have.
_MAX_NAME = 255
# The separator of two names in a filter: a comma and two quotation marks.
_SEPARATOR = "%22%2C%22"

_COMMUNITY = cfg.BoolOpt(
    "community_packages",
    default=False,
    help="Whether packages of the visibility 'community' may be chosen as well. Any project can "
    "publish them under any name, so set this only in a cloud whose projects trust each other.",
)


# The largest size of all files in the cache, in bytes.
_MAX_FILES_SIZE = 64 * 2**20


def _size(files: Mapping[str, bytes | None]) -> int:
    # A package without files also takes memory, so its size is not 0.
    return 1 + sum(len(content or b"") for content in files.values())


# The logos and forms of packages, by service, project, image and digest. murano-api requests one
# file at a time, and a catalogue shows the logo of each package. The key has the project: each
# project has to download an archive once, so that Glance checks its access.
_files: cachetools.LRUCache[tuple[str, ...], Mapping[str, bytes | None]]
_files = cachetools.LRUCache(_MAX_FILES_SIZE, _size)
_files_lock = threading.Lock()


class GlanceClient(ServiceClient):
    """A client for images, which needs python-glanceclient."""

    title = "Glance"
    service_type = "image"

    def __init__(self, session: ksa_session.Session, **others: Any) -> None:
        """Make a client; no request is sent.

        :param others: further parameters of ``ServiceClient``.
        :raises CatalogError: if python-glanceclient is not installed.
        """
        super().__init__(session, **others)
        if importlib.util.find_spec("glanceclient") is None:
            raise errors.CatalogError(
                "packages in Glance need python-glanceclient; install glare-murano[engine] or "
                "glare-murano[cli]"
            )

    @functools.cached_property
    def _service(self) -> "ImageService":
        # To import the client takes longer than to load cached packages, and with the filter of
        # ``glare_murano``, a load does not need the client.
        from loader.transport.image_service import ImageService

        return ImageService(self._client)


class GlanceCatalog(GlanceClient, PlanningCatalog):
    """A catalogue of one Glance; it has the packages that a project can use.

    A Glance without the filter of ``glare_murano`` has neither dependency queries nor batches.
    Then the releases are read from lists of images. Glance cannot filter images by class, so each
    search for a class reads all packages.

    >>> catalog = GlanceCatalog(session, project_id="my-project", region_name="north")
    """

    group = "glance"

    def __init__(
        self, session: ksa_session.Session, *, community: bool = False, **others: Any
    ) -> None:
        """Make a catalogue; no request is sent.

        :param community: whether packages of the visibility ``community`` may be chosen.
        :param others: further parameters of ``ServiceClient``.
        :raises CatalogError: if python-glanceclient is not installed.
        """
        super().__init__(session, **others)
        self._community = community
        # The filter never chooses packages of the visibility community.
        self._answers_queries = not community

    def fetch(self, release: Release) -> Iterator[bytes]:
        label = f"the archive of {release} (image {release.id})"
        try:
            yield from self._service.data(release.id, label)
        except NoSuchPath as error:
            raise errors.CatalogError(
                f"{self.name} did not send {label}: it was deleted, or is not visible to the "
                f"project any more"
            ) from error

    def _list(self, field: str, names: Collection[str]) -> Iterator[Release]:
        project, wanted = self.project(), set(names)
        for filters in _name_filters(names) if field == "name" else ({},):
            for image in self._listed(filters):
                release = self._release(image) if images.is_release(image) else None
                # Glance cannot search lists, and MariaDB compares names without regard to case.
                is_found = release and wanted.intersection(_names(release, field))
                if release and is_found and self._is_usable(release, project):
                    yield release

    def _listed(self, filters: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        wanted = {"container_format": images.CONTAINER_FORMAT, "status": images.ACTIVE, **filters}
        if self._community:
            wanted["visibility"] = "all"
        return self._service.listed(wanted)

    def _release(self, image: Mapping[str, Any]) -> Release | None:
        try:
            return images.release(image)
        except GlareMuranoError as error:
            # The filter in Glance also leaves this image out.
            LOG.warning(
                "%s sent the image %s, which is not a valid package: %s",
                self.name,
                image.get("id"),
                error,
            )
            return None

    def _is_usable(self, release: Release, project: str | None) -> bool:
        if release.visibility == "shared" and project and release.owner != project:
            return self._service.is_member(release.id, project)
        return (
            (release.owner == project and project is not None)
            or release.visibility == "public"
            or (release.visibility == "community" and self._community)
        )


class GlanceRepository(GlanceClient, Repository):
    """A client that finds and changes the packages in one Glance, with the rights of one user.

    An archive is first staged, and Glance checks it during the import. The id of an image is
    computed from the project, the name and the version. So after a refused import, ``create``
    returns the same draft again. Glance keeps the id of a deleted release, so this version cannot
    be published again. The id of a deleted draft can be used again.
    """

    filter_place = "glance-api-paste.ini"
    replaces_archives = False

    def get(self, package_id: str) -> StoredPackage:
        with self._existing(package_id):
            image = self._service.get(package_id)
        return self._found(image)

    def blocked(self, packages: Sequence[PackageVersion]) -> Mapping[PackageVersion, str]:
        reasons = {}
        for start in range(0, len(packages), wire.MAX_PUBLICATIONS):
            share = packages[start : start + wire.MAX_PUBLICATIONS]
            by_name = {(each.fqn, str(each.version)): each for each in share}
            for item in self._deletions([{"name": n, "version": v} for n, v in by_name]):
                names = (
                    wire.get(item, "name", wire.string),
                    wire.get(item, "version", wire.string),
                )
                if package := by_name.get(names):
                    reasons[package] = self._why_blocked(str(package))
        return reasons

    def _deletions(self, listed: Sequence[Mapping[str, str]]) -> list[Any]:
        body = {"packages": listed}
        try:
            answer = self._client.document("POST", wire.DELETIONS_PATH, "deletions", json=body)
        except NoSuchPath as error:
            raise self._without_filter() from error
        return wire.get(answer, "packages", wire.sequence)

    def create(self, fqn: str, version: Version, **values: Any) -> StoredPackage:
        project = self.project()
        if project is None:
            raise errors.CatalogError(
                f"{self.name}: the id of an image follows from its project, and the project of "
                f"the credentials is unknown; use credentials of a project"
            )
        package_id = images.image_id(project, fqn, version)
        properties = images.own_properties(version=str(version), **values)
        try:
            created = self._service.create(
                id=package_id,
                name=fqn,
                container_format=images.CONTAINER_FORMAT,
                disk_format=images.DISK_FORMAT,
                visibility="private",
                os_hidden=True,
                **properties,
            )
        except Conflict as error:
            return self._existing_draft(package_id, f"{fqn} {version}", error)
        return self._found(created)

    def upload(self, draft: StoredPackage, archive: IO[bytes], size: int) -> StoredPackage:
        label = f"the archive of {draft}"
        image = import_archive(self._service, draft.id, archive, size, label)
        if image["status"] == QUEUED:
            reason = image.get(images.REFUSAL)
            if is_busy(image):
                raise errors.CatalogUnavailable(
                    f"{self.name} did not read {draft} in several attempts: {reason}; run the "
                    f"same command again later"
                )
            if reason:
                raise RefusedPackage(f"{self.name} refused {draft}: {reason}")
            raise errors.CatalogError(
                f"{self.name} refused {draft}: the import failed; see the log of the service"
            )
        package = self._found(image)
        archive.seek(0)
        digest = hashlib.file_digest(archive, "sha256").hexdigest()  # type: ignore[arg-type]
        if package.digest != digest:
            raise errors.CatalogError(
                f"{self.name} has other files of {draft} already (image {draft.id}), which Glance "
                f"never replaces; delete this draft, or publish these files as another version"
            )
        return package

    def change(self, package: StoredPackage, **values: Any) -> StoredPackage:
        others = dict(values)
        if "status" in others:
            is_active = others.pop("status") == images.ACTIVE
            change = self._service.reactivate if is_active else self._service.deactivate
            verb = "reactivate" if is_active else "deactivate"
            with explained(f"cannot {verb} {package}"), self._existing(package.id):
                change(package.id)
        if others:
            properties = images.own_properties(**others)
            with explained(f"cannot change {package}"), self._existing(package.id):
                self._service.update(package.id, properties, precondition(package, others))
        return self.get(package.id)

    def delete(self, package: StoredPackage) -> None:
        with explained(f"cannot delete {package}"), self._existing(package.id):
            self._service.delete(package.id)

    def download(self, package: StoredPackage) -> Iterator[bytes]:
        return self._service.data(package.id, f"the archive of {package}")

    def file(self, package: StoredPackage, name: str) -> Iterator[bytes]:
        # The data of an image never changes.
        key = (self.name, self.project() or "", package.id, package.digest)
        with _files_lock:
            files = _files.get(key)
        if files is None:
            files = self._read_files(package)
            with _files_lock:
                _files[key] = files
        content = files[name]
        if content is None:
            raise self._no_file(package, name)
        return iter([content])

    def _read_files(self, package: StoredPackage) -> Mapping[str, bytes | None]:
        """Read the files of a package from its archive, since Glance keeps only the archive."""
        with tempfile.TemporaryFile() as archive:
            archive.writelines(self.download(package))
            with Archive.open(archive, self._limits) as opened:
                contents = read_contents(opened)
        return {blob.name: blob.fill(contents) for blob in fields.BLOBS}

    def _existing_draft(self, package_id: str, label: str, conflict: Conflict) -> StoredPackage:
        """Return the existing draft of a package, after Glance has refused to create it again.

        :param label: the name and the version of the package, for messages.
        :param conflict: the error with which Glance has refused the creation.
        :raises CatalogError: if the package is a release, or was deleted after its publication.
        """
        try:
            package = self.get(package_id)
        except errors.NotFound:
            raise errors.CatalogError(self._why_blocked(label)) from conflict
        if package.status != "drafted":
            raise errors.CatalogError(
                f"{self.name} has {label} already (image {package_id})"
            ) from conflict
        return package

    def _why_blocked(self, label: str) -> str:
        """Return, for a message, why a package that was deleted cannot be created again."""
        return (
            f"{label} was deleted from {self.name} after its publication, and Glance keeps its id; "
            f"publish these files as another version"
        )

    @contextlib.contextmanager
    def _existing(self, package_id: str) -> Iterator[None]:
        """Raise ``NotFound`` if the ``with`` block finds that a package's image is missing."""
        try:
            yield
        except NoSuchPath as error:
            raise self._not_found(package_id) from error

    def _found(self, image: Mapping[str, Any]) -> StoredPackage:
        package = self._stored(image)
        if package is None:
            raise self._not_found(str(image.get("id")))
        return package

    def _stored(self, image: Mapping[str, Any]) -> StoredPackage | None:
        """Return the package in an image; None if the image is not a package."""
        version = images.version(image)
        if version is None or image.get("container_format") != images.CONTAINER_FORMAT:
            return None
        try:
            return StoredPackage(
                id=wire.get(image, "id", wire.string),
                fqn=wire.get(image, "name", wire.string),
                version=parse_version(version),
                status=_status(image),
                visibility=wire.get(image, "visibility", wire.string),
                owner=image.get("owner") or "",
                fields=images.stored_fields(image),
            )
        except GlareMuranoError as error:
            raise errors.CatalogError(
                f"{self.name} sent an unknown form of the image {image.get('id')}: {error}"
            ) from error


def _name_filters(fqns: Collection[str]) -> Iterator[Mapping[str, str]]:
    """Split package names into lists, and yield Glance's filter for the names in each list."""
    for names in name_lists(fqns, _MAX_NAME, _SEPARATOR):
        quoted = ",".join(f'"{name}"' for name in names)
        yield {"name": f"in:{quoted}"}


def _names(release: Release, field: str) -> Collection[str]:
    """Return the names in a field of a release.

    :param field: ``name`` for the FQN, ``class_definitions`` for the classes, or ``inherits`` for
        the base classes.
    """
    if field == "name":
        return (release.fqn,)
    return release.classes if field == "class_definitions" else release.inherits.keys()


def _status(image: Mapping[str, Any]) -> str:
    """Return the status of the package in an image: ``drafted``, ``active`` or ``deactivated``."""
    if image.get("status") == images.DEACTIVATED:
        return images.DEACTIVATED
    return images.ACTIVE if images.is_release(image) else "drafted"


def _options() -> Options:
    options = dict(GlanceCatalog.service_options())
    return {**options, GlanceCatalog.group: [*options[GlanceCatalog.group], _COMMUNITY]}


OPTIONS = _options()


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[GlanceCatalog]:
    """Make the catalogue of packages in Glance; this is an entry point."""
    register(conf, OPTIONS)
    community = conf[GlanceCatalog.group].community_packages
    return [GlanceCatalog.configured(conf, scope, community=community)]
