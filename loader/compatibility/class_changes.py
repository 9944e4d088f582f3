# SPDX-License-Identifier: Apache-2.0

"""Compare the classes of a package: find changed classes, base classes and members.

The members that a class inherits are compared like those that it declares. If a base class in the
same package has changed, the change is reported only for this base class.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from loader.compatibility import members
from loader.compatibility.changes import Change, Part, Rule
from loader.compatibility.declarations import Class, Declaration, Method
from loader.compatibility.hierarchy import Hierarchy, Kind, Member
from loader.compatibility.members import MemberChange

# Users give values to properties with these usages in the same way as to arguments of
# ``initialize``.
_INPUTS = ("In", "InOut", "Const")


def compare_classes(old: Hierarchy, new: Hierarchy) -> Iterator[Change]:
    """Yield the changes of all classes in a package, including added and removed classes."""
    before, after = old.interface.classes, new.interface.classes
    for name, each in before.items():
        if name in after:
            yield from _ClassPair(each, after[name], old, new).changes()
        else:
            yield Change(Rule.CLASS_REMOVED, name, "", "the class was removed", each.place)
    for name, each in after.items():
        if name not in before:
            yield Change(Rule.CLASS_ADDED, name, "", "the class was added", each.place)


class _ClassPair:
    """A class that both versions of the package have."""

    def __init__(self, old: Class, new: Class, before: Hierarchy, after: Hierarchy) -> None:
        self._old = old
        self._new = new
        self._before = before
        self._after = after
        self._old_lineage = before.lineage(old.name)
        self._new_lineage = after.lineage(new.name)
        own = before.interface.classes.keys() & after.interface.classes.keys()
        # The base classes that are in the same package, in both versions.
        self._own_bases = own & self._old_lineage.names & self._new_lineage.names

    def changes(self) -> Iterator[Change]:
        """Yield all changes of the class."""
        findings = (
            *self._of_class(),
            *self._of_bases(),
            *self._of_members("properties", self._compare_properties),
            *self._of_members("methods", self._compare_methods),
            *self._of_members("initializer", self._compare_arguments),
        )
        for rule, member, message, place in findings:
            yield Change(rule, self._new.name, member, message, place)

    def _of_class(self) -> Iterator[MemberChange]:
        old, new, place = self._old, self._new, self._new.place
        if old.usage != new.usage:
            message = f"the class has Usage {new.usage} instead of {old.usage}"
            yield MemberChange(Rule.CLASS_USAGE, "", message, place)
        elif new.usage == "Meta":
            lost, gained = _metaclass_differences(old, new), _metaclass_differences(new, old)
            if lost:
                message = f"the metadata class lost {', '.join(lost)}"
                yield MemberChange(Rule.METACLASS_NARROWED, "", message, place)
            if gained:
                message = f"the metadata class has {', '.join(gained)} now"
                yield MemberChange(Rule.METACLASS_WIDENED, "", message, place)
        if old.metadata != new.metadata:
            message = "the metadata of the class was changed"
            yield MemberChange(Rule.METADATA_CHANGED, "", message, place)

    def _of_bases(self) -> Iterator[MemberChange]:
        lost = self._old_lineage.names - self._new_lineage.names
        for name in sorted(lost):
            is_certain = name in self._old.bases or self._new_lineage.is_complete
            # If a base class in this package has the same change, the change is reported there.
            above = any(name in self._before.lineage(base).names for base in self._own_bases)
            if is_certain and not above:
                message = f"{name} is not a base class any more"
                yield MemberChange(Rule.BASE_REMOVED, "", message, self._new.place)
        if self._old.bases != self._new.bases and not lost:
            now, then = (", ".join(each.bases) or "empty" for each in (self._new, self._old))
            message = f"Extends is {now} instead of {then}"
            yield MemberChange(Rule.EXTENDS_CHANGED, "", message, self._new.place)

    def _of_members(
        self,
        kind: Kind,
        compare: Callable[[Any, Any], Iterator[MemberChange]],
    ) -> Iterator[MemberChange]:
        before, after = self._visible(kind, self._new.name)
        for name in {**before, **after}:
            old, new = before.get(name), after.get(name)
            if not self._is_reported_elsewhere(kind, name, old, new):
                found = compare(old and old.declared, new and new.declared)
                yield from _public(name, self._inherited(found, old, new))

    def _visible(
        self, kind: Kind, class_name: str
    ) -> tuple[Mapping[str, Member], Mapping[str, Member]]:
        before = self._before.members(class_name, kind)
        after = self._after.members(class_name, kind)
        if kind != "initializer" or not (before or after):
            return before, after
        return (
            {**self._inputs(self._before, class_name, after), **before},
            {**self._inputs(self._after, class_name, before), **after},
        )

    @staticmethod
    def _inputs(
        hierarchy: Hierarchy, class_name: str, arguments: Mapping[str, Member]
    ) -> Mapping[str, Member]:
        """Return the properties of one version that are arguments of ``initialize`` in the other.

        Such a property has the name of the argument. It is compared like an argument, since users
        give both values in the same way. Properties that users cannot give are left out.

        :param hierarchy: the classes of the version whose properties are searched.
        :param arguments: the arguments of ``initialize`` in the other version.
        """
        return {
            name: dataclasses.replace(
                member, declared=dataclasses.replace(member.declared, usage="Standard")
            )
            for name, member in hierarchy.members(class_name, "properties").items()
            if name in arguments and member.declared.usage in _INPUTS
        }

    def _is_reported_elsewhere(
        self, kind: Kind, name: str, old: Member | None, new: Member | None
    ) -> bool:
        if (old and old.owner is self._old) or (new and new.owner is self._new):
            return False
        if old is not None and new is None and old.owner.name not in self._new_lineage.names:
            return True  # the removed base class is reported
        if old and new and old.owner.name == new.owner.name and old.owner.name in self._own_bases:
            return True
        for base in self._own_bases:
            before, after = self._visible(kind, base)
            if _is_same(before.get(name), old) and _is_same(after.get(name), new):
                return True
        return False

    def _inherited(
        self, findings: Iterable[MemberChange], old: Member | None, new: Member | None
    ) -> Iterator[MemberChange]:
        """Yield changes of a member; for an inherited one, add the declaring class to messages.

        For a new inherited member, only changes that need a new major version are yielded.

        :param findings: all changes of the member.
        :param old: the member in the old version; None if it is new.
        :param new: the member in the new version; None if it was removed.
        """
        member = new or old
        if member is None or member.owner.name == self._new.name:
            yield from findings
            return
        for finding in findings:
            if old is None and finding.rule.part is not Part.MAJOR:
                continue  # the new base class is reported
            message = f"{finding.message}; inherited from {member.owner.name}"
            place = finding.place
            if member.hierarchy not in (self._before, self._after):
                manifest = member.hierarchy.interface.manifest
                message += f" of {manifest.fqn} {manifest.version}"
                place = self._new.place
            yield finding._replace(message=message, place=place)

    def _compare_properties(
        self, before: Declaration | None, after: Declaration | None
    ) -> Iterator[MemberChange]:
        # If an argument of initialize has the name of a property, the argument takes the value that
        # users give for the property.
        arguments = self._after.members(self._new.name, "initializer")
        if before and after:
            yield from members.compare_properties(before, after, self._after.is_subclass)
        elif before:
            yield _change(Rule.PROPERTY_REMOVED, before, f"property {before.name} was removed")
        elif after and after.name not in arguments and members.must_be_given(after):
            message = f"property {after.name} was added and must be given"
            yield _change(Rule.PROPERTY_REQUIRED, after, message)
        elif after:
            yield _change(Rule.PROPERTY_ADDED, after, f"property {after.name} was added")

    def _compare_methods(
        self, before: Method | None, after: Method | None
    ) -> Iterator[MemberChange]:
        if before and after:
            yield from members.compare_methods(before, after, self._after.is_subclass)
        elif before:
            yield _change(Rule.METHOD_REMOVED, before, f"method {before.name} was removed")
        elif after:
            yield _change(Rule.METHOD_ADDED, after, f"method {after.name} was added")

    def _compare_arguments(
        self, before: Declaration | None, after: Declaration | None
    ) -> Iterator[MemberChange]:
        if before and after:
            yield from members.compare_argument(
                before, after, "initialize", self._after.is_subclass
            )
        elif before:
            yield members.removed_argument(before, "initialize")
        elif after:
            yield members.added_argument(after, "initialize")


def _change(rule: Rule, member: Declaration | Method, message: str) -> MemberChange:
    return MemberChange(rule, member.name, message, member.place)


def _metaclass_differences(one: Class, other: Class) -> list[str]:
    """Return, as phrases, what the metadata class ``one`` allows, but ``other`` does not."""
    found = [f"the target {each}" for each in sorted(one.targets - other.targets)]
    if one.has_many and not other.has_many:
        found.append("Cardinality Many")
    if one.is_inherited and not other.is_inherited:
        found.append("Inherited")
    return found


def _is_same(one: Member | None, other: Member | None) -> bool:
    return one is other if one is None or other is None else one.owner is other.owner


def _public(name: str, findings: Iterable[MemberChange]) -> Iterator[MemberChange]:
    """Yield those changes of a member that users of the package may notice.

    If the name of the member begins with an underscore, only the package itself and subclasses use
    the member. Then major changes become minor changes, and other changes are left out.

    :param name: the name of the member.
    :param findings: all changes of the member.
    """
    for finding in findings:
        if not name.startswith("_"):
            yield finding
        elif finding.rule.part is Part.MAJOR:
            yield finding._replace(rule=Rule.INTERNAL_CHANGED)
