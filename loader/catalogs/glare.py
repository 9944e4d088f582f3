# SPDX-License-Identifier: Apache-2.0

"""Releases in Glare, found by its own filters.

Lists are limited to active artifacts of the type ``murano`` that belong to the
caller's project or are public. Without this limit, an administrator's token would show
the packages of every project.
"""

import dataclasses
import itertools
import logging
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from oslo_config import cfg

from glare_murano import fields, wire
from glare_murano.package import GlareMuranoError, InvalidName
from glare_murano.package.manifest import check_required_name
from glare_murano.wire import Answer, Query, Release
from loader import errors
from loader.catalogs import base
from loader.catalogs.openstack import ServiceCatalog
from loader.transport.failures import NoSuchPath
from loader.transport.sessions import Scope

LOG = logging.getLogger(__name__)

ARTIFACTS_PATH = f"/artifacts/{fields.TYPE_NAME}"
# Artifacts in one page of a list.
_PAGE = 100
# Characters of all names in one URL; servers accept 8190 in a whole URL.
_NAMES_LENGTH = 4000
# Seconds for a batch; its archives are locked for other processes meanwhile.
_BATCH_TIMEOUT = 60

# The errors of ``read_batch``.
BATCH_ERRORS = (tarfile.TarError, ValueError)
_END_OF_BATCH = bytes(tarfile.BLOCKSIZE)


class GlareCatalog(ServiceCatalog):
    """The packages in a Glare that a project can use.

    A Glare without the filter of ``glare_murano`` has neither queries nor batches.

    >>> catalog = GlareCatalog(session, project_id="my-project", region_name="north")
    """

    title = "Glare"
    service_type = "artifact"
    group = "glare"

    gives_batches = True
    _answers_queries = True

    def releases(self, fqn: str) -> Iterable[Release]:
        # Glare refuses filters with longer names.
        return self._releases([("name", f"eq:{fqn}")]) if len(fqn) <= fields.MAX_NAME else ()

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return self._releases([("class_definitions", f"eq:{class_name}")])

    def known(self, fqns: Collection[str]) -> Iterator[Release]:
        for names in name_lists(fqns):
            yield from self._releases([("name", f"in:{','.join(names)}")])

    def resolve(self, query: Query) -> Answer | None:
        if not self._answers_queries:
            return None
        # No project has an empty id: with it, only public packages are chosen.
        scoped = dataclasses.replace(query, project_id=self._project() or "")
        body = wire.query_to_json(scoped)
        if body is None:
            return None
        try:
            wanted = (f"{name} {spec}" for name, spec in (*query.requirements, *query.classes))
            subject = f"the closure of {errors.listed(wanted)} (POST {wire.DEPENDENCIES_PATH})"
            answer = self._client.document("POST", wire.DEPENDENCIES_PATH, subject, json=body)
            if answer is not None:
                return wire.answer_from_json(answer)
        except NoSuchPath:
            pass
        except wire.Malformed as error:
            raise errors.CatalogError(
                f"{self.name} answered a dependency query in an unknown form: {error}"
            ) from error
        LOG.info("%s has no dependency queries; its lists are used, level by level", self.name)
        self._answers_queries = False
        return None

    def fetch(self, release: Release) -> Iterator[bytes]:
        path = f"{ARTIFACTS_PATH}/{release.id}/{fields.ARCHIVE}"
        return self._client.download(path, f"the archive of {release} (artifact {release.id})")

    def batch(self, releases: Collection[Release]) -> Iterator[tuple[Release, bytes]]:
        by_id = {release.id: release for release in releases}
        sizes = {release.id: release.size or 0 for release in releases}
        label = "several archives in one answer"
        body = {"artifacts": list(by_id)}
        pieces = self._client.stream("POST", wire.ARCHIVES_PATH, label, _BATCH_TIMEOUT, json=body)
        try:
            for artifact_id, archive in read_batch(pieces, sizes):
                self.counters.count(bytes=len(archive))
                yield by_id[artifact_id], archive
            # The connection is reused only after the end of the answer.
            next(pieces, b"")
        except NoSuchPath:
            self.gives_batches = False
        except BATCH_ERRORS as error:
            raise errors.CatalogError(f"{self.name} did not send {label}: {error}") from error
        finally:
            pieces.close()

    def _releases(self, filters: list[tuple[str, str]]) -> Iterator[Release]:
        """Yield the releases in the result of filters, in the order of the interface."""
        project = self._project()
        query = [
            *filters,
            *([("owner", f"or:eq:{project}")] if project else []),
            ("visibility", "or:eq:public" if project else "public"),
            ("status", "active"),
            ("sort", "version:desc"),
            ("limit", str(_PAGE)),
        ]
        found = map(_release, self._client.items(ARTIFACTS_PATH, "artifacts", query, next_marker))
        # The database sorts pre-releases by its collation. Therefore all releases with
        # the same major, minor and patch are sorted again, the project's own one before a
        # public one of the same version.
        for _, peers in itertools.groupby(found, key=lambda r: r.version.truncate()):
            own_first = sorted(peers, key=lambda r: r.owner == project, reverse=True)
            yield from base.one_of_each(base.newest_first(own_first))


def next_marker(answer: Mapping[str, Any]) -> Any:
    """Return the marker of the page after a list of artifacts; None at the end."""
    # The page's length does not show the end: an operator may limit pages.
    artifacts = answer["artifacts"]
    return artifacts[-1]["id"] if "next" in answer and artifacts else None


def _release(artifact: Any) -> Release:
    """Read a release as Glare lists it: digest and size are in the blob."""
    try:
        archive = wire.get(artifact, fields.ARCHIVE, wire.mapping)
        owner = "" if artifact.get("owner") is None else artifact["owner"]
        digest = {"sha256": archive.get("sha256"), "size": archive.get("size")}
        return wire.release_from_json({**artifact, "owner": owner, **digest})
    except GlareMuranoError as error:
        raise errors.CatalogError(
            f"Glare sent an artifact that is not a valid package: {error}"
        ) from error


def name_lists(fqns: Collection[str]) -> Iterator[list[str]]:
    """Split names into lists that fit into a URL, without names that Glare cannot keep."""
    names: list[str] = []
    length = 0
    for fqn in filter(_is_name, dict.fromkeys(fqns)):
        if names and length + len(fqn) > _NAMES_LENGTH:
            yield names
            names, length = [], 0
        names.append(fqn)
        length += len(fqn) + len("%2C")
    if names:
        yield names


def _is_name(fqn: str) -> bool:
    try:
        return len(check_required_name(fqn)) <= fields.MAX_NAME
    except InvalidName:
        return False


def read_batch(pieces: Iterator[bytes], sizes: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """Yield the archives in a batch, a TAR stream, each with the id of its artifact.

    Only plain files are read, as the server writes them. The library's own reader
    follows every kind of header, and may never end.

    :param sizes: id of each requested artifact -> size of its archive.
    :raises BATCH_ERRORS: if the stream breaks off, or contains anything else.
    """
    stream = _Stream(pieces)
    missing = dict(sizes)
    while (header := stream.read(tarfile.BLOCKSIZE)) != _END_OF_BATCH:
        member = tarfile.TarInfo.frombuf(header, "ascii", "strict")
        if member.type != tarfile.REGTYPE or missing.pop(member.name, None) != member.size:
            raise ValueError(
                f"the batch contains {member.name[:80]!r}, which was not requested with its size"
            )
        yield member.name, stream.read(member.size)
        stream.read(-member.size % tarfile.BLOCKSIZE)


class _Stream:
    """Pieces of any size, read in the sizes of TAR."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            piece = next(self._pieces, b"")
            if not piece:
                raise ValueError("the batch breaks off")
            self._rest += piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


OPTIONS = GlareCatalog.service_options()


def catalogs(conf: cfg.ConfigOpts, scope: Scope) -> list[GlareCatalog]:
    """Make the catalogue of the entry point ``glare``."""
    return [GlareCatalog.configured(conf, scope)]
