# SPDX-License-Identifier: Apache-2.0

"""Define the base classes of clients for OpenStack services that keep packages."""

import abc
import dataclasses
import logging
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from glare_murano import archive_limits, fields, wire
from glare_murano.package import GlareMuranoError, InvalidName
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Limits
from glare_murano.package.manifest import check_required_name
from glare_murano.selection import Selection
from glare_murano.wire import Answer, Query, Release
from loader import errors, time_limits
from loader.catalogs import base, options
from loader.catalogs.batches import BATCH_ERRORS, read_batch
from loader.catalogs.options import Options, register
from loader.counters import Counters
from loader.transport import download, limited_sessions, retries, sessions
from loader.transport.adapter import ServiceAdapter
from loader.transport.failures import NoSuchPath
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

# How many seconds a batch may take; other processes wait for its archives meanwhile.
_BATCH_TIMEOUT = 60
# How many packages one page of a list has.
PAGE = 500
# The most characters that the name of a package or a class can have.
_MAX_NAME = 255
# The most characters of all names in one URL. Servers accept a URL of 8190 characters.
_NAMES_LENGTH = 4000

_WAITS = [
    cfg.Opt(
        "request_timeout",
        type=options.Seconds(min=1),
        default=sessions.DEFAULT_REQUEST_TIMEOUT,
        help="How many seconds a request to a service may take, with all its retries and the "
        "waits between them. Archives are limited by min_download_rate instead.",
    ),
    cfg.IntOpt(
        "min_download_rate",
        min=1,
        default=download.DEFAULT_MIN_RATE,
        help="The lowest rate at which an archive may arrive, in bytes per second. A download "
        "that falls behind it by two minutes ends with an error.",
    ),
]


class ServiceClient:
    """A client for the packages in an OpenStack service, with the rights of one user.

    :cvar title: the service's name in messages.
    :cvar service_type: the service's type in Keystone's catalogue.
    :ivar name: the service's name in messages, with its URL or region.
    """

    title: ClassVar[str]
    service_type: ClassVar[str]

    def __init__(
        self,
        session: ksa_session.Session,
        *,
        project_id: str | None = None,
        endpoint: str | None = None,
        interface: str | None = None,
        region_name: str | None = None,
        attempts: int = retries.DEFAULT_ATTEMPTS,
        request_timeout: float = sessions.DEFAULT_REQUEST_TIMEOUT,
        min_download_rate: int = download.DEFAULT_MIN_RATE,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Make a client; no request is sent.

        :param session: a keystoneauth session with credentials.
        :param project_id: the user's project, whose private packages may be used; by default
            the project of the session.
        :param endpoint: the service's URL; by default the URL in Keystone's catalogue.
        :param interface: ``public``, ``internal`` or ``admin``.
        :param region_name: the region whose URL is used; by default any.
        :param attempts: how often a request is sent at most, if its failures are temporary.
        :param request_timeout: how long a request and its retries may take, in seconds.
        :param min_download_rate: the lowest rate of a download, in bytes per second. A download
            fails if it falls behind this rate by two minutes.
        :param limits: the limits of an archive.
        """
        if not isinstance(session, ksa_session.Session):
            raise TypeError(f"{session!r} is not a keystoneauth session")
        self.name = self.title
        if endpoint or region_name:
            self.name += f" at {endpoint}" if endpoint else f" of the region {region_name}"
        self._counters = Counters()
        self._project_id = project_id
        self._limits = limits
        self._client = ServiceAdapter(
            session,
            self.name,
            self._counters,
            attempts,
            time_limits.check(request_timeout, "request_timeout"),
            min_download_rate,
            limits,
            service_type=self.service_type,
            endpoint_override=endpoint,
            interface=interface,
            region_name=region_name,
        )

    def __repr__(self) -> str:
        project = self._project_id or "of the session"
        return f"<{type(self).__name__}: {self.name}, project {project}>"

    def project(self) -> str | None:
        """Return the id of the user's project; None if it is unknown.

        :raises CatalogError: if the user cannot authenticate.
        """
        if self._project_id is None:
            self._project_id = self._client.authenticated_project()
        return self._project_id

    def url(self) -> str | None:
        """Return the URL of the service; None if Keystone's catalogue does not have it.

        :raises CatalogError: if the user cannot authenticate.
        """
        return self._client.endpoint()


class ServiceCatalog(ServiceClient, base.Catalog):
    """A catalogue of one OpenStack service; it has the packages that a project can use.

    :cvar group: the group of the catalogue's options in the configuration file.
    """

    group: ClassVar[str]
    # The session, if the catalogue has to close it.
    _own_session: ksa_session.Session | None = None

    def close(self) -> None:
        if self._own_session is not None:
            limited_sessions.close(self._own_session)

    def remedy(self, missing: str) -> str:
        # The message must not reveal whether another project has the package.
        return f"publish {missing}, or have one that is private to another project made public"

    @classmethod
    def service_options(cls) -> Options:
        """Return the options for the service's endpoint and for sessions."""
        region = cfg.StrOpt("home_region", help="The region of the services. By default any.")
        url = cfg.StrOpt(
            "url",
            help=f"URL of {cls.title}. By default it is looked up in Keystone's catalogue, with "
            f"the service type '{cls.service_type}'.",
        )
        interface = cfg.StrOpt(
            "endpoint_type",
            default="publicURL",
            help=f"The endpoint of {cls.title} to use: publicURL, internalURL or adminURL.",
        )
        session_options = ksa_loading.get_session_conf_options()
        return {
            "DEFAULT": [region],
            cls.group: [url, interface, *session_options],
            options.GROUP: [*_WAITS, *archive_limits.OPTIONS],
        }

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, scope: Scope, **others: Any) -> Self:
        """Make a catalogue for a scope from the options.

        :param others: further parameters of the class.
        :raises CatalogError: if the scope has no session, or an option is invalid.
        """
        register(conf, cls.service_options())
        url = conf[cls.group].url
        if url and not url.lower().startswith(("http://", "https://")):
            raise errors.CatalogError(
                f"[{cls.group}] url = {url}: expected a complete URL, such as "
                f"http://{cls.group}.example.org"
            )
        session = sessions.for_service(conf, cls.group, scope)
        made = cls(
            session,
            project_id=scope.project_id,
            endpoint=url,
            interface=conf[cls.group].endpoint_type,
            region_name=scope.region_name or conf.home_region,
            request_timeout=conf[options.GROUP].request_timeout,
            min_download_rate=conf[options.GROUP].min_download_rate,
            limits=archive_limits.limits(conf[options.GROUP]),
            **others,
        )
        if scope.is_own or session is not scope.session:
            made._own_session = session
        return made


class PlanningCatalog(ServiceCatalog):
    """A catalogue in a service that may have the filter of ``glare_murano``.

    The filter answers a dependency query in one request, lists packages by any condition, and sends
    several archives in one answer. A service without the filter has only its own lists.
    """

    gives_batches = True
    _answers_queries = True

    def releases(self, fqn: str) -> Iterable[Release]:
        return self.releases_of([fqn])

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return self._find("class_definitions", [class_name])

    def releases_extending(self, class_names: Collection[str]) -> Iterable[Release]:
        return self._find("inherits", class_names)

    def releases_of(self, fqns: Collection[str]) -> Iterable[Release]:
        return self._find("name", fqns)

    @abc.abstractmethod
    def _list(self, field: str, names: Collection[str]) -> Iterable[Release]:
        """Yield the releases that have one of the given names in a field, in any order.

        They are read from the service's own lists. Releases that the project cannot use are left
        out.

        :param field: ``name``, ``class_definitions`` or ``inherits``. The last two contain the
            names of classes and of base classes.
        """

    def _find(self, field: str, names: Collection[str]) -> list[Release]:
        """Return the releases that have one of the given names in a field, the newest first.

        If several releases have the same version, the preferred release comes first. ``_list`` has
        the same parameters.
        """
        queried = self._query(field, names) if self._answers_queries else None
        found = self._list(field, names) if queried is None else queried
        project = self.project()
        # As in the filter, the project's own release is preferred, then a public one.
        ranked = sorted(
            {release.id: release for release in found}.values(),
            key=lambda r: (r.owner == project, r.visibility == "public", r.id),
            reverse=True,
        )
        return base.newest_first(ranked)

    def _query(self, field: str, names: Collection[str]) -> list[Release] | None:
        """Return the releases that the filter lists; None if the service does not have the filter.

        The parameters are those of ``_list``.
        """
        # No project has an empty id, so for this id only public packages are listed.
        project = self.project() or ""
        found: list[Release] = []
        try:
            for share in name_lists(names, _MAX_NAME, f"&{field}="):
                selection = Selection({field: share}, project_id=project)
                found += map(self.release, packages_in(self._client, selection.parameters()))
        except NoSuchPath:
            self._stop_queries()
            return None
        return found

    def release(self, content: Any) -> Release:
        """Read a release from the JSON of an artifact in Glare.

        :raises CatalogError: if the content is not the JSON of such a release.
        """
        try:
            archive = wire.get(content, fields.ARCHIVE, wire.mapping)
            owner = "" if content.get("owner") is None else content["owner"]
            # Without this check, a release without a visibility would count as the operator's.
            wire.get(content, "visibility", wire.string)
            digest = {"sha256": archive.get("sha256"), "size": archive.get("size")}
            return wire.release_from_json({**content, "owner": owner, **digest})
        except GlareMuranoError as error:
            raise errors.CatalogError(
                f"{self.name} sent a package in an unknown form: {error}"
            ) from error

    def resolve(self, query: Query) -> Answer | None:
        if not self._answers_queries:
            return None
        # No project has an empty id, so for this id only public packages are chosen.
        scoped = dataclasses.replace(query, project_id=self.project() or "")
        body = wire.query_to_json(scoped)
        if body is None:
            return None
        try:
            wanted = (f"{name} {spec}" for name, spec in (*query.requirements, *query.classes))
            subject = f"the closure of {errors.listed(wanted)} (POST {wire.DEPENDENCIES_PATH})"
            answer = self._client.document("POST", wire.DEPENDENCIES_PATH, subject, json=body)
            if answer is not None:
                return wire.answer_from_json(answer)
        except NoSuchPath:
            pass
        except wire.Malformed as error:
            raise errors.CatalogError(
                f"{self.name} answered a dependency query in an unknown form: {error}"
            ) from error
        self._stop_queries()
        return None

    def _stop_queries(self) -> None:
        LOG.info("%s has no dependency queries; its lists are used, level by level", self.name)
        self._answers_queries = False

    def batch(self, releases: Collection[Release]) -> Iterator[tuple[Release, bytes]]:
        by_id = {release.id: release for release in releases}
        sizes = {release.id: release.size or 0 for release in releases}
        label = "several archives in one answer"
        body = {"artifacts": list(by_id)}
        pieces = self._client.stream("POST", wire.ARCHIVES_PATH, label, _BATCH_TIMEOUT, json=body)
        try:
            for artifact_id, archive in read_batch(pieces, sizes):
                self.counters.count(bytes=len(archive))
                yield by_id[artifact_id], archive
            # The connection can be used again only if the end of the answer was read.
            next(pieces, b"")
        except NoSuchPath:
            self.gives_batches = False
        except BATCH_ERRORS as error:
            raise errors.CatalogError(f"{self.name} did not send {label}: {error}") from error
        finally:
            pieces.close()


def packages_in(
    client: ServiceAdapter,
    parameters: Iterable[tuple[str, str]],
    marker: str | None = None,
    page: int | None = None,
) -> Iterator[Any]:
    """Yield the packages that the filter of ``glare_murano`` lists, as JSON.

    A page of the list is requested when its first package is needed.

    :param parameters: the conditions and the order; see ``Selection.parameters``.
    :param marker: the place in the order after which packages are listed; see ``Order.marker``.
    :param page: how many packages one request returns at most.
    :raises NoSuchPath: if the service lacks the filter.
    :raises CatalogError: if the service refuses a condition, or does not answer.
    """
    query = [*parameters, ("limit", str(page or PAGE))]
    return client.items(wire.PACKAGES_PATH, "packages", query, _next_marker, marker)


def _next_marker(answer: Mapping[str, Any]) -> str | None:
    """Return the marker of the next page; None on the last page.

    :raises ValueError: if the URL of the next page is not a URL.
    """
    query = urllib.parse.urlsplit(str(answer.get("next", ""))).query
    return next(iter(urllib.parse.parse_qs(query).get("marker", ())), None)


def name_lists(fqns: Collection[str], max_length: int, separator: str) -> Iterator[list[str]]:
    """Split names into lists, so that the names in each list fit into one URL.

    Names that no package can have are left out.

    :param max_length: how many characters a name can have in the service at most.
    :param separator: the characters between two names in the URL.
    """
    names: list[str] = []
    length = 0
    for fqn in dict.fromkeys(fqns):
        if len(fqn) > max_length or not _is_name(fqn):
            continue
        if names and length + len(fqn) > _NAMES_LENGTH:
            yield names
            names, length = [], 0
        names.append(fqn)
        length += len(fqn) + len(separator)
    if names:
        yield names


def _is_name(fqn: str) -> bool:
    try:
        check_required_name(fqn)
    except InvalidName:
        return False
    return True
