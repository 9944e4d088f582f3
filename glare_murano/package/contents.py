# SPDX-License-Identifier: Apache-2.0

"""Read the manifest, the classes and the images of a package from its archive.

Package types may generate further content on demand, such as the class of a
Heat template: see ``loader/formats``.
"""

import collections
import dataclasses
from collections.abc import Mapping

from glare_murano.package import safe_yaml
from glare_murano.package.archive import Archive
from glare_murano.package.classes import ClassDefinition, read_classes
from glare_murano.package.errors import InvalidManifest, InvalidPackage, Problem
from glare_murano.package.hot.template import TEMPLATE_FILE
from glare_murano.package.manifest import MANIFEST_FILE, MURANO_PL, Manifest
from glare_murano.package.rules import Rule
from glare_murano.package.safe_yaml import MAX_EXPANDED, MAX_SIZE

HEAT = "Heat.HOT"
CLASSES_DIRECTORY = "Classes"
FORMS_DIRECTORY = "UI"
MAX_IMAGE_SIZE = 500 * 1024
_IMAGE_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


@dataclasses.dataclass(frozen=True)
class Contents:
    """The description of a package by its own files.

    :param classes: the classes in the manifest, as their files define them;
        for other formats than MuranoPL only their names.
    :param logo: the bytes of the logo, if any.
    :param supplier_logo: the bytes of the supplier's logo, if any.
    :param ui: the bytes of the form definition, if any; not checked.
    """

    manifest: Manifest
    classes: tuple[ClassDefinition, ...]
    logo: bytes | None = None
    supplier_logo: bytes | None = None
    ui: bytes | None = None

    @property
    def inherits(self) -> Mapping[str, tuple[str, ...]]:
        """Base class -> its direct subclasses in this package, both sorted."""
        subclasses: dict[str, set[str]] = collections.defaultdict(set)
        for definition in self.classes:
            for base in definition.extends:
                subclasses[base].add(definition.name)
        return {base: tuple(sorted(names)) for base, names in sorted(subclasses.items())}


def read_manifest(archive: Archive) -> Manifest:
    """Read the manifest of a package.

    :raises InvalidManifest: if the manifest is missing, or with all its problems.
    :raises InvalidArchive: if its file is damaged, or larger than 1 MiB.
    """
    if MANIFEST_FILE not in archive.paths:
        message = "is missing at the top of the archive"
        raise InvalidManifest([Problem(Rule.MANIFEST_MISSING, MANIFEST_FILE, message)])
    return Manifest.parse(archive.read(MANIFEST_FILE, MAX_SIZE))


def read_contents(archive: Archive) -> Contents:
    """Read the manifest, the classes, the logos and the form of a package.

    :raises InvalidPackage: with all problems of the manifest, else with all
        problems of its files.
    """
    manifest = read_manifest(archive)
    problems: list[Problem] = []
    classes = _read_classes(archive, manifest, problems)
    logo = _read_image(archive, manifest.logo, "logo.png", "Logo", problems)
    supplier_logo = _read_image(
        archive, manifest.supplier_logo, "supplier_logo.png", "Supplier.Logo", problems
    )
    if problems:
        raise InvalidPackage(problems)
    form = f"{FORMS_DIRECTORY}/{manifest.ui}"
    ui = archive.read(form, MAX_SIZE) if form in archive.paths else None
    return Contents(manifest, classes, logo, supplier_logo, ui)


def class_names(manifest: Manifest) -> tuple[str, ...]:
    """Return the names of a package's classes, according to its manifest."""
    if manifest.format.name == HEAT:
        return (manifest.full_name,)
    if manifest.format.name == MURANO_PL:
        return tuple(manifest.classes)
    return tuple(manifest.classes) or (manifest.full_name,)


def _read_classes(
    archive: Archive, manifest: Manifest, problems: list[Problem]
) -> tuple[ClassDefinition, ...]:
    if manifest.format.name == MURANO_PL:
        return _read_class_files(archive, manifest, problems)
    is_heat = manifest.format.name == HEAT
    if is_heat and TEMPLATE_FILE not in archive.paths:
        message = "is missing at the top of the archive"
        problems.append(Problem(Rule.TEMPLATE_MISSING, TEMPLATE_FILE, message))
    bases = ("io.murano.Application",) if is_heat else ()
    return tuple(ClassDefinition(name, bases) for name in class_names(manifest))


def _read_class_files(
    archive: Archive, manifest: Manifest, problems: list[Problem]
) -> tuple[ClassDefinition, ...]:
    files: dict[str, list[str]] = collections.defaultdict(list)
    for name, file in manifest.classes.items():
        files[f"{CLASSES_DIRECTORY}/{file}"].append(name)
    paths = frozenset(archive.paths)
    definitions: list[ClassDefinition] = []
    # The limits hold for all class files together. Murano's core library has 111 KB and
    # 5,400 values; time and memory depend on the values.
    size = values = 0
    for file, names in files.items():
        if file not in paths:
            message = f"there is no file {file}"
            problems.append(Problem(Rule.CLASS_FILE, f"Classes.{names[0]}", message))
            continue
        data = archive.read(file, MAX_SIZE)
        size += len(data)
        if size > MAX_SIZE:
            problems.append(_too_large(file, f"{MAX_SIZE} bytes"))
            break
        try:
            nodes, count = safe_yaml.compose_all(data, file)
        except InvalidPackage as error:
            problems += error.problems
            # The greatest possible number: a value takes at least two bytes.
            values += len(data) // 2
            if values > MAX_EXPANDED:
                break
            continue
        values += count
        if values > MAX_EXPANDED:
            problems.append(_too_large(file, f"{MAX_EXPANDED} values"))
            break
        found, class_problems = read_classes(nodes, file, names)
        definitions += found
        problems += class_problems
    return tuple(definitions)


def _too_large(file: str, limit: str) -> Problem:
    return Problem(Rule.YAML_SIZE, file, f"all class files together have more than {limit}")


def _read_image(
    archive: Archive, named: str | None, default: str, key: str, problems: list[Problem]
) -> bytes | None:
    """Read the image in the manifest, else the default; None without one, or after a problem."""
    path = named or default
    if path not in archive.paths:
        if named:
            problems.append(Problem(Rule.IMAGE_MISSING, key, f"there is no file {named}"))
        return None
    size = archive.size(path)
    if size > MAX_IMAGE_SIZE:
        message = f"{path} has {size} bytes, at most {MAX_IMAGE_SIZE} are allowed"
        problems.append(Problem(Rule.IMAGE_SIZE, key, message))
        return None
    data = archive.read(path, MAX_IMAGE_SIZE)
    if data.startswith(_IMAGE_SIGNATURES):
        return data
    problems.append(Problem(Rule.IMAGE_TYPE, key, f"{path} is not a PNG, JPEG or GIF image"))
    return None
