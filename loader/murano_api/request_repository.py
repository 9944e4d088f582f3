# SPDX-License-Identifier: Apache-2.0

"""Make a client of Glare or Glance, with the token of a request to murano-api."""

import copy
from typing import Any

from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from keystoneauth1.access import service_catalog
from oslo_config import cfg

from glare_murano import archive_limits
from loader import config, errors
from loader.catalogs import options
from loader.catalogs.package_service import SERVICES
from loader.catalogs.repository import Repository
from loader.transport import sessions


class RequestRepositories:
    """Makes a client of Glare or Glance for each request, with the token of the caller."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        """Choose Glare or Glance; no request is sent.

        :param conf: Murano's configuration, which has been read.
        :raises CatalogError: if ``[package_loader] catalogs`` has neither Glare nor Glance, or if
            an option is invalid.
        """
        options.register(conf, config.OPTIONS)
        named = conf[options.GROUP].catalogs
        service = next((SERVICES[name] for name in named if name in SERVICES), None)
        if service is None:
            raise errors.CatalogError(
                f"[package_loader] catalogs = {', '.join(named)}: murano-api needs a service that "
                f"keeps the packages; add {' or '.join(SERVICES)}"
            )
        options.register(conf, service.catalog_class.service_options())
        self._conf, self._service = conf, service
        # All requests share one pool of connections.
        self._session = sessions.configured(conf, service.catalog_class.group, None)

    def of_request(self, context: Any) -> Repository:
        """Return the client of Glare or Glance for a request.

        :param context: Murano's context of the request, with the caller's token.
        :raises CatalogError: if Keystone's catalogue does not have the service.
        """
        url = self._url(context)
        session: ksa_session.Session = copy.copy(self._session)
        session.auth = token_endpoint.Token(url, context.auth_token)
        return self._service.repository_class(
            session,
            project_id=context.project_id,
            endpoint=url,
            limits=archive_limits.limits(self._conf[options.GROUP]),
        )

    def _url(self, context: Any) -> str:
        service = self._service
        chosen = self._conf[service.catalog_class.group]
        if chosen.url:
            return str(chosen.url)
        known = service_catalog.ServiceCatalogV2(context.service_catalog or [])
        try:
            return str(
                known.url_for(
                    service_type=service.service_type,
                    interface=chosen.endpoint_type,
                    region_name=self._conf.home_region,
                )
            )
        except ksa_exceptions.CatalogException as error:
            raise errors.CatalogError(
                f"Keystone's catalogue has no {chosen.endpoint_type} of the type "
                f"{service.service_type}; set [{service.catalog_class.group}] url"
            ) from error
