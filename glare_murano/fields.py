# SPDX-License-Identifier: Apache-2.0

"""Define the fields of a stored package, and how to fill each field from an archive.

The table ``FIELDS`` lists the fields. Glare fills the fields of an artifact from it, and Glance
fills the properties of an image (see ``images``). The loader finds packages by these fields. This
module also fills Glare's common fields ``description`` and ``tags``.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

from glare_murano.package import Contents, InvalidVersion, Problem, Version, parse_version
from glare_murano.package.contents import image_type
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule

TYPE_NAME = "murano"
ARCHIVE = "archive"

# The largest number of characters in a package's name. Glare locks "murano:NAME:VERSION:OWNER"
# when an artifact is created, and the name of a lock has at most 255 characters.
MAX_NAME = 140

# The largest number of characters in a version. The name of Glare's lock contains it as well.
MAX_VERSION = 60
# The largest numbers in a version, and the most digits of a number in its pre-release. Glare stores
# a number in 16 bits. The first number begins a column with a sign, so it has one bit less. Glare
# sorts pre-releases by six digits.
MAX_MAJOR = 2**15 - 1
MAX_VERSION_NUMBER = 2**16 - 1
MAX_PRERELEASE_DIGITS = 6

# The largest number of elements in all lists and mappings of a package together. Glare saves a row
# for each element, and handles no other request meanwhile. Murano's core library has 77 elements.
MAX_ELEMENTS = 1024
# The largest size of all fields of a package together in JSON, in bytes. In Glance, MariaDB limits
# each property to 64 KiB. Glare has the same limit, so that its packages can be copied to Glance.
MAX_TOTAL_SIZE = 60 * 1024
# The largest number of tags.
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
    """A field of a stored package, besides Glare's common fields.

    :param kind: the type of the value: ``string``, ``list`` (of strings) or ``dict`` (of strings).
    :param description: the description of the field in the API's schema.
    :param fill: a function that takes the contents of a package, and returns the value of the
        field. Without a function, the publisher sets the field.
    :param mutable: whether the field may change while the artifact is active.
    :param max_length: the largest length of the string, or of each element, in characters.
    :param is_line: whether the value is a string on one line, without control characters. Such a
        field is empty by default.
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
        """Whether the value always comes from the package, so that no client may change it."""
        return self.fill is not None and not self.mutable


@dataclasses.dataclass(frozen=True)
class Blob:
    """A file that is extracted from an archive, and stored as a separate blob.

    :param fill: a function that takes the contents of a package, and returns the content of the
        blob, or None if the package has no such file.
    :param content_type: a function that takes the content, and returns its content type. The
        default function recognizes images.
    """

    name: str
    description: str
    fill: Callable[[Contents], bytes | None]
    content_type: Callable[[bytes], str] = image_type


def _keywords(contents: Contents) -> list[str]:
    manifest = contents.manifest
    # The tags come first, in the order of the manifest. murano-api's filter needs this order, and
    # Glare does not keep the order of its own field for tags.
    words = [*manifest.tags, *_WORD.findall(manifest.display_name)]
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
        "Search words: the tags, and the words of the display name.",
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
    """Return the values of the fields in ``FIELDS`` and ``COMMON`` for a package.

    :returns: name of the field -> value. Fields that the publisher sets are left out.
    """
    values = {field.name: field.fill(contents) for field in FIELDS if field.fill is not None}
    manifest = contents.manifest
    return {**values, "description": manifest.description, "tags": list(manifest.tags)}


def check_version(text: str) -> Version:
    """Parse the version of a package, and check that both Glare and Glance can store it.

    This ensures that the package can be copied from one service to the other.

    :raises InvalidVersion: if the version is not valid, or exceeds a limit.
    """
    version = parse_version(text)
    if max(len(text), len(str(version))) > MAX_VERSION:
        raise InvalidVersion(f"{quoted(text)}: longer than {MAX_VERSION} characters")
    check_numbers(version)
    return version


def check_numbers(version: Version) -> None:
    """Check that Glare can store and compare the numbers in a version.

    :raises InvalidVersion: if a number exceeds a limit.
    """
    is_large = version.major > MAX_MAJOR or max(version.minor, version.patch) > MAX_VERSION_NUMBER
    digits = max((len(part) for part in version.prerelease if part.isdigit()), default=0)
    if is_large or digits > MAX_PRERELEASE_DIGITS:
        raise InvalidVersion(
            f"{quoted(str(version))}: services store a first number up to {MAX_MAJOR}, other "
            f"numbers up to {MAX_VERSION_NUMBER}, and up to {MAX_PRERELEASE_DIGITS} digits in a "
            f"pre-release"
        )


def find_excess(values: Mapping[str, Any]) -> list[Problem]:
    """Return a problem for each value that exceeds a limit, or that a database cannot store.

    There is also a problem if all values together are too large, or have too many elements. Glare
    checks the limits of its fields even when it loads a stored value. So a value that exceeds a
    limit must not be stored.

    :param values: the values of fields, by name; see ``from_contents``.
    """
    lengths = {field.name: field.max_length for field in FIELDS} | COMMON
    problems = [
        Problem(Rule.MANIFEST_LIMIT, name, message)
        for name, value in values.items()
        for message in _find_excess(name, value, lengths[name])
    ]
    return [*problems, *find_excess_of_totals(values)]


def find_excess_of_totals(
    values: Mapping[str, Any], before: Mapping[str, Any] = MappingProxyType({})
) -> list[Problem]:
    """Return a problem for each limit that all values together exceed.

    :param values: the values of fields, by name.
    :param before: the values before a change. A total that the change does not increase is not a
        problem, so a package that exceeds a limit can still be changed.
    """
    return [problem for total in _TOTALS for problem in total.find_excess(values, before)]


@dataclasses.dataclass(frozen=True)
class _Total:
    """A limit for all values of a package together.

    :param measure: a function that returns what a value adds to the total.
    :param unit: the unit of the total.
    :param others: the fields that count, for messages.
    """

    limit: int
    measure: Callable[[Any], int]
    unit: str
    others: str

    def find_excess(
        self, values: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[Problem]:
        """Yield a problem if the total exceeds the limit, and is larger than before."""
        measured = {name: self.measure(value) for name, value in values.items()}
        total = sum(measured.values())
        if total > max(self.limit, sum(map(self.measure, before.values()))):
            largest = max(measured, key=lambda name: measured[name])
            message = (
                f"{measured[largest]} {self.unit}, and {total} with all other {self.others} of the "
                f"package; at most {self.limit} are allowed; shorten this field first"
            )
            yield Problem(Rule.MANIFEST_LIMIT, largest, message)


def _count_elements(value: Any) -> int:
    return 0 if isinstance(value, str) else len(value)


def _measure_size(value: Any) -> int:
    # A string with half a surrogate pair is refused by another check.
    return len(encode(value).encode(errors="surrogatepass"))


_TOTALS = (
    _Total(MAX_ELEMENTS, _count_elements, "elements", "lists and mappings"),
    _Total(MAX_TOTAL_SIZE, _measure_size, "bytes in JSON", "fields"),
)


def encode(value: Any) -> str:
    """Convert the value of a field to a string. Lists and mappings become JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _find_excess(name: str, value: Any, max_length: int) -> Iterator[str]:
    strings = [value] if isinstance(value, str) else list(value)
    if name == "tags" and len(strings) > MAX_TAGS:
        yield f"{len(strings)} elements, at most {MAX_TAGS} are allowed"
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
