# SPDX-License-Identifier: Apache-2.0

"""Make the JSON of a package for the answers of Murano's API.

The JSON has the keys of ``murano.db.models.Package.to_dict``. It also has the key ``version``,
which packages in Murano's own database do not have.
"""

from collections.abc import Mapping
from typing import Any

from loader.catalogs.stored_package import StoredPackage

ACTIVE = "active"
# The statuses of the packages that Murano's API shows: it does not show drafts.
SHOWN = (ACTIVE, "deactivated")
# The length of a time such as 2026-01-31T23:59:59.
TIME_LENGTH = 19


def is_shown(package: StoredPackage) -> bool:
    """Return whether Murano's API shows a package."""
    return package.status in SHOWN


def is_enabled(package: StoredPackage) -> bool:
    """Return whether new deployments may use a package."""
    return package.status == ACTIVE and not package.yanked


def to_json(package: StoredPackage) -> dict[str, Any]:
    """Return the JSON of a package in Murano's API."""
    stored = package.fields
    return {
        "id": package.id,
        "fully_qualified_name": package.fqn,
        "version": str(package.version),
        "name": display_name(package),
        "type": stored.get("type") or "",
        "author": stored.get("author") or "",
        "supplier": _supplier(stored.get("supplier") or {}),
        "description": stored.get("description") or "",
        "enabled": is_enabled(package),
        "is_public": package.visibility == "public",
        "owner_id": package.owner,
        "tags": _tags(package),
        "categories": categories(package),
        "class_definitions": list(stored.get("class_definitions") or []),
        "created": _time(stored.get("created_at")),
        "updated": _time(stored.get("updated_at")),
    }


def display_name(package: StoredPackage) -> str:
    """Return the title of a package, which users read."""
    return package.fields.get("display_name") or package.fqn


def categories(package: StoredPackage) -> list[str]:
    """Return the categories of a package."""
    return list(package.fields.get("categories") or [])


def _supplier(flat: Mapping[str, str]) -> dict[str, Any]:
    """Return a supplier as in the manifest, where ``CompanyUrl`` is a mapping with ``Link``.

    Glare and Glance store the value of ``Link`` under the key ``CompanyUrl.Link``. If they also
    store a string under ``CompanyUrl``, both keys stay as they are.
    """
    found: dict[str, Any] = {}
    for key, value in flat.items():
        outer, dot, inner = key.partition(".")
        if dot and outer not in flat:
            found.setdefault(outer, {})[inner] = value
        else:
            found[key] = value
    return found


def _tags(package: StoredPackage) -> list[str]:
    """Return the tags in the order of the manifest, and then tags that were added later.

    Glare does not keep the order of tags. But it keeps the order of the keywords, which begin with
    the tags of the manifest.
    """
    order = {word: number for number, word in enumerate(package.fields.get("keywords") or [])}
    found = package.fields.get("tags") or []
    return sorted(found, key=lambda tag: order.get(tag.lower(), len(order)))


def _time(value: Any) -> str | None:
    return str(value)[:TIME_LENGTH] if value else None
