# SPDX-License-Identifier: Apache-2.0

"""What a package says of itself: its manifest, and the classes in its files.

This is where an archive, whose files mean nothing by themselves, becomes a
package. What a package type makes up as it is asked (the class of a Heat
template, say) is not read here; the loader's formats do that.
"""

import collections
import dataclasses
from collections.abc import Mapping

from glare_murano.package import errors, safe_yaml
from glare_murano.package.archive import Archive
from glare_murano.package.classes import ClassDefinition, read_classes
from glare_murano.package.manifest import FILE_NAME, MURANO_PL, Manifest
from glare_murano.package.rules import Rule
from glare_murano.package.safe_yaml import MAX_EXPANDED, MAX_SIZE

CLASSES = "Classes"
FORMS = "UI"
# Of all class files together; Murano's core library has 111 KB of them, with 5,400
# values. It is values that take time and memory.
MAX_CLASSES_SIZE = MAX_SIZE
MAX_VALUES = MAX_EXPANDED

# The package type whose one class is made from a template.
HEAT = "Heat.HOT"
HEAT_TEMPLATE = "template.yaml"

# A logo's limits are Murano's own. Its type shows in its first bytes.
MAX_IMAGE_SIZE = 500 * 1024
_IMAGE_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


@dataclasses.dataclass(frozen=True)
class Contents:
    """A package's own description.

    :param classes: the classes that its manifest names, as its files define
        them; of other formats than MuranoPL the names alone.
    :param logo: the content of its logo, if it has one.
    :param supplier_logo: the content of its supplier's logo, likewise.
    :param ui: its form definition, likewise; not looked into.
    """

    manifest: Manifest
    classes: tuple[ClassDefinition, ...]
    logo: bytes | None = None
    supplier_logo: bytes | None = None
    ui: bytes | None = None

    @property
    def inherits(self) -> Mapping[str, tuple[str, ...]]:
        """Base class -> its direct heirs in this package, both sorted."""
        heirs: dict[str, list[str]] = collections.defaultdict(list)
        for definition in self.classes:
            for base in dict.fromkeys(definition.extends):
                heirs[base].append(definition.name)
        return {base: tuple(sorted(names)) for base, names in sorted(heirs.items())}


def read_manifest(archive: Archive) -> Manifest:
    """Read a package's manifest, and nothing else.

    :raises InvalidManifest: if there is none, or with all that is wrong.
    :raises InvalidArchive: if its file is damaged, or larger than 1 MiB.
    """
    if FILE_NAME not in archive.paths:
        problem = errors.Problem(
            Rule.MANIFEST_MISSING,
            FILE_NAME,
            "is not at the top of the archive; a package starts with it",
        )
        raise errors.InvalidManifest([problem])
    return Manifest.parse(archive.read(FILE_NAME, MAX_SIZE))


def read_contents(archive: Archive) -> Contents:
    """Read a package's manifest, its classes, and what is shown of it.

    :raises InvalidPackage: with all that is wrong: of the manifest, or else
        of the files that it names.
    """
    manifest = read_manifest(archive)
    classes, problems = _read_classes(archive, manifest)
    logo = _read_image(archive, manifest.logo, "logo.png", "Logo", problems)
    supplier_logo = _read_image(
        archive, manifest.supplier_logo, "supplier_logo.png", "Supplier.Logo", problems
    )
    if problems:
        raise errors.InvalidPackage(problems)
    form = f"{FORMS}/{manifest.ui}"
    ui = archive.read(form, MAX_SIZE) if form in archive.paths else None
    return Contents(manifest, classes, logo=logo, supplier_logo=supplier_logo, ui=ui)


def class_names(manifest: Manifest) -> tuple[str, ...]:
    """The names of the classes that a package defines, by its manifest alone."""
    if manifest.format.name == HEAT:
        return (manifest.full_name,)
    if manifest.format.name == MURANO_PL:
        return tuple(manifest.classes)
    return tuple(manifest.classes) or (manifest.full_name,)


def _read_classes(
    archive: Archive, manifest: Manifest
) -> tuple[tuple[ClassDefinition, ...], list[errors.Problem]]:
    if manifest.format.name == HEAT:
        (name,) = class_names(manifest)
        definition = ClassDefinition(name, ("io.murano.Application",))
        if HEAT_TEMPLATE in archive.paths:
            return (definition,), []
        message = "is not at the top of the archive"
        return (definition,), [errors.Problem(Rule.TEMPLATE_MISSING, HEAT_TEMPLATE, message)]
    if manifest.format.name != MURANO_PL:
        return tuple(ClassDefinition(name, ()) for name in class_names(manifest)), []
    return _read_class_files(archive, manifest)


def _read_class_files(
    archive: Archive, manifest: Manifest
) -> tuple[tuple[ClassDefinition, ...], list[errors.Problem]]:
    files: dict[str, list[str]] = collections.defaultdict(list)
    for name, file in manifest.classes.items():
        files[f"{CLASSES}/{file}"].append(name)
    paths = frozenset(archive.paths)
    definitions = []
    problems: list[errors.Problem] = []
    size = values = 0
    for file, names in files.items():
        if file not in paths:
            problems.append(
                errors.Problem(Rule.CLASS_FILE, f"Classes.{names[0]}", f"there is no file {file}")
            )
            continue
        data = archive.read(file, MAX_SIZE)
        size += len(data)
        if size > MAX_CLASSES_SIZE:
            problems.append(_too_much(file, f"{MAX_CLASSES_SIZE} bytes"))
            break
        try:
            nodes, count = safe_yaml.compose_all(data, file)
        except errors.InvalidPackage as error:
            problems += error.problems
            # As many as it can have had: each takes two bytes at least.
            values += len(data) // 2
            if values > MAX_VALUES:
                break
            continue
        values += count
        if values > MAX_VALUES:
            problems.append(_too_much(file, f"{MAX_VALUES} values"))
            break
        found, wrong = read_classes(nodes, file, names)
        definitions += found
        problems += wrong
    return tuple(definitions), problems


def _too_much(file: str, most: str) -> errors.Problem:
    return errors.Problem(Rule.YAML_SIZE, file, f"class files of more than {most} together")


def _read_image(
    archive: Archive, named: str | None, default: str, key: str, problems: list[errors.Problem]
) -> bytes | None:
    """Read the image that a manifest names, else the one with the default name.

    :param key: the manifest's key.
    :param problems: is extended by what is wrong with the image.
    :returns: None if the package has no such image, or a wrong one.
    """
    path = named or default
    if path not in archive.paths:
        if named:
            problems.append(errors.Problem(Rule.IMAGE_MISSING, key, f"there is no file {named}"))
        return None
    if archive.size(path) > MAX_IMAGE_SIZE:
        message = f"{path} has {archive.size(path)} bytes, at most {MAX_IMAGE_SIZE} are allowed"
        problems.append(errors.Problem(Rule.IMAGE_SIZE, key, message))
        return None
    data = archive.read(path, MAX_IMAGE_SIZE)
    if not data.startswith(_IMAGE_SIGNATURES):
        message = f"{path} is neither PNG nor JPEG nor GIF"
        problems.append(errors.Problem(Rule.IMAGE_TYPE, key, message))
        return None
    return data
