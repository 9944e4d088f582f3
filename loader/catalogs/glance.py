# SPDX-License-Identifier: Apache-2.0

"""Releases in Glance, the image service, read with python-glanceclient.

Glance's rules of visibility apply: a project can use its own packages, public packages, and
shared packages that it has accepted. Any project can publish packages with the visibility
``community``, so they are used only if an option allows it. For an administrator's token, Glance
lists the images of every project; images that the project itself cannot see are left out.
"""

import functools
import importlib.util
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from keystoneauth1 import session as ksa_session
from oslo_config import cfg
from oslo_log import log as logging

from glare_murano import images
from glare_murano.package import GlareMuranoError
from glare_murano.wire import Answer, Query, Release
from loader import errors
from loader.catalogs import base
from loader.catalogs.name_lists import name_lists
from loader.catalogs.options import Options, register
from loader.catalogs.planning import PlanningCatalog
from loader.transport.adapter import ServiceAdapter
from loader.transport.failures import NoSuchPath
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


class GlanceCatalog(PlanningCatalog):
    """The packages in a Glance that a project can use.

    A Glance without the filter of ``glare_murano`` has neither queries nor batches. Its lists
    of images give the same releases. Glance cannot filter them by class, so each search for a
    class reads all packages.

    >>> catalog = GlanceCatalog(session, project_id="my-project", region_name="north")
    """

    title = "Glance"
    service_type = "image"
    group = "glance"

    def __init__(
        self, session: ksa_session.Session, *, community: bool = False, **others: Any
    ) -> None:
        """Make a catalogue; no request is sent.

        :param community: whether packages of the visibility ``community`` may be chosen.
        :param others: further parameters of ``ServiceCatalog``.
        :raises CatalogError: if python-glanceclient is not installed.
        """
        super().__init__(session, **others)
        self._community = community
        check_client()

    @functools.cached_property
    def _service(self) -> "ImageService":
        # To import the client takes longer than to load cached packages, and with the filter of
        # ``glare_murano``, a load does not need the client.
        return image_service(self._client)

    def releases(self, fqn: str) -> Iterable[Release]:
        return base.newest_first(self.known([fqn]))

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        usable = self._of_project(self._listed({}))
        return base.newest_first(r for r in usable if class_name in r.classes)

    def releases_extending(self, class_names: Collection[str]) -> Collection[Release]:
        # The subclasses are a property in JSON, which Glance cannot search.
        usable = self._of_project(self._listed({}))
        names = set(class_names)
        return [release for release in usable if names & release.inherits.keys()]

    def known(self, fqns: Collection[str]) -> Iterator[Release]:
        for names, filters in name_filters(fqns):
            found = self._listed(filters)
            # MariaDB compares names without regard to case.
            yield from self._of_project(release for release in found if release.fqn in names)

    def resolve(self, query: Query) -> Answer | None:
        # The filter never chooses packages of the visibility community.
        return None if self._community else super().resolve(query)

    def fetch(self, release: Release) -> Iterator[bytes]:
        label = f"the archive of {release} (image {release.id})"
        try:
            yield from self._service.data(release.id, label)
        except NoSuchPath as error:
            raise errors.CatalogError(
                f"{self.name} did not send {label}: it was deleted, or is not visible to the "
                f"project any more"
            ) from error

    def _listed(self, filters: Mapping[str, str]) -> Iterator[Release]:
        """Yield the releases in the images that match filters."""
        wanted = {"container_format": images.CONTAINER_FORMAT, "status": images.ACTIVE, **filters}
        if self._community:
            wanted["visibility"] = "all"
        for image in self._service.listed(wanted):
            release = self._release(image) if images.is_release(image) else None
            if release is not None:
                yield release

    def _release(self, image: Mapping[str, Any]) -> Release | None:
        try:
            return images.release(image)
        except GlareMuranoError as error:
            # The filter in Glance leaves this image out as well.
            LOG.warning(
                "%s sent the image %s, which is not a valid package: %s",
                self.name,
                image.get("id"),
                error,
            )
            return None

    def _of_project(self, releases: Iterable[Release]) -> Collection[Release]:
        """Return the releases that the project may use.

        As in the filter, the project's own release is preferred, then a public one.
        """
        project = self._project()
        ranked = sorted(
            releases,
            key=lambda r: (r.owner == project, r.visibility == "public", r.id),
            reverse=True,
        )
        return [release for release in ranked if self._is_usable(release, project)]

    def _is_usable(self, release: Release, project: str | None) -> bool:
        if release.visibility == "shared" and project and release.owner != project:
            return self._service.is_member(release.id, project)
        return (
            (release.owner == project and project is not None)
            or release.visibility == "public"
            or (release.visibility == "community" and self._community)
        )


def name_filters(fqns: Collection[str]) -> Iterator[tuple[Collection[str], Mapping[str, str]]]:
    """Yield lists of package names, each with the filter that finds the images for them."""
    for names in name_lists(fqns, _MAX_NAME, _SEPARATOR):
        quoted = ",".join(f'"{name}"' for name in names)
        yield names, {"name": f"in:{quoted}"}


def check_client() -> None:
    """Check that python-glanceclient is installed, without importing it.

    :raises CatalogError: if it is not installed.
    """
    if importlib.util.find_spec("glanceclient") is None:
        raise errors.CatalogError(
            "packages in Glance need python-glanceclient; install glare-murano[engine] or "
            "glare-murano[cli]"
        )


def image_service(adapter: ServiceAdapter) -> "ImageService":
    """Return a client for images."""
    from loader.transport.image_service import ImageService

    return ImageService(adapter)


def _options() -> Options:
    options = dict(GlanceCatalog.service_options())
    return {**options, GlanceCatalog.group: [*options[GlanceCatalog.group], _COMMUNITY]}


OPTIONS = _options()


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[GlanceCatalog]:
    """Make the catalogue of the entry point ``glance``."""
    register(conf, OPTIONS)
    community = conf[GlanceCatalog.group].community_packages
    return [GlanceCatalog.configured(conf, scope, community=community)]
