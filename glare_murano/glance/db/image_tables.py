# SPDX-License-Identifier: Apache-2.0

"""Define Glance's tables of images, with the columns that this project reads or writes."""

import sqlalchemy as sa

_FLAG = sa.Boolean()
# Attributes that policies may read.
_ATTRIBUTES = (
    *("id", "name", "status", "visibility", "owner", "container_format", "disk_format"),
    *("size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value", "min_disk", "min_ram"),
)

IMAGES = sa.table(
    "images",
    *map(sa.column, _ATTRIBUTES),
    *(sa.column(name, _FLAG) for name in ("os_hidden", "protected", "deleted")),
    *(sa.column(name, sa.DateTime()) for name in ("created_at", "updated_at")),
)
PROPERTIES = sa.table(
    "image_properties",
    *map(sa.column, ("image_id", "name", "value")),
    sa.column("deleted", _FLAG),
    *(sa.column(name, sa.DateTime()) for name in ("created_at", "updated_at", "deleted_at")),
)
# The status of a member that has accepted a shared image.
ACCEPTED = "accepted"

MEMBERS = sa.table(
    "image_members", *map(sa.column, ("image_id", "member", "status")), sa.column("deleted", _FLAG)
)
LOCATIONS = sa.table(
    "image_locations",
    *map(sa.column, ("id", "image_id", "value", "meta_data", "status")),
    sa.column("deleted", _FLAG),
)
