# SPDX-License-Identifier: Apache-2.0

"""The resource ``archives``: several archives as one TAR stream, a batch.

Glare takes longer to begin a download than to send a small archive, and an
application has dozens of packages. A batch contains only archives for which the
caller's own download would succeed. For a missing archive, the download returns
the error.
"""

import functools
import itertools
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import webob
from glare.common import exception, policy, store_api
from oslo_log import log as logging
from sqlalchemy.engine import Row

from glare_murano import wire
from glare_murano.glare import policies
from glare_murano.glare.api import validation
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.glare.db import queries
from glare_murano.glare.interfaces import RequestContext

LOG = logging.getLogger(__name__)

# Bytes of all archives, so that no answer occupies a worker for long.
MAX_SIZE = 64 * 1024**2
_CHUNK_SIZE = 64 * 1024
# Artifacts that are looked up at once.
_LOOK_UP = 16

SCHEMA = {
    "type": "object",
    "properties": {
        "artifacts": {
            "type": "array",
            "maxItems": wire.MAX_ARCHIVES,
            "items": validation.ARTIFACT_ID,
        }
    },
    "required": ["artifacts"],
    "additionalProperties": False,
}


def download(req: webob.Request) -> webob.Response:
    """Send the archives of artifacts, each named by the artifact's id."""
    ids = validation.read_body(req, SCHEMA)["artifacts"]
    chunks = stream(req.context, list(dict.fromkeys(ids)))
    # An error before the first chunk is answered like any other.
    first = next(chunks)
    return webob.Response(
        content_type="application/x-tar", app_iter=itertools.chain([first], chunks)
    )


def stream(context: RequestContext, ids: Sequence[str]) -> Iterator[bytes]:
    """Yield a batch of artifacts, in this order, up to ``MAX_SIZE``.

    :raises EOFError: in the middle of the batch, if a stored archive differs in
        size from its metadata.
    """
    # Small pieces are joined, since the server sends each piece alone.
    joined = bytearray()
    try:
        for piece in _members(context, ids):
            joined += piece
            if len(joined) >= _CHUNK_SIZE:
                yield bytes(joined)
                joined.clear()
    except Exception:
        if joined:
            yield bytes(joined)
        raise
    if joined:
        yield bytes(joined)


def _members(context: RequestContext, ids: Sequence[str]) -> Iterator[bytes]:
    room = MAX_SIZE
    for blob in _downloadable(context, ids):
        if blob.size <= room:
            room -= blob.size
            yield from _member(context, blob)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _downloadable(context: RequestContext, ids: Sequence[str]) -> Iterator[Row]:
    """Yield the archives for which the caller's own download would succeed."""
    may_all = policy.authorize("artifact:download_from_any_artifact", {}, context, do_raise=False)
    viewer = policies.Viewer(context.project_id, context.is_admin or may_all)
    decisions: dict[tuple[str, str], bool] = {}
    # A few at a time, since artifacts may be deleted or deactivated meanwhile.
    for start in range(0, len(ids), _LOOK_UP):
        share = ids[start : start + _LOOK_UP]
        with queries.snapshot() as connection:
            usable = queries.find_usable(connection, viewer, "id", share)
            artifacts = {row.id: row for row in usable}
            blobs = {row.artifact_id: row for row in queries.find_archives(connection, artifacts)}
        for id_ in share:
            if id_ in blobs and (may_all or _may_download(context, artifacts[id_], decisions)):
                yield blobs[id_]


def _may_download(
    context: RequestContext, artifact: Row, decisions: dict[tuple[str, str], bool]
) -> bool:
    """Return whether the policy permits the download of an archive."""
    kind = (artifact.owner, artifact.visibility)
    if kind in decisions:
        return decisions[kind]
    target = _PolicyTarget(context, artifact)
    try:
        may = bool(policy.authorize("artifact:download", target, context, do_raise=False))
    except exception.NotFound:
        # The artifact was deleted or hidden after the look-up.
        return False
    if not target.is_read:
        # The decision is the same for all artifacts of this kind.
        decisions[kind] = may
    return may


class _PolicyTarget(Mapping[str, Any]):
    """An artifact for the rules of a policy.

    Most rules use only owner, status and visibility. The other fields are read on demand,
    since reading them takes longer than sending an archive.

    :ivar is_read: whether a rule has read another field.
    """

    def __init__(self, context: RequestContext, row: Row) -> None:
        self._context = context
        self._id = row.id
        self._known = {"owner": row.owner, "status": "active", "visibility": row.visibility}
        self.is_read = False

    def __getitem__(self, key: str) -> Any:
        return self._known[key] if key in self._known else self._fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy could not set is_read here.
        return dict, (self._fields,)

    def __repr__(self) -> str:
        return repr(self._fields)

    @functools.cached_property
    def _fields(self) -> dict[str, Any]:
        # Set first, since reading may fail.
        self.is_read = True
        return MuranoPackageArtifact.show(self._context, self._id).to_dict()


def _member(context: RequestContext, blob: Row) -> Iterator[bytes]:
    try:
        pieces = iter(store_api.load_from_store(uri=blob.url, context=context))
        piece = next(pieces, b"")
    except Exception as error:  # stores raise errors of their own
        LOG.warning("The archive of artifact %s cannot be read: %s", blob.artifact_id, error)
        return
    header = tarfile.TarInfo(blob.artifact_id)
    header.size = left = blob.size
    yield header.tobuf(tarfile.USTAR_FORMAT)
    while piece and left >= 0:
        left -= len(piece)
        yield piece
        piece = next(pieces, b"")
    if left:
        raise EOFError(
            f"the archive of artifact {blob.artifact_id} does not have {blob.size} bytes"
        )
    yield bytes(-header.size % tarfile.BLOCKSIZE)
