# SPDX-License-Identifier: Apache-2.0

"""The rules for comparing two versions of a package, and the changes that the rules find.

``doc/source/reference/compatibility.rst`` shows the code and the part of each rule, and the string
that follows the rule here. The parts come from the specification "Murano versioning", section
"Murano packages versioning".
"""

import dataclasses
import enum
from typing import Self

from glare_murano.package.errors import shown


@enum.unique
class Part(enum.IntEnum):
    """A part of a version number: patch, minor or major.

    Each change requires that a part of the version is raised. Of the parts that several changes
    require, the greatest is raised.
    """

    PATCH = 0
    MINOR = 1
    MAJOR = 2

    def __str__(self) -> str:
        return self.name.lower()


@enum.unique
class Rule(enum.StrEnum):
    """A rule for comparing two versions of a package.

    The value of a member is the code of the rule. The string below a member says what was changed,
    and why it matters.

    :ivar part: the part of the version that must be raised after such a change.
    """

    part: Part

    def __new__(cls, code: str, part: Part) -> Self:
        """Make a rule from its code, and the part of the version that must be raised."""
        rule = str.__new__(cls, code)
        rule._value_ = code
        rule.part = part
        return rule

    CLASS_REMOVED = "class-removed", Part.MAJOR
    """A class was removed or renamed, perhaps because the default namespace was changed. Classes
    that extend it, contracts and object models still use the old name."""
    CLASS_USAGE = "class-usage", Part.MAJOR
    """``Usage`` of a class was changed between ``Class`` and ``Meta``. Nobody can attach objects
    of a plain class as metadata, and no plain class can extend a metadata class."""
    CLASS_ADDED = "class-added", Part.MINOR
    """A class was added."""
    BASE_REMOVED = "base-removed", Part.MAJOR
    """A class lost a base class, direct or indirect. Contracts such as ``$.class(Base)`` refuse
    its objects now."""
    EXTENDS_CHANGED = "extends-changed", Part.MINOR
    """``Extends`` was changed, and all previous base classes are still there."""
    METACLASS_NARROWED = "metaclass-narrowed", Part.MAJOR
    """A metadata class has fewer targets in ``Applies``, ``Cardinality: One`` instead of
    ``Many``, or is not inherited any more. Metadata that others attached is refused or lost."""
    METACLASS_WIDENED = "metaclass-widened", Part.MINOR
    """A metadata class has more targets, ``Cardinality: Many``, or is inherited now."""
    METADATA_CHANGED = "metadata-changed", Part.MINOR
    """The metadata of the package, a class, a property, a method or an argument was changed.
    Forms, the engine and reflection read it; no call is refused because of it."""
    INTERNAL_CHANGED = "internal-changed", Part.MINOR
    """A method or a property whose name starts with an underscore was removed, or was changed in
    a way that would need a new major version for other names. By convention, only the package
    and classes that extend it use such a name."""

    METHOD_REMOVED = "method-removed", Part.MAJOR
    """A method was removed or renamed, and no base class has it. Moving a method to a base class
    is no removal."""
    METHOD_USAGE = "method-usage", Part.MAJOR
    """``Usage`` of a method was changed so that calls fail. A static method needs an object now,
    an action of objects became static, an extension method became an ordinary one, or an
    ordinary method became an extension method."""
    METHOD_NOT_PUBLIC = "method-not-public", Part.MAJOR
    """A method has neither ``Scope: Public`` nor ``Usage: Action`` any more. It cannot be called
    through the API."""
    METHOD_ADDED = "method-added", Part.MINOR
    """A method was added."""
    METHOD_STATIC = "method-static", Part.MINOR
    """A method that is not public became static. It can still be called on objects."""
    METHOD_PUBLIC = "method-public", Part.MINOR
    """A method can be called through the API now."""

    ARGUMENT_REMOVED = "argument-removed", Part.MAJOR
    """An argument was removed."""
    ARGUMENT_RENAMED = "argument-renamed", Part.MAJOR
    """An argument was renamed. Callers that name it fail."""
    ARGUMENT_REQUIRED = "argument-required", Part.MAJOR
    """An argument must be given now: a new one, or one that could be omitted. It has neither a
    default nor a contract that accepts null. This includes arguments of ``initialize``."""
    ARGUMENT_MOVED = "argument-moved", Part.MAJOR
    """An argument has another position. Values that callers give by position arrive elsewhere."""
    ARGUMENT_USAGE = "argument-usage", Part.MAJOR
    """``Usage`` of an argument was changed between ``Standard``, ``VarArgs`` and ``KwArgs``."""
    ARGUMENT_NARROWED = "argument-narrowed", Part.MAJOR
    """The contract of an argument does not let all previous values pass unchanged any more."""
    ARGUMENT_ADDED = "argument-added", Part.MINOR
    """An argument that can be omitted was added behind all others."""
    ARGUMENT_WIDENED = "argument-widened", Part.MINOR
    """The contract of an argument accepts more values, or the argument can be omitted now."""

    PROPERTY_REMOVED = "property-removed", Part.MAJOR
    """A property was removed or renamed, and no base class has it."""
    PROPERTY_REQUIRED = "property-required", Part.MAJOR
    """A property must be given now: a new one, or one that could be omitted. It has neither a
    default nor a contract that accepts null, and its usage is ``In``, ``Out``, ``InOut`` or
    ``Const``. (The engine checks output properties of new objects as well.)"""
    PROPERTY_USAGE = "property-usage", Part.MAJOR
    """``Usage`` of a property was changed. Users cannot set it as before, or the property is not
    in the object model, on the class or in configuration files any more."""
    PROPERTY_NARROWED = "property-narrowed", Part.MAJOR
    """The contract of a property that users set (``In``, ``Const``, ``InOut``, ``Static``,
    ``Config``) does not let all previous values pass unchanged any more."""
    OUTPUT_WIDENED = "output-widened", Part.MAJOR
    """The contract of a property that methods set (``Out``, ``Runtime``, ``InOut``, ``Static``,
    ``Config``) allows more values. Code that reads the property may not expect them."""
    PROPERTY_ADDED = "property-added", Part.MINOR
    """A property that can be omitted was added."""
    PROPERTY_WIDENED = "property-widened", Part.MINOR
    """The contract of a property that users set accepts more values, or the property can be
    omitted now."""
    OUTPUT_CHANGED = "output-changed", Part.MINOR
    """The contract of a property that methods set allows fewer values, or has more keys. Code that
    reads the property is not affected. Methods of classes that extend this one may set values
    that are refused now."""
    PROPERTY_USAGE_EXTENDED = "property-usage-extended", Part.MINOR
    """``Usage`` of a property was changed. Users and code that reads the property lose nothing.
    Methods of classes that extend this one may be refused when they set it."""

    DEFAULT_REMOVED = "default-removed", Part.MAJOR
    """The default of a property or an argument was removed, or is null now. Users who omit it get
    null instead of the previous value."""
    DEFAULT_CHANGED = "default-changed", Part.MINOR
    """The default of a property or an argument was added or replaced by another one."""
    CONTRACT_INVALID = "contract-invalid", Part.MAJOR
    """A contract was changed, and the old or the new one is not valid YAQL. The engine reads an
    invalid contract as a constant string, which no other value equals."""
    CONTRACT_UNKNOWN = "contract-unknown", Part.MAJOR
    """A contract was changed in a way that cannot be judged: it has another condition in
    ``check()``, an unknown function, or a class whose base classes were not read. Compare the two
    contracts yourself."""

    REQUIREMENT_NARROWED = "requirement-narrowed", Part.MAJOR
    """The range of a required package excludes a major version that it allowed. Classes of that
    package are base classes, or stand in contracts for input. So objects of the excluded versions
    are refused."""
    REQUIREMENT_WIDENED = "requirement-widened", Part.MAJOR
    """The range of a required package allows another major version. Classes of that package are
    base classes, or stand in contracts for output. So callers get objects of a version that they
    may not accept."""
    REQUIREMENT_CHANGED = "requirement-changed", Part.MINOR
    """The range of a required package was changed in a way that other rules do not describe.
    Classes of that package are base classes, or stand in contracts."""
    FORMAT_CHANGED = "format-changed", Part.MINOR
    """``Format`` was changed. Older engines may not load the package."""
    APPLICATION_REMOVED = "application-removed", Part.MAJOR
    """``Type`` was changed from ``Application`` to ``Library``. Users cannot add the application
    to environments any more."""


@dataclasses.dataclass(frozen=True)
class Place:
    """A line of a file in one of the two compared versions.

    :param file: the path of a file in the package, with slashes.
    :param line: the line in the file, counted from 1; 0 if unknown.
    :param is_old: whether the file belongs to the older version.
    """

    file: str
    line: int
    is_old: bool = False

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        return f"{shown(self.file)}{line}{' of the old version' if self.is_old else ''}"


@dataclasses.dataclass(frozen=True)
class Change:
    """A difference between two versions of a package that users of the package may notice.

    :param rule: the kind of the change.
    :param class_name: the fully qualified name of the class; empty for the package itself.
    :param member: the name of the property or the method, or ``METHOD.ARGUMENT``; empty for the
        class itself.
    :param message: a sentence about the change; it names neither the place nor the class.
    :param place: the place in the new version; after a removal, the place in the old version.
    """

    rule: Rule
    class_name: str
    member: str
    message: str
    place: Place

    @property
    def part(self) -> Part:
        """The part of the version that must be raised."""
        return self.rule.part

    @property
    def file(self) -> str:
        """The path of the file in the package."""
        return self.place.file

    @property
    def line(self) -> int:
        """The line in the file, counted from 1; 0 if unknown."""
        return self.place.line

    def __str__(self) -> str:
        subject = f"class {shown(self.class_name)}: " if self.class_name else ""
        return f"{self.place}: {subject}{shown(self.message)} [{self.rule}]"
