# SPDX-License-Identifier: Apache-2.0
"""Releases in a static repository: files on any web server, as Murano lays them out.

``apps/FQN.zip`` is a package, ``apps/FQN.VERSION.zip`` one of its versions, and
``bundles/NAME.bundle`` lists some (JSON: ``Packages``, with ``Name``, and
``Version``, ``Url`` and ``Sha256`` where they are known). Nothing there can be
searched: known are the packages that the bundles list which the operator
names, those of the bundle ``index``, if there is one, and ``apps/FQN.zip``.

What a package is stands in its archive. Of that only the manifest is read where
the server gives ranges of files; else it is downloaded, and kept to be fetched.
What has not changed since is not read again. All that arrives is hostile.
"""

import contextlib
import dataclasses
import hashlib
import json
import logging
import math
import re
import struct
import time
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, Self

from keystoneauth1 import loading as ksa_loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from glare_murano.package import (
    InvalidName,
    InvalidPackage,
    Limits,
    Manifest,
    Version,
    parse_version,
)
from glare_murano.package.archive_rules import DEFAULT_LIMITS, check_size, refusal
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import FILE_NAME, check_full_name
from glare_murano.package.safe_yaml import MAX_SIZE
from loader import errors
from loader.catalogs import base, options
from loader.catalogs.metadata_cache import Fact, Facts, from_document, to_document
from loader.catalogs.ranges import RangeFile, TooMuch
from loader.catalogs.spool import Archives
from loader.catalogs.web import Answer, Web, checked_url
from loader.transport import download, sessions
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

# The bundle that lists all packages, where a repository has one.
INDEX = "index"

OPTIONS: options.Options = {
    options.GROUP: [
        cfg.StrOpt(
            "http_url",
            help="URL of a static repository of packages, the folder that has 'apps' and "
            "'bundles' in it.",
        ),
        cfg.ListOpt(
            "http_bundles",
            default=[],
            help="Bundles of the static repository whose packages may be used, without "
            "'.bundle'. The bundle 'index' is used wherever there is one.",
        ),
        *ksa_loading.get_session_conf_options(),
    ],
    **options.FACTS,
}

# Of a bundle, in bytes and in packages.
_BUNDLE_SIZE = 4 * 1024**2
_BUNDLE_PACKAGES = 10_000
# What is read of an archive's end, where its directory is, and for its manifest.
_TAIL = 64 * 1024
_BUDGET = 1024**2
# How long an answer is taken to hold, so that one deployment sees one state.
_FRESH_SECONDS = 30
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")

# In the place of a release, of an archive that is none.
_PROBLEM = "problem"

_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    RuntimeError,
    EOFError,
    ValueError,
    KeyError,
)


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A package that a repository should have.

    :param version: None where only the archive tells it.
    :param digest: empty where nobody tells it.
    """

    fqn: str
    url: str
    version: Version | None = None
    digest: str = ""

    @classmethod
    def of(cls, item: Any, base_url: str) -> Self:
        """Read what a bundle says of one package.

        :raises ValueError: if it is not to be used.
        """
        if not isinstance(item, dict):
            raise ValueError("it is no mapping")
        fqn = check_full_name(str(item.get("Name", "")))
        version = str(item.get("Version") or "")
        digest = str(item.get("Sha256") or "").lower()
        file = f"{fqn}.{version}.zip" if version else f"{fqn}.zip"
        place = str(item.get("Url") or f"apps/{urllib.parse.quote(file, safe='')}")
        try:
            url = checked_url(urllib.parse.urljoin(base_url, place))
        except ValueError as error:
            raise ValueError(f"{fqn}: {error}") from error
        if digest and not _SHA256.match(digest):
            raise ValueError(f"{fqn}: {quoted(digest)} is no SHA-256")
        return cls(fqn, url, parse_version(version) if version else None, digest)

    @property
    def key(self) -> str:
        """What is learnt of it is kept by this."""
        return f"archive {self.url} {self.digest}".strip()


class HttpCatalog(base.Catalog):
    """The packages of a static repository."""

    def __init__(
        self,
        url: str,
        session: ksa_session.Session,
        *,
        bundles: Iterable[str] = (),
        facts: Facts | None = None,
        limits: Limits = DEFAULT_LIMITS,
        attempts: int = download.DEFAULT_ATTEMPTS,
    ) -> None:
        """Make a catalogue; nothing is asked yet.

        :param url: the folder with ``apps`` and ``bundles``.
        :param session: a keystoneauth session, whose credentials are not
            used.
        :param bundles: names of bundles that must be there.
        :param facts: what is known already; by default nothing.
        :param limits: what an archive may take up.
        :param attempts: how often a request is made that fails for a passing
            reason, and how often one piece of a body is tried.
        :raises CatalogError: if the URL is none.
        """
        try:
            url = checked_url(url)
        except ValueError as error:
            raise errors.CatalogError(f"a repository cannot be asked: {error}") from error
        super().__init__(f"the repository {url}")
        self._url = url.rstrip("/") + "/"
        self._bundles = dict.fromkeys(bundles)
        self._facts = facts or Facts()
        self._limits = limits
        self._archives = Archives(limits)
        self._web = Web(session, self.counters, attempts)
        self._fresh: dict[str, tuple[float, Any]] = {}
        self._told: set[str] = set()

    def releases(self, fqn: str) -> Iterable[base.Release]:
        """See the interface."""
        listed = [entry for entry in self._listed() if entry.fqn == fqn]
        return self._described([*listed, *self._unlisted([fqn])])

    def releases_defining(self, class_name: str) -> Iterable[base.Release]:
        """See the interface.

        Known are the classes of the packages that bundles list, and of those
        that are called as the class, or as a namespace that it is in.
        """
        parts = class_name.split(".")
        names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
        found = self._described([*self._listed(), *self._unlisted(names)])
        return [release for release in found if class_name in release.classes]

    def identified(self, release: base.Release) -> base.Release:
        """See the interface: an archive without a digest is downloaded."""
        if release.digest:
            return release
        entry = _Entry(release.fqn, release.reference, release.version)
        try:
            with self._web.ask(entry.url) as answer:
                found = self._add(self._all(answer, entry.url), entry)
        except InvalidPackage as error:
            raise errors.CatalogError(f"{entry.url} is no package: {error}") from error
        if (found.fqn, found.version) != (release.fqn, release.version):
            raise errors.CatalogError(f"{entry.url} is {release} no more: it has changed")
        self._facts.put(entry.key, Fact(to_document(found), answer.validator))
        self._fresh[entry.key] = (time.monotonic(), found)
        return found

    def fetch(self, release: base.Release) -> Iterator[bytes]:
        """See the interface."""
        kept = self._archives.take(release.digest)
        if kept is not None:
            yield from kept
            return
        found = hashlib.sha256()
        with self._web.ask(release.reference) as answer:
            for chunk in self._all(answer, release.reference):
                found.update(chunk)
                yield chunk
        if found.hexdigest() != release.digest:
            # So that it is asked anew what lies there.
            for digest in ("", release.digest):
                key = _Entry(release.fqn, release.reference, digest=digest).key
                self._facts.forget(key)
                self._fresh.pop(key, None)

    def _described(self, entries: Iterable[_Entry]) -> list[base.Release]:
        found = (self._describe(entry) for entry in entries)
        return base.newest_first(base.one_of_each(release for release in found if release))

    def _describe(self, entry: _Entry) -> base.Release | None:
        """What an archive is, if it is what it should be."""
        release: base.Release | None = self._once(entry.key, lambda: self._ask(entry))
        if release is None:
            return None
        if release.fqn != entry.fqn or entry.version not in (None, release.version):
            expected = f"{entry.fqn} {entry.version or ''}".strip()
            self._tell(f"Left out {entry.url}: it should be {expected}, but is {release}")
            return None
        return dataclasses.replace(release, digest=release.digest or entry.digest)

    def _ask(self, entry: _Entry) -> base.Release | None:
        """What an archive is, as it is known or as the server says now."""
        fact = self._learn(entry)
        if fact is None:
            return None
        release = from_document(fact.document, entry.url)
        if release is None:
            problem = fact.document.get(_PROBLEM)
            self._tell(f"Left out the package in {entry.url}: {problem}")
        return release

    def _learn(self, entry: _Entry) -> Fact | None:
        known = self._facts.get(entry.key)
        if known and entry.digest and _PROBLEM not in known.document:
            return known  # what has a digest does not change
        asked = self._web.ask(entry.url, known.validator if known else {}, wanted=f"-{_TAIL}")
        with asked as answer:
            if answer.status == HTTPStatus.NOT_FOUND:
                return None
            if answer.status == HTTPStatus.NOT_MODIFIED and known:
                return known
            try:
                release = self._read(answer, entry) or self._whole(entry)
            except InvalidPackage as error:
                # Another process may know formats that this one does not.
                fact = Fact({_PROBLEM: str(error)}, answer.validator)
                self._facts.note(entry.key, fact)
                return fact
        fact = Fact(to_document(release), answer.validator)
        self._facts.put(entry.key, fact)
        return fact

    def _read(self, answer: Answer, entry: _Entry) -> base.Release | None:
        """What a whole archive holds, or its end; None if its end does not tell."""
        if answer.status == HTTPStatus.OK:
            return self._add(self._all(answer, entry.url), entry)
        if answer.status != HTTPStatus.PARTIAL_CONTENT:
            return None  # an empty file has no end
        start, end, size = answer.part
        check_size(size, self._limits)
        tail = answer.content(_TAIL)
        if end != size or len(tail) != end - start:
            raise errors.CatalogError(f"{entry.url}: the server gave another part than asked for")
        self.counters.count(bytes=len(tail))
        if start == 0:
            return self._add([tail], entry)
        manifest = _read_manifest(RangeFile(size, tail, self._part(answer, entry), _BUDGET))
        if manifest is None:
            return None
        return base.Release.of(Manifest.parse(manifest), entry.url, size=size)

    def _whole(self, entry: _Entry) -> base.Release:
        with self._web.ask(entry.url) as answer:
            return self._add(self._all(answer, entry.url), entry)

    def _part(self, whole: Answer, entry: _Entry) -> Callable[[int, int], bytes]:
        """Reads parts of an archive, as long as it stays the same."""
        size = whole.part[2]

        def read(start: int, end: int) -> bytes:
            with self._web.ask(entry.url, wanted=f"{start}-{end - 1}") as answer:
                same = answer.status == HTTPStatus.PARTIAL_CONTENT
                same = same and answer.validator == whole.validator
                if not same or answer.part != (start, end, size):
                    raise TooMuch
                data = answer.content(end - start)
            self.counters.count(bytes=len(data))
            return data

        return read

    def _all(self, answer: Answer, url: str) -> Iterator[bytes]:
        """The whole archive that an answer holds."""
        if answer.status != HTTPStatus.OK:
            raise errors.CatalogError(f"{url} is not there any more")
        for chunk in answer.chunks():
            self.counters.count(bytes=len(chunk))
            yield chunk

    def _add(self, chunks: Iterable[bytes], entry: _Entry) -> base.Release:
        try:
            release = self._archives.add(chunks, entry.url)
        except OSError as error:
            raise errors.CatalogError(f"{entry.url} cannot be kept: {error}") from error
        if entry.digest and release.digest != entry.digest:
            message = f"SHA-256 {entry.digest} is expected, but it has {release.digest}"
            raise refusal("archive-digest", "archive", message)
        return release

    def _unlisted(self, fqns: Iterable[str]) -> Iterator[_Entry]:
        """The packages that lie where nobody has to list them."""
        listed = {entry.url for entry in self._listed()}
        for fqn in fqns:
            url = f"{self._url}apps/{fqn}.zip"
            with contextlib.suppress(InvalidName):
                if url not in listed:
                    yield _Entry(check_full_name(fqn), url)

    def _listed(self) -> list[_Entry]:
        """The packages that bundles list."""
        names = dict.fromkeys([*self._bundles, INDEX])
        return [entry for name in names for entry in self._bundle(name)]

    def _bundle(self, name: str) -> list[_Entry]:
        url = f"{self._url}bundles/{urllib.parse.quote(name, safe='')}.bundle"
        # Not the URL alone: a bundle may call anything an archive, also itself.
        key = f"bundle {url}"
        entries: list[_Entry] = self._once(key, lambda: self._read_bundle(url, key, name))
        return entries

    def _read_bundle(self, url: str, key: str, name: str) -> list[_Entry]:
        known = self._facts.get(key)
        with self._web.ask(url, known.validator if known else {}) as answer:
            if answer.status == HTTPStatus.NOT_FOUND:
                if name == INDEX:
                    return []
                raise errors.CatalogError(f"{self.name} has no bundle {name}: {url}")
            if answer.status != HTTPStatus.NOT_MODIFIED or known is None:
                listed = _packages(answer.content(_BUNDLE_SIZE), url)
                known = Fact(listed, answer.validator)
                self._facts.put(key, known)
        return [entry for item in known.document if (entry := self._entry(item, url))]

    def _entry(self, item: Any, bundle: str) -> _Entry | None:
        """What a bundle says of one package."""
        try:
            entry = _Entry.of(item, self._url)
        except ValueError as error:
            self._tell(f"Left out a package of {bundle}: {error}")
            return None
        if self._url.startswith("https:") and not entry.digest and entry.url.startswith("http:"):
            self._tell(f"Left out {entry.url} of {bundle}: neither HTTPS nor a digest protects it")
            return None
        return entry

    def _once(self, key: str, ask: Callable[[], Any]) -> Any:
        """An answer that was given a moment ago, or a new one."""
        when, answer = self._fresh.get(key, (-math.inf, None))
        if time.monotonic() - when > _FRESH_SECONDS:
            answer = ask()
            self._fresh[key] = (time.monotonic(), answer)
        return answer

    def _tell(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            LOG.warning("%s", message)


def _packages(data: bytes, url: str) -> list[Any]:
    """The list in a bundle."""
    try:
        listed = json.loads(data)["Packages"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise errors.CatalogError(f"{url} is no bundle: {error!r}") from error
    if not isinstance(listed, list) or len(listed) > _BUNDLE_PACKAGES:
        raise errors.CatalogError(f"{url} is no list of at most {_BUNDLE_PACKAGES} packages")
    return listed


def _read_manifest(file: RangeFile) -> bytes | None:
    """The manifest in an archive; None if it takes more than a look to find it."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(FILE_NAME) as manifest:
            data = manifest.read(MAX_SIZE + 1)
    except (*_DAMAGED, TooMuch):
        return None
    return data if len(data) <= MAX_SIZE else None


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> Iterator[base.Catalog]:
    """The catalogue of the entry point ``http``: it is the same for every scope.

    :raises CatalogError: if no URL is configured, or one that is none, or if an
        option of its session cannot be used.
    """
    options.register(conf, OPTIONS)
    group = conf[options.GROUP]
    if not group.http_url:
        raise errors.CatalogError(
            f"the catalogue http needs [{options.GROUP}] http_url, the URL of the repository"
        )
    session = sessions.configured(conf, options.GROUP)
    facts = options.facts(conf)
    try:
        catalog = HttpCatalog(group.http_url, session, bundles=group.http_bundles, facts=facts)
    except errors.CatalogError as error:
        raise errors.CatalogError(f"[{options.GROUP}] http_url: {error}") from error
    yield catalog
