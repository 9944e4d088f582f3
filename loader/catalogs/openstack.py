# SPDX-License-Identifier: Apache-2.0

"""The base classes of clients for OpenStack services: session, project, queries, options."""

import dataclasses
import logging
from collections.abc import Collection, Iterator
from typing import Any, ClassVar, Self

from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from glare_murano import wire
from glare_murano.package import InvalidName
from glare_murano.package.archive_rules import DEFAULT_LIMITS, Limits
from glare_murano.package.manifest import check_required_name
from glare_murano.wire import Answer, Query, Release
from loader import errors
from loader.catalogs import base, options
from loader.catalogs.batches import BATCH_ERRORS, read_batch
from loader.catalogs.options import Options, register
from loader.counters import Counters
from loader.transport import download, retries, sessions
from loader.transport.adapter import ServiceAdapter
from loader.transport.failures import NoSuchPath
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

# How many seconds a batch may take; other processes wait for its archives meanwhile.
_BATCH_TIMEOUT = 60
# The characters that all names in one URL may have; servers accept 8190 in a whole URL.
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
    :cvar service_type: its type in Keystone's catalogue.
    :ivar name: the service's name and place in messages.
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
        :param region_name: the region to look the URL up in; by default any.
        :param attempts: how often a request is sent while its failures are temporary.
        :param request_timeout: how long a request and its retries may take, in seconds.
        :param min_download_rate: the lowest rate of a download, in bytes per second. A download
            fails if it falls behind this rate by two minutes.
        :param limits: the limits for a downloaded archive.
        """
        if not isinstance(session, ksa_session.Session):
            raise TypeError(f"{session!r} is not a keystoneauth session")
        self.name = self.title
        if endpoint or region_name:
            self.name += f" at {endpoint}" if endpoint else f" of the region {region_name}"
        self._counters = Counters()
        self._project_id = project_id
        self._client = ServiceAdapter(
            session,
            self.name,
            self._counters,
            attempts,
            request_timeout,
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


class ServiceCatalog(ServiceClient, base.Catalog):
    """The packages in an OpenStack service that a project can use.

    :cvar group: the group of its options.
    """

    group: ClassVar[str]

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
            options.GROUP: _WAITS,
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
        return cls(
            sessions.for_service(conf, cls.group, scope),
            project_id=scope.project_id,
            endpoint=url,
            interface=conf[cls.group].endpoint_type,
            region_name=scope.region_name or conf.home_region,
            request_timeout=conf[options.GROUP].request_timeout,
            min_download_rate=conf[options.GROUP].min_download_rate,
            **others,
        )


class PlanningCatalog(ServiceCatalog):
    """A catalogue in a service that may have the filter of ``glare_murano``.

    The filter answers a dependency query in one request, and sends several archives in one
    answer. A service without the filter can do neither.
    """

    gives_batches = True
    _answers_queries = True

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
        LOG.info("%s has no dependency queries; its lists are used, level by level", self.name)
        self._answers_queries = False
        return None

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
            # The connection can be used again only after the end of the answer is read.
            next(pieces, b"")
        except NoSuchPath:
            self.gives_batches = False
        except BATCH_ERRORS as error:
            raise errors.CatalogError(f"{self.name} did not send {label}: {error}") from error
        finally:
            pieces.close()


def name_lists(fqns: Collection[str], max_length: int, separator: str) -> Iterator[list[str]]:
    """Split names into lists that fit into a URL; leave out names that are too long.

    :param max_length: the most characters that a name can have in the service.
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
