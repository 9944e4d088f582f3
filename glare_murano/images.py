# SPDX-License-Identifier: Apache-2.0

"""Convert packages to images, which Glance stores, and read packages from images.

The image of a package has the container format ``murano``. Its id is made from the project, the
name and the version of the package, so Glance itself refuses a duplicate. The id is a UUID of
version 8; only packages have ids of this version. The metadata of the package is in properties with
the prefix ``murano_``. Only the server can write these properties. Their values are strings; lists
and mappings are stored as JSON. Servers write and read images with this module, and the loader
reads images with the same code.
"""

import contextlib
import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from glare_murano import fields, wire
from glare_murano.package import Version
from glare_murano.stored_contents import StoredContents

CONTAINER_FORMAT = "murano"
DISK_FORMAT = "raw"
ACTIVE = "active"
DEACTIVATED = "deactivated"

# The prefix of all properties that only the server can write.
PREFIX = "murano_"

VERSION = "murano_version"
SHA256 = "murano_sha256"
REQUIREMENTS = "murano_requirements"
CLASSES = "murano_classes"
INHERITS = "murano_inherits"
# The time when the package was published, in ISO 8601. A draft does not have this property.
PUBLISHED = "murano_published"
# Why the owner has yanked the package.
YANKED = "murano_yanked"
# The whole message with which the last import was refused.
REFUSAL = "murano_refusal"
DESCRIPTION = "murano_description"
TAGS = "murano_tags"

# Field -> the name of its property, if the names differ.
_NAMES = {"class_definitions": CLASSES}

# The names of all properties that only the server can write.
PROPERTIES = frozenset(
    {_NAMES.get(field.name, PREFIX + field.name) for field in fields.FIELDS}
    | {VERSION, SHA256, PUBLISHED, YANKED, REFUSAL, DESCRIPTION, TAGS}
)

# The namespace of the ids. With another value, the ids of all packages would change.
_NAMESPACE = uuid.UUID("796383f8-1336-43f1-9eb2-41f010cf3bf4")
# The UUID version of the ids. Version 8 is for custom rules (RFC 9562), so no common library makes
# such UUIDs by chance.
_ID_VERSION = 8

# The prefix of the properties that the owner of a package may set to change its fields. The name
# of the field follows the prefix.
_OWN_PREFIX = "package_"
_SURROGATES = re.compile("[\ud800-\udfff]")
# The publisher sets this property to the version of the package before the archive is imported. The
# id is made from this version.
OWN_VERSION = "package_version"
_CHANGEABLE = (*fields.COMMON, *(f.name for f in fields.FIELDS if f.mutable and f.name != "yanked"))
_LISTS = ("tags", *(field.name for field in fields.FIELDS if field.kind == "list"))
_ENCODED = (*_LISTS, *(field.name for field in fields.FIELDS if field.kind == "dict"))


def image_id(project_id: str, fqn: str, version: Version | str) -> str:
    """Return the id of a package's image.

    >>> image_id("demo", "org.example.db", "1.0.0")
    '...'

    :param project_id: the project that owns the image.
    """
    key = json.dumps([project_id, fqn, str(version)], separators=(",", ":"))
    digest = hashlib.sha256(_NAMESPACE.bytes + key.encode()).digest()
    value = int.from_bytes(digest[:16])
    # The bits of the version and of the variant; Python 3.11 has no function for version 8.
    value = value & ~(0xF << 76 | 0b11 << 62) | _ID_VERSION << 76 | 0b10 << 62
    return str(uuid.UUID(int=value))


def is_package_id(text: str) -> bool:
    """Return whether an id is a UUID of version 8, which only packages have.

    :param text: the id, in any spelling that Glance accepts.
    """
    try:
        # Glance accepts an id that ends in a line break, and some databases remove the line break.
        return uuid.UUID(text.strip()).version == _ID_VERSION
    except ValueError:
        return False


def property_name(field: str) -> str:
    """Return the name of the image property in which the server stores the value of a field."""
    return _NAMES.get(field, f"{PREFIX}{field}")


def property_names(field: str) -> list[str]:
    """Return the names of the image properties that can contain the value of a field.

    The server writes the first property. If the owner of the image may change the field, there is a
    second property, which the owner sets.
    """
    own = [_OWN_PREFIX + field] if field in _CHANGEABLE else []
    return [property_name(field), *own]


def of_server(names: Iterable[str]) -> set[str]:
    """Select the names of the properties that only the server can write."""
    return {name for name in names if name.startswith(PREFIX)}


def properties(contents: StoredContents, sha256: str) -> dict[str, str]:
    """Return the properties for the image of a package, by name. Empty values are left out.

    :param contents: the metadata of the package.
    :param sha256: the SHA-256 digest of the package's archive, in hexadecimal.
    """
    values = {property_name(name): value for name, value in contents.values.items()}
    values |= {VERSION: str(contents.version), SHA256: sha256}
    return {name: fields.encode(value) for name, value in values.items() if value}


def is_release(image: Mapping[str, Any]) -> bool:
    """Return whether an image is a published release.

    The image of a release is active, and the package was published. The name and the owner of the
    image are still those with which it was imported.

    :param image: the image in the form of Glance's API, with its properties.
    """
    if image.get("container_format") != CONTAINER_FORMAT or image.get("status") != ACTIVE:
        return False
    if not image.get(PUBLISHED) or not isinstance(image.get(VERSION), str):
        return False
    return _has_id_of(image, image[VERSION])


def release(image: Mapping[str, Any]) -> wire.Release:
    """Read a release from an image.

    :param image: the image in the form of Glance's API, with its properties.
    :raises glare_murano.wire.Malformed: if a property is missing or has an unexpected form.
    """
    return wire.release_from_json(
        {
            "id": image.get("id"),
            "name": image.get("name"),
            "version": image.get(VERSION),
            "requirements": decode(image.get(REQUIREMENTS) or "{}", REQUIREMENTS),
            "class_definitions": decode(image.get(CLASSES) or "[]", CLASSES),
            "inherits": decode(image.get(INHERITS) or "{}", INHERITS),
            "sha256": image.get(SHA256),
            "size": image.get("size"),
            "owner": image.get("owner"),
            "visibility": image.get("visibility"),
            "yanked": image.get(YANKED) or "",
        }
    )


def version(image: Mapping[str, Any]) -> str | None:
    """Return the version of the package in an image. The package may be a draft, or inactive.

    :param image: the image in the form of Glance's API, with its properties.
    :returns: the version. The result is None if the image is not a package, or if its name or its
        owner was changed, so that the id does not match them any more.
    """
    for name in (VERSION, OWN_VERSION):
        found = image.get(name)
        if isinstance(found, str) and _has_id_of(image, found):
            return found
    return None


def _has_id_of(image: Mapping[str, Any], version: str) -> bool:
    """Return whether the id of an image was made from its owner, its name and a version.

    The result is False for an image without an owner.
    """
    owner, name = image.get("owner"), image.get("name")
    return bool(owner and name) and image.get("id") == image_id(str(owner), str(name), version)


def stored_fields(image: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a package from its image, by the names that Glare uses.

    The result also contains the times of the creation and of the last update of the image. After
    the import, it also contains the digest and the size of the archive.

    :param image: the image in the form of Glance's API, with its properties.
    :raises glare_murano.wire.Malformed: if a property that the server writes has an unexpected
        form.
    """
    found = fields_of(image, (*fields.COMMON, *(field.name for field in fields.FIELDS)))
    if SHA256 in image:
        found[fields.ARCHIVE] = {"sha256": image[SHA256], "size": image.get("size")}
    return {**found, **{name: image.get(name) for name in ("created_at", "updated_at")}}


def fields_of(properties: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Read fields of a package from the properties of its image.

    A value that the owner of the image has set replaces the value from the archive. If the owner's
    value is malformed, it is ignored.

    :param properties: the properties of the image, by name.
    :param names: the names of the fields to read. Fields without a property are left out.
    :raises glare_murano.wire.Malformed: if a property that the server writes has an unexpected
        form.
    """
    found = {}
    for name in names:
        if (of_server := property_name(name)) in properties:
            found[name] = _decoded(name, properties[of_server])
        if name in _CHANGEABLE and (own := _OWN_PREFIX + name) in properties:
            # The owner can write anything into this property.
            with contextlib.suppress(wire.Malformed):
                found[name] = _without_surrogates(_decoded(name, properties[own]))
    return found


def _without_surrogates(value: Any) -> Any:
    """Remove strings with surrogate characters from the value of a field.

    JSON can contain such strings, but they cannot be encoded in UTF-8.

    :param value: a list of strings, or a string.
    :returns: the list without such strings. A string is returned as it is, but a string with
        surrogate characters is replaced by an empty string.
    """
    if isinstance(value, list):
        return [each for each in value if not _SURROGATES.search(each)]
    return "" if _SURROGATES.search(value) else value


def own_properties(**values: Any) -> dict[str, str]:
    """Return the image properties that an owner sets to change fields of a package.

    :param values: the new values, by the names of the fields. ``version`` is also allowed: the
        owner sets it before the import.
    :raises ValueError: if the owner cannot change a field.
    """
    if fixed := values.keys() - {*_CHANGEABLE, "version"}:
        raise ValueError(f"fields that cannot be changed: {', '.join(sorted(fixed))}")
    return {_OWN_PREFIX + name: fields.encode(value) for name, value in values.items()}


def _decoded(name: str, value: object) -> Any:
    """Convert the value of a property to the value of a field.

    :param name: the name of the field.
    :param value: the value of the property. For a list or a mapping, it should be JSON.
    :raises glare_murano.wire.Malformed: if the field is a list or a mapping, and the value has an
        unexpected form.
    """
    if name not in _ENCODED:
        return value
    return strings(str(value), name, list if name in _LISTS else dict)


def strings(text: str, name: str, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """Read a property whose value is JSON: a list of strings, or a mapping with strings as values.

    :param text: the value of the property.
    :param name: the name of the property, for messages.
    :param kind: the expected type: ``list`` or ``dict``.
    :raises glare_murano.wire.Malformed: if the value has an unexpected form.
    """
    found = decode(text, name)
    items = wire.sequence(found) if kind is list else wire.mapping(found).values()
    if not all(isinstance(item, str) for item in items):
        raise wire.Malformed(f"{name}: expected strings")
    return found


def requirements(text: str) -> dict[str, str]:
    """Read the requirements of a package from the value of a property: FQN -> range, as written.

    :param text: the value of the property, in JSON.
    :raises glare_murano.package.GlareMuranoError: if the value has an unexpected form.
    """
    found: dict[str, str] = strings(text, REQUIREMENTS, dict)
    wire.ranges_from_json(found)
    return found


def classes(text: str) -> list[str]:
    """Read the names of the classes of a package from the value of a property.

    :param text: the value of the property, in JSON.
    :raises glare_murano.package.GlareMuranoError: if the value has an unexpected form.
    """
    found: list[str] = strings(text, CLASSES, list)
    return found


def inherits(text: str) -> dict[str, str]:
    """Read the base classes of a package's classes from the value of a property.

    :param text: the value of the property, in JSON.
    :returns: base class -> its direct subclasses in the package, joined by commas.
    :raises glare_murano.package.GlareMuranoError: if the value has an unexpected form.
    """
    found: dict[str, str] = strings(text, INHERITS, dict)
    return found


def decode(value: str, name: str) -> Any:
    """Parse a property whose value is JSON.

    :param value: the value of the property.
    :param name: the name of the property, for messages.
    :raises glare_murano.wire.Malformed: if the value is not JSON.
    """
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise wire.Malformed(f"{name} is not valid JSON") from error
