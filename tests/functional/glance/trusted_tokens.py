# SPDX-License-Identifier: Apache-2.0

"""A filter in place of Keystone's, which trusts each token, as Glare's trustedauth does.

A token is ``user:project:role,role``. It runs in Glance's environment, which has nothing of
the tests'.
"""

from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def filter_factory(_: Any, **options: str) -> Callable[[Application], Application]:
    """Return the filter, for Paste."""
    # A process reads one of them before it passes a request on to another; which, depends on
    # the release. Keystone's filter has it.
    for name in ("auth_url", "identity_uri"):
        option = cfg.StrOpt(name, default="http://127.0.0.1:9/v3")
        cfg.CONF.register_opt(option, "keystone_authtoken")
    return lambda application: lambda environ, start: application(_trusting(environ), start)


def _trusting(environ: dict[str, Any]) -> dict[str, Any]:
    user, _, rest = environ.get("HTTP_X_AUTH_TOKEN", "").partition(":")
    project, _, roles = rest.partition(":")
    if not roles:
        return {**environ, "HTTP_X_IDENTITY_STATUS": "Invalid"}
    return {
        **environ,
        "HTTP_X_IDENTITY_STATUS": "Confirmed",
        "HTTP_X_USER_ID": user,
        "HTTP_X_PROJECT_ID": project,
        "HTTP_X_ROLES": roles,
    }
