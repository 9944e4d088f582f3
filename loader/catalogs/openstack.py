# SPDX-License-Identifier: Apache-2.0

"""The common part of catalogues in OpenStack services: options, session, project."""

import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self

from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from loader import errors
from loader.catalogs import base
from loader.catalogs.options import Options, register
from loader.transport import retries, sessions
from loader.transport.adapter import ServiceAdapter
from loader.transport.sessions import Scope

# The pages of one list. A server may send lists without an end.
_MAX_PAGES = 1000


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
    ) -> None:
        """Make a catalogue; no request is sent.

        :param session: a keystoneauth session with credentials.
        :param project_id: the project whose private packages may be used; by default
            the project of the session.
        :param endpoint: the service's URL; by default the URL in Keystone's catalogue.
        :param interface: ``public``, ``internal`` or ``admin``.
        :param region_name: the region to look the URL up in; by default any.
        :param attempts: how often a request is sent while its failures are temporary.
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
            service_type=self.service_type,
            endpoint_override=endpoint,
            interface=interface,
            region_name=region_name,
        )

    def __repr__(self) -> str:
        project = self._project_id or "of the session"
        return f"<{type(self).__name__}: {self.name}, project {project}>"

    @classmethod
    def service_options(cls) -> Options:
        """Return the options of the service: of its place, and of a session with it."""
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
        return {"DEFAULT": [region], cls.group: [url, interface, *session_options]}

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, scope: Scope, **others: Any) -> Self:
        """Make a catalogue from the options, for a scope.

        :param others: further parameters of the class.
        :raises CatalogError: if the scope has no session, or an option is invalid.
        """
        register(conf, cls.service_options())
        return cls(
            sessions.for_service(conf, cls.group, scope),
            project_id=scope.project_id,
            endpoint=conf[cls.group].url,
            interface=conf[cls.group].endpoint_type,
            region_name=scope.region_name or conf.home_region,
            **others,
        )

    def _project(self) -> str | None:
        """Return the id of the project whose private packages may be used.

        :returns: None if only public packages may be used.
        :raises CatalogError: if the session cannot authenticate.
        """
        if self._project_id is None:
            self._project_id = self._client.authenticated_project()
        return self._project_id

    def _list(
        self,
        path: str,
        key: str,
        query: list[tuple[str, str]],
        next_marker: Callable[[Mapping[str, Any]], Any],
    ) -> Iterator[Any]:
        """Yield the items of a list, page by page.

        :param key: the key of the items in an answer.
        :param next_marker: returns the marker of the page after an answer; None at the end.
        :raises CatalogError: if the service fails, or does not send a list.
        """
        marker = ""
        for _ in range(_MAX_PAGES):
            answer = self._client.document("GET", f"{path}?{urllib.parse.urlencode(query)}{marker}")
            if not isinstance(answer, dict) or not isinstance(answer.get(key), list):
                raise errors.CatalogError(f"{self.name} sent an answer without a list of {key}")
            yield from answer[key]
            last = next_marker(answer)
            if last is None or not answer[key]:
                return
            marker = f"&marker={urllib.parse.quote(str(last), safe='')}"
        raise errors.CatalogError(f"{self.name} sent a list of more than {_MAX_PAGES} pages")
