# SPDX-License-Identifier: Apache-2.0

"""Read the manifest, the classes, the form and the logos of a package from its archive.

The classes of a MuranoPL package are read from its class files. Any other package type generates
its classes, and may generate more, such as requirements, the form or the logo. A function of the
package type describes what it generates; see ``package_types``. The code of generated classes is
not read.
"""

import collections
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import TypeVar

import yaml

from glare_murano.package import safe_yaml
from glare_murano.package.archive import Archive
from glare_murano.package.classes import MAX_BASES, ClassDefinition, find_cycle, read_classes
from glare_murano.package.errors import InvalidManifest, InvalidPackage, Problem, quoted
from glare_murano.package.manifest import (
    MANIFEST_FILE,
    MAX_REQUIREMENTS,
    MURANO_PL,
    Manifest,
    add_implicit,
    check_fqn,
    check_required_name,
)
from glare_murano.package.package_types import Describe, Description
from glare_murano.package.rules import Rule
from glare_murano.package.safe_yaml import MAX_EXPANDED, MAX_SIZE
from glare_murano.package.type_process import describe as describe_for_loader
from glare_murano.package.ui_form import ALWAYS_REFUSED, FormCheck, check_form
from glare_murano.package.versions import VersionSpec

CLASSES_DIRECTORY = "Classes"
FORMS_DIRECTORY = "UI"
MAX_IMAGE_SIZE = 500 * 1024
# The beginning of an image -> its content type.
_IMAGE_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}

# Key of the manifest that a package type may compute -> field of ``Manifest``.
_COMPUTED = {
    "Type": "package_type",
    "Name": "display_name",
    "Description": "description",
    "Author": "author",
    "Supplier": "supplier",
    "Tags": "tags",
}

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Contents:
    """The manifest, classes, requirements, logos and form of a package.

    :param classes: the classes that the manifest lists, as their files define them. For a package
        type other than MuranoPL, these are the classes that the type generates.
    :param requirements: all requirements: FQN -> range. They include the requirements that the
        package type adds.
    :param logo: the bytes of the logo; None without a logo.
    :param supplier_logo: the bytes of the supplier's logo; None without a supplier's logo.
    :param ui: the bytes of the form definition, from a file or from the package type; None without
        a form.
    :param warnings: mistakes in the manifest and in the form that do not make the package invalid.
    """

    manifest: Manifest
    classes: tuple[ClassDefinition, ...]
    requirements: Mapping[str, VersionSpec]
    logo: bytes | None = None
    supplier_logo: bytes | None = None
    ui: bytes | None = None
    warnings: tuple[Problem, ...] = ()

    @property
    def inherits(self) -> Mapping[str, tuple[str, ...]]:
        """The direct subclasses in this package: base class -> sorted names of its subclasses."""
        subclasses: dict[str, set[str]] = collections.defaultdict(set)
        for definition in self.classes:
            for base in definition.extends:
                subclasses[base].add(definition.name)
        return {base: tuple(sorted(names)) for base, names in sorted(subclasses.items())}


def read_manifest(archive: Archive) -> Manifest:
    """Read the manifest of a package.

    :raises InvalidManifest: if the manifest is missing or not valid. The error has all problems.
    :raises InvalidArchive: if the file of the manifest is damaged, or larger than 1 MiB.
    """
    if MANIFEST_FILE not in archive.paths:
        message = "is missing at the top of the archive"
        raise InvalidManifest([Problem(Rule.MANIFEST_MISSING, MANIFEST_FILE, message)])
    return Manifest.parse(archive.read(MANIFEST_FILE, MAX_SIZE))


def read_contents(
    archive: Archive,
    describe: Describe = describe_for_loader,
    form_check: FormCheck = FormCheck.OFF,
) -> Contents:
    """Read the manifest, the classes, the logos and the form of a package.

    :param describe: a function that describes what a package type other than MuranoPL generates.
    :param form_check: what to do about a form that Murano's dashboard cannot show. By default, the
        form is not checked, since an engine does not need it.
    :raises InvalidPackage: if the package breaks a rule. If the manifest has problems, the error
        has all of them, and the other files are not read. If the manifest is valid, the error has
        all problems of the other files. But if a file is damaged, or ``describe`` refuses the
        package, reading ends, and the error has only the problems of this failure.
    """
    manifest = read_manifest(archive)
    problems: list[Problem] = []
    requirements, generated, description = manifest.requirements, None, None
    if manifest.format.name == MURANO_PL:
        classes = read_class_files(archive, manifest, read_classes, problems)
    else:
        description = describe(manifest, archive)
        manifest = _computed_manifest(description, manifest, problems)
        classes = _generated_classes(description, problems)
        requirements = _generated_requirements(description, manifest, problems)
        generated = _generated_form(description, problems)
    if cycle := find_cycle(classes):
        problems.append(_of_cycle(cycle, manifest))
    logo = _read_image(archive, manifest.logo, "logo.png", "Logo", problems)
    if description and description.logo is not None:
        logo = _checked_image(description.logo, "the generated logo", "Logo", problems)
    supplier_logo = _read_image(
        archive, manifest.supplier.get("Logo"), "supplier_logo.png", "Supplier.Logo", problems
    )
    ui, form = generated, "form"
    if generated is None:
        form = f"{FORMS_DIRECTORY}/{manifest.ui}"
        ui = archive.read(form, MAX_SIZE) if form in archive.paths else None
    warnings = [*manifest.warnings]
    if ui is not None and form_check is not FormCheck.OFF:
        wrong, ignored = check_form(ui, form)
        for problem in wrong:
            is_refused = form_check is FormCheck.ENFORCE or problem.rule in ALWAYS_REFUSED
            (problems if is_refused else warnings).append(problem)
        warnings += ignored
    if problems:
        raise InvalidPackage(problems, warnings)
    return Contents(manifest, classes, requirements, logo, supplier_logo, ui, tuple(warnings))


def image_type(image: bytes) -> str:
    """Return the content type of a logo that ``read_contents`` has read."""
    return next(each for start, each in _IMAGE_TYPES.items() if image.startswith(start))


def _computed_manifest(
    description: Description, manifest: Manifest, problems: list[Problem]
) -> Manifest:
    """Replace values of a manifest with the values that the package type computes.

    The computed values are checked like values in a manifest file. If one of them is not valid, no
    value is replaced.

    :param problems: the list to which found problems are added.
    :returns: the manifest with the computed values.
    """
    computed = description.manifest
    own = {"FullName": manifest.fqn, "Version": str(manifest.version)}
    found = [
        Problem(Rule.PACKAGE_TYPE_RESULT, str(key), "a package type cannot compute this key")
        for key in computed.keys() - {*own, *_COMPUTED}
    ]
    try:
        kept = {"Type": manifest.package_type}
        read = Manifest.parse(json.dumps({**own, **kept, **computed}).encode())
    except InvalidManifest as error:
        found += [
            Problem(Rule.PACKAGE_TYPE_RESULT, each.where, each.message) for each in error.problems
        ]
        read = manifest
    if (read.fqn, read.version) != (manifest.fqn, manifest.version):
        message = (
            f"the package type computes {read.fqn} {read.version}; name and version must be those "
            f"of the manifest, {manifest.fqn} {manifest.version}"
        )
        found.append(Problem(Rule.PACKAGE_TYPE_RESULT, "FullName", message))
    problems += found
    values = {field: getattr(read, field) for key, field in _COMPUTED.items() if key in computed}
    return dataclasses.replace(manifest, **values)


def _generated_classes(
    description: Description, problems: list[Problem]
) -> tuple[ClassDefinition, ...]:
    found = []
    for name, bases in description.classes.items():
        try:
            if len(bases) > MAX_BASES:
                raise ValueError(f"{len(bases)} base classes, at most {MAX_BASES} are allowed")
            extends = tuple(check_fqn(base) for base in bases)
            found.append(ClassDefinition(check_fqn(name), extends))
        except ValueError as error:
            problems.append(Problem(Rule.PACKAGE_TYPE_RESULT, f"class {name}", str(error)))
    return tuple(found)


def _of_cycle(cycle: list[ClassDefinition], manifest: Manifest) -> Problem:
    """Return the problem for classes that extend each other in a cycle."""
    first = cycle[0]
    file = manifest.classes.get(first.name) if manifest.format.name == MURANO_PL else None
    where = f"class {first.name}" if file is None else f"{CLASSES_DIRECTORY}/{file}"
    names = [each.name for each in (*cycle, first)]
    message = f"a class cannot extend itself: {' extends '.join(names)}"
    return Problem(Rule.CLASS_CYCLE, where, message, first.line)


def _generated_requirements(
    description: Description, manifest: Manifest, problems: list[Problem]
) -> Mapping[str, VersionSpec]:
    found = {}
    for fqn, text in description.requirements.items():
        try:
            found[check_required_name(fqn)] = VersionSpec.of(text)
        except ValueError as error:
            problems.append(Problem(Rule.PACKAGE_TYPE_RESULT, f"requirement {fqn}", str(error)))
    if len(found) > MAX_REQUIREMENTS:
        message = f"{len(found)} packages, at most {MAX_REQUIREMENTS} are allowed"
        problems.append(Problem(Rule.PACKAGE_TYPE_RESULT, "requirements", message))
    return add_implicit(found, manifest.fqn, manifest.version)


def _generated_form(description: Description, problems: list[Problem]) -> bytes | None:
    try:
        form = None if description.ui is None else description.ui.encode()
        if form is not None and len(form) > MAX_SIZE:
            raise ValueError(f"{len(form)} bytes, at most {MAX_SIZE} are allowed")
    except ValueError as error:
        problems.append(Problem(Rule.PACKAGE_TYPE_RESULT, "form", str(error)))
        return None
    return form


def read_class_files(
    archive: Archive,
    manifest: Manifest,
    read: Callable[[list[yaml.Node], str, list[str]], tuple[list[T], list[Problem]]],
    problems: list[Problem],
) -> tuple[T, ...]:
    """Read the classes of a MuranoPL package from its class files.

    :param read: a function that reads a file: ``read_classes`` or ``read_sources``. It takes the
        YAML documents of the file, the path, and the names of the classes in the file.
    :param problems: the list to which found problems are added.
    :returns: the definitions or sources that ``read`` has returned for all files.
    """
    files: dict[str, list[str]] = collections.defaultdict(list)
    for name, file in manifest.classes.items():
        files[f"{CLASSES_DIRECTORY}/{file}"].append(name)
    paths = frozenset(archive.paths)
    definitions: list[T] = []
    # The limits apply to all class files together, since time and memory depend on the number of
    # values in all of them. Murano's core library has 111 KB and 5,400 values.
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
            # The number of values in this file is unknown. This is the largest possible number,
            # since a value takes at least two bytes.
            values += len(data) // 2
            if values > MAX_EXPANDED:
                break
            continue
        values += count
        if values > MAX_EXPANDED:
            problems.append(_too_large(file, f"{MAX_EXPANDED} values"))
            break
        for key, _ in safe_yaml.repeated_keys(nodes):
            message = f"{quoted(str(key.value))} is repeated"
            problems.append(Problem(Rule.YAML_KEY, file, message, safe_yaml.line_of(key)))
        found, class_problems = read(nodes, file, names)
        definitions += found
        problems += class_problems
    return tuple(definitions)


def _too_large(file: str, limit: str) -> Problem:
    return Problem(Rule.YAML_SIZE, file, f"all class files together have more than {limit}")


def _read_image(
    archive: Archive, named: str | None, default: str, key: str, problems: list[Problem]
) -> bytes | None:
    """Read the logo at the path in the manifest, or at the default path if the manifest has none.

    :param named: the path in the manifest; None if the manifest has no path.
    :param default: the path of the default logo.
    :param key: the key in the manifest, for messages.
    :param problems: the list to which a found problem is added.
    :returns: the bytes of the logo; None if there is no logo, or after a problem.
    """
    path = named or default
    if path not in archive.paths:
        if named:
            problems.append(Problem(Rule.IMAGE_MISSING, key, f"there is no file {named}"))
        return None
    size = archive.size(path)
    if size > MAX_IMAGE_SIZE:
        problems.append(_too_large_image(path, size, key))
        return None
    return _checked_image(archive.read(path, MAX_IMAGE_SIZE), path, key, problems)


def _too_large_image(path: str, size: int, key: str) -> Problem:
    message = f"{path} has {size} bytes, at most {MAX_IMAGE_SIZE} are allowed"
    return Problem(Rule.IMAGE_SIZE, key, message)


def _checked_image(data: bytes, path: str, key: str, problems: list[Problem]) -> bytes | None:
    if len(data) > MAX_IMAGE_SIZE:
        problems.append(_too_large_image(path, len(data), key))
        return None
    if data.startswith(tuple(_IMAGE_TYPES)):
        return data
    problems.append(Problem(Rule.IMAGE_TYPE, key, f"{path} is not a PNG, JPEG or GIF image"))
    return None
