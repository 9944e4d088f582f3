# SPDX-License-Identifier: Apache-2.0

"""Make keystoneauth sessions from the operator's options."""

import dataclasses
import math
import os
import ssl

from keystoneauth1 import discover, plugin
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from loader import errors

# How many seconds a session waits for a connection, and for the next bytes of an answer.
DEFAULT_TIMEOUT = (10.0, 60.0)
# How many seconds a request with its retries may take; downloads have other limits.
DEFAULT_REQUEST_TIMEOUT = 300.0

# Keystone's discovery documents, by URL; to keep them saves a request in each task.
_discovered: dict[str, discover.Discover] = {}

# keystoneauth makes new option objects at each call, so one result is kept.
_OPTIONS = ksa_loading.get_session_conf_options()


@dataclasses.dataclass(frozen=True)
class Scope:
    """The project and the region for which packages are loaded.

    :param session: a keystoneauth session with credentials; None without credentials.
    :param project_id: the project whose private packages may be used; None means the project of the
        session.
    :param region_name: the region of the services; None means any region.
    :param is_own: whether only the catalogues of this scope use the session; if so, they close it.
    """

    session: ksa_session.Session | None = None
    project_id: str | None = None
    region_name: str | None = None
    is_own: bool = False


def for_service(conf: cfg.ConfigOpts, group: str, scope: Scope) -> ksa_session.Session:
    """Return the scope's session, or a new one if the catalogue sets TLS options or a timeout.

    :param group: the group with the options of the catalogue.
    :raises CatalogError: if the scope has no session, or an option is invalid.
    """
    if scope.session is None:
        raise errors.CatalogError(
            f"the catalogue {group} needs a session that authenticates: set [glare] auth_type "
            f"or [glance] auth_type, and the options of that type"
        )
    if any(conf[group][option.dest] not in ("", option.default) for option in _OPTIONS):
        return configured(conf, group, scope.session.auth)
    return scope.session


def configured(
    conf: cfg.ConfigOpts, group: str, auth: plugin.BaseAuthPlugin | None
) -> ksa_session.Session:
    """Make a session with the TLS options and the timeout in a group of options.

    :param auth: the credentials; None for requests without credentials.
    :raises CatalogError: if an option is invalid.
    """
    options = conf[group]
    if options.timeout is not None and not 0 < options.timeout < math.inf:
        raise errors.CatalogError(
            f"[{group}] timeout is {options.timeout:g}, which no request can keep. Set it to "
            f"seconds above 0, or leave it out"
        )
    _check_files(options, group)
    try:
        session: ksa_session.Session = ksa_loading.load_session_from_conf_options(
            conf, group, auth=auth, discovery_cache=_discovered
        )
    except ssl.SSLError as error:
        raise errors.CatalogError(
            f"[{group}] has invalid TLS options: {error}. Check [{group}] tls_ciphers"
        ) from error
    set_timeout(session)
    return session


def set_timeout(session: ksa_session.Session) -> None:
    """Give a session the default timeout, unless it has a timeout.

    The timeout also applies to requests for tokens.
    """
    if session.timeout is None:
        session.timeout = DEFAULT_TIMEOUT  # type: ignore[assignment]


def credentials(conf: cfg.ConfigOpts, group: str) -> plugin.BaseAuthPlugin | None:
    """Load the credentials in a group of options; return None if the group has no ``auth_type``.

    :raises CatalogError: if the type is unknown, or its options are incomplete or invalid.
    """
    ksa_loading.register_auth_conf_options(conf, group)
    section = conf[group].auth_section or group
    kind = conf[section].auth_type
    if section != group and not kind:
        raise errors.CatalogError(
            f"[{group}] auth_section: the group [{section}] has no auth_type. Set "
            f"[{section}] auth_type, or name the group that has the credentials"
        )
    try:
        return ksa_loading.load_auth_from_conf_options(conf, group)
    except ksa_exceptions.NoMatchingPlugin as error:
        raise errors.CatalogError(
            f"[{section}] auth_type: keystoneauth has no type {kind!r}, or cannot import it. "
            f"Choose an installed type, such as password or v3applicationcredential"
        ) from error
    except ksa_exceptions.MissingRequiredOptions as error:
        missing = " and ".join(f"[{section}] {option.dest}" for option in error.options)
        raise errors.CatalogError(
            f"[{section}] auth_type = {kind} needs more options: set {missing}"
        ) from error
    except ksa_exceptions.ClientException as error:
        raise errors.CatalogError(
            f"[{section}] auth_type = {kind} cannot be used with its options: {error}"
        ) from error


def _check_files(options: cfg.ConfigOpts.GroupAttr, group: str) -> None:
    """Check that the files in the TLS options can be read.

    :raises CatalogError: if a file cannot be read.
    """
    for name in ("cafile", "certfile", "keyfile"):
        file = options[name]
        is_ignored = options.insecure if name == "cafile" else not options.certfile
        # cafile may also be a directory with certificates of authorities, named by hashes.
        if not file or is_ignored or (name == "cafile" and os.path.isdir(file)):
            continue
        try:
            open(file, "rb").close()
        except OSError as error:
            raise errors.CatalogError(
                f"[{group}] {name}: {file} cannot be read: {error.strerror}. Name an existing PEM "
                f"file, or leave the option out"
            ) from error
