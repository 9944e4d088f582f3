# SPDX-License-Identifier: Apache-2.0

"""Releases in Glare, found by its own filters.

It asks for active artifacts of the type ``murano`` that belong to the
caller's project or are public: an administrator's token would show every
project's, and none of those may reach an environment. Glare filters and sorts
by the bounds of a range; the exact range is checked here.
"""

import dataclasses
import itertools
import logging
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import requests
from glanceclient.common import http as glance_http
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from glare_murano import fields, wire
from glare_murano.package import GlareMuranoError, InvalidName
from glare_murano.package.manifest import check_required_name
from loader import errors
from loader.catalogs import base, batches, options
from loader.transport import adapter, download
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

SERVICE_TYPE = "artifact"

_PATH = f"/artifacts/{fields.TYPE_NAME}"
_PAGE = 100
# Of one list. A server whose lists have no end is not asked for ever.
_MOST_PAGES = 1000
# Of the names in one URL, in characters; servers take 8190 of a whole URL.
_NAMES_LENGTH = 4000
# Seconds for a batch: whoever else wants one of its archives waits meanwhile.
_BATCH_TIMEOUT = 60

OPTIONS: options.Options = {
    "glare": adapter.options_of("Glare", SERVICE_TYPE),
    "DEFAULT": [options.HOME_REGION],
}

_Filters = list[tuple[str, str]]


class GlareCatalog(base.Catalog):
    """The packages that one project can use in a Glare."""

    gives_batches = True

    def __init__(
        self,
        session: ksa_session.Session,
        *,
        project_id: str | None = None,
        endpoint: str | None = None,
        interface: str | None = None,
        region_name: str | None = None,
        attempts: int = download.DEFAULT_ATTEMPTS,
    ) -> None:
        """Make a catalogue; nothing is asked yet.

        :param session: a keystoneauth session that authenticates.
        :param project_id: the project whose private packages may be used;
            by default the one that the session is scoped to.
        :param endpoint: Glare's URL, where the service catalogue of the
            session is not to be asked for it.
        :param interface: ``public``, ``internal`` or ``admin``.
        :param region_name: the region whose service is asked, where no URL is
            given; by default any.
        :param attempts: how often a request is made that fails for a passing
            reason.
        """
        super().__init__(adapter.named("Glare", endpoint, region_name))
        self._project_id = project_id
        self._answers_queries = True
        self._attempts = attempts
        self._client = glance_http.SessionClient(
            session,
            service_type=SERVICE_TYPE,
            endpoint_override=endpoint,
            interface=interface,
            region_name=region_name,
        )

    def releases(self, fqn: str) -> Iterable[wire.Release]:
        """See the interface."""
        # Longer ones Glare cannot keep, and refuses to look for.
        return self._releases([("name", f"eq:{fqn}")]) if len(fqn) <= fields.MAX_NAME else ()

    def releases_defining(self, class_name: str) -> Iterable[wire.Release]:
        """See the interface."""
        return self._releases([("class_definitions", f"eq:{class_name}")])

    def resolve(self, query: wire.Query) -> wire.Answer | None:
        """See the interface; a Glare without the filter of ``glare_murano`` cannot tell."""
        # No project has an empty id: then only public packages are chosen.
        scoped = dataclasses.replace(query, project_id=self._project() or "")
        body = wire.query_to_json(scoped) if self._answers_queries else None
        if body is None:
            return None
        try:
            found = self._json("POST", wire.DEPENDENCIES_PATH, json=body)
            if found is not None:
                return wire.answer_from_json(found)
        except wire.Malformed as error:
            raise errors.CatalogError(
                f"{self.name} answered a dependency query in an unknown form: {error}"
            ) from error
        except (ksa_exceptions.NotFound, ksa_exceptions.MethodNotAllowed):
            pass
        except (*download.FAILURES, ValueError, RecursionError) as error:
            raise download.failed(error, f"{self.name} did not answer") from error
        LOG.info("%s answers no dependency queries; it is asked a level at a time", self.name)
        self._answers_queries = False
        return None

    def known(self, fqns: Collection[str]) -> Iterator[wire.Release]:
        """See the interface: one list of all, unless its URL would be too long."""
        for names in _shares(fqns):
            yield from self._releases([("name", f"in:{','.join(names)}")])

    def fetch(self, release: wire.Release) -> Iterator[bytes]:
        """See the interface."""
        path = f"{_PATH}/{release.id}/{fields.ARCHIVE}"

        def open_at(headers: dict[str, str]) -> Any:
            return self._send("GET", path, headers=headers, stream=True)

        try:
            for piece in download.Download(open_at, self._attempts):
                self.counters.count(bytes=len(piece))
                yield piece
        except download.FAILURES as error:
            message = f"{self.name} did not give the archive of {release} (artifact {release.id})"
            raise download.failed(error, message) from error

    def batch(self, releases: Collection[wire.Release]) -> Iterator[tuple[wire.Release, bytes]]:
        """See the interface; a Glare without the filter of ``glare_murano`` gives none."""
        by_id = {release.id: release for release in releases}
        sizes = {release.id: release.size or 0 for release in releases}
        try:
            with self._send("POST", batches.PATH, json=batches.body(by_id), stream=True) as answer:
                pieces = download.within(_BATCH_TIMEOUT, download.pieces(answer))
                for artifact_id, archive in batches.read(pieces, sizes):
                    self.counters.count(bytes=len(archive))
                    yield by_id[artifact_id], archive
                # The end of the answer: the connection serves the next request then.
                next(pieces, b"")
        except (ksa_exceptions.NotFound, ksa_exceptions.MethodNotAllowed):
            self.gives_batches = False
        except (*download.FAILURES, *batches.MALFORMED) as error:
            raise download.failed(error, f"{self.name} did not give archives together") from error

    def _send(self, method: str, path: str, **arguments: Any) -> requests.Response:
        return adapter.send(self._client, self.counters, method, path, **arguments)

    def _releases(self, filters: _Filters) -> Iterator[wire.Release]:
        """What passes the filters, in the order of the interface, read as it is asked for."""
        found = map(_release, self._list(filters))
        # The database sorts pre-releases by its own collation, so all that
        # share major, minor and patch are sorted here.
        for _, peers in itertools.groupby(found, key=lambda r: r.version.truncate()):
            yield from base.one_of_each(sorted(peers, key=self._preference, reverse=True))

    def _preference(self, release: wire.Release) -> tuple[Any, bool]:
        """The newest first; of one version, the project's own before a public one."""
        return release.version.precedence_key, release.owner == self._project()

    def _list(self, filters: _Filters) -> Iterator[Mapping[str, Any]]:
        query = [*filters, ("status", "active"), *self._scope(), ("sort", "version:desc")]
        marker: _Filters = []
        for _ in range(_MOST_PAGES):
            page, is_last = self._get([*query, ("limit", str(_PAGE)), *marker])
            yield from page
            if is_last or not page:
                return
            # Glare's own link to the next page keeps one filter of a name.
            marker = [("marker", page[-1]["id"])]
        raise errors.CatalogError(f"{self.name} gave a list of more than {_MOST_PAGES} pages")

    def _scope(self) -> _Filters:
        project = self._project()
        if project is None:
            return [("visibility", "public")]
        return [("owner", f"or:eq:{project}"), ("visibility", "or:eq:public")]

    def _project(self) -> str | None:
        if self._project_id is None:
            self._project_id = adapter.project_id(self._client, self.name, self._attempts)
        return self._project_id

    def _json(self, method: str, path: str, **arguments: Any) -> Any:
        """Send a request until it is answered; None if that is neither an error nor JSON."""

        def ask() -> Any:
            response = self._send(method, path, stream=True, **arguments)
            is_answer = response.status_code == requests.codes.ok
            return download.document(response) if is_answer else None

        return download.retrying(self._attempts)(ask)

    def _get(self, query: _Filters) -> tuple[list[Mapping[str, Any]], bool]:
        """A page of artifacts, and whether it is the last one."""
        path = f"{_PATH}?{urllib.parse.urlencode(query)}"
        try:
            answer = self._json("GET", path)
        except (*download.FAILURES, ValueError, RecursionError) as error:
            raise download.failed(error, f"{self.name} did not answer") from error
        page = answer.get("artifacts") if isinstance(answer, dict) else None
        if not isinstance(page, list):
            raise errors.CatalogError(f"{self.name} answered with no list of artifacts")
        # Not by the page's length: an operator may allow shorter ones only.
        return page, "next" not in answer


def _can_name(fqn: str) -> bool:
    """Whether a text is one name in a list of names, of a package that Glare can keep."""
    try:
        return len(check_required_name(fqn)) <= fields.MAX_NAME
    except InvalidName:
        return False


def _shares(fqns: Collection[str]) -> Iterator[list[str]]:
    """Names that can be asked for in one URL each, without those that Glare cannot have."""
    share: list[str] = []
    length = 0
    for fqn in dict.fromkeys(fqns):
        if not _can_name(fqn):
            continue
        if share and length + len(fqn) > _NAMES_LENGTH:
            yield share
            share, length = [], 0
        share.append(fqn)
        length += len(fqn) + len("%2C")
    if share:
        yield share


def _release(artifact: Mapping[str, Any]) -> wire.Release:
    """Read a release as Glare lists it, with digest and size in the blob."""
    try:
        archive = wire.mapping(wire.mapping(artifact).get(fields.ARCHIVE))
        owner = {} if artifact.get("owner") is not None else {"owner": ""}
        digest = {"sha256": archive.get("sha256"), "size": archive.get("size")}
        return wire.release_from_json({**artifact, **owner, **digest})
    except GlareMuranoError as error:
        raise errors.CatalogError(
            f"Glare answered with an artifact that is not a valid package: {error}"
        ) from error


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> Iterator[base.Catalog]:
    """The catalogue of the entry point ``glare``.

    :raises CatalogError: if there is no session to ask with.
    """
    options.register(conf, OPTIONS)
    yield GlareCatalog(
        adapter.session(conf, "glare", scope),
        project_id=scope.project_id,
        endpoint=conf.glare.url,
        interface=conf.glare.endpoint_type,
        region_name=scope.region_name or conf.home_region,
    )
