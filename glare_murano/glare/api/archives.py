# SPDX-License-Identifier: Apache-2.0

"""Batches: the archives of several artifacts as one TAR stream.

It takes Glare longer to begin a download than to send a small archive, and an
application has dozens of them. A batch holds no more than its caller could
download one by one, by Glare's own rules and the operator's policy. What it would
be refused is left out, as is what cannot be read: so it is seen what has come,
and what is missing is to be downloaded by itself, which tells why. Reading
HTTP is not here (see ``api``).
"""

import functools
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jsonschema
import sqlalchemy as sa
from glare.common import exception, policy, store_api
from glare.db.sqlalchemy import api as database
from glare.db.sqlalchemy import models
from oslo_log import log as logging

from glare_murano import fields, wire
from glare_murano.glare.api import validation
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.glare.db.queries import among, checked, looked_up, snapshot, usable

LOG = logging.getLogger(__name__)

# Bytes of all archives together, so that no answer takes a worker for long.
MAX_SIZE = 64 * 1024**2
_PIECE = 64 * 1024
_SHARE = 16

_blobs = models.ArtifactBlob.__table__.c

_STORED = sa.select(_blobs.artifact_id, _blobs.url, _blobs.size).where(
    among(_blobs.artifact_id),
    checked(_blobs.name == fields.ARCHIVE),
    checked(_blobs.status == "active"),
    checked(_blobs.external.is_(False)),
)

REQUEST_SCHEMA = {
    "type": "object",
    "properties": {
        "artifacts": {
            "type": "array",
            "maxItems": wire.MAX_ARCHIVES,
            "items": {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
        },
    },
    "required": ["artifacts"],
    "additionalProperties": False,
}
_VALIDATOR = jsonschema.Draft202012Validator(REQUEST_SCHEMA)


def requested(body: Any) -> list[str]:
    """The ids that a request names, each once.

    :raises glare.common.exception.BadRequest: telling what is wrong where.
    """
    validation.check_form(_VALIDATOR, body)
    return list(dict.fromkeys(body["artifacts"]))


def stream(context: Any, ids: Sequence[str]) -> Iterator[bytes]:
    """A batch of these artifacts, in this order, as far as there is room, piece by piece.

    Each archive is named by the id of its artifact.

    :raises EOFError: if what is stored is not as large as Glare says. Then the
        batch ends in the middle.
    """
    return _gathered(_batch(context, ids))


def _batch(context: Any, ids: Sequence[str]) -> Iterator[bytes]:
    room = MAX_SIZE
    for blob in _downloadable(context, ids):
        if blob.size <= room:
            room -= blob.size
            yield from _entry(context, blob)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces, since each takes a server a while to send."""
    held: list[bytes] = []
    try:
        for piece in pieces:
            held.append(piece)
            if sum(map(len, held)) >= _PIECE:
                yield b"".join(held)
                held.clear()
    except Exception:
        if held:
            yield b"".join(held)
        raise
    if held:
        yield b"".join(held)


class _Target(Mapping[str, Any]):
    """An artifact that a rule of the policy is about.

    Rules ask for its owner, status and visibility, which are known. To read all
    the rest takes longer than to send an archive, and is left until one asks.

    :ivar is_read: whether a rule has asked for more than is known.
    """

    def __init__(self, context: Any, row: Any) -> None:
        self._context = context
        self._id = row.id
        self.is_read = False
        self._known = {"owner": row.owner, "status": "active", "visibility": row.visibility}

    def __getitem__(self, key: str) -> Any:
        return self._known[key] if key in self._known else self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy would not tell that it was read.
        return dict, (self._all,)

    def __repr__(self) -> str:
        return repr(self._all)

    @functools.cached_property
    def _all(self) -> dict[str, Any]:
        """The artifact as Glare would give it to the rule of a download."""
        # Before it is read, since that may fail.
        self.is_read = True
        artifact = MuranoPackageArtifact.show(self._context, self._id)
        found: dict[str, Any] = artifact.to_dict()
        return found


def _downloadable(context: Any, ids: Sequence[str]) -> Iterator[Any]:
    """The archives of those artifacts that the caller may download, by Glare's own rules."""
    may_all = policy.authorize("artifact:download_from_any_artifact", {}, context, do_raise=False)
    allowed: dict[tuple[str, str], bool] = {}
    # A few at a time, since what is deleted or deactivated meanwhile is not to be sent.
    for start in range(0, len(ids), _SHARE):
        share = ids[start : start + _SHARE]
        session = database.get_session()
        with snapshot(session) as connection:
            artifacts = {row.id: row for row in usable(connection, context, may_all, "id", share)}
            blobs = {row.artifact_id: row for row in looked_up(connection, _STORED, artifacts)}
        for name in share:
            if name in blobs and (may_all or _may_download(context, artifacts[name], allowed)):
                yield blobs[name]


def _may_download(context: Any, artifact: Any, allowed: dict[tuple[str, str], bool]) -> bool:
    """Whether a rule lets the caller download an archive.

    :param allowed: what was found for others by their owner and visibility. It
        holds for all that have the same, unless a rule asks for more.
    """
    kind = (artifact.owner, artifact.visibility)
    if kind in allowed:
        return allowed[kind]
    target = _Target(context, artifact)
    try:
        may = bool(policy.authorize("artifact:download", target, context, do_raise=False))
    except exception.NotFound:
        # It was deleted, or hidden from the caller, since it was looked up.
        return False
    if not target.is_read:
        allowed[kind] = may
    return may


def _entry(context: Any, blob: Any) -> Iterator[bytes]:
    try:
        pieces = iter(store_api.load_from_store(uri=blob.url, context=context))
        piece = next(pieces, b"")
    except Exception as error:  # of whatever store
        LOG.warning(
            "The %s of artifact %s cannot be read: %s", fields.ARCHIVE, blob.artifact_id, error
        )
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
            f"the {fields.ARCHIVE} of artifact {blob.artifact_id} is not of {blob.size} bytes"
        )
    yield bytes(-header.size % tarfile.BLOCKSIZE)
