# SPDX-License-Identifier: Apache-2.0
"""How catalogues ask OpenStack services: by which session, for which project."""

from typing import Any

import requests
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from loader import errors
from loader.counters import Counters
from loader.transport import download, sessions
from loader.transport.sessions import Scope


def options_of(service: str, service_type: str) -> list[cfg.Opt]:
    """The options of a service: where it is, and those of a session with it.

    :param service: what the help calls it.
    """
    return [
        cfg.StrOpt(
            "url",
            help=f"URL of {service}. By default it is looked up in Keystone's catalogue, as "
            f"service type '{service_type}'.",
        ),
        cfg.StrOpt(
            "endpoint_type",
            default="publicURL",
            help=f"Which endpoint of {service} to use: publicURL, internalURL or adminURL.",
        ),
        *ksa_loading.get_session_conf_options(),
    ]


def named(service: str, endpoint: str | None, region_name: str | None) -> str:
    """What a service is called, by what tells it from others of its kind.

    :param service: what it is.
    :param endpoint: its URL, where the service catalogue is not asked for it.
    """
    if endpoint:
        return f"{service} at {endpoint}"
    return f"{service} of the region {region_name}" if region_name else service


def session(conf: cfg.ConfigOpts, group: str, scope: Scope) -> ksa_session.Session:
    """The scope's session, with the TLS options and the timeout of a group, if any are set.

    :raises CatalogError: if the scope has no session, or an option cannot be used.
    """
    if scope.session is None:
        raise errors.CatalogError(
            f"the catalogue {group} needs a session that authenticates: set [glare] auth_type, "
            f"and the options of that type"
        )
    if not sessions.is_configured(conf, group):
        return scope.session
    return sessions.configured(conf, group, scope.session.auth)


def project_id(client: adapter.Adapter, name: str, attempts: int) -> str | None:
    """The project that a client's session is scoped to; None if it is to none.

    :param name: what the service is called, for messages.
    :param attempts: how often Keystone is asked that fails for a passing reason.
    :raises CatalogError: if the session cannot authenticate.
    """
    try:
        found: str | None = download.retrying(attempts)(client.get_project_id)
    except ksa_exceptions.ClientException as error:
        raise download.failed(error, f"{name}: not authenticated") from error
    return found


def send(
    client: adapter.Adapter, counters: Counters, method: str, path: str, **arguments: Any
) -> requests.Response:
    """Send a request once, and count it; a redirection is not followed.

    Not as a client built upon the adapter would: glanceclient's reads bodies into
    memory, and cannot read an error as Glare words it.

    :raises ClientException: if it is refused, or leads elsewhere.
    """
    counters.count(requests=1)
    arguments = download.with_timeout(client.session, arguments)
    response = adapter.Adapter.request(client, path, method, redirect=False, **arguments)
    return download.not_redirected(response)
