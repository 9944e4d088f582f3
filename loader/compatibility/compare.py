# SPDX-License-Identifier: Apache-2.0

"""Compare two versions of a package: which part of the version must be raised, and why."""

import dataclasses

from glare_murano.package import GlareMuranoError, Version
from glare_murano.package.archive import Source
from glare_murano.package.errors import shown
from loader.compatibility.changes import Change, Part, Rule
from loader.compatibility.class_changes import compare_classes
from loader.compatibility.hierarchy import Hierarchy, RequiredPackages, Requirements
from loader.compatibility.interface import Interface, read_interface
from loader.compatibility.next_version import Verdict, smallest_version
from loader.compatibility.ranges import compare_ranges


class DifferentPackages(GlareMuranoError, ValueError):
    """Two packages have different names, so they are not versions of the same package."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The differences between two versions of a package.

    :param changes: the changes: first those that require a new major version, then those that
        require a new minor version, then the others. Each group is sorted by file and line.
    :param unseen: phrases for what could not be read, such as a missing required package. Classes
        may inherit members from such a package, and their changes are not found.
    """

    fqn: str
    old_version: Version
    new_version: Version
    changes: tuple[Change, ...]
    unseen: tuple[str, ...]

    @property
    def part(self) -> Part:
        """The part of the version that must be raised; ``patch`` if there are no changes."""
        return max((change.part for change in self.changes), default=Part.PATCH)

    @property
    def verdict(self) -> Verdict:
        """Whether the version in the new manifest is enough for the changes."""
        smallest = self.required_version(self.old_version)
        return Verdict(self.part, self.old_version, self.new_version, smallest)

    def required_version(self, old_version: Version) -> Version:
        """Return the smallest version that is enough for these changes.

        :param old_version: the version before the changes. It may differ from the compared old
            version, but must have the same interface.
        """
        return smallest_version(old_version, self.part)

    def report(self) -> str:
        """Return all changes as lines of text, with the verdict as the last line."""
        lines = [f"{self.fqn} {self.old_version} -> {self.new_version}: {self.part}"]
        for part in reversed(Part):
            found = [f"  {change}" for change in self.changes if change.part is part]
            if found:
                lines += [f"{part}:", *found]
        if self.unseen:
            lines += ["not read:", *(f"  {shown(each)}" for each in self.unseen)]
        return "\n".join([*lines, str(self.verdict)])


def compare(old: Source, new: Source, requirements: Requirements | None = None) -> Comparison:
    """Compare two versions of a package by their public interfaces.

    >>> comparison = compare("org.example.db/1.3.0", "org.example.db/2.0.0")
    >>> str(comparison.part)
    'major'

    :param old: the old version: the path of a ZIP file or a directory, or a seekable file.
    :param new: the new version, also as a path or a seekable file.
    :param requirements: a function that takes an FQN and a range, and returns a required package,
        also as a path or a seekable file. Without this function, members that classes inherit from
        other packages are unknown.
    :raises DifferentPackages: if the packages have different names.
    :raises InvalidPackage: if a package breaks rules.
    :raises YaqlMissing: if a contract was changed, and yaql is not installed.
    :raises OSError: if a package cannot be read.
    """
    return compare_interfaces(read_interface(old, is_old=True), read_interface(new), requirements)


def compare_interfaces(
    before: Interface, after: Interface, requirements: Requirements | None = None
) -> Comparison:
    """Compare two interfaces that were read already; ``compare`` reads them first.

    :param requirements: as for ``compare``.
    :raises DifferentPackages: if the packages have different names.
    :raises YaqlMissing: if a contract was changed, and yaql is not installed.
    """
    fqn = after.manifest.fqn
    if before.manifest.fqn != fqn:
        raise DifferentPackages(
            f"{before.manifest.fqn} {before.manifest.version} and {fqn} "
            f"{after.manifest.version} are different packages; compare two versions of one"
        )
    required = RequiredPackages(requirements)
    hierarchies = Hierarchy(before, required), Hierarchy(after, required)
    changes = [
        *_of_package(before, after),
        *compare_ranges(*hierarchies),
        *compare_classes(*hierarchies),
    ]
    unseen = [f"package {name}: {reason}" for name, reason in required.unseen.items()]
    for each in (before, after):
        if not each.has_members:
            unseen.append(f"the members of classes of the format {each.manifest.format}")
    return Comparison(
        fqn=fqn,
        old_version=before.manifest.version,
        new_version=after.manifest.version,
        changes=tuple(sorted(changes, key=_order)),
        unseen=tuple(dict.fromkeys(unseen)),
    )


def _of_package(old: Interface, new: Interface) -> list[Change]:
    before, after = old.manifest, new.manifest
    found = []
    if before.package_type == "Application" and after.package_type != "Application":
        message = "the package is not an application any more"
        found.append((Rule.APPLICATION_REMOVED, "Type", message))
    if before.format != after.format:
        message = f"Format is {after.format} instead of {before.format}"
        found.append((Rule.FORMAT_CHANGED, "Format", message))
    if before.document.get("Meta") != after.document.get("Meta"):
        found.append((Rule.METADATA_CHANGED, "Meta", "the metadata of the package was changed"))
    return [Change(rule, "", "", message, new.place(key)) for rule, key, message in found]


def _order(change: Change) -> tuple[int, str, int, str, str]:
    return -change.part, change.file, change.line, change.class_name, change.member
