# SPDX-License-Identifier: Apache-2.0

"""Versions of packages, and the ranges that requirements are written in.

A range here means what the Murano 16 engine takes it to mean, pre-releases
and build metadata included: the engine, the loader and Glare must never
disagree on which version a requirement selects. The grammar is that of the
specification "Murano versioning", section "Package requirements"; where the
engine departs from it, the engine wins. Nothing here knows where versions
come from.
"""

import functools
import math
import re
from collections.abc import Iterable

from semantic_version import SimpleSpec, Version
from semantic_version import base as semver

from glare_murano.package import errors
from glare_murano.package.errors import quoted

__all__ = ["Version", "VersionSpec", "parse_version"]

_Number = tuple[float, float, float]
_LOWEST: _Number = (0, 0, 0)
_HIGHEST: _Number = (math.inf, 0, 0)

# Nobody needs more, and the library takes long over very long ones.
_MAX_LENGTH = 1024
_MAX_CLAUSES = 32

_PARTIAL_VERSION = re.compile(r"[0-9]+(\.[0-9]+)?\Z")
_WHITESPACE = re.compile(r"\s+")


def parse_version(text: str | None) -> Version:
    """Read the ``Version`` of a manifest.

    :param text: ``Major.Minor.Patch[-prerelease][+build]``; ``1`` and ``1.2``
        are completed with zeros, None and the empty text mean ``0.0.0``
        (specification "Murano versioning", section "Murano packages
        versioning").
    :raises InvalidVersion: if it is anything else.
    """
    complete = (text or "").strip() or "0.0.0"
    if _PARTIAL_VERSION.match(complete):
        complete += ".0" * (2 - complete.count("."))
    try:
        if len(complete) > _MAX_LENGTH or not complete.isascii():
            raise ValueError(complete)
        return _version(complete)
    except ValueError as error:
        raise errors.InvalidVersion(
            f"{quoted(text)} is no version: expected SemVer, such as 1.2.3, 1.2.3-rc.1 or 1.2"
        ) from error


# The same few versions are named by all that require them.
@functools.lru_cache(maxsize=4096)
def _version(text: str) -> Version:
    return Version(text)


class VersionSpec:
    """A range of versions, as in ``Require``, ``classVersion`` or a query.

    Immutable and hashable; equal if it selects by the same clauses.

    :ivar canonical: the clauses, full versions throughout, in one fixed order.
    """

    canonical: str
    text: str
    _clauses: tuple[semver.Range, ...]
    _excluded: "frozenset[_Number]"
    _high: "_Number"
    _low: "_Number"
    _spec: SimpleSpec
    _targets: "frozenset[_Number]"

    __slots__ = ("_clauses", "_excluded", "_high", "_low", "_spec", "_targets", "canonical", "text")

    def __init__(self, text: str, clauses: tuple[semver.Range, ...]) -> None:
        intervals = [_interval(clause) for clause in clauses]
        spec = SimpleSpec(",".join(str(c) for c in clauses) or "*")
        values = {
            "text": text,
            "canonical": str(spec),
            "_clauses": clauses,
            "_spec": spec,
            "_low": max((low for low, _, _ in intervals), default=_LOWEST),
            "_high": min((high for _, high, _ in intervals), default=_HIGHEST),
            # Only there do pre-releases and build metadata make a difference.
            "_targets": frozenset(
                (c.target.major, c.target.minor, c.target.patch) for c in clauses
            ),
            "_excluded": frozenset(number for _, _, number in intervals if number is not None),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a range cannot change: {name}")

    @classmethod
    def of(cls, text: str | None) -> "VersionSpec":
        """Read a range.

        :param text: nothing, or a partial or full version, or clauses
            (``==``, ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` and the
            engine's ``~``, ``^``, ``~=``) joined by commas, or ``*``.
            Nothing means ``0``, that is 0.x.
        :raises InvalidRange: if the engine would not take it either.
        """
        return _parse(text or "0")

    @classmethod
    def exactly(cls, version: Version) -> "VersionSpec":
        """The range of one version; without build metadata, whatever metadata it has."""
        return _parse(f"=={version}")

    def with_fallbacks(self) -> "tuple[VersionSpec, ...]":
        """The ranges to try in turn where an object's header asks for this one.

        For one version: that version, else its minor version, else its major
        version (specification "Murano versioning", section "Object version").
        For any other range: the range alone.
        """
        if [clause.operator for clause in self._clauses] != [semver.Range.OP_EQ]:
            return (self,)
        version = self._clauses[0].target
        return (
            self,
            _parse(f"{version.major}.{version.minor}"),
            _parse(f"{version.major}"),
        )

    def match(self, version: Version) -> bool:
        """Tell whether the version is in the range."""
        number = (version.major, version.minor, version.patch)
        if number in self._targets and (version.prerelease or version.build):
            return bool(self._spec.match(version))
        return self._low <= number < self._high and number not in self._excluded

    def select(self, versions: Iterable[Version]) -> Version | None:
        """The newest of the versions that are in the range, or None.

        Of versions that differ in build metadata alone, the first given.
        """
        return max(filter(self.match, versions), default=None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionSpec) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"VersionSpec({self.text!r})"


def _interval(clause: semver.Range) -> "tuple[_Number, _Number, _Number | None]":
    """What a clause says of plain versions, without pre-release and build metadata.

    :returns: the lowest number that it holds, the lowest beyond, and one that
        it leaves out in between.
    """
    target = clause.target
    number = (target.major, target.minor, target.patch)
    after = (target.major, target.minor, target.patch + 1)
    # A pre-release comes right before the number that it is of.
    passed = number if target.prerelease else after
    match clause.operator:
        case ">":
            return passed, _HIGHEST, None
        case ">=":
            return number, _HIGHEST, None
        case "<":
            return _LOWEST, number, None
        case "<=":
            return _LOWEST, passed, None
        case "==":
            plain = not target.prerelease and not target.build
            return number, after if plain else number, None
    plain = not target.prerelease and not target.build
    return _LOWEST, _HIGHEST, number if plain else None


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> VersionSpec:
    compact = _WHITESPACE.sub("", text)
    # The engine reads a bare "1" as "==1".
    if compact[:1].isdigit():
        compact = f"=={compact}"
    try:
        # The text as written is kept as well.
        is_too_long = len(compact) > _MAX_LENGTH or len(text) > 2 * _MAX_LENGTH
        if is_too_long or compact.count(",") >= _MAX_CLAUSES:
            raise ValueError(compact)
        parsed = SimpleSpec(compact).clause
        clauses = list(parsed) if isinstance(parsed, semver.AllOf | semver.AnyOf) else [parsed]
        # One of a kind, in a fixed order, since the library keeps them in a set.
        ordered = {str(clause): clause for clause in sorted(clauses, key=str)}
    except ValueError as error:
        raise errors.InvalidRange(
            f"{quoted(text)} is no range of versions: expected a version such as 1 or 1.2, "
            f"clauses such as >=1.2,<2, or *"
        ) from error
    if not all(isinstance(clause, semver.Range) for clause in clauses):
        raise errors.InvalidRange(
            f"{quoted(text)} is a range that the engine cannot hold: != takes a full version "
            f"beside other clauses, such as !=1.5.0"
        )
    return VersionSpec(text, tuple(ordered.values()))
