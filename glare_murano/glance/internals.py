# SPDX-License-Identifier: Apache-2.0

"""All that is used of Glance's internals, so that a new release is tried in one place.

Glance has no stable interface for plug-ins but the names of their arguments. Properties
are written by Glance's database layer, below its policies, quotas and property
protections: so the protections can forbid everybody, administrators included.
"""

import dataclasses
import functools
import sys
from collections.abc import Callable, Collection, Mapping

import glance.db
from glance import context
from glance.api import common as api_common
from glance.common import exception, utils
from oslo_config import cfg

# The status of an image whose data is being imported.
IMPORTING = "importing"
QUEUED = "queued"


class ImportRefused(exception.UploadException):  # type: ignore[misc]
    """An import ends with this; Glance shows the text to the owner, as the task's message."""


@dataclasses.dataclass(frozen=True)
class StoredImage:
    """An image as the database has it.

    :param properties: its properties, those of Glance itself included.
    """

    id: str
    name: str | None
    owner: str | None
    status: str
    container_format: str | None
    properties: Mapping[str, str]

    @property
    def counted(self) -> frozenset[str]:
        """The names of the properties that Glance's quota counts."""
        reserved = api_common.GLANCE_RESERVED_NS
        return frozenset(name for name in self.properties if not name.startswith(reserved))


def get_image(image_id: str) -> StoredImage:
    """Return an image, whosever it is.

    :raises glance.common.exception.NotFound: if there is none, or it was deleted.
    """
    found = glance.db.get_api().image_get(context.get_admin_context(), image_id)
    properties = {row["name"]: row["value"] for row in found["properties"] if not row["deleted"]}
    names = (field.name for field in dataclasses.fields(StoredImage))
    values = {name: found[name] for name in names if name != "properties"}
    return StoredImage(properties=properties, **values)


def write_properties(image_id: str, values: Mapping[str, str], drop: Collection[str] = ()) -> None:
    """Write properties of an image that is being imported, whoever may not write them.

    :param drop: names of properties to delete.
    :raises glance.common.exception.Conflict: if the image has another status by now.
    """
    database, admin = glance.db.get_api(), context.get_admin_context()
    written = {"properties": dict(values)}
    _retried(functools.partial(database.image_update, admin, image_id, written, False, IMPORTING))
    for name in set(drop) & set(get_image(image_id).properties):
        _retried(functools.partial(database.image_property_delete, admin, name, image_id))


def property_quota() -> int:
    """Return how many properties an image can have; a negative number is no limit."""
    return int(cfg.CONF.image_property_quota)


def python() -> str:
    """Return the interpreter for child processes: in uWSGI's, ``sys.executable`` is uWSGI."""
    return cfg.CONF.wsgi.python_interpreter or sys.executable


def _retried(function: Callable[[], object]) -> None:
    """Call a function again while SQLite is locked, as newer releases of Glance do."""
    retry = getattr(utils, "retry_on_db_lock", None)
    retry(function) if retry else function()
