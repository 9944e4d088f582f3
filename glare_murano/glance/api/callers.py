# SPDX-License-Identifier: Apache-2.0

"""Find out what the caller of a request to Glance may do, by Glance's policies and rules."""

from typing import Any

import webob

from glare_murano import images, preconditions
from glare_murano.glance import image_policies, internals
from glare_murano.glance.db import image_rows
from glare_murano.glance.db.image_rows import ImageRow
from glare_murano.glance.options import SETTINGS
from glare_murano.service import name_checks, request_reading
from glare_murano.service.database import Viewer
from glare_murano.service.refusals import conflict, forbidden, not_found


class Caller:
    """The user who sends a request.

    :param context: Glance's context of the request.
    :param overrides: whether the request overrides the checks of requirements. Only an
        administrator may override them.
    """

    def __init__(self, context: Any, overrides: bool) -> None:
        self.context = context
        self.viewer = Viewer(context.project_id, bool(context.is_admin))
        self.overrides = overrides

    def check_list(self) -> None:
        """Check that the caller may list images.

        :raises RefusedRequest: if the policy ``get_images`` forbids it.
        """
        if not internals.may_list(self.context):
            raise forbidden(f"the policy {image_policies.GET_IMAGES} forbids it")

    def may(self, row: ImageRow, action: str) -> bool:
        """Return whether a policy permits the caller an action on a package.

        :param action: the name of the policy.
        """
        return internals.may(self.context, action, row.attributes, row.properties)

    def find(self, image_id: str) -> ImageRow:
        """Find a package that the caller may see, by the id of its image.

        :raises RefusedRequest: if the package is missing, or not visible to the caller.
        """
        return self.visible(self.find_package(image_id), image_id)

    def find_package(self, image_id: str) -> ImageRow | None:
        """Find a package by the id of its image, whether it is visible to the caller or not.

        :returns: the package; None if it is missing.
        """
        with internals.reading() as connection:
            rows = image_rows.find(connection, [image_id], self.viewer.project_id)
        return rows[0] if rows else None

    def may_change(self, row: ImageRow, action: str = image_policies.MODIFY_IMAGE) -> bool:
        """Return whether the caller may change a package.

        If the result is False, pass the request on to Glance: Glance's refusal reveals nothing
        about a package of another project.

        :param action: the name of the policy that permits the change.
        """
        return self.owns(row) and self.may(row, action)

    def check_archive(self, image_id: str) -> None:
        """Check that a package has an archive.

        A package that is missing, or not visible to the caller, passes the check.

        :raises RefusedRequest: if the package is visible to the caller, and has no archive.
        """
        row = self.find_package(image_id)
        if row and self._sees(row) and row.status not in (images.ACTIVE, images.DEACTIVATED):
            raise conflict(f"{row.name} ({row.id}) has no archive yet; upload it first")

    def visible(self, row: ImageRow | None, image_id: str) -> ImageRow:
        """Check that a package is visible to the caller, and return it.

        :param row: the package; None if it was not found.
        :param image_id: the requested id, for the message.
        :raises RefusedRequest: if the package is missing or not visible. The message is the same in
            both cases, so that it does not reveal the package.
        """
        if row is None or not (self._sees(row) and self.may(row, image_policies.GET_IMAGE)):
            raise not_found(f"Image with id={image_id} not found.")
        return row

    def _sees(self, row: ImageRow) -> bool:
        """Return whether Glance's database layer would return the image to the caller."""
        is_own = row.owner == self.viewer.project_id
        is_shared = row.visibility == "shared" and row.attributes["member"] is not None
        is_open = row.visibility in ("public", "community")
        return self.viewer.is_admin or is_own or is_shared or is_open

    def may_download(self, row: ImageRow) -> bool:
        """Return whether Glance would let the caller download an active package."""
        needed = (image_policies.GET_IMAGE, image_policies.DOWNLOAD_IMAGE)
        return self._sees(row) and all(self.may(row, action) for action in needed)

    def owns(self, row: ImageRow) -> bool:
        """Return whether the caller owns a package, or is an administrator."""
        return self.viewer.is_admin or row.owner == self.viewer.project_id

    def check_owner(self, row: ImageRow) -> None:
        """Check that the caller owns a package, or is an administrator.

        :raises RefusedRequest: if the package belongs to another project, and the caller is not an
            administrator.
        """
        if not self.owns(row):
            raise forbidden(f"{row} belongs to another project")

    def check_names(self, row: ImageRow) -> None:
        """Check that the owner of a package may use the names of the package and its classes.

        An administrator cannot override this check.

        :raises RefusedRequest: if the owner may not use a name; see ``service.name_checks``.
        """
        name_checks.check(
            SETTINGS,
            row.name,
            row.class_definitions,
            row.owner,
            lambda: self.may(row, image_policies.PUBLICIZE_IMAGE),
        )

    def check_policy(self, row: ImageRow, action: str) -> None:
        """Check that a policy permits the caller an action on a package.

        :param action: the name of the policy.
        :raises RefusedRequest: if the policy forbids the action.
        """
        if not self.may(row, action):
            raise forbidden(f"{row}: the policy {action} forbids it")


def of(req: webob.Request) -> Caller:
    """Return the caller of a request that has passed Glance's filter ``context``.

    This function also stores headers of the request in the context; see ``keep_headers``.

    :raises RefusedRequest: if the request overrides the checks of requirements, and the caller is
        not an administrator.
    """
    keep_headers(req)
    return in_context(req.context)


def keep_headers(req: webob.Request) -> None:
    """Store two headers of a request in its context, for checks in Glance's database layer.

    The database layer gets only the context of a request; see ``internals.keep_headers``.
    """
    unchanged = req.headers.get(preconditions.HEADER, "")
    internals.keep_headers(req.context, request_reading.overrides_checks(req), unchanged)


def in_context(context: Any) -> Caller:
    """Return the caller of a request, from Glance's context of the request.

    :raises RefusedRequest: if the request overrides the checks of requirements, and the caller is
        not an administrator.
    """
    caller = Caller(context, internals.is_override(context))
    if caller.overrides and not caller.viewer.is_admin:
        raise forbidden("only an administrator may override the checks of requirements")
    return caller
