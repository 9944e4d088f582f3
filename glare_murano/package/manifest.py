# SPDX-License-Identifier: Apache-2.0

"""The manifest of a package: what ``manifest.yaml`` says, checked.

The keys are those of Murano's package formats 1.0 to 1.4 and of the
specification "Murano versioning". The module reads one document; it does not
look at the other files of a package.
"""

import contextlib
import dataclasses
import functools
import importlib.metadata
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import yaml

from glare_murano.package import errors, safe_yaml
from glare_murano.package.errors import quoted
from glare_murano.package.rules import Rule
from glare_murano.package.versions import Version, VersionSpec, parse_version

FILE_NAME = "manifest.yaml"
CORE_LIBRARY = "io.murano"
MURANO_PL = "MuranoPL"
PACKAGE_TYPES = ("Application", "Library")
PLUGIN_NAMESPACE = "io.murano.plugins.packages"

# Every key of Murano's formats 1.0 to 1.4.
_KEYS = frozenset(
    {
        "Author",
        "Classes",
        "Description",
        "Format",
        "FullName",
        "Logo",
        "Meta",
        "Name",
        "Require",
        "Supplier",
        "Tags",
        "Type",
        "UI",
        "Version",
    }
)

# Those whose values are texts, also within; the others are Meta and unknown.
_TEXTS = _KEYS - {"Meta"}

_MAX_NAME = 255
_MAX_REQUIREMENTS = 256
_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*\Z")
# Extension plug-ins are required by the name of their Python distribution,
# which may hold hyphens.
_REQUIRED_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z")

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Format:
    """What a package is written in: ``Type/Version``, always full.

    :param name: such as ``MuranoPL``.
    :param version: the language's version, such as 1.4.0.
    """

    name: str
    version: Version

    @classmethod
    def of(cls, text: str | None) -> "Format":
        """Read ``[Type/]Version`` (specification "Murano versioning", "Engine versioning").

        No type means ``MuranoPL``, nothing at all ``MuranoPL/1.0.0``.

        :raises InvalidVersion: if the version is none.
        """
        name, slash, version = (text or "1.0").strip().rpartition("/")
        return cls(name.strip() if slash else MURANO_PL, parse_version(version))

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A manifest that has been checked.

    :param full_name: the package's fully qualified name (FQN).
    :param package_type: ``Application`` or ``Library``.
    :param display_name: ``Name``, or the FQN where there is none.
    :param supplier: ``Supplier``, as strings; a mapping in it, such as
        ``CompanyUrl``, as ``CompanyUrl.Link`` and so on.
    :param ui: the file of the form definition, below ``UI``.
    :param logo: the file of the logo; None where the manifest names none.
    :param supplier_logo: the file of the supplier's logo, likewise.
    :param meta: the metadata attached to the package, as plain YAML values.
    :param classes: fully qualified class name -> file below ``Classes``.
    :param requirements: FQN -> range; the implicit ones included.
    :param document: the manifest for package-type plug-ins: texts as written,
        ``Meta`` and unknown keys as plain YAML values, what is null left out.
    :param warnings: what is odd but does no harm, such as an unknown key.
    """

    full_name: str
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
    supplier_logo: str | None
    meta: Any
    document: Mapping[str, Any]
    warnings: tuple[errors.Problem, ...]

    @classmethod
    def parse(cls, data: bytes) -> "Manifest":
        """Read a manifest.

        :param data: the bytes of ``manifest.yaml``.
        :raises InvalidManifest: with everything that is wrong in it.
        """
        return _Reader(data).manifest()


class _Reader:
    """Collects what one document says, and what is wrong with it."""

    def __init__(self, data: bytes) -> None:
        self._problems: list[errors.Problem] = []
        try:
            node = safe_yaml.compose(data, FILE_NAME)
        except errors.InvalidPackage as error:
            raise errors.InvalidManifest(error.problems) from error
        if not isinstance(node, yaml.MappingNode):
            found = safe_yaml.kind(node)
            self._complain(
                Rule.MANIFEST_MAPPING, FILE_NAME, f"expected a mapping, found {found}", node
            )
            raise errors.InvalidManifest(self._problems)
        self._nodes = dict(self._pairs(node, FILE_NAME))

    def manifest(self) -> Manifest:
        full_name = self._read("FullName", Rule.MANIFEST_NAME, check_full_name, required=True)
        version = self._read("Version", Rule.MANIFEST_VERSION, parse_version)
        format_ = self._read("Format", Rule.MANIFEST_FORMAT, _known_format)
        package_type = self._read("Type", Rule.MANIFEST_TYPE, _package_type, required=True)
        display_name = self._read("Name", Rule.MANIFEST_TEXT, str)
        description = self._read("Description", Rule.MANIFEST_TEXT, str)
        author = self._read("Author", Rule.MANIFEST_TEXT, str)
        supplier = self._supplier()
        tags = self._list("Tags", Rule.MANIFEST_TAGS)
        classes = self._mapping("Classes", Rule.MANIFEST_CLASSES, check_full_name, _relative_path)
        ui = self._read("UI", Rule.MANIFEST_FILE, _relative_path)
        logo = self._read("Logo", Rule.MANIFEST_FILE, _relative_path)
        supplier_logo = self._supplier_logo(supplier)
        requirements = self._requirements()
        document = self._document()
        if self._problems or full_name is None or package_type is None:
            raise errors.InvalidManifest(self._problems)
        version = version or parse_version(None)
        return Manifest(
            full_name=full_name,
            version=version,
            format=format_ or Format.of(None),
            package_type=package_type,
            display_name=display_name or full_name,
            description=description or "",
            author=author or "",
            supplier=types.MappingProxyType(supplier),
            tags=tags,
            classes=types.MappingProxyType(classes),
            requirements=types.MappingProxyType(
                with_implicit_requirements(full_name, version, requirements)
            ),
            ui=ui or "ui.yaml",
            logo=logo,
            supplier_logo=supplier_logo,
            meta=document.get("Meta"),
            document=types.MappingProxyType(document),
            warnings=self._unknown_keys(),
        )

    def _read(
        self, key: str, rule: Rule, convert: Callable[[str], T], required: bool = False
    ) -> T | None:
        node = self._nodes.get(key)
        if node is None or node.tag == safe_yaml.NULL:
            if required:
                self._complain(rule, key, "is missing", node)
            return None
        return self._convert(node, key, rule, convert)

    def _convert(
        self, node: yaml.Node, key: str, rule: Rule, convert: Callable[[str], T]
    ) -> T | None:
        if not isinstance(node, yaml.ScalarNode):
            self._complain(rule, key, f"expected a text, found {safe_yaml.kind(node)}", node)
            return None
        try:
            return convert(node.value)
        except ValueError as error:
            self._complain(rule, key, str(error), node)
            return None

    def _list(self, key: str, rule: Rule) -> tuple[str, ...]:
        node = self._nodes.get(key)
        if node is None or node.tag == safe_yaml.NULL:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self._complain(rule, key, f"expected a list, found {safe_yaml.kind(node)}", node)
            return ()
        items = [item for item in node.value if item.tag != safe_yaml.NULL]
        values = [self._convert(item, key, rule, str) for item in items]
        return tuple(dict.fromkeys(value for value in values if value is not None))

    def _mapping(
        self, key: str, rule: Rule, convert_key: Callable[[str], str], convert: Callable[[str], T]
    ) -> dict[str, T]:
        node = self._nodes.get(key)
        if node is None or node.tag == safe_yaml.NULL:
            return {}
        if not isinstance(node, yaml.MappingNode):
            self._complain(rule, key, f"expected a mapping, found {safe_yaml.kind(node)}", node)
            return {}
        result = {}
        for name, value_node in self._pairs(node, key):
            try:
                convert_key(name)
            except ValueError as error:
                self._complain(rule, key, str(error), value_node)
                continue
            if value_node.tag == safe_yaml.NULL:
                value_node = yaml.ScalarNode(safe_yaml.NULL, "", value_node.start_mark)
            value = self._convert(value_node, f"{key}.{name}", rule, convert)
            if value is not None:
                result[name] = value
        return result

    def _requirements(self) -> dict[str, VersionSpec]:
        node = self._nodes.get("Require")
        if isinstance(node, yaml.MappingNode) and len(node.value) > _MAX_REQUIREMENTS:
            message = f"{len(node.value)} packages, at most {_MAX_REQUIREMENTS} are allowed"
            self._complain(Rule.MANIFEST_REQUIRE, "Require", message, node)
            return {}
        return self._mapping("Require", Rule.MANIFEST_REQUIRE, check_required_name, VersionSpec.of)

    def _supplier(self) -> dict[str, str]:
        node = self._nodes.get("Supplier")
        if not isinstance(node, yaml.MappingNode):
            return self._mapping("Supplier", Rule.MANIFEST_SUPPLIER, str, str)
        flat = {}
        for name, value in self._pairs(node, "Supplier"):
            if isinstance(value, yaml.MappingNode):
                inner = self._pairs(value, f"Supplier.{name}")
                flat.update({f"{name}.{key}": item for key, item in inner})
            else:
                flat[name] = value
        texts = {
            name: self._convert(value, f"Supplier.{name}", Rule.MANIFEST_SUPPLIER, str)
            for name, value in flat.items()
            if value.tag != safe_yaml.NULL
        }
        return {name: text for name, text in texts.items() if text is not None}

    def _supplier_logo(self, supplier: Mapping[str, str]) -> str | None:
        logo = supplier.get("Logo")
        if not logo:
            return None
        try:
            return _relative_path(logo)
        except ValueError as error:
            supplier_node = self._nodes["Supplier"]
            place = next(v for k, v in supplier_node.value if k.value == "Logo")
            self._complain(Rule.MANIFEST_FILE, "Supplier.Logo", str(error), place)
            return None

    def _unknown_keys(self) -> tuple[errors.Problem, ...]:
        return tuple(
            errors.Problem(
                Rule.MANIFEST_KEY,
                quoted(key),
                f"is unknown; known are {', '.join(sorted(_KEYS))}",
                safe_yaml.line_of(node.start_mark),
            )
            for key, node in self._nodes.items()
            if key not in _KEYS
        )

    def _pairs(self, node: yaml.MappingNode, where: str) -> Iterator[tuple[str, yaml.Node]]:
        seen = set()
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._complain(Rule.MANIFEST_KEY, where, "a key is no text", key_node)
            elif key_node.tag == safe_yaml.MERGE:
                message = "merge keys are not understood; write out what is merged"
                self._complain(Rule.MANIFEST_KEY, where, message, key_node)
            elif key_node.value in seen:
                self._complain(
                    Rule.MANIFEST_KEY, where, f"{quoted(key_node.value)} stands twice", key_node
                )
            else:
                seen.add(key_node.value)
                yield key_node.value, value_node

    def _document(self) -> dict[str, Any]:
        """The manifest for plug-ins: what it says as text stays text; null is left out."""
        document = {}
        for key, node in self._nodes.items():
            if node.tag == safe_yaml.NULL:
                continue
            try:
                document[key] = safe_yaml.strings(node) if key in _TEXTS else safe_yaml.plain(node)
            except ValueError as error:
                self._complain(Rule.MANIFEST_VALUE, key, str(error), node)
        return document

    def _complain(self, rule: Rule, where: str, message: str, node: yaml.Node | None) -> None:
        line = safe_yaml.line_of(node.start_mark) if node is not None else 0
        self._problems.append(errors.Problem(rule, where, message, line))


def with_implicit_requirements(
    full_name: str, version: Version, requirements: Mapping[str, VersionSpec]
) -> dict[str, VersionSpec]:
    """Add what every package requires unless it says otherwise.

    That is the core library in 0.x, and the package itself with its own major
    version (specification "Murano versioning", section "Package
    requirements"). The core library does not require itself.
    """
    if full_name == CORE_LIBRARY:
        return dict(requirements)
    implicit = {
        CORE_LIBRARY: VersionSpec.of(None),
        full_name: VersionSpec.of(str(version.major)),
    }
    return {**requirements, **{k: v for k, v in implicit.items() if k not in requirements}}


def known_formats() -> frozenset[str]:
    """Every format that this project or another installed plug-in registers."""
    return frozenset(registered_formats())


@functools.cache
def registered_formats() -> Mapping[str, str]:
    """Format, always full -> the name of the entry point that registers it.

    Only the names of entry points are read, once in a process; nothing is
    imported.
    """
    found = {}
    for entry_point in importlib.metadata.entry_points(group=PLUGIN_NAMESPACE):
        with contextlib.suppress(errors.InvalidVersion):
            found[str(Format.of(entry_point.name))] = entry_point.name
    return found


def check_full_name(text: str) -> str:
    """Tell that a text can name a package or a class, and return it.

    :raises InvalidName: if it is not letters, digits and underscores, joined
        by single dots, 255 characters at most.
    """
    return _checked_name(text, _NAME, "letters, digits and underscores")


def check_required_name(text: str) -> str:
    """As ``check_full_name``, for a package that is required: hyphens are allowed.

    :raises InvalidName: if it can name no package.
    """
    return _checked_name(text, _REQUIRED_NAME, "letters, digits, underscores and hyphens")


def _checked_name(text: str, pattern: re.Pattern[str], what: str) -> str:
    if len(text) > _MAX_NAME or not pattern.match(text):
        raise errors.InvalidName(
            f"{quoted(text)} is no fully qualified name: expected {what} joined by single "
            f"dots, at most {_MAX_NAME} characters"
        )
    return text


def _package_type(text: str) -> str:
    if text not in PACKAGE_TYPES:
        raise ValueError(f"{quoted(text)} is unknown: expected {' or '.join(PACKAGE_TYPES)}")
    return text


def _known_format(text: str) -> Format:
    found = Format.of(text)
    if str(found) not in known_formats():
        raise ValueError(
            f"{quoted(text)} is unknown: expected one of {', '.join(sorted(known_formats()))}"
        )
    return found


def _relative_path(text: str) -> str:
    parts = text.split("/")
    if not text or text.startswith("/") or "\\" in text or any(p in ("", ".", "..") for p in parts):
        raise ValueError(f"{quoted(text)} is no relative path of a file")
    return text
