# SPDX-License-Identifier: Apache-2.0

"""Parse and check ``manifest.yaml``.

The keys are those of Murano's package formats 1.0 to 1.4 and of the specification "Murano
versioning". Other files of the package are not read.
"""

import codecs
import contextlib
import dataclasses
import difflib
import functools
import importlib.metadata
import itertools
import re
import types
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.errors import (
    InvalidManifest,
    InvalidName,
    InvalidPackage,
    InvalidVersion,
    Problem,
    quoted,
)
from glare_murano.package.rules import Rule
from glare_murano.package.versions import Version, VersionSpec, parse_version

MANIFEST_FILE = "manifest.yaml"
CORE_LIBRARY = "io.murano"
MURANO_PL = "MuranoPL"
PACKAGE_TYPES = ("Application", "Library")
PLUGIN_NAMESPACE = "io.murano.plugins.packages"
FUNCTION_NAMESPACE = "glare_murano.package_types"

# The advice about a missing package that may be an extension plug-in. A plug-in cannot be
# published.
PROVIDED_HINT = (
    "if engines provide one as an extension plug-in, the operator names it in the option "
    "provided_packages"
)

_KEYS = {"Author", "Classes", "Description", "Format", "FullName", "Logo", "Meta", "Name"}
_KEYS |= {"Require", "Supplier", "Tags", "Type", "UI", "Version"}
# Mappings whose keys are read one by one, so that repeated keys are found.
_MAPPINGS = {"Classes", "Require", "Supplier"}
_MAX_NAME = 255
MAX_REQUIREMENTS = 256
# The largest number of unknown keys that are listed. The search for a similar key takes time.
_MAX_UNKNOWN = 20
_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*\Z")
# The name of an extension plug-in is the name of its Python distribution, which may have hyphens.
_REQUIRED_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z")

T = TypeVar("T")
D = TypeVar("D")


@dataclasses.dataclass(frozen=True)
class Format:
    """The format of a package: ``Type/Version``.

    :param name: the package type, such as ``MuranoPL``.
    :param version: the full version of the format, such as 1.4.0.
    """

    name: str
    version: Version

    @classmethod
    def of(cls, text: str | None) -> "Format":
        """Parse ``[Type/]Version`` (specification "Murano versioning", "Engine versioning").

        The default type is ``MuranoPL``. None and the empty string mean ``MuranoPL/1.0.0``.

        :param text: the value of ``Format`` in a manifest.
        :raises InvalidVersion: if the version is not valid.
        """
        name, slash, version = (text or "1.0").strip().rpartition("/")
        return cls(name.strip() if slash else MURANO_PL, parse_version(version))

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The values of a valid manifest.

    :param fqn: the fully qualified name (FQN) of the package.
    :param package_type: the value of ``Type``: ``Application`` or ``Library``.
    :param display_name: the value of ``Name``; by default the FQN.
    :param supplier: the values of ``Supplier``, as strings. The key of a value in an inner mapping
        has a dot, as in ``CompanyUrl.Link``.
    :param classes: the classes: fully qualified name -> path of the file, relative to ``Classes``.
    :param requirements: all requirements, including the implicit ones: FQN -> range.
    :param ui: the path of the form definition, relative to ``UI``.
    :param logo: the path of the logo; None without the key ``Logo``.
    :param document: all keys of the manifest with their values, for package-type plug-ins. Keys
        with the value null are left out. Scalars are strings as written, but in ``Meta`` and
        unknown keys, they have their YAML types.
    :param warnings: mistakes that do not make the package invalid, such as unknown keys.
    """

    fqn: str
    version: Version
    format: Format
    package_type: str
    display_name: str
    description: str
    author: str
    supplier: Mapping[str, str]
    tags: tuple[str, ...]
    classes: Mapping[str, str]
    requirements: Mapping[str, VersionSpec]
    ui: str
    logo: str | None
    document: Mapping[str, Any]
    warnings: tuple[Problem, ...]

    @classmethod
    def parse(cls, data: bytes) -> "Manifest":
        """Parse a manifest.

        :param data: the bytes of ``manifest.yaml``.
        :raises InvalidManifest: if the manifest is not valid. The error has all problems.
        """
        return _ManifestReader(data).manifest()


def check_fqn(text: str, max_length: int = _MAX_NAME) -> str:
    """Check and return the name of a package or a class.

    A name consists of ASCII letters, digits and underscores, joined by single dots.

    :param max_length: the largest number of characters.
    :raises InvalidName: if the name is too long or not valid.
    """
    return _checked_name(text, _NAME, "ASCII letters, digits and underscores", max_length)


def check_required_name(text: str) -> str:
    """Check and return the name of a required package, which may have hyphens.

    :raises InvalidName: if the name is not valid.
    """
    return _checked_name(text, _REQUIRED_NAME, "ASCII letters, digits, underscores and hyphens")


def with_version(data: bytes, version: Version) -> bytes:
    """Replace or add the value of ``Version`` in a manifest. The other text stays as written.

    :param data: the bytes of a valid ``manifest.yaml``.
    :param version: the new version.
    :returns: the bytes of the new manifest, in UTF-8 without a byte order mark.
    """
    text, root = _decoded(data)
    values = {key.value: value for key, value in root.value}
    if "Version" in values:
        found = values["Version"]
        start, end = found.start_mark.index, found.end_mark.index
        # If the key has no value, start and end are the same, and a space is needed.
        written = str(version) if start < end else f" {version}"
    else:
        first = root.value[0][0].start_mark
        start = end = first.index
        written = f"Version: {version}" + (", " if root.flow_style else "\n" + " " * first.column)
    return f"{text[:start]}{written}{text[end:]}".encode()


def with_ranges(data: bytes, ranges: Mapping[str, str]) -> bytes:
    """Replace ranges under ``Require`` in a manifest. The other text stays as written.

    :param data: the bytes of a valid ``manifest.yaml``.
    :param ranges: the new ranges: FQN of a required package -> range.
    :returns: the bytes of the new manifest, in UTF-8 without a byte order mark.
    """
    text, root = _decoded(data)
    values = {key.value: value for key, value in root.value}
    # The last range is replaced first, so that the positions of the others stay valid.
    for key, value in reversed(values["Require"].value if ranges else ()):
        if key.value in ranges:
            start, end = value.start_mark.index, value.end_mark.index
            written = f"'{ranges[key.value]}'"
            text = f"{text[:start]}{'' if start < end else ' '}{written}{text[end:]}"
    return text.encode()


def _decoded(data: bytes) -> tuple[str, Any]:
    """Decode and parse a manifest.

    :returns: the manifest as a string, and its root node. The marks of the nodes are positions in
        this string.
    """
    is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if is_utf_16 else "utf-8-sig")
    return text, safe_yaml.compose(text.encode(), MANIFEST_FILE)


@functools.cache
def registered_formats(group: str) -> Mapping[Format, importlib.metadata.EntryPoint]:
    """Return the entry points of the installed package types, by format of the packages.

    No plug-in is imported. A process reads the entry points of a group only once.

    :param group: the entry-point group. ``PLUGIN_NAMESPACE`` has the classes of engines' plug-ins.
        ``FUNCTION_NAMESPACE`` has the functions that describe packages.
    """
    found = {}
    for entry_point in importlib.metadata.entry_points(group=group):
        with contextlib.suppress(InvalidVersion):
            found[Format.of(entry_point.name)] = entry_point
    return found


def add_implicit(
    requirements: Mapping[str, VersionSpec], fqn: str, version: Version
) -> dict[str, VersionSpec]:
    """Add the implicit requirements of a package (specification "Murano versioning").

    Every package except the core library requires two packages implicitly: the core library in the
    range ``0``, and itself in the range of its major version. An explicit range replaces the
    implicit range.

    :param requirements: the explicit requirements of a package: FQN -> range.
    :param fqn: the FQN of the package.
    :param version: the version of the package.
    :returns: all requirements: FQN -> range.
    """
    implicit = {}
    if fqn != CORE_LIBRARY:
        implicit = {
            CORE_LIBRARY: VersionSpec.of(None),
            fqn: VersionSpec.of(str(version.major)),
        }
    return {**requirements, **{k: v for k, v in implicit.items() if k not in requirements}}


class _ManifestReader:
    """A reader of a manifest, which collects the problems that it finds."""

    def __init__(self, data: bytes) -> None:
        try:
            node = safe_yaml.compose(data, MANIFEST_FILE)
        except InvalidPackage as error:
            raise InvalidManifest(error.problems) from error
        if not isinstance(node, yaml.MappingNode):
            message = f"expected a mapping, found {safe_yaml.kind(node)}"
            line = safe_yaml.line_of(node)
            raise InvalidManifest([Problem(Rule.MANIFEST_MAPPING, MANIFEST_FILE, message, line)])
        self._problems: list[Problem] = []
        self._written = dict(self._pairs(node, MANIFEST_FILE))
        # Null means the same as a missing key.
        self._nodes = {k: v for k, v in self._written.items() if v.tag != safe_yaml.NULL}

    def manifest(self) -> Manifest:
        fqn = self._required("FullName", Rule.MANIFEST_NAME, check_fqn)
        version = self._read("Version", Rule.MANIFEST_VERSION, parse_version, parse_version(None))
        manifest = Manifest(
            fqn=fqn,
            version=version,
            format=self._read("Format", Rule.MANIFEST_FORMAT, _registered_format, Format.of(None)),
            package_type=self._required("Type", Rule.MANIFEST_TYPE, _package_type),
            display_name=self._read("Name", Rule.MANIFEST_TEXT, str, "") or fqn,
            description=self._read("Description", Rule.MANIFEST_TEXT, str, ""),
            author=self._read("Author", Rule.MANIFEST_TEXT, str, ""),
            supplier=types.MappingProxyType(self._supplier()),
            tags=self._tags(),
            classes=types.MappingProxyType(
                self._mapping("Classes", Rule.MANIFEST_CLASSES, check_fqn, _relative_path)
            ),
            ui=self._read("UI", Rule.MANIFEST_FILE, _relative_path, "ui.yaml"),
            logo=self._read("Logo", Rule.MANIFEST_FILE, _relative_path, None),
            requirements=types.MappingProxyType(self._requirements(fqn, version)),
            document=types.MappingProxyType(self._document()),
            warnings=self._unknown_keys(),
        )
        if self._problems:
            raise InvalidManifest(self._problems, manifest.warnings)
        return manifest

    def _required(self, key: str, rule: Rule, convert: Callable[[str], str]) -> str:
        if key not in self._nodes:
            self._complain(rule, key, "is missing", self._written.get(key))
        return self._read(key, rule, convert, "")

    def _read(self, key: str, rule: Rule, convert: Callable[[str], T], default: D) -> T | D:
        """Read the string value of a key, and convert it.

        :param rule: the rule that a wrong value breaks.
        :param convert: a function that converts the string, or raises ``ValueError``.
        :param default: the result if the key is missing.
        :returns: the converted value; the default if the key is missing or its value is wrong.
        """
        node = self._nodes.get(key)
        value = None if node is None else self._convert(node, key, rule, convert)
        return default if value is None else value

    def _supplier(self) -> dict[str, str]:
        flat: dict[str, yaml.Node] = {}
        for name, node in self._entries("Supplier", Rule.MANIFEST_SUPPLIER):
            if isinstance(node, yaml.MappingNode):
                inner = self._pairs(node, f"Supplier.{name}")
                flat.update({f"{name}.{key}": item for key, item in inner})
            else:
                flat[name] = node
        strings = {}
        for name, node in flat.items():
            if node.tag != safe_yaml.NULL:
                text = self._convert(node, f"Supplier.{name}", Rule.MANIFEST_SUPPLIER, str)
                if text is not None:
                    strings[name] = text
        if strings.get("Logo"):
            self._convert(flat["Logo"], "Supplier.Logo", Rule.MANIFEST_FILE, _relative_path)
        return strings

    def _tags(self) -> tuple[str, ...]:
        node = self._nodes.get("Tags")
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            message = f"expected a list, found {safe_yaml.kind(node)}"
            self._complain(Rule.MANIFEST_TAGS, "Tags", message, node)
            return ()
        items = [item for item in node.value if item.tag != safe_yaml.NULL]
        tags = [self._convert(item, "Tags", Rule.MANIFEST_TAGS, str) for item in items]
        return tuple(dict.fromkeys(tag for tag in tags if tag is not None))

    def _requirements(self, fqn: str, version: Version) -> dict[str, VersionSpec]:
        """Return all requirements, including the implicit requirements: FQN -> range.

        :param fqn: the FQN of the package.
        :param version: the version of the package.
        """
        node = self._nodes.get("Require")
        if isinstance(node, yaml.MappingNode) and len(node.value) > MAX_REQUIREMENTS:
            message = f"{len(node.value)} packages, at most {MAX_REQUIREMENTS} are allowed"
            self._complain(Rule.MANIFEST_REQUIRE, "Require", message, node)
            return {}
        found = self._mapping("Require", Rule.MANIFEST_REQUIRE, check_required_name, VersionSpec.of)
        return add_implicit(found, fqn, version)

    def _mapping(
        self, key: str, rule: Rule, check_key: Callable[[str], str], convert: Callable[[str], T]
    ) -> dict[str, T]:
        result = {}
        for name, node in self._entries(key, rule):
            try:
                check_key(name)
            except ValueError as error:
                self._complain(rule, key, str(error), node)
                continue
            value = self._convert(node, f"{key}.{name}", rule, convert)
            if value is not None:
                result[name] = value
        return result

    def _document(self) -> dict[str, Any]:
        document = {}
        for key, node in self._nodes.items():
            if key not in _MAPPINGS:
                for repeated, _ in safe_yaml.repeated_keys([node]):
                    message = f"{quoted(str(repeated.value))} is repeated"
                    self._complain(Rule.MANIFEST_KEY, key, message, repeated)
            read = safe_yaml.strings if key in _KEYS - {"Meta"} else safe_yaml.plain
            try:
                document[key] = read(node)
            except ValueError as error:
                self._complain(Rule.MANIFEST_VALUE, key, str(error), node)
        return document

    def _unknown_keys(self) -> tuple[Problem, ...]:
        unknown = {key: node for key, node in self._written.items() if key not in _KEYS}
        found = [
            Problem(Rule.MANIFEST_KEY, quoted(key), _unknown_key(key), safe_yaml.line_of(node))
            for key, node in itertools.islice(unknown.items(), _MAX_UNKNOWN)
        ]
        if len(unknown) > _MAX_UNKNOWN:
            message = f"{len(unknown) - _MAX_UNKNOWN} more keys are unknown"
            found.append(Problem(Rule.MANIFEST_KEY, MANIFEST_FILE, message))
        return tuple(found)

    def _entries(self, key: str, rule: Rule) -> Iterator[tuple[str, yaml.Node]]:
        node = self._nodes.get(key)
        if isinstance(node, yaml.MappingNode):
            yield from self._pairs(node, key)
        elif node is not None:
            self._complain(rule, key, f"expected a mapping, found {safe_yaml.kind(node)}", node)

    def _pairs(self, node: yaml.MappingNode, where: str) -> Iterator[tuple[str, yaml.Node]]:
        seen = set()
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                message = "a key is not a string"
            elif key_node.tag == safe_yaml.MERGE:
                message = "merge keys are not supported; write out the merged keys"
            elif key_node.value in seen:
                message = f"{quoted(key_node.value)} is repeated"
            else:
                seen.add(key_node.value)
                yield key_node.value, value_node
                continue
            self._complain(Rule.MANIFEST_KEY, where, message, key_node)

    def _convert(
        self, node: yaml.Node, where: str, rule: Rule, convert: Callable[[str], T]
    ) -> T | None:
        """Convert the string in a node. Null is read as the empty string.

        :param where: the place of the node, for the message of a problem.
        :param rule: the rule that a wrong value breaks.
        :param convert: a function that converts the string, or raises ``ValueError``.
        :returns: the converted value. None if the value is wrong; the problem is recorded.
        """
        try:
            if not isinstance(node, yaml.ScalarNode):
                raise ValueError(f"expected a string, found {safe_yaml.kind(node)}")
            return convert("" if node.tag == safe_yaml.NULL else node.value)
        except ValueError as error:
            self._complain(rule, where, str(error), node)
            return None

    def _complain(self, rule: Rule, where: str, message: str, node: yaml.Node | None) -> None:
        self._problems.append(Problem(rule, where, message, safe_yaml.line_of(node)))


def _unknown_key(key: str) -> str:
    similar = difflib.get_close_matches(key[:_MAX_NAME], sorted(_KEYS), n=1)
    hint = f"did you mean {similar[0]}?" if similar else f"known are {', '.join(sorted(_KEYS))}"
    return f"is unknown; {hint}"


def _checked_name(
    text: str, pattern: re.Pattern[str], characters: str, max_length: int = _MAX_NAME
) -> str:
    if not isinstance(text, str) or len(text) > max_length or not pattern.match(text):
        raise InvalidName(
            f"{quoted(str(text))} is not a valid name: expected {characters} joined by single "
            f"dots, at most {max_length} characters{_foreign_character(str(text))}"
        )
    return text


def _foreign_character(text: str) -> str:
    """Describe the first non-ASCII character in a wrong name, for a message.

    A user may not notice such a character, since it may look like an ASCII letter.

    :param text: the wrong name.
    :returns: the description; empty if all characters are ASCII.
    """
    found = next((each for each in text if not each.isascii()), None)
    if found is None:
        return ""
    name = unicodedata.name(found, "which has no name")
    return f"; {quoted(found)} is U+{ord(found):04X}, {name}"


def _package_type(text: str) -> str:
    if text not in PACKAGE_TYPES:
        raise ValueError(f"{quoted(text)} is unknown: expected {' or '.join(PACKAGE_TYPES)}")
    return text


def _registered_format(text: str) -> Format:
    found = Format.of(text)
    known = {*registered_formats(PLUGIN_NAMESPACE), *registered_formats(FUNCTION_NAMESPACE)}
    if found not in known:
        raise ValueError(f"{quoted(text)} is {_unknown_format(found, known)}")
    return found


def _unknown_format(found: Format, known: Collection[Format]) -> str:
    versions = [each for each in known if each.name.lower() == found.name.lower()]
    listed = f"installed are {', '.join(sorted(map(str, known)))}"
    for each in versions:
        if each.version == found.version:
            return f"unknown; did you mean {each}? {listed}"
    newest = max(versions, key=lambda each: each.version, default=None)
    if newest is None or found.version < newest.version:
        return f"unknown; {listed}"
    return (
        f"newer than {newest}, the newest version of this package type that is installed; lower "
        f"Format if the package needs no newer one, or upgrade the package type; {listed}"
    )


def _relative_path(text: str) -> str:
    parts = text.split("/")
    if not text or text.startswith("/") or "\\" in text or any(p in ("", ".", "..") for p in parts):
        raise ValueError(f"{quoted(text)} is not a relative path of a file")
    return text
