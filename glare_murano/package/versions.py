# SPDX-License-Identifier: Apache-2.0

"""Versions of packages, and ranges of versions.

The grammar comes from the specification "Murano versioning", section "Package
requirements". Where the Murano 16 engine differs, the engine wins, also for
pre-releases and build metadata: the engine, the loader and Glare must select
the same version for a requirement.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Iterable

from semantic_version import SimpleSpec, Version
from semantic_version import base as semver

from glare_murano.package.errors import InvalidRange, InvalidVersion, quoted

__all__ = ["Version", "VersionSpec", "parse_version"]

_Number = tuple[float, float, float]
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


# Requirements name the same few versions again and again.
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
    _clauses: tuple[semver.Range, ...] = dataclasses.field(compare=False)
    _spec: SimpleSpec = dataclasses.field(compare=False)
    # The range of plain versions, without pre-release and build metadata:
    # _low <= version < _high, but none of _excluded.
    _low: _Number = dataclasses.field(compare=False)
    _high: _Number = dataclasses.field(compare=False)
    _excluded: frozenset[_Number] = dataclasses.field(compare=False)
    # Pre-releases and build metadata are compared only with these.
    _targets: frozenset[_Number] = dataclasses.field(compare=False)

    @classmethod
    def of(cls, text: "str | VersionSpec | None") -> "VersionSpec":
        """Parse a range; return it as it is if it is parsed already.

        :param text: a partial or full version, or clauses (``==``, ``=``,
            ``!=``, ``<``, ``<=``, ``>``, ``>=`` and the engine's ``~``, ``^``,
            ``~=``) joined by commas, or ``*``. None and the empty string mean
            ``0``, that is 0.x.
        :raises InvalidRange: if the engine would also refuse it.
        """
        if isinstance(text, VersionSpec):
            return text
        if text is not None and not isinstance(text, str):
            # A number may have lost digits: YAML and JSON read 1.10 as 1.1.
            raise InvalidRange(
                f"{quoted(repr(text))} is not a valid range: expected a string such as '1.10'"
            )
        return _parse(text or "0")

    @classmethod
    def exactly(cls, version: Version) -> "VersionSpec":
        """Return the range of exactly one version; without build metadata, any build matches."""
        return _parse(f"=={version}")

    def with_fallbacks(self) -> "tuple[VersionSpec, ...]":
        """Return the ranges to try in turn if an object's header has this range.

        One version falls back to its minor version, then to its major version
        (specification "Murano versioning", section "Object version"). Any
        other range has no fallback.
        """
        if [clause.operator for clause in self._clauses] != [semver.Range.OP_EQ]:
            return (self,)
        version = self._clauses[0].target
        return (self, _parse(f"{version.major}.{version.minor}"), _parse(f"{version.major}"))

    def match(self, version: Version) -> bool:
        """Check whether the version is in the range."""
        number = (version.major, version.minor, version.patch)
        if number in self._targets and (version.prerelease or version.build):
            return bool(self._spec.match(version))
        return self._low <= number < self._high and number not in self._excluded

    def select(self, versions: Iterable[Version]) -> Version | None:
        """Return the newest version in the range, or None.

        Of versions that differ only in build metadata, the first given wins.
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
        # The range as written is kept, so its length counts as well.
        is_too_long = len(compact) > _MAX_LENGTH or len(text) > 2 * _MAX_LENGTH
        if is_too_long or compact.count(",") >= _MAX_CLAUSES:
            raise ValueError(compact)
        parsed = SimpleSpec(compact).clause
        parts = list(parsed) if isinstance(parsed, semver.AllOf | semver.AnyOf) else [parsed]
        # The library has clauses in a set: remove duplicates, and fix the order.
        clauses = tuple({str(part): part for part in sorted(parts, key=str)}.values())
    except ValueError as error:
        raise InvalidRange(
            f"{quoted(text)} is not a valid range of versions: expected a version such as 1 or "
            f"1.2, clauses such as >=1.2,<2, or *"
        ) from error
    if not all(isinstance(clause, semver.Range) for clause in clauses):
        raise InvalidRange(
            f"{quoted(text)} is a range that the engine refuses: beside other clauses, != needs "
            f"a full version, such as !=1.5.0"
        )
    intervals = [_interval(clause) for clause in clauses]
    spec = SimpleSpec(",".join(map(str, clauses)) or "*")
    return VersionSpec(
        text=text,
        canonical=str(spec),
        _clauses=clauses,
        _spec=spec,
        _low=max((low for low, _, _ in intervals), default=_LOWEST),
        _high=min((high for _, high, _ in intervals), default=_HIGHEST),
        _excluded=frozenset(number for _, _, number in intervals if number is not None),
        _targets=frozenset((c.target.major, c.target.minor, c.target.patch) for c in clauses),
    )


def _interval(clause: semver.Range) -> tuple[_Number, _Number, _Number | None]:
    """Return the plain versions that a clause allows.

    :returns: the inclusive lower bound, the exclusive upper bound, an excluded version.
    """
    target = clause.target
    number = (target.major, target.minor, target.patch)
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
    return _LOWEST, _HIGHEST, number if is_plain else None
