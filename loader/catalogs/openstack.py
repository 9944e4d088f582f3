# SPDX-License-Identifier: Apache-2.0

"""The common part of all catalogues in OpenStack services: options, session, project."""

from typing import Any, ClassVar, Self

from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from loader import errors
from loader.catalogs import base, options
from loader.catalogs.options import Options, register
from loader.transport import download, retries, sessions
from loader.transport.adapter import ServiceAdapter
from loader.transport.sessions import Scope

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


class ServiceCatalog(base.Catalog):
    """The packages in an OpenStack service that a project can use.

    :cvar title: the service's name in messages.
    :cvar service_type: its type in Keystone's catalogue.
    :cvar group: the group of its options.
    """

    title: ClassVar[str]
    service_type: ClassVar[str]
    group: ClassVar[str]

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
    ) -> None:
        """Make a catalogue; no request is sent.

        :param session: a keystoneauth session with credentials.
        :param project_id: the project whose private packages may be used; by default
            the project of the session.
        :param endpoint: the service's URL; by default the URL in Keystone's catalogue.
        :param interface: ``public``, ``internal`` or ``admin``.
        :param region_name: the region to look the URL up in; by default any.
        :param attempts: how often a request is sent while its failures are temporary.
        :param request_timeout: how long a request and its retries may take, in seconds.
        :param min_download_rate: the lowest rate of a download, in bytes per second; at this
            rate, an archive may arrive two minutes late.
        """
        if not isinstance(session, ksa_session.Session):
            raise TypeError(f"{session!r} is not a keystoneauth session")
        name = self.title
        if endpoint or region_name:
            name += f" at {endpoint}" if endpoint else f" of the region {region_name}"
        super().__init__(name)
        self._project_id = project_id
        self._client = ServiceAdapter(
            session,
            name,
            self.counters,
            attempts,
            request_timeout,
            min_download_rate,
            service_type=self.service_type,
            endpoint_override=endpoint,
            interface=interface,
            region_name=region_name,
        )

    def remedy(self, missing: str) -> str:
        # The message must not reveal whether another project has the package.
        return f"publish {missing}, or have one that is private to another project made public"

    def __repr__(self) -> str:
        project = self._project_id or "of the session"
        return f"<{type(self).__name__}: {self.name}, project {project}>"

    @classmethod
    def service_options(cls) -> Options:
        """Return the options for the service: its endpoint, and the session with it."""
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

    def _project(self) -> str | None:
        """Return the project whose private packages may be used; None if none may be used."""
        if self._project_id is None:
            self._project_id = self._client.authenticated_project()
        return self._project_id
