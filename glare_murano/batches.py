# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Batches: the archives of several artifacts as one TAR stream.

It takes Glare longer to begin a download than to send a small archive, and an
application has dozens of them. A batch holds no more than its caller could
download one by one, by Glare's own rules and the operator's policy. What it would
be refused is left out, as is what cannot be read: so it is seen what has come,
and what is missing is to be downloaded by itself, which tells why. Reading
HTTP is not here (see ``api``).
"""

import tarfile
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import jsonschema
from glare.common import policy
from glare.common import store_api
from oslo_log import log as logging

from glare_murano import fields
from glare_murano import requests
from glare_murano.artifact import MuranoPackageArtifact

LOG = logging.getLogger(__name__)

# Bytes of all archives together, so that no answer takes a worker for long.
MAX_SIZE = 64 * 1024**2
MAX_ARCHIVES = 100
_SHARE = 8

REQUEST_SCHEMA = {
    "type": "object",
    "properties": {
        "artifacts": {
            "type": "array",
            "maxItems": MAX_ARCHIVES,
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
    requests.check_form(_VALIDATOR, body)
    return list(dict.fromkeys(body["artifacts"]))


def stream(context: Any, ids: Sequence[str]) -> Iterator[bytes]:
    """A batch of these artifacts, in this order, as far as there is room, piece by piece.

    Each archive is named by the id of its artifact.

    :raises EOFError: if what is stored is not as large as Glare says. Then the
        batch ends in the middle.
    """
    room = MAX_SIZE
    # A few at a time, so that there is something to send while others are looked up.
    for start in range(0, len(ids), _SHARE):
        for artifact in _downloadable(context, ids[start : start + _SHARE]):
            if artifact.archive["size"] <= room:
                room -= artifact.archive["size"]
                yield from _entry(context, artifact.id, artifact.archive)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _downloadable(context: Any, ids: Sequence[str]) -> Iterator[Any]:
    """Those of the artifacts whose archives the caller may download, by Glare's own rules."""
    may_all = policy.authorize("artifact:download_from_any_artifact", {}, context, do_raise=False)
    found = MuranoPackageArtifact.list(
        context,
        filters=[("id", f"in:{','.join(ids)}"), ("status", "active")],
        limit=len(ids),
        list_all_artifacts=may_all,
    )
    for artifact in sorted(found["artifacts"], key=lambda artifact: ids.index(artifact.id)):
        blob = artifact.archive
        is_whole = blob is not None and blob["status"] == "active" and not blob["external"]
        if is_whole and (
            may_all
            or policy.authorize("artifact:download", artifact.to_dict(), context, do_raise=False)
        ):
            yield artifact


def _entry(context: Any, name: str, blob: Mapping[str, Any]) -> Iterator[bytes]:
    try:
        pieces = iter(store_api.load_from_store(uri=blob["url"], context=context))
        piece = next(pieces, b"")
    except Exception as error:  # of whatever store
        LOG.warning("The %s of artifact %s cannot be read: %s", fields.ARCHIVE, name, error)
        return
    header = tarfile.TarInfo(name)
    header.size = left = blob["size"]
    yield header.tobuf(tarfile.USTAR_FORMAT)
    while piece and left >= 0:
        left -= len(piece)
        yield piece
        piece = next(pieces, b"")
    if left:
        raise EOFError(f"the {fields.ARCHIVE} of artifact {name} is not of {header.size} bytes")
    yield bytes(-header.size % tarfile.BLOCKSIZE)
