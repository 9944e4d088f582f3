# SPDX-License-Identifier: Apache-2.0

"""Handle the resource ``publications``, which publishes packages, and can make them public.

Glance activates each imported image, but the package stays a draft until its publication. One
transaction changes all packages of a request, and is rolled back if a check fails. So the packages
may require each other, and nobody sees some of them without the others.
"""

import dataclasses
import datetime
from collections.abc import Collection, Container, Iterable

import webob
from sqlalchemy.engine import Connection

from glare_murano import images
from glare_murano.glance import image_events, image_policies, internals
from glare_murano.glance.api import callers, image_changes
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import ImageRow, check_imported
from glare_murano.glance.options import SETTINGS
from glare_murano.service import request_reading, schemas
from glare_murano.service.refusals import RefusedRequest, collected, conflict
from glare_murano.service.release_changes import ReleaseChange

# The problems that were found in a publication, in the order of the checks.
_Problems = list[RefusedRequest]


@dataclasses.dataclass(frozen=True)
class Publication:
    """A package in a request for publication.

    :param before: the package before its change.
    :param row: the package after its change.
    :param actions: the necessary actions: ``activate`` (the draft becomes an active package) and
        ``publish`` (the package becomes public); empty if nothing changes.
    """

    before: ImageRow
    row: ImageRow
    actions: tuple[str, ...]

    @property
    def change(self) -> ReleaseChange:
        """The same change as a ``ReleaseChange``, for the checks."""
        return ReleaseChange(self.before, self.row, self.before.state, self.row.state)


def publish(req: webob.Request) -> webob.Response:
    """Publish all packages of a request or none, and make them public if requested.

    A dry run checks the packages, and changes nothing.
    """
    body = request_reading.read_body(req, schemas.PUBLICATION)
    ids, is_dry_run = list(dict.fromkeys(body["ids"])), body.get("dry_run", False)
    visibility = body["visibility"]
    published = internals.retry(lambda: _publish(req, ids, visibility, is_dry_run))
    if not is_dry_run:
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
    # Policies are checked before the images are locked, since their rules may query other services.
    with internals.reading() as connection:
        rows = image_rows.find(connection, ids, caller.viewer.project_id)
        stored = image_rows.find_locations(connection, ids)
    found = _permitted(caller, ids, rows, visibility, problems)
    with collected(problems, RefusedRequest):
        _check_data(found, stored)
    published = [_changed(row, visibility, problems) for row in found]
    changes = [each.change for each in published if each.actions]

    def find(connection: Connection) -> list[ReleaseChange]:
        before = [each.before for each in published if each.actions]
        wanted = [row.id for row in before]
        if image_rows.find(connection, wanted, caller.viewer.project_id) != before:
            raise internals.ImagesBusy
        _check_data(before, image_rows.find_locations(connection, wanted))
        return changes

    transaction = image_changes.Transaction(caller, changes, find, problems)
    if changes and not is_dry_run:
        with transaction.begin() as connection:
            for each in published:
                _save(connection, each)
    return published


def _permitted(
    caller: callers.Caller,
    ids: Iterable[str],
    rows: Iterable[ImageRow],
    visibility: str,
    problems: _Problems,
) -> list[ImageRow]:
    """Return those requested packages that the caller sees and owns.

    This function also checks the names of these packages, and the policies.

    :param ids: the requested ids.
    :param rows: the packages that were found.
    :param visibility: the requested visibility.
    :param problems: a refusal for each failed check is added to this list.
    """
    by_id = {row.id: row for row in rows}
    actions = [image_policies.MODIFY_IMAGE]
    if visibility == "public":
        actions.append(image_policies.PUBLICIZE_IMAGE)
    found = []
    for id_ in ids:
        with collected(problems, RefusedRequest):
            row = caller.visible(by_id.get(id_), id_)
            caller.check_owner(row)
            found.append(row)
            with collected(problems, RefusedRequest):
                caller.check_names(row)
            for action in actions:
                with collected(problems, RefusedRequest):
                    caller.check_policy(row, action)
    return found


def _becomes_public(row: ImageRow, visibility: str) -> bool:
    return visibility == "public" and row.visibility != "public"


def _changed(row: ImageRow, visibility: str, problems: _Problems) -> Publication:
    """Return a package before and after its publication, with the necessary actions.

    :param row: the package before its publication.
    :param visibility: the requested visibility.
    :param problems: if the package cannot be published, the refusal is added to this list.
    """
    with collected(problems, RefusedRequest):
        _check_state(row, visibility)
    is_needed = {
        "activate": not row.is_published,
        "publish": _becomes_public(row, visibility),
    }
    properties, attributes = dict(row.properties), dict(row.attributes)
    if is_needed["activate"]:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        properties[images.PUBLISHED] = now
    if is_needed["publish"]:
        attributes["visibility"] = visibility
    actions = tuple(action for action in is_needed if is_needed[action])
    return Publication(row, ImageRow(attributes, properties), actions)


def _save(connection: Connection, publication: Publication) -> None:
    row = publication.row
    if "activate" in publication.actions:
        published = row.properties[images.PUBLISHED]
        image_rows.set_property(connection, row.id, images.PUBLISHED, published)
        image_rows.delete_property(connection, row.id, internals.DELETION)
    if "publish" in publication.actions:
        image_rows.make_public(connection, row.id)


def _check_data(rows: Iterable[ImageRow], stored: Container[str]) -> None:
    """Check that packages still have their data if their images are active.

    An interrupted deletion can leave a package without data, since Glance deletes the data of an
    image before the row of the image.

    :param stored: the ids of the images that have data.
    :raises RefusedRequest: if a package has lost its data.
    """
    for row in rows:
        if row.status == images.ACTIVE and row.id not in stored:
            raise conflict(
                f"{row} ({row.id}) has lost its archive, since its deletion was interrupted; "
                f"delete it, and publish the package again from its archive"
            )


def _check_state(row: ImageRow, visibility: str) -> None:
    check_imported(row)
    if row.is_being_deleted:
        raise conflict(
            f"another request is deleting {row} ({row.id}); if it was interrupted, delete the "
            f"package again, or publish it after {SETTINGS['import_timeout']} seconds"
        )
    if visibility == "private" and row.visibility == "public" and row.is_published:
        raise conflict(f"{row} is public, and cannot become private again")
