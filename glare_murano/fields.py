# SPDX-License-Identifier: Apache-2.0

"""How a package stands in the fields of an artifact: the one table.

Both sides of the wire go by it: the artifact type fills its fields from it,
the loader finds them by it. Glare's common fields (``name``, ``version``,
``description``, ``tags``) are part of the mapping but not of the table, since
Glare declares them itself. The design's section "The artifact type murano"
rules the names.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from glare_murano.package import Contents, Version

TYPE_NAME = "murano"
ARCHIVE = "archive"

_WORD = re.compile(r"\w+")


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of the artifact type beside Glare's common ones.

    :param name: its name in the API.
    :param kind: ``string``, ``list`` (of strings) or ``dict`` (of strings).
    :param description: what a user of the API is told.
    :param fill: what a package says for it; None if it says nothing, and
        whoever publishes sets it.
    :param mutable: whether it may be changed while the artifact is active.
    :param max_length: of the string, or of each element, in characters.
    """

    name: str
    kind: Literal["string", "list", "dict"]
    description: str
    fill: Callable[[Contents], Any] | None = None
    mutable: bool = False
    max_length: int = 255

    @property
    def by_package(self) -> bool:
        """Whether the package alone decides, so that no client may change it."""
        return self.fill is not None and not self.mutable


@dataclasses.dataclass(frozen=True)
class Blob:
    """A blob that is taken out of the archive.

    :param fill: its content; None if the package has none.
    """

    name: str
    description: str
    content_type: str
    fill: Callable[[Contents], bytes | None]


def _keywords(contents: Contents) -> list[str]:
    manifest = contents.manifest
    words = [*_WORD.findall(manifest.display_name), *manifest.tags]
    return list(dict.fromkeys(word.lower() for word in words))


FIELDS = (
    Field("type", "string", "Application or Library.", lambda c: c.manifest.package_type),
    Field(
        "display_name",
        "string",
        "Name of the package as shown to people.",
        lambda c: c.manifest.display_name,
        mutable=True,
    ),
    Field("author", "string", "Who wrote the package.", lambda c: c.manifest.author),
    Field(
        "supplier",
        "dict",
        "Who supplies the package.",
        lambda c: dict(c.manifest.supplier),
        max_length=4096,
    ),
    Field("categories", "list", "Categories of the application catalogue.", mutable=True),
    Field(
        "keywords",
        "list",
        "Words to search by: of the display name, and the tags.",
        _keywords,
        mutable=True,
    ),
    Field(
        "format",
        "string",
        "What the package is written in, such as MuranoPL/1.4.0.",
        lambda c: str(c.manifest.format),
    ),
    Field(
        "class_definitions",
        "list",
        "Fully qualified names of the classes that the package defines.",
        lambda c: [definition.name for definition in c.classes],
    ),
    Field(
        "inherits",
        "dict",
        "Base class -> its direct heirs in the package, joined by commas.",
        lambda c: {base: ",".join(heirs) for base, heirs in c.inherits.items()},
        max_length=20_000,
    ),
    Field(
        "requirements",
        "dict",
        "FQN of a required package -> range of its versions, implicit ones included.",
        lambda c: {name: spec.text for name, spec in c.manifest.requirements.items()},
    ),
)


# Images are told by their content, which every browser does as well.
BLOBS = (
    Blob("logo", "Logo of the package.", "application/octet-stream", lambda c: c.logo),
    Blob(
        "supplier_logo",
        "Logo of who supplies the package.",
        "application/octet-stream",
        lambda c: c.supplier_logo,
    ),
    Blob("ui_definition", "Form definition, in YAML.", "application/x-yaml", lambda c: c.ui),
)


def from_contents(contents: Contents) -> Mapping[str, Any]:
    """The values of all fields that a package fills, by name of the field."""
    return {field.name: field.fill(contents) for field in FIELDS if field.fill is not None}


def common_from_contents(contents: Contents) -> Mapping[str, Any]:
    """What a package says in the fields that every type of Glare has."""
    manifest = contents.manifest
    return {"description": manifest.description, "tags": list(manifest.tags)}


# Glare locks "murano:NAME:VERSION:OWNER" when an artifact is created, and its
# lock has 255 characters.
MAX_NAME = 140
MAX_VERSION = 60

# Glare keeps each number of a version in 16 bits, and sorts numbers of a
# pre-release as six digits.
MAX_COMPONENT = 2**16 - 1
MAX_PRERELEASE_DIGITS = 6

# NUL is refused by PostgreSQL, what takes four bytes by MariaDB, halves of
# surrogate pairs by both.
UNKEPT = re.compile("[\0\ud800-\udfff\U00010000-\U0010ffff]")


def can_hold(version: Version) -> bool:
    """Whether Glare can keep a version, and filter by it."""
    return (
        len(str(version)) <= MAX_VERSION
        and max(version.major, version.minor, version.patch) <= MAX_COMPONENT
        and all(
            not part.isdigit() or len(part) <= MAX_PRERELEASE_DIGITS for part in version.prerelease
        )
    )


def check_characters(value: Any) -> None:
    """Refuse a value of JSON with characters that not every database of Glare's can hold.

    :raises ValueError: with the first such character.
    """
    if isinstance(value, str):
        if found := UNKEPT.search(value):
            raise ValueError(f"the character U+{ord(found[0]):04X}, which Glare cannot store")
    elif isinstance(value, Mapping):
        check_characters([*value, *value.values()])
    elif isinstance(value, list):
        for element in value:
            check_characters(element)
