# SPDX-License-Identifier: Apache-2.0

"""The form of a lock file: how it is written as text, and read again.

Whoever merges two of them edits it by hand, so that what is wrong is told by
package and key. As in a manifest, the text as written counts: 1.10 is a version.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import yaml

from glare_murano.package import Version, VersionSpec, parse_version, safe_yaml
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_full_name, check_required_name
from loader.catalogs.base import Release

_FORM = "1"
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_SIZE = re.compile(r"(0|[1-9][0-9]{0,17})\Z")
_COMMENT = "# The packages of a deployment, exactly. Update it by the program that wrote it.\n"

_T = TypeVar("_T")


def write(requirements: Mapping[str, VersionSpec], releases: Iterable[Release]) -> bytes:
    """The text of a lock file."""
    content = {
        "form": int(_FORM),
        "requirements": _texts(requirements),
        "packages": [_written(release) for release in releases],
    }
    text = yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return f"{_COMMENT}{text}".encode()


def read(data: bytes, name: str) -> tuple[dict[str, VersionSpec], list[Release]]:
    """What was asked for, and the releases in the order of the file.

    :param name: the file's name, for messages.
    :raises ValueError: if it is no lock file; it tells what is wrong, and where.
    """
    root = safe_yaml.compose(data, name)
    if root is None:
        raise ValueError("it is empty")
    content = _mapping(root)
    form = _value(content, "form", str)
    if form != _FORM:
        raise ValueError(
            f"it has the form {quoted(form)}, and only {_FORM} is known; a newer release of "
            f"the loader may know it"
        )
    return _ranges(content), list(_releases(content))


def _written(release: Release) -> dict[str, Any]:
    return {
        "name": release.fqn,
        "version": str(release.version),
        "sha256": release.digest,
        **({"size": release.size} if release.size is not None else {}),
        "requirements": _texts(release.requirements),
        "classes": sorted(release.classes),
    }


def _texts(requirements: Mapping[str, VersionSpec]) -> dict[str, str]:
    return {fqn: spec.text for fqn, spec in sorted(requirements.items())}


def _releases(content: Mapping[str, yaml.Node]) -> Iterator[Release]:
    """The releases of the file, each version of a package once."""
    places: dict[tuple[str, Version], int] = {}
    for number, node in enumerate(_items(content, "packages"), 1):
        with _at(f"package {number}"):
            item = _mapping(node)
            fqn = _value(item, "name", check_full_name)
        with _at(f"package {number} ({fqn})"):
            release = _release(fqn, item)
            first = places.setdefault((fqn, release.version), number)
            if first != number:
                raise ValueError(f"package {first} is {release} as well; leave one of them")
        yield release


def _release(fqn: str, item: Mapping[str, yaml.Node]) -> Release:
    version = _value(item, "version", parse_version)
    digest = _value(item, "sha256", _digest)
    return Release(
        fqn=fqn,
        version=version,
        requirements=_ranges(item),
        classes=frozenset(_classes(item)),
        reference=digest,
        digest=digest,
        size=_value(item, "size", _size) if "size" in item else None,
    )


def _ranges(content: Mapping[str, yaml.Node]) -> dict[str, VersionSpec]:
    node = _node(content, "requirements")
    with _at("requirements"):
        ranges = _mapping(node)
        return {check_required_name(fqn): _value(ranges, fqn, VersionSpec.of) for fqn in ranges}


def _classes(item: Mapping[str, yaml.Node]) -> list[str]:
    nodes = _items(item, "classes")
    with _at("classes"):
        return [check_full_name(_text(node)) for node in nodes]


def _digest(text: str) -> str:
    if not _DIGEST.match(text):
        raise ValueError(f"{quoted(text)} is no SHA-256: expected 64 small hexadecimal digits")
    return text


def _size(text: str) -> int:
    if not _SIZE.match(text):
        raise ValueError(f"{quoted(text)} is no size: expected a number of bytes")
    return int(text)


def _mapping(node: yaml.Node) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"expected a mapping, found {safe_yaml.kind(node)}")
    found: dict[str, yaml.Node] = {}
    for key_node, value in node.value:
        key = safe_yaml.key_of(key_node)
        if key in found:
            raise ValueError(f"{quoted(key)} stands twice")
        found[key] = value
    return found


def _items(mapping: Mapping[str, yaml.Node], key: str) -> list[yaml.Node]:
    node = _node(mapping, key)
    if not isinstance(node, yaml.SequenceNode):
        raise ValueError(f"{key}: expected a sequence, found {safe_yaml.kind(node)}")
    return list(node.value)


def _value(mapping: Mapping[str, yaml.Node], key: str, convert: Callable[[str], _T]) -> _T:
    node = _node(mapping, key)
    with _at(key):
        return convert(_text(node))


def _node(mapping: Mapping[str, yaml.Node], key: str) -> yaml.Node:
    if key not in mapping:
        raise ValueError(f"{key} is missing")
    return mapping[key]


def _text(node: yaml.Node) -> str:
    text = safe_yaml.texts(node)
    # Nothing would be read as the version 0.0.0, or as the range 0.
    if not isinstance(text, str) or not text:
        raise ValueError(f"expected a text, found {safe_yaml.kind(node) if text else 'nothing'}")
    return text


@contextlib.contextmanager
def _at(where: str) -> Iterator[None]:
    """Tell where it is that something is wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
