# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``archives``: download several archives at once; see ``service.batches``."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import webob
from glare.common import exception, policy, store_api

from glare_murano.glare import policies
from glare_murano.glare.artifact import MuranoPackageArtifact
from glare_murano.glare.db.glare_database import GlareDatabase, snapshot
from glare_murano.glare.interfaces import RequestContext
from glare_murano.glare.options import SETTINGS
from glare_murano.service import batches, budgets
from glare_murano.service.batches import StoredArchive
from glare_murano.service.database import PackageRecord, Viewer


def download(req: webob.Request) -> webob.Response:
    """Return a TAR stream with the archives of the requested artifacts.

    The name of each archive in the stream is the id of its artifact. The stream leaves out archives
    that the caller may not download, archives that the store cannot read, and archives that exceed
    a limit; see ``service.batches``.
    """
    return batches.respond(downloadable(req.context, batches.read_ids(req)))


def downloadable(context: RequestContext, ids: Sequence[str]) -> Iterator[StoredArchive]:
    """Yield the archives that the caller may download, by Glare's rules for single downloads.

    :param ids: the ids of the artifacts. An artifact that the caller may not download is left out.
    """
    may_all = policy.authorize(policies.DOWNLOAD_ANY, {}, context, do_raise=False)
    viewer = Viewer(context.project_id, context.is_admin or may_all)
    decisions: dict[tuple[str, str], bool] = {}
    for group in batches.divide(ids):
        with snapshot() as connection:
            database = GlareDatabase(connection, viewer, budgets.of_look_ups(SETTINGS))
            artifacts = {row.id: row for row in database.find_usable("id", group)}
            blobs = {row.artifact_id: row for row in database.find_archives(artifacts)}
        for id_ in group:
            if id_ in blobs and (may_all or _may_download(context, artifacts[id_], decisions)):
                blob = blobs[id_]
                read = functools.partial(store_api.load_from_store, uri=blob.url, context=context)
                yield StoredArchive(id_, blob.size, read)


def _may_download(
    context: RequestContext, artifact: PackageRecord, decisions: dict[tuple[str, str], bool]
) -> bool:
    """Return whether the policy permits the caller to download an archive.

    :param decisions: earlier decisions, by owner and visibility. They are used again. The new
        decision is added to them, unless a rule has read other fields of the artifact.
    """
    kind = (artifact.owner, artifact.visibility)
    if kind in decisions:
        return decisions[kind]
    target = _PolicyTarget(context, artifact)
    try:
        may = bool(policy.authorize(policies.DOWNLOAD, target, context, do_raise=False))
    except exception.NotFound:
        # The artifact was deleted or hidden after the look-up.
        return False
    if not target.is_read:
        # The decision is the same for all artifacts with this owner and visibility.
        decisions[kind] = may
    return may


class _PolicyTarget(Mapping[str, Any]):
    """The fields of an artifact, as a mapping for policy rules.

    Most rules use only owner, status and visibility. The other fields are read from the database
    only when a rule uses them, since reading them takes longer than sending an archive.

    :ivar is_read: whether the other fields were read.
    """

    def __init__(self, context: RequestContext, row: PackageRecord) -> None:
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
        # A copy could not set ``is_read`` of the original object, so the fields are read before a
        # copy is made.
        return dict, (self._fields,)

    def __repr__(self) -> str:
        return repr(self._fields)

    @functools.cached_property
    def _fields(self) -> dict[str, Any]:
        # This is set first, since reading may fail.
        self.is_read = True
        return MuranoPackageArtifact.show(self._context, self._id).to_dict()
