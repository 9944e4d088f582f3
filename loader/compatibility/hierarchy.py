# SPDX-License-Identifier: Apache-2.0

"""Find the base classes of a class, and its inherited members, also in required packages.

A base class is searched for by its name: in the package of the class, and in its direct
requirements (specification "Murano versioning", "Package requirements").
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

from glare_murano.package import VersionSpec
from glare_murano.package.archive import Source
from glare_murano.resolver import satisfies_itself
from loader.compatibility.class_files import ROOT_CLASS
from loader.compatibility.declarations import Class
from loader.compatibility.interface import Interface, read_interface

Requirements = Callable[[str, VersionSpec], Source | None]
"""Returns the package that satisfies a requirement, as an archive or a directory.

For a missing package, it returns None or raises LookupError.
"""

Kind = Literal["properties", "methods", "initializer"]


class RequiredPackages:
    """Reads required packages, and records which packages were not found.

    The package for a range is read only once.

    :ivar unseen: a mapping of packages with ranges, such as ``org.db >=1,<2``, to the reasons why
        these packages were not read.
    """

    def __init__(self, find: Requirements | None) -> None:
        self._find = find
        self._read: dict[tuple[str, str], Hierarchy | None] = {}
        self.unseen: dict[str, str] = {}

    def hierarchy(self, fqn: str, spec: VersionSpec) -> "Hierarchy | None":
        """Return the classes of a required package; None if the package was not found.

        :raises InvalidPackage: if the package breaks rules.
        :raises OSError: if the package cannot be read.
        """
        key = fqn, spec.canonical
        if key not in self._read:
            self._read[key] = self._load(fqn, spec)
        return self._read[key]

    def _load(self, fqn: str, spec: VersionSpec) -> "Hierarchy | None":
        reason = "no package was given for it"
        try:
            source = self._find(fqn, spec) if self._find is not None else None
        except LookupError as error:
            source, reason = None, str(error)
        if source is None:
            self.unseen[f"{fqn} {spec}"] = reason
            return None
        return Hierarchy(read_interface(source), self)


@dataclasses.dataclass(frozen=True)
class Member:
    """A member of a class, with the class that declares it.

    :param declared: a ``Method``, or the ``Declaration`` of a property or of an argument of
        ``initialize``.
    :param owner: the declaring class.
    :param hierarchy: the package of the declaring class.
    """

    declared: Any
    owner: Class
    hierarchy: "Hierarchy"


@dataclasses.dataclass(frozen=True)
class Lineage:
    """A class and all its base classes, the nearest first.

    :param classes: the classes that could be read, each with its package; the first is the class
        itself.
    :param names: the names of all base classes, including those that could not be read.
    :param is_complete: whether all base classes could be read.
    """

    classes: "tuple[tuple[Class, Hierarchy], ...]"
    names: frozenset[str]
    is_complete: bool


class Hierarchy:
    """The classes of one version of a package, and their base classes in other packages."""

    def __init__(self, interface: Interface, required: RequiredPackages) -> None:
        self.interface = interface
        self._required = required
        self._lineages: dict[str, Lineage] = {}
        self._members: dict[tuple[str, Kind], Mapping[str, Member]] = {}
        self._own_members: dict[tuple[str, Kind], Mapping[str, Member]] = {}

    def find(self, name: str) -> "tuple[Class, Hierarchy] | None":
        """Find a class in the package or in its requirements; return the class with its package.

        :returns: None if the class was not found. It may be in a required package that was not
            found; see ``RequiredPackages.unseen``.
        """
        if name in self.interface.classes:
            return self.interface.classes[name], self
        manifest = self.interface.manifest
        # Most class names begin with the name of their package, so such a package is read first.
        ranges = sorted(
            manifest.requirements.items(), key=lambda each: not name.startswith(f"{each[0]}.")
        )
        for fqn, spec in ranges:
            # The engine searches an older version of the same package only if the package
            # requires this version.
            is_own = fqn == manifest.fqn and satisfies_itself(manifest.version, spec)
            hierarchy = None if is_own else self._required.hierarchy(fqn, spec)
            if hierarchy is not None and name in hierarchy.interface.classes:
                return hierarchy.interface.classes[name], hierarchy
        return None

    def package_of(self, class_name: str) -> str | None:
        """Return the name of the package that defines a class.

        If the class is not found, its package is guessed: it is the required package whose name is
        the beginning of the class name. Of several such packages, the longest name is returned; if
        there is none, None.
        """
        found = self.find(class_name)
        if found is not None:
            return found[1].interface.manifest.fqn
        names = self.interface.manifest.requirements
        return max((each for each in names if class_name.startswith(f"{each}.")), default=None)

    def lineage(self, name: str) -> Lineage:
        """Return a class of this package, with all its base classes."""
        if name not in self._lineages:
            self._lineages[name] = self._find_lineage(name)
        return self._lineages[name]

    def is_subclass(self, name: str, base: str) -> bool | None:
        """Return whether ``name`` is ``base`` itself or extends it; None if this is unknown."""
        if base in (name, ROOT_CLASS):
            return True
        found = self.find(name)
        if found is None:
            return None
        lineage = found[1].lineage(name)
        return True if base in lineage.names else False if lineage.is_complete else None

    def members(self, name: str, kind: Kind) -> Mapping[str, Member]:
        """Return the declared and inherited members of a class, by name.

        If several classes declare a name, the nearest class is taken.
        """
        if (name, kind) not in self._members:
            found: dict[str, Member] = {}
            for each, hierarchy in self.lineage(name).classes:
                declared = hierarchy._declared(each, kind)
                found |= {key: declared[key] for key in declared if key not in found}
            self._members[name, kind] = found
        return self._members[name, kind]

    def _declared(self, owner: Class, kind: Kind) -> Mapping[str, Member]:
        """Return the members that a class of this package declares."""
        if (owner.name, kind) not in self._own_members:
            self._own_members[owner.name, kind] = {
                name: Member(declared, owner, self)
                for name, declared in getattr(owner, kind).items()
            }
        return self._own_members[owner.name, kind]

    def _find_lineage(self, name: str) -> Lineage:
        queue = [(self.interface.classes[name], self)]
        names: set[str] = set()
        # Several versions of a base class count as unrelated classes.
        seen = {(name, self.interface.manifest.version)}
        is_complete = True
        for each, hierarchy in queue:
            for base in each.bases:
                names.add(base)
                found = hierarchy.find(base)
                if found is None:
                    is_complete = False
                elif (key := (base, found[1].interface.manifest.version)) not in seen:
                    seen.add(key)
                    queue.append(found)
        return Lineage(tuple(queue), frozenset(names - {name}), is_complete)
