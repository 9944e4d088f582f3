# SPDX-License-Identifier: Apache-2.0

"""Send notifications of changed packages, refused changes and imports.

Unlike Glance's own notifications, these notifications contain the user. An import ends after the
response to its request, so an audit of requests does not record the result of the import. This
module sends the result as an event of CADF (DMTF DSP0262), the format that Keystone's filter
``audit`` uses.
"""

from typing import Any

import webob
from pycadf import cadftaxonomy, event, reason, resource

from glare_murano.glance import internals
from glare_murano.glance.db.image_rows import ImageRow
from glare_murano.service import notifications

_GROUP = "package"
_IMPORT = "audit.package.import"
_ACTION = "update/import"
_TARGET = "service/storage/image/image"


def send(context: Any, verb: str, row: ImageRow) -> None:
    """Send the notification ``package.VERB`` of a change.

    :param context: the context of the request.
    :param verb: the kind of the change, such as ``publish``.
    :param row: the package after its change.
    """
    payload = {
        "id": row.id,
        "name": row.name,
        "version": row.version,
        "owner": row.owner,
        "status": row.status,
        "visibility": row.visibility,
        "initiator": notifications.initiator(context),
    }
    internals.send(f"{_GROUP}.{verb}", payload)


def send_refusal(req: webob.Request, status: int, message: str, packages: list[str]) -> None:
    """Send the notification of a refused change.

    :param status: the HTTP status of the response.
    :param message: why the change was refused.
    :param packages: the ids of the packages that the request was to change.
    """
    payload = notifications.refusal(req, status, message, packages)
    internals.send(f"{_GROUP}.{notifications.REFUSE}", payload)


def send_import(context: Any, image: ImageRow, refusal: str) -> None:
    """Send an audit record with the result of an import.

    :param context: the context of the request that began the import.
    :param image: the image of the import.
    :param refusal: why the import was refused; empty if the package was accepted.
    """
    initiator = resource.Resource(
        typeURI=cadftaxonomy.ACCOUNT_USER, id=context.user_id or cadftaxonomy.UNKNOWN
    )
    # The records of Keystone's filter have these attributes as well.
    initiator.project_id = context.project_id
    initiator.request_id = context.request_id
    outcome = cadftaxonomy.OUTCOME_FAILURE if refusal else cadftaxonomy.OUTCOME_SUCCESS
    record = event.Event(
        action=_ACTION,
        outcome=outcome,
        initiator=initiator,
        target=resource.Resource(typeURI=_TARGET, id=image.id, name=image.name),
        observer=resource.Resource(id="target"),
        reason=reason.Reason("murano_refusal", refusal) if refusal else None,
    )
    internals.send(_IMPORT, record.as_dict())
