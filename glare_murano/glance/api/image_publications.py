# SPDX-License-Identifier: Apache-2.0

"""The resource ``publications``: publish packages, and make them public, all or none.

Glance activates each imported image, but the package is a release only after its publication.
One transaction changes all packages, and is rolled back if a check fails. So packages may
require each other, and no reader sees some of them without the others.
"""

import contextlib
import dataclasses
import datetime
from collections.abc import Collection, Iterable, Iterator

import webob
from sqlalchemy.engine import Connection

from glare_murano import images
from glare_murano.glance import image_events, image_policies, internals
from glare_murano.glance.api import callers
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.glance_database import GlanceDatabase
from glare_murano.glance.db.image_rows import ImageRow, check_imported
from glare_murano.service import request_reading, schemas
from glare_murano.service.refusals import RefusedRequest, conflict

# The problems of a publication, in the order of the checks.
_Problems = list[RefusedRequest]


@dataclasses.dataclass(frozen=True)
class Publication:
    """A package of a publication, after its change.

    :param actions: which of ``activate`` and ``publish`` were necessary.
    """

    row: ImageRow
    actions: tuple[str, ...]


class _DryRun(Exception):
    """The end of a dry run, which rolls back a publication that has passed its checks."""

    def __init__(self, publications: list[Publication]) -> None:
        self.publications = publications


def publish(req: webob.Request) -> webob.Response:
    """Publish packages, and make them public, all or none; only check them in a dry run."""
    body = request_reading.read_body(req, schemas.PUBLICATION)
    ids, is_dry_run = list(dict.fromkeys(body["ids"])), body.get("dry_run", False)
    visibility = body["visibility"]
    try:
        published = internals.retry(lambda: _publish(req, ids, visibility, is_dry_run))
    except _DryRun as done:
        published = done.publications
    else:
        internals.notify(each.row.id for each in published if each.actions)
        for each in published:
            for action in each.actions:
                image_events.send(req.context, action, each.row)
    listed = [
        {
            "id": each.row.id,
            "name": each.row.name,
            "version": each.row.version,
            "status": images.ACTIVE,
            "visibility": each.row.visibility,
            "sha256": each.row.properties[images.SHA256],
            "actions": each.actions,
        }
        for each in published
    ]
    return webob.Response(json={"artifacts": listed})


def _publish(
    req: webob.Request, ids: Collection[str], visibility: str, is_dry_run: bool
) -> list[Publication]:
    problems: _Problems = []
    caller = callers.of(req)
    # Policies may query other services, so they are checked before the images are locked.
    with internals.reading() as connection:
        rows = image_rows.find(connection, ids, caller.viewer.project_id)
        becoming_public = [row for row in rows if _becomes_public(row, visibility)]
        namesakes = image_rows.find_namesakes(connection, becoming_public)
    found = _permitted(caller, ids, rows, visibility, problems)
    with internals.writing() as connection:
        # Two packages of one name and version must not become public at the same time.
        image_rows.lock(connection, {*(row.id for row in found), *namesakes})
        if (
            image_rows.find(connection, [row.id for row in found], caller.viewer.project_id)
            != found
        ):
            raise internals.ImagesBusy
        with _collected(problems):
            _check_data(connection, found)
        published = [_change(connection, row, visibility, problems) for row in found]
        _check(connection, caller, published, problems)
        if problems:
            raise RefusedRequest(problems[0].status, "\n".join(map(str, problems)))
        if is_dry_run:
            raise _DryRun(published)
    return published


def _permitted(
    caller: callers.Caller,
    ids: Iterable[str],
    rows: Iterable[ImageRow],
    visibility: str,
    problems: _Problems,
) -> list[ImageRow]:
    """Return the packages that the caller sees and owns; check their names and the policies."""
    by_id = {row.id: row for row in rows}
    actions = [image_policies.MODIFY_IMAGE]
    if visibility == "public":
        actions.append(image_policies.PUBLICIZE_IMAGE)
    found = []
    for id_ in ids:
        with _collected(problems):
            row = caller.visible(by_id.get(id_), id_)
            caller.check_owner(row)
            found.append(row)
            with _collected(problems):
                caller.check_names(row)
            for action in actions:
                with _collected(problems):
                    caller.check_policy(row, action)
    return found


def _becomes_public(row: ImageRow, visibility: str) -> bool:
    return visibility == "public" and row.visibility != "public"


def _change(
    connection: Connection, row: ImageRow, visibility: str, problems: _Problems
) -> Publication:
    """Change a package, and return the changed package."""
    with _collected(problems):
        _check_state(row, visibility)
    is_needed = {
        "activate": not row.is_published,
        "publish": _becomes_public(row, visibility),
    }
    properties, attributes = dict(row.properties), dict(row.attributes)
    if is_needed["activate"]:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        properties[images.PUBLISHED] = now
        image_rows.set_property(connection, row.id, images.PUBLISHED, now)
    if is_needed["publish"]:
        attributes["visibility"] = visibility
        image_rows.make_public(connection, row.id)
    actions = tuple(action for action in is_needed if is_needed[action])
    return Publication(ImageRow(attributes, properties), actions)


def _check_data(connection: Connection, rows: Collection[ImageRow]) -> None:
    """Check that active packages still have their data: Glance deletes data before rows."""
    stored = image_rows.find_locations(connection, [row.id for row in rows])
    for row in rows:
        if row.status == images.ACTIVE and row.id not in stored:
            raise conflict(
                f"{row} ({row.id}) has lost its archive, since its deletion was interrupted; "
                f"delete it, and publish the package again from its archive"
            )


def _check_state(row: ImageRow, visibility: str) -> None:
    check_imported(row)
    if visibility == "private" and row.visibility == "public" and row.is_published:
        raise conflict(f"{row} is public, and cannot become private again")


def _check(
    connection: Connection,
    caller: callers.Caller,
    published: Iterable[Publication],
    problems: _Problems,
) -> None:
    """Check the changed packages against each other, and against all other packages."""
    database = GlanceDatabase(connection, caller.viewer)
    checks = caller.checks(database)
    activated = [each.row for each in published if "activate" in each.actions]
    # The image of a draft may be public already.
    public = [each.row for each in published if each.actions and each.row.visibility == "public"]
    with _collected(problems):
        checks.check_activation(activated)
    with _collected(problems):
        checks.check_publication(public)
    for row in public:
        with _collected(problems):
            check_unique(database, row)


def check_unique(database: GlanceDatabase, row: ImageRow) -> None:
    """Check that no other package of the same name and version is public.

    :raises RefusedRequest: if another such package is public.
    """
    for record in database.find_public([row.name]):
        if record.id != row.id and str(record) == str(row):
            raise conflict(f"another {row} is public already")


@contextlib.contextmanager
def _collected(problems: _Problems) -> Iterator[None]:
    """Add a refusal to the problems instead of raising it."""
    try:
        yield
    except RefusedRequest as problem:
        problems.append(problem)
