# SPDX-License-Identifier: Apache-2.0

"""Answers to dependency queries, kept for as long as they would be given again.

An answer follows from the query, from which artifacts its caller sees, and from
what these say, which never changes. So for a query that comes again it is enough
to ask at once for all artifacts that were looked at; only if they are not the same
any more is it answered anew.
"""

import contextlib
import hashlib
import json
import threading
from typing import Any, NamedTuple

import cachetools

from glare_murano.glare.api import dependencies
from glare_murano.glare.db.source import Evidence, GlareSource

# Bytes, and how many of them an answer takes beside its texts, an artifact that was
# looked at, and a name that was asked for.
_MOST_KEPT = 32 * 1024**2
_ANSWER = 4096
_ARTIFACT = 1024
_NAME = 256


class _Key(NamedTuple):
    """A query, and who asks; those who see other artifacts do not take turns."""

    # A sum, since a query may be far larger than its answer.
    query: str
    project_id: str | None
    sees_all: bool


class _Answer(NamedTuple):
    data: bytes
    evidence: Evidence


def _weight(answer: _Answer) -> int:
    evidence = answer.evidence
    names = sum(_NAME + len(name) for name in (*evidence.names, *evidence.classes))
    return _ANSWER + len(answer.data) + _ARTIFACT * len(evidence.artifacts) + names


_kept: cachetools.LRUCache[_Key, _Answer] = cachetools.LRUCache(_MOST_KEPT, _weight)
_guard = threading.Lock()


def answer(connection: Any, context: Any, sees_all: bool, body: Any) -> bytes:
    """What a query comes to, as JSON.

    :param connection: one to Glare's database, in a transaction.
    :param sees_all: whether a list call of the caller would show the artifacts of
        all projects.
    :param body: the query.
    :raises glare.common.exception.BadRequest: if it is none.
    :raises glare.common.exception.NotFound: if its package is not there.
    :raises glare.common.exception.Conflict: if its package has no archive.
    :raises Unplannable: if that would take too long.
    """
    written = json.dumps(body, sort_keys=True).encode()
    key = _Key(hashlib.sha256(written).hexdigest(), context.project_id, sees_all)
    with _guard:
        kept = _kept.get(key)
    if kept is not None and _is_current(kept, connection, context, sees_all):
        return kept.data
    query = dependencies.Query(body)
    source = GlareSource(
        connection,
        context,
        see_all=sees_all,
        project_id=query.project_id,
        prereleases=query.prereleases,
        given=query.package,
    )
    data = json.dumps(dependencies.answer(query, source)).encode()
    # A draft can change what it says.
    if query.package is None:
        # Where one is too large for all, it is not kept.
        with _guard, contextlib.suppress(ValueError):
            _kept[key] = _Answer(data, source.evidence)
    return data


def _is_current(kept: _Answer, connection: Any, context: Any, sees_all: bool) -> bool:
    """Whether the database says the same as when the answer was given."""
    source = GlareSource(connection, context, see_all=sees_all, project_id=None, prereleases=True)
    source.defining(kept.evidence.classes)
    source.versions(kept.evidence.names)
    return source.evidence == kept.evidence
