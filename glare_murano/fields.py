# SPDX-License-Identifier: Apache-2.0

"""The fields of a package: a table that says how an artifact gets them from an archive.

Glare fills its fields from this table, and Glance its properties (``images``). The loader finds
packages by these fields. Glare's common fields (``name``, ``version``, ``description``,
``tags``) are declared by Glare, and filled here as well.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from glare_murano.package import Contents, Problem
from glare_murano.package.contents import image_type
from glare_murano.package.rules import Rule

TYPE_NAME = "murano"
ARCHIVE = "archive"

# Characters of a package's name. Glare locks "murano:NAME:VERSION:OWNER" when an
# artifact is created, and a lock's name has 255 characters.
MAX_NAME = 140

# The largest number of tags, and of elements in a list or a mapping.
MAX_ELEMENTS = 4096
MAX_TAGS = 255

# The largest length of a key of a mapping.
MAX_KEY = 255

# Glare's common fields -> their largest lengths.
COMMON = {"description": 4096, "tags": 255}

_WORD = re.compile(r"\w+")

# PostgreSQL refuses NUL, MariaDB refuses characters of four bytes, and both refuse half a
# surrogate pair.
UNSTORABLE = re.compile("[\0\ud800-\udfff\U00010000-\U0010ffff]")

# Characters that a string on one line must not contain. Some of them begin a new line in a log.
CONTROL_CHARACTERS = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of the artifact type beside Glare's common ones.

    :param kind: ``string``, ``list`` (of strings) or ``dict`` (of strings).
    :param description: the description in the API's schema.
    :param fill: returns its value for a package; None if the publisher sets the field.
    :param mutable: whether it may change while the artifact is active.
    :param max_length: the largest length of the string, or of each element, in characters.
    :param is_line: whether it is a string on one line, without control characters. Such a field
        is empty by default.
    """

    name: str
    kind: Literal["string", "list", "dict"]
    description: str
    fill: Callable[[Contents], Any] | None = None
    mutable: bool = False
    max_length: int = 255
    is_line: bool = False

    @property
    def by_package(self) -> bool:
        """Whether the package sets the field, so that no client may change it."""
        return self.fill is not None and not self.mutable


@dataclasses.dataclass(frozen=True)
class Blob:
    """A blob that is extracted from the archive.

    :param fill: returns its content; None if the package has no such file.
    :param content_type: returns the type of a content; by default, the type of an image.
    """

    name: str
    description: str
    fill: Callable[[Contents], bytes | None]
    content_type: Callable[[bytes], str] = image_type


def _keywords(contents: Contents) -> list[str]:
    manifest = contents.manifest
    words = [*_WORD.findall(manifest.display_name), *manifest.tags]
    return list(dict.fromkeys(word.lower() for word in words))


FIELDS = (
    Field("type", "string", "Application or Library.", lambda c: c.manifest.package_type),
    Field(
        "display_name",
        "string",
        "Name of the package for users.",
        lambda c: c.manifest.display_name,
        mutable=True,
    ),
    Field("author", "string", "Author of the package.", lambda c: c.manifest.author),
    Field(
        "supplier",
        "dict",
        "Supplier of the package.",
        lambda c: dict(c.manifest.supplier),
        max_length=4096,
    ),
    Field("categories", "list", "Categories of the application catalogue.", mutable=True),
    Field(
        "keywords",
        "list",
        "Search words: the words of the display name, and the tags.",
        _keywords,
        mutable=True,
    ),
    Field(
        "format",
        "string",
        "Format of the package, such as MuranoPL/1.4.0.",
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
        "Base class -> its direct subclasses in the package, joined by commas.",
        lambda c: {base: ",".join(subclasses) for base, subclasses in c.inherits.items()},
        max_length=20_000,
    ),
    Field(
        "requirements",
        "dict",
        "FQN of a required package -> range of its versions, implicit ones included.",
        lambda c: {name: spec.text for name, spec in c.requirements.items()},
    ),
    Field(
        "yanked",
        "string",
        "Why the owner has yanked the package: only pins, lock files and exact ranges choose it.",
        mutable=True,
        is_line=True,
    ),
)

BLOBS = (
    Blob("logo", "Logo of the package.", lambda c: c.logo),
    Blob("supplier_logo", "Logo of the supplier.", lambda c: c.supplier_logo),
    Blob(
        "ui_definition", "Form definition, in YAML.", lambda c: c.ui, lambda _: "application/x-yaml"
    ),
)


def from_contents(contents: Contents) -> Mapping[str, Any]:
    """Return the values of a package's fields, those in ``COMMON`` included, by name."""
    values = {field.name: field.fill(contents) for field in FIELDS if field.fill is not None}
    manifest = contents.manifest
    return {**values, "description": manifest.description, "tags": list(manifest.tags)}


def find_excess(values: Mapping[str, Any]) -> list[Problem]:
    """Return a problem for each value that exceeds a limit, or that a database cannot store.

    Glare's fields have the same limits. Glare could not load a value that exceeds them.

    :param values: field name -> a string, a list of strings, or a mapping of strings.
    """
    lengths = {field.name: field.max_length for field in FIELDS} | COMMON
    return [
        Problem(Rule.MANIFEST_LIMIT, name, message)
        for name, value in values.items()
        for message in _find_excess(name, value, lengths[name])
    ]


def _find_excess(name: str, value: Any, max_length: int) -> Iterator[str]:
    strings = [value] if isinstance(value, str) else list(value)
    max_elements = MAX_TAGS if name == "tags" else MAX_ELEMENTS
    if len(strings) > max_elements:
        yield f"{len(strings)} elements, at most {max_elements} are allowed"
    if isinstance(value, Mapping):
        yield from _find_excess_of_keys(value)
        strings = [*value.values()]
    if (longest := max(map(len, strings), default=0)) > max_length:
        yield f"{longest} characters, at most {max_length} are allowed"
    if found := _find_unstorable(strings):
        yield found
    if name == "tags" and any(not tag or "," in tag or "/" in tag for tag in strings):
        yield "a tag is empty, or contains a comma or a slash"


def _find_excess_of_keys(value: Mapping[str, str]) -> Iterator[str]:
    if "" in value:
        yield "a key is empty"
    if (longest := max(map(len, value), default=0)) > MAX_KEY:
        yield f"a key has {longest} characters, at most {MAX_KEY} are allowed"
    if found := _find_unstorable(value):
        yield found


def _find_unstorable(strings: Iterable[str]) -> str:
    found = next(filter(None, map(UNSTORABLE.search, strings)), None)
    return f"the character U+{ord(found[0]):04X} cannot be stored" if found else ""
