# SPDX-License-Identifier: Apache-2.0

"""Make sessions with limits: requests have deadlines, and answers have a maximum size.

The caller's session is not changed. A copy of it gets the limits; the copy has the same
credentials, but connections of its own. The copy keeps no cookie of an answer to a request with a
token, since one session may have requests of several users.
"""

import copy
import http.cookiejar
import weakref
from typing import Any, TypeVar

import requests
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session

from loader.transport import deadlines, failures, sessions
from loader.transport.download import pieces

_Original = TypeVar("_Original")

# The largest size of an answer with a document, in bytes. A list of a thousand artifacts has a few
# MiB.
MAX_DOCUMENT = 64 * 1024**2
# The largest size of an answer that a library reads, in bytes: a refusal, a token with Keystone's
# catalogue, or a list of versions. The library may parse it several times.
MAX_OTHER = 4 * 1024**2

# A caller's session -> its copy. All adapters for the session use this copy, so that they share its
# connections.
_copies = weakref.WeakKeyDictionary[requests.Session, requests.Session]()


class _NoCookiesOfServices(http.cookiejar.DefaultCookiePolicy):
    """Accepts no cookie from an answer to a request with a token.

    Some logins, such as those of ADFS, need cookies; their requests have no token.
    """

    def set_ok(self, cookie: http.cookiejar.Cookie, request: Any) -> bool:
        return not request.has_header("X-Auth-Token") and super().set_ok(cookie, request)


def new() -> requests.Session:
    """Make a session of ``requests`` with limits, and without credentials."""
    session = requests.Session()
    _limit(session)
    return session


def copied(session: ksa_session.Session) -> ksa_session.Session:
    """Return a copy of a session, with limits and a timeout."""
    own = copy.copy(session)
    found = _copies.get(session.session)
    own.session = found or _copies.setdefault(session.session, _copied(session.session))
    # keystoneauth would close the session of ``requests`` when this copy ends, but other copies
    # share that session.
    own._session = None
    sessions.set_timeout(own)
    return own


def close(session: ksa_session.Session) -> None:
    """Close the connections of a session, and those of its copies."""
    for each in filter(None, (session.session, _copies.get(session.session))):
        for adapter in each.adapters.values():
            if isinstance(adapter, requests.adapters.HTTPAdapter):
                _close_pools(adapter)
        each.close()


def read(response: requests.Response, limit: int) -> bytes:
    """Return the whole content of an answer.

    :param limit: the largest size of the content, in bytes.
    :raises UnusableAnswer: if the content is too large.
    """
    body = bytearray()
    for piece in pieces(response):
        body += piece
        if len(body) > limit:
            raise failures.UnusableAnswer(response, f"more than {limit} bytes")
    return bytes(body)


def _close_pools(adapter: requests.adapters.HTTPAdapter) -> None:
    """Close the connections of an adapter that are not in use.

    The adapter's own ``close`` only drops its pools of connections. urllib3 closes a pool when
    nothing refers to it any more. But an error can refer to an answer, and an answer refers to its
    pool.
    """
    for manager in (adapter.poolmanager, *adapter.proxy_manager.values()):
        for key in manager.pools.keys():  # noqa: SIM118 - it cannot be iterated over
            manager.pools[key].close()


def _copied(session: requests.Session) -> requests.Session:
    own = _clone(session)
    own.cookies = copy.copy(session.cookies)
    own.adapters = {prefix: _reconnected(each) for prefix, each in session.adapters.items()}
    _limit(own)
    return own


def _reconnected(adapter: requests.adapters.BaseAdapter) -> requests.adapters.BaseAdapter:
    """Return a copy of an adapter, with connections of its own.

    An adapter that is not an ``HTTPAdapter``, such as one for tests, is returned unchanged.
    """
    if not isinstance(adapter, requests.adapters.HTTPAdapter):
        return adapter
    own: Any = _clone(adapter)
    own.proxy_manager = {}
    own.init_poolmanager(own._pool_connections, own._pool_maxsize, block=own._pool_block)
    return own  # type: ignore[no-any-return]


def _clone(original: _Original) -> _Original:
    """Copy an object of ``requests``; ``copy.copy`` would lose the attributes of a subclass."""
    clone = object.__new__(type(original))
    clone.__dict__.update(original.__dict__)
    return clone


def _limit(session: requests.Session) -> None:
    session.cookies.set_policy(_NoCookiesOfServices())
    hooks: Any = session.hooks.get("response", [])
    others = [hooks] if callable(hooks) else hooks
    session.hooks = {**session.hooks, "response": [_read_first, *others]}
    for adapter in session.adapters.values():
        if isinstance(adapter, requests.adapters.HTTPAdapter):
            deadlines.watch(adapter)


def _read_first(response: requests.Response, *, stream: bool, **_: Any) -> None:
    """Read the body of an answer, with a limit, before a library reads it without a limit.

    Libraries read the bodies of refusals, and of answers that are not streamed, such as tokens. The
    body of a streamed answer is left to the caller.

    :raises UnusableAnswer: if the body is too large.
    """
    if stream and response.status_code < requests.codes.multiple_choices:
        return
    if response.is_redirect:
        # The body of a redirection is not needed.
        response.raw.close()
    response._content = b"" if response.is_redirect else read(response, MAX_OTHER)
    response._content_consumed = True  # type: ignore[attr-defined]
    if response.status_code >= requests.codes.bad_request:
        try:
            ksa_exceptions.from_response(response, "", "")
        except (AttributeError, RecursionError, ValueError):
            # The body cannot be read, so only the status is kept.
            response._content = b""
