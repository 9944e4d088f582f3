# SPDX-License-Identifier: Apache-2.0

"""Read the public interface of one version of a package: what its classes declare, and where.

Bodies of methods are not read. Contracts are not parsed, since most of them are equal in both
versions. For package types other than MuranoPL and Heat, only the names of the classes and of their
base classes are known.
"""

import dataclasses
import types
from collections.abc import Iterator, Mapping

from glare_murano.package import (
    Archive,
    InvalidPackage,
    Manifest,
    Problem,
    read_manifest,
    safe_yaml,
)
from glare_murano.package.archive import Source
from glare_murano.package.classes import ClassSource, read_sources
from glare_murano.package.contents import read_class_files, read_contents
from glare_murano.package.manifest import MANIFEST_FILE, MURANO_PL
from glare_murano.package.safe_yaml import MAX_SIZE
from loader.compatibility.changes import Place
from loader.compatibility.class_files import read_class
from loader.compatibility.declarations import Class
from loader.compatibility.heat import read_heat
from loader.compatibility.nodes import entries

_HEAT = "Heat.HOT"


@dataclasses.dataclass(frozen=True)
class Interface:
    """The public interface of one version of a package.

    :param manifest_data: the content of ``manifest.yaml``, in which the lines of keys are found.
    :param classes: the classes by name.
    :param has_members: whether the members of the classes could be read.
    :param is_old: whether this is the older of two versions.
    """

    manifest: Manifest
    manifest_data: bytes
    classes: Mapping[str, Class]
    has_members: bool
    is_old: bool

    def place(self, *keys: str) -> Place:
        """Return the place of a key in the manifest.

        :param keys: the key; for a key in a nested mapping, the keys that lead to it.
        """
        line = 0
        node = safe_yaml.compose(self.manifest_data, MANIFEST_FILE)
        for key in keys:
            key_node, node = entries(node).get(key, (None, None))
            line = safe_yaml.line_of(key_node) or line
        return Place(MANIFEST_FILE, line, self.is_old)


def read_interface(source: Source, is_old: bool = False) -> Interface:
    """Read the public interface of a package.

    :param source: the path of a ZIP file or a directory, or a seekable file.
    :param is_old: whether the package is the older of two versions, for the places of changes.
    :raises InvalidPackage: if the package breaks rules.
    :raises OSError: if the source cannot be read.
    """
    with Archive.open(source) as archive:
        manifest = read_manifest(archive)
        data = archive.read(MANIFEST_FILE, MAX_SIZE)
        readers = {MURANO_PL: _read_murano_pl, _HEAT: read_heat}
        read = readers.get(manifest.format.name, _read_described)
        classes = {each.name: each for each in read(archive, manifest, is_old)}
    has_members = manifest.format.name in readers
    return Interface(manifest, data, types.MappingProxyType(classes), has_members, is_old)


def _read_murano_pl(archive: Archive, manifest: Manifest, is_old: bool) -> Iterator[Class]:
    problems: list[Problem] = []
    sources = read_class_files(archive, manifest, read_sources, problems)
    if problems:
        raise InvalidPackage(problems)
    for source in sources:
        file = f"Classes/{manifest.classes[source.definition.name]}"
        yield read_class(source, file, is_old)


def _read_described(archive: Archive, manifest: Manifest, is_old: bool) -> Iterator[Class]:
    """Yield the classes of a package that is neither MuranoPL nor Heat.

    Only their names and base classes are known.
    """
    for definition in read_contents(archive).classes:
        yield read_class(ClassSource(definition, {}, {}), MANIFEST_FILE, is_old)
