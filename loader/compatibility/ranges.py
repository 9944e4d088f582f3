# SPDX-License-Identifier: Apache-2.0

"""Compare the ranges of those required packages whose classes are in the interface.

A class of a required package is in the interface if it is a base class, or if a contract uses it.
Then the range matters to users: a ``class()`` contract accepts the versions that ``Require`` allows
(specification "Murano versioning", "Object version"). A class that only bodies of methods use is
not in the interface.
"""

import enum
from collections.abc import Iterator

from glare_murano.package import Version, VersionSpec
from loader.compatibility import contracts
from loader.compatibility.changes import Change, Rule
from loader.compatibility.declarations import Declaration
from loader.compatibility.hierarchy import Hierarchy
from loader.compatibility.members import INPUTS, OUTPUTS


class _Use(enum.Enum):
    """How an interface uses the classes of a required package."""

    BASE = "as a base class"
    INPUT = "in contracts for input"
    OUTPUT = "in contracts for output"


def compare_ranges(old: Hierarchy, new: Hierarchy) -> Iterator[Change]:
    """Yield a change for each package that both versions require in different ranges.

    A package is left out if neither base classes nor contracts use its classes.
    """
    before, after = (each.interface.manifest.requirements for each in (old, new))
    own_name = new.interface.manifest.fqn
    changed = [
        fqn
        for fqn in before
        if fqn in after and fqn != own_name and before[fqn].canonical != after[fqn].canonical
    ]
    uses = set(_uses(old)) | set(_uses(new)) if changed else set()
    for fqn in changed:
        met = {use for use, package in uses if package == fqn}
        rule = _rule(before[fqn], after[fqn], met)
        if rule is not None:
            where = " and ".join(use.value for use in _Use if use in met)
            message = (
                f"the range of the required package {fqn} was changed from {before[fqn]} to "
                f"{after[fqn]}; users meet its classes {where}"
            )
            yield Change(rule, "", fqn, message, new.interface.place("Require", fqn))


def _rule(old: VersionSpec, new: VersionSpec, met: set[_Use]) -> Rule | None:
    if not met:
        return None
    edges = old.edges | new.edges
    majors = {0, *(each.major for each in edges)}
    # The greatest of these major numbers also represents all numbers that are greater.
    majors.add(max(majors) + 1)
    before, after = (
        {major for major in majors if _allows(spec, major, edges)} for spec in (old, new)
    )
    if before - after and met & {_Use.BASE, _Use.INPUT}:
        return Rule.REQUIREMENT_NARROWED
    if after - before and met & {_Use.BASE, _Use.OUTPUT}:
        return Rule.REQUIREMENT_WIDENED
    return Rule.REQUIREMENT_CHANGED


def _allows(spec: VersionSpec, major: int, edges: frozenset[Version]) -> bool:
    first = Version(f"{major}.0.0")
    return any(spec.match(each) for each in (first, *edges) if each.major == major)


def _uses(hierarchy: Hierarchy) -> Iterator[tuple[_Use, str | None]]:
    for each in hierarchy.interface.classes.values():
        for base in each.bases:
            yield _Use.BASE, hierarchy.package_of(base)
        arguments = [a for method in each.methods.values() for a in method.arguments]
        for declaration in (*each.properties.values(), *each.initializer.values(), *arguments):
            for name in contracts.type_names(declaration.read_contract()):
                for use in _directions(declaration):
                    yield use, hierarchy.package_of(name)


def _directions(declaration: Declaration) -> Iterator[_Use]:
    if declaration.usage in OUTPUTS:
        yield _Use.OUTPUT
    if declaration.usage in INPUTS or declaration.usage not in OUTPUTS:
        yield _Use.INPUT
