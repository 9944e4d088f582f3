# SPDX-License-Identifier: Apache-2.0

"""Read and write bundles, which are files in Murano's format that list packages.

A bundle is JSON: ``{"Packages": [{"Name": ..., "Version": ..., "Url": ..., "Sha256": ...}]}``. A
``Url`` without a host is a path, relative to the bundle's directory. Without ``Url``, the archive
is ``apps/NAME.VERSION.zip`` in the bundle's directory, as in Murano's own repositories.

An attacker can replace packages that are sent over plain HTTP. So, over plain HTTP, an archive
needs ``Sha256``, and a bundle needs its own digest: ``http://.../packages.bundle#sha256=DIGEST``.

The query in a URL may be a signature that gives access to a file, so no message shows it.
"""

import dataclasses
import hashlib
import json
import pathlib
import posixpath
import stat
import urllib.parse
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import requests
from keystoneauth1 import exceptions as ksa_exceptions

from glare_murano import wire
from glare_murano.package import (
    Archive,
    GlareMuranoError,
    InvalidPackage,
    parse_version,
    read_manifest,
)
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.errors import quoted, shown
from glare_murano.package.manifest import check_fqn
from loader import errors, fs
from loader.transport import download, failures, limited_sessions, retries, sessions
from loader.transport.download import Download

_MAX_BUNDLE = 4 * 1024**2
_CHUNK = 128 * 1024


class BundleError(errors.LoaderError):
    """A bundle, or an archive that it lists, cannot be read."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A package in a bundle.

    :param version: the version in the bundle; empty if the bundle has none, so that the archive may
        contain any version.
    :param place: the URL or the path of the archive.
    :param digest: the SHA-256 of the archive, in hexadecimal; empty if the bundle has none.
    """

    fqn: str
    version: str
    place: str
    digest: str


def is_bundle(place: str) -> bool:
    """Return whether a string names a bundle: it is a URL, or ends with .bundle or .json."""
    return is_url(place) or place.lower().endswith((".bundle", ".json"))


def is_url(place: str) -> bool:
    """Return whether a string is an HTTP URL; if not, it is a path."""
    return place.lower().startswith(("http://", "https://"))


def read(place: str) -> list[Entry]:
    """Read a bundle from a file or a URL, and return its entries.

    :raises BundleError: if the bundle cannot be read, is not in Murano's format, has another digest
        than its URL states, or would be sent over plain HTTP without a digest.
    """
    digest = ""
    if is_url(place):
        place, fragment, digest = place.partition("#")
        if fragment and not digest.startswith("sha256="):
            raise BundleError(f"#{shown(digest)} is not #sha256=DIGEST, which may follow a URL")
        digest = digest.removeprefix("sha256=")
    content = b"".join(_open(place, _MAX_BUNDLE, bool(digest)))
    if digest:
        _check_digest(place, hashlib.sha256(content).hexdigest(), digest)
    try:
        listed = wire.get(json.loads(content), "Packages", wire.sequence)
        return [_entry(item, place) for item in listed]
    except (ValueError, RecursionError, GlareMuranoError) as error:
        raise BundleError(f"{_named(place)} is not a bundle: {error}") from error


def fetch(entries: Iterable[Entry], folder: pathlib.Path) -> list[pathlib.Path]:
    """Download the archives of a bundle into a directory, check them, and return their paths.

    No credentials are sent.

    :raises BundleError: if an archive cannot be fetched, would be sent over plain HTTP without a
        digest, or is not the package that the bundle lists.
    """
    return [_fetch(entry, folder / f"{uuid.uuid4().hex}.zip") for entry in entries]


def write(path: pathlib.Path, entries: Iterable[Entry]) -> None:
    """Write a bundle with the given entries.

    :raises OSError: if the file cannot be written.
    """
    listed = [
        {"Name": e.fqn, "Version": e.version, "Url": e.place, "Sha256": e.digest} for e in entries
    ]
    fs.replace(path, (json.dumps({"Packages": listed}, indent=2) + "\n").encode())


def _entry(item: object, bundle: str) -> Entry:
    fqn = wire.get(item, "Name", lambda value: check_fqn(wire.string(value)))
    keys = wire.mapping(item)
    version, url, digest = (_text(keys, key) for key in ("Version", "Url", "Sha256"))
    if version:
        parse_version(version)
    if not url:
        name = f"{fqn}.{version}" if version else fqn
        url = f"apps/{urllib.parse.quote(name)}.zip"
    return Entry(fqn, version, _resolved(url, bundle), digest)


def _text(keys: dict[str, Any], key: str) -> str:
    value = keys.get(key)
    if value is not None and not isinstance(value, str):
        raise wire.Malformed(f"{key}: expected a string, found {quoted(repr(value))}")
    return value or ""


def _resolved(url: str, bundle: str) -> str:
    """Return where an archive is: a complete URL, or a path on this host.

    :param url: the URL or the relative path in the bundle.
    :param bundle: the URL or the path of the bundle.
    :raises Malformed: if a path is not below the bundle's directory.
    """
    joined = urllib.parse.urljoin(bundle, url) if is_url(bundle) else url
    if is_url(joined):
        return joined
    path = posixpath.normpath(urllib.parse.unquote(url))
    if path.startswith(("/", "..")) or urllib.parse.urlsplit(url).scheme:
        named = quoted(failures.without_queries(url))
        raise wire.Malformed(f"Url: {named} is not below the directory of the bundle")
    return str(pathlib.Path(bundle).parent / path)


def _fetch(entry: Entry, target: pathlib.Path) -> pathlib.Path:
    digest = hashlib.sha256()
    with open(target, "xb") as file:
        for piece in _open(entry.place, DEFAULT_LIMITS.archive_size, bool(entry.digest)):
            digest.update(piece)
            file.write(piece)
    if entry.digest:
        _check_digest(entry.place, digest.hexdigest(), entry.digest)
    _check_package(entry, target)
    return target


def _named(place: str) -> str:
    """Return a URL or a path for messages, without the query of the URL."""
    return shown(failures.without_queries(place) if is_url(place) else place)


def _check_digest(place: str, found: str, expected: str) -> None:
    if found != expected.lower():
        raise BundleError(
            f"{_named(place)} has the SHA-256 {found}, but {shown(expected)} was expected"
        )


def _check_package(entry: Entry, archive: pathlib.Path) -> None:
    try:
        with Archive.open(archive) as opened:
            manifest = read_manifest(opened)
    except InvalidPackage as error:
        raise BundleError(f"{_named(entry.place)}: {error}") from error
    version = parse_version(entry.version) if entry.version else manifest.version
    if (manifest.fqn, manifest.version) != (entry.fqn, version):
        raise BundleError(
            f"{_named(entry.place)} contains {manifest.fqn} {manifest.version}, but the "
            f"bundle says {entry.fqn} {entry.version}"
        )


def _open(place: str, max_size: int, allow_plain: bool) -> Iterator[bytes]:
    """Yield the content of a file or a URL, in pieces.

    :param max_size: the maximum size of the content, in bytes.
    :param allow_plain: whether a URL without TLS is accepted.
    :raises BundleError: if the content cannot be read, or is larger than the maximum.
    """
    if is_url(place):
        _check_url(place, allow_plain)
    size = 0
    for piece in _download(place, allow_plain) if is_url(place) else _read(place):
        size += len(piece)
        if size > max_size:
            raise BundleError(f"{_named(place)}: more than {max_size} bytes")
        yield piece


def _read(path: str) -> Iterator[bytes]:
    try:
        # To open a named pipe would wait for a writer.
        if not stat.S_ISREG(pathlib.Path(path).stat().st_mode):
            raise BundleError(f"{shown(path)} is not a file")
        with open(path, "rb") as file:
            while piece := file.read(_CHUNK):
                yield piece
    except OSError as error:
        raise BundleError(f"{shown(path)}: {error.strerror or error}") from error
    except ValueError as error:
        raise BundleError(f"{quoted(path)} is not a path: {error}") from error


def _check_url(url: str, allow_plain: bool) -> None:
    """Check a URL before a request is sent.

    :raises BundleError: if the URL has credentials, or has no TLS although it is needed.
    """
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as error:
        raise BundleError(f"{_named(url)} is not a URL: {error}") from error
    if "@" in parts.netloc:
        host = parts.netloc.rpartition("@")[2]
        raise BundleError(
            f"the URL at {shown(host)} has a user or a password; no credentials are sent"
        )
    if not allow_plain and parts.scheme != "https":
        raise _unencrypted(url)


def _download(url: str, allow_plain: bool) -> Iterator[bytes]:
    name = _named(url)
    session = limited_sessions.new()
    # The environment sets proxies and certificates as usual, but ~/.netrc gives no password.
    settings: Any = session.merge_environment_settings(url, {}, True, None, None)
    session.trust_env = False

    def open_at(headers: dict[str, str]) -> requests.Response:
        response = session.get(url, headers=headers, timeout=sessions.DEFAULT_TIMEOUT, **settings)
        if not allow_plain:
            _check_encrypted(response)
        if response.status_code >= requests.codes.bad_request:
            response.close()
            raise ksa_exceptions.from_response(response, "GET", url)
        return response

    try:
        yield from Download(open_at, retries.DEFAULT_ATTEMPTS, download.DEFAULT_MIN_RATE, name)
    except failures.FAILURES as error:
        kind = errors.CatalogUnavailable if failures.is_unavailability(error) else BundleError
        raise kind(f"{name}: {failures.without_queries(str(error))}") from error
    finally:
        session.close()


def _check_encrypted(response: requests.Response) -> None:
    """Check that a request was not redirected to a URL without TLS.

    :raises BundleError: if it was redirected to such a URL.
    """
    for answer in (*response.history, response):
        if not answer.url.lower().startswith("https://"):
            response.close()
            raise _unencrypted(answer.url)


def _unencrypted(url: str) -> BundleError:
    return BundleError(
        f"{_named(url)} is not encrypted, and its SHA-256 is not known; use https, add Sha256 to "
        f"an entry of the bundle, or #sha256=DIGEST to the URL of a bundle"
    )
