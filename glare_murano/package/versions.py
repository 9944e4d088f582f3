# SPDX-License-Identifier: Apache-2.0

"""Versions of packages, and ranges of versions.

The grammar comes from the specification "Murano versioning", section "Package
requirements". Where the engine of Murano 16 differs, this module follows the engine,
also for pre-releases and build metadata: the engine, the loader and Glare must select
the same version for a requirement. There is one exception: the engine refuses a partial
version after ``!=``, which the specification allows. So ``loader.engine.patches`` lets
the engine read ranges with this module.
"""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from semantic_version import SimpleSpec, Version
from semantic_version import base as semver

from glare_murano.package.errors import InvalidRange, InvalidVersion, quoted

__all__ = ["Version", "VersionSpec", "parse_version"]

_Number = tuple[float, float, float]
# A comparison, or "older than 1.5.0 or not older than 1.6.0" for !=1.5.
_Clause: TypeAlias = semver.Range | semver.AnyOf
_LOWEST: _Number = (0, 0, 0)
_HIGHEST: _Number = (math.inf, 0, 0)

# semantic_version is slow for very long strings.
_MAX_LENGTH = 1024
_MAX_CLAUSES = 32

_PARTIAL_VERSION = re.compile(r"[0-9]+(\.[0-9]+)?\Z")
_WHITESPACE = re.compile(r"\s+")


def parse_version(text: str | None) -> Version:
    """Parse the ``Version`` of a manifest.

    :param text: ``Major.Minor.Patch[-prerelease][+build]``; ``1`` and ``1.2``
        are completed with zeros, None and the empty string mean ``0.0.0``
        (specification "Murano versioning", section "Murano packages
        versioning").
    :raises InvalidVersion: if the string is not valid.
    """
    complete = (text or "").strip() or "0.0.0"
    if _PARTIAL_VERSION.match(complete):
        complete += ".0" * (2 - complete.count("."))
    try:
        if len(complete) > _MAX_LENGTH or not complete.isascii():
            raise ValueError(complete)
        return _version(complete)
    except ValueError as error:
        raise InvalidVersion(
            f"{quoted(text)} is not a valid version: expected SemVer, such as 1.2.3, 1.2.3-rc.1 "
            f"or 1.2"
        ) from error


# A cache, since requirements name the same few versions again and again.
_version = functools.lru_cache(maxsize=4096)(Version)


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class VersionSpec:
    """A range of versions, as in ``Require``, ``classVersion`` or a query.

    Immutable and hashable. Ranges with the same clauses are equal.

    >>> spec = VersionSpec.of(">=1.2,<2")
    >>> spec.match(Version("1.10.0"))
    True

    :ivar text: the range as written.
    :ivar canonical: the clauses with full versions, in a fixed order.
    """

    text: str = dataclasses.field(compare=False)
    canonical: str
    _clauses: tuple[_Clause, ...] = dataclasses.field(compare=False)
    _spec: SimpleSpec = dataclasses.field(compare=False)
    # The range of plain versions, without pre-release and build metadata:
    # _low <= version < _high, and the version is in no interval of _excluded.
    _low: _Number = dataclasses.field(compare=False)
    _high: _Number = dataclasses.field(compare=False)
    _excluded: tuple[tuple[_Number, _Number], ...] = dataclasses.field(compare=False)
    # Pre-releases and build metadata are compared only with these versions.
    _targets: frozenset[_Number] = dataclasses.field(compare=False)

    @classmethod
    def of(cls, text: "str | VersionSpec | None") -> "VersionSpec":
        """Parse a range; return an already parsed range unchanged.

        :param text: a partial or full version, or clauses (``==``, ``=``,
            ``!=``, ``<``, ``<=``, ``>``, ``>=`` and the engine's ``~``, ``^``,
            ``~=``) joined by commas, or ``*``. None and the empty string mean
            ``0``, the range 0.x.
        :raises InvalidRange: if the string is not valid.
        """
        if isinstance(text, VersionSpec):
            return text
        if text is not None and not isinstance(text, str):
            raise InvalidRange(
                f"the {type(text).__name__} {quoted(repr(text))} is not a valid range: write it "
                f"as a string, since 1.10 without quotes is the number 1.1"
            )
        return _parse(text or "0")

    @classmethod
    def exactly(cls, version: Version) -> "VersionSpec":
        """Return the range with this version alone; without build metadata, any build matches."""
        return _parse(f"=={version}")

    def with_fallbacks(self) -> "tuple[VersionSpec, ...]":
        """Return this range, and the ranges to try after it for the header of an object.

        If the range is a single version, its minor version and then its major version follow
        (specification "Murano versioning", section "Object version"). Any other range has no
        fallback.
        """
        if len(self._clauses) > 1 or not self.canonical.startswith("=="):
            return (self,)
        (version,) = _targets(self._clauses[0])
        return (self, _parse(f"{version.major}.{version.minor}"), _parse(f"{version.major}"))

    def is_exactly(self, version: Version) -> bool:
        """Check whether the range names exactly this version."""
        return self.canonical == f"=={version}"

    def match(self, version: Version) -> bool:
        """Check whether the version is in the range."""
        number = (version.major, version.minor, version.patch)
        if number in self._targets and (version.prerelease or version.build):
            return bool(self._spec.match(version))
        return self._low <= number < self._high and not (
            self._excluded and any(low <= number < high for low, high in self._excluded)
        )

    @property
    def edges(self) -> frozenset[Version]:
        """Return the edges: plain versions at which the range, or a gap in it, begins or ends.

        Between two neighbouring edges, either all plain versions are in the range or none is.
        """
        numbers = {self._low, self._high, *itertools.chain(*self._excluded)} - {_HIGHEST}
        return frozenset(Version("{:.0f}.{:.0f}.{:.0f}".format(*number)) for number in numbers)

    def select(self, versions: Iterable[Version]) -> Version | None:
        """Return the newest version in the range, or None.

        If versions differ only in their build metadata, the first of them wins.
        """
        return max(filter(self.match, versions), default=None)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"VersionSpec({self.text!r})"


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> VersionSpec:
    compact = _WHITESPACE.sub("", text)
    # The engine reads a bare "1" as "==1".
    if compact[:1].isdigit():
        compact = f"=={compact}"
    try:
        # The range is also kept as written, so that length is limited as well.
        is_too_long = len(compact) > _MAX_LENGTH or len(text) > 2 * _MAX_LENGTH
        if is_too_long or compact.count(",") >= _MAX_CLAUSES:
            raise ValueError(compact)
        # The clauses are kept without duplicates, in a fixed order.
        found = dict(itertools.chain(*map(_parse_clauses, compact.split(","))))
        clauses = {clause: found[clause] for clause in sorted(found)}
    except ValueError as error:
        raise InvalidRange(
            f"{quoted(text)} is not a valid range of versions: expected a version such as 1 or "
            f"1.2, clauses such as >=1.2,<2, or *"
        ) from error
    canonical = ",".join(clauses)
    lows, highs, excluded = zip(*map(_interval, clauses.values()), strict=True)
    targets = {target for clause in clauses.values() for target in _targets(clause)}
    return VersionSpec(
        text=text,
        canonical=canonical,
        _clauses=tuple(clauses.values()),
        _spec=SimpleSpec(canonical),
        _low=max(lows),
        _high=min(highs),
        _excluded=tuple(interval for interval in excluded if interval is not None),
        _targets=frozenset(map(_number, targets)),
    )


def _parse_clauses(text: str) -> Iterator[tuple[str, _Clause]]:
    """Parse the part of a range between two commas; yield the full form and the clause."""
    parsed = SimpleSpec(text).clause
    for clause in parsed if isinstance(parsed, semver.AllOf) else [parsed]:
        if isinstance(clause, semver.AnyOf):
            low, high = _targets(clause)
            yield f"!={low.major}" + (f".{low.minor}" if low.major == high.major else ""), clause
        else:
            yield str(clause), clause


def _targets(clause: _Clause) -> list[Version]:
    return sorted(c.target for c in clause) if isinstance(clause, semver.AnyOf) else [clause.target]


def _number(version: Version) -> _Number:
    return version.major, version.minor, version.patch


def _interval(clause: _Clause) -> tuple[_Number, _Number, tuple[_Number, _Number] | None]:
    """Return the interval of versions without pre-release or build that a clause allows.

    :returns: the lower bound, the upper bound, and the interval that is excluded between them, or
        None. Lower bounds are inclusive, and upper bounds exclusive.
    """
    if isinstance(clause, semver.AnyOf):
        low, high = _targets(clause)
        return _LOWEST, _HIGHEST, (_number(low), _number(high))
    target = clause.target
    number = _number(target)
    after = (target.major, target.minor, target.patch + 1)
    is_plain = not target.prerelease and not target.build
    # A pre-release directly precedes its plain version.
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
            return number, after if is_plain else number, None
    return _LOWEST, _HIGHEST, (number, after) if is_plain else None
