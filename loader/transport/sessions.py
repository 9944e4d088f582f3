# SPDX-License-Identifier: Apache-2.0

"""Sessions as an operator configures them, among the options of what they ask."""

import dataclasses
import math
import pathlib
import ssl

from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import plugin
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from loader import errors
from loader.transport import download

# Made once, since keystoneauth makes them anew each time.
_OPTIONS = ksa_loading.get_session_conf_options()


@dataclasses.dataclass(frozen=True)
class Scope:
    """For whom a catalogue is asked.

    :param session: a keystoneauth session that authenticates; None if there
        is none.
    :param project_id: the project whose private packages may be used; None
        for the one that the session is scoped to.
    :param region_name: the region whose services are asked; None for any.
    """

    session: ksa_session.Session | None = None
    project_id: str | None = None
    region_name: str | None = None


def is_configured(conf: cfg.ConfigOpts, group: str) -> bool:
    """Whether any option of a session is set in a group."""
    return any(conf[group][option.dest] not in ("", option.default) for option in _OPTIONS)


def credentials(conf: cfg.ConfigOpts, group: str) -> plugin.BaseAuthPlugin | None:
    """What a group has to authenticate by; None if it names no type of that.

    :raises CatalogError: if there is no such type, or options of it are missing.
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
        found: plugin.BaseAuthPlugin | None = ksa_loading.load_auth_from_conf_options(conf, group)
    except ksa_exceptions.NoMatchingPlugin as error:
        raise errors.CatalogError(
            f"[{section}] auth_type: keystoneauth has no type {kind!r}, or cannot import it. "
            f"Choose one that it has, such as password or v3applicationcredential"
        ) from error
    except ksa_exceptions.MissingRequiredOptions as error:
        missing = " and ".join(f"[{section}] {option.dest}" for option in error.options)
        raise errors.CatalogError(
            f"[{section}] auth_type = {kind} needs more options: set {missing}"
        ) from error
    except ksa_exceptions.ClientException as error:
        raise errors.CatalogError(
            f"[{section}] auth_type = {kind} cannot be used with the options there: {error}"
        ) from error
    return found


def configured(
    conf: cfg.ConfigOpts, group: str, auth: plugin.BaseAuthPlugin | None = None
) -> ksa_session.Session:
    """A session with the TLS options and the timeout of a group.

    :param auth: what it authenticates by, if it does.
    :raises CatalogError: if an option cannot be used.
    """
    _check_timeout(group, conf[group].timeout)
    for name in _files(conf[group]):
        _check_file(f"[{group}] {name}", conf[group][name])
    session: ksa_session.Session
    try:
        session = ksa_loading.load_session_from_conf_options(conf, group, auth=auth)
    except ssl.SSLError as error:
        raise errors.CatalogError(
            f"[{group}] has options that TLS cannot use: {error}. Check [{group}] tls_ciphers"
        ) from error
    download.limit(session)
    return session


def _files(options: cfg.ConfigOpts.GroupAttr) -> list[str]:
    """The options that name files, as far as keystoneauth uses them."""
    authorities = [] if options.insecure else ["cafile"]
    return [*authorities, "certfile", *(["keyfile"] if options.certfile else [])]


def _check_timeout(group: str, seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds < math.inf:
        raise errors.CatalogError(
            f"[{group}] timeout is {seconds:g}, and no request could be made. Set it to seconds "
            f"above 0, or leave it out"
        )


def _check_file(option: str, name: str | None) -> None:
    path = pathlib.Path(name or "")
    # Certificates of authorities may also be in a folder, by their hashes.
    if not name or (option.endswith(" cafile") and path.is_dir()):
        return
    try:
        path.open("rb").close()
    except OSError as error:
        raise errors.CatalogError(
            f"{option}: {name} cannot be read: {error.strerror}. Name a PEM file that is there, "
            f"or leave the option out"
        ) from error
