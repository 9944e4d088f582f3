# SPDX-License-Identifier: Apache-2.0

"""Parse versions of packages and ranges of versions, and compare them.

The grammar comes from the specification "Murano versioning", section "Package requirements". The
engine, the loader and Glare must select the same version for a requirement. So if the engine of
Murano 16 differs from the specification, this module follows the engine, also for pre-releases and
build metadata. There is one exception: the specification allows a partial version after ``!=``, but
the engine refuses it. Here, this module follows the specification. So ``loader.engine.patches``
makes the engine read ranges with this module.
"""

import bisect
import collections
import dataclasses
import functools
import itertools
import operator
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from semantic_version import SimpleSpec, Version
from semantic_version import base as semver

from glare_murano.package.errors import InvalidRange, InvalidVersion, quoted

__all__ = ["SortedVersions", "Version", "VersionSpec", "parse_version", "places", "sort_key"]

# A key that sorts versions by precedence: three numbers, and the encoded pre-release. Python
# compares such keys faster than versions, since semantic_version calls a method for each
# identifier.
_Key = tuple[int, int, int, bytes]
# A comparison, such as >=1.2.0. A clause such as !=1.5 is an AnyOf: older than 1.5.0, or not older
# than 1.6.0.
_Clause: TypeAlias = semver.Range | semver.AnyOf
# The end of a key without a pre-release. It is greater than every encoded pre-release.
_NO_PRERELEASE = b"\xff"
_LOWEST: _Key = (0, 0, 0, b"")

# semantic_version is slow for very long strings.
_MAX_LENGTH = 1024
_MAX_CLAUSES = 32

_PARTIAL_VERSION = re.compile(r"[0-9]+(\.[0-9]+)?\Z")
_WHITESPACE = re.compile(r"\s+")


def parse_version(text: str | None) -> Version:
    """Parse the ``Version`` of a manifest.

    :param text: a version in the form ``Major.Minor.Patch[-prerelease][+build]``. ``1`` and ``1.2``
        are completed with zeros. None and the empty string mean ``0.0.0`` (specification "Murano
        versioning", section "Murano packages versioning").
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


# Versions are cached, since requirements name the same few versions again and again.
_version = functools.lru_cache(maxsize=4096)(Version)


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class VersionSpec:
    """A range of versions, as in ``Require``, ``classVersion`` or a query.

    A range is immutable and hashable. Ranges with the same clauses are equal.

    >>> spec = VersionSpec.of(">=1.2,<2")
    >>> spec.match(Version("1.10.0"))
    True

    :ivar text: the range as written, with single blanks as white space.
    :ivar canonical: the clauses of the range with full versions, in a fixed order.
    """

    text: str = dataclasses.field(compare=False)
    canonical: str
    # The version, if the range is a single clause ``==``; otherwise None.
    _exact: Version | None = dataclasses.field(compare=False)
    # The keys at which the range begins and ends, alternately, in ascending order.
    _edges: tuple[_Key, ...] = dataclasses.field(compare=False)
    # The versions with build metadata in clauses ``==``, and those in clauses ``!=``. A version in
    # the range must equal all required versions, and must not equal an excluded version.
    _required: frozenset[Version] = dataclasses.field(compare=False)
    _excluded: frozenset[Version] = dataclasses.field(compare=False)

    @classmethod
    def of(cls, text: "str | VersionSpec | None") -> "VersionSpec":
        """Parse a range. A ``VersionSpec`` is returned as it is.

        :param text: a partial or full version, or ``*``, or clauses joined by commas. A clause
            begins with ``==``, ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, or, as in the engine,
            ``~``, ``^`` or ``~=``. None and the empty string mean ``0``, the range 0.x.
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
        """Return the range that names exactly the given version, such as ``==1.2.0``.

        If the given version has no build metadata, the range also contains all versions that differ
        from it only in build metadata.
        """
        return _parse(f"=={version}")

    def with_fallbacks(self) -> "tuple[VersionSpec, ...]":
        """Return the ranges to try, in this order, for the version in an object header.

        The first range is this range. If this range names exactly one version, such as 1.2.3, the
        next ranges are the minor version 1.2 and the major version 1 (specification "Murano
        versioning", section "Object version"). Any other range has no fallback.
        """
        if self._exact is None:
            return (self,)
        major, minor = self._exact.major, self._exact.minor
        return (self, _parse(f"{major}.{minor}"), _parse(f"{major}"))

    @property
    def exact(self) -> Version | None:
        """The version, if the range names exactly one version, such as ``==1.2.0``.

        None for any other range, even if only one version is in it, as in ``>=1.2.0,<=1.2.0``.
        """
        return self._exact

    def is_exactly(self, version: Version) -> bool:
        """Return whether the range names exactly the given version."""
        return self._exact is not None and bool(self._exact == version)

    def match(self, version: Version) -> bool:
        """Return whether a version is in the range."""
        is_between = bisect.bisect_right(self._edges, _key(version)) % 2 == 1
        if not is_between or not (self._required or self._excluded):
            return is_between
        return self._required <= {version} and version not in self._excluded

    @property
    def edges(self) -> frozenset[Version]:
        """The edges of the range: the versions at which the range, or a gap in it, begins or ends.

        An edge is never a pre-release. Of all versions between two neighbouring edges, the range
        contains all or none. This does not apply to pre-releases.
        """
        return frozenset(
            Version(major=major, minor=minor, patch=patch + (prerelease > _NO_PRERELEASE))
            for major, minor, patch, prerelease in self._edges
        )

    def select(self, versions: Iterable[Version]) -> Version | None:
        """Return the newest of the given versions in the range; None if no version is in it.

        Several versions may be equally new, and differ only in build metadata. Of these, the
        version that the range names exactly is returned. If the range names none of them, the first
        is returned.
        """
        found = filter(self.match, versions)
        if self._exact is None:
            # Most ranges name no version, and this order takes less time.
            return max(found, key=_key, default=None)
        return max(found, key=lambda each: (_key(each), self.is_exactly(each)), default=None)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"VersionSpec({self.text!r})"


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> VersionSpec:
    compact = _WHITESPACE.sub("", text)
    # The engine reads "1" without an operator as "==1".
    if compact[:1].isdigit():
        compact = f"=={compact}"
    try:
        # The range is also stored as written, so this length is limited as well.
        is_too_long = len(compact) > _MAX_LENGTH or len(text) > 2 * _MAX_LENGTH
        if is_too_long or compact.count(",") >= _MAX_CLAUSES:
            raise ValueError(compact)
        # The clauses are sorted, without duplicates, so that equal ranges have the same clauses.
        found = dict(itertools.chain(*map(_parse_clauses, compact.split(","))))
        clauses = {clause: found[clause] for clause in sorted(found)}
    except ValueError as error:
        raise InvalidRange(
            f"{quoted(text)} is not a valid range of versions: expected a version such as 1 or "
            f"1.2, clauses such as >=1.2,<2, or *"
        ) from error
    equal, unequal = (
        [c.target for c in clauses.values() if isinstance(c, semver.Range) and c.operator == kind]
        for kind in ("==", "!=")
    )
    return VersionSpec(
        # Line breaks could forge lines of a log.
        text=_WHITESPACE.sub(" ", text),
        canonical=",".join(clauses),
        _exact=equal[0] if equal and len(clauses) == 1 else None,
        _edges=_common_edges(list(map(_edges_of, clauses.values()))),
        _required=frozenset(target for target in equal if target.build),
        _excluded=frozenset(target for target in unequal if target.build),
    )


def _parse_clauses(text: str) -> Iterator[tuple[str, _Clause]]:
    """Parse the part of a range between two commas.

    The part may stand for several clauses, as ``==1.2`` stands for ``>=1.2.0`` and ``<1.3.0``.

    :returns: for each clause, its text with full versions, and the parsed clause.
    """
    parsed = SimpleSpec(text).clause
    for clause in parsed if isinstance(parsed, semver.AllOf) else [parsed]:
        if isinstance(clause, semver.AnyOf):
            low, high = _targets(clause)
            yield f"!={low.major}" + (f".{low.minor}" if low.major == high.major else ""), clause
        else:
            yield str(clause), clause


def _targets(clause: _Clause) -> list[Version]:
    return sorted(c.target for c in clause) if isinstance(clause, semver.AnyOf) else [clause.target]


def _edges_of(clause: _Clause) -> Sequence[_Key]:
    """Return the sort keys at which the range of a clause begins and ends.

    The first key is a beginning, the next key is an end, and so on. A range without an upper limit
    has no last end. Build metadata is ignored.
    """
    if isinstance(clause, semver.AnyOf):
        low, high = _targets(clause)
        return _LOWEST, _first(low), _key(high)
    key = _key(clause.target)
    following = (*key[:3], key[3] + b"\0")
    match clause.operator:
        case ">":
            return (following,)
        case ">=":
            return (key,)
        case "<":
            return _LOWEST, _first(clause.target)
        case "<=":
            return _LOWEST, following
        case "==":
            return key, following
    return (_LOWEST,) if clause.target.build else (_LOWEST, _first(clause.target), following)


def _common_edges(all_edges: Collection[Sequence[_Key]]) -> tuple[_Key, ...]:
    """Return the sort keys at which the common range of several clauses begins and ends.

    The common range contains the versions that satisfy all clauses. The first key is a beginning,
    the next key is an end, and so on.

    :param all_edges: the keys of each clause, from ``_edges_of``.
    """
    # Key -> the number of clauses that begin there, minus the number of clauses that end there.
    changes: dict[_Key, int] = collections.defaultdict(int)
    for edges in all_edges:
        for edge, change in zip(edges, itertools.cycle((1, -1)), strict=False):
            changes[edge] += change
    common, count = [], 0
    for edge in sorted(changes):
        was_inside = count == len(all_edges)
        count += changes[edge]
        if was_inside != (count == len(all_edges)):
            common.append(edge)
    return tuple(common)


def _first(version: Version) -> _Key:
    """Return the lowest sort key of a version and its pre-releases.

    The pre-releases of ``1.2.0`` come before ``1.2.0``. If the version is a pre-release itself, its
    own key is returned.
    """
    key = _key(version)
    return key if version.prerelease else (*key[:3], b"")


def _key(version: Version) -> _Key:
    prerelease = version.prerelease
    encoded = _encode(prerelease) if prerelease else _NO_PRERELEASE
    return version.major, version.minor, version.patch, encoded


# Results are cached, since the same pre-releases are compared again and again.
@functools.lru_cache(maxsize=4096)
def _encode(identifiers: tuple[str, ...]) -> bytes:
    """Encode identifiers of a pre-release or build metadata, so that the bytes sort as in SemVer.

    Numbers precede other identifiers. A list of identifiers precedes all longer lists that begin
    with the same identifiers.
    """
    encoded = b""
    for identifier in identifiers:
        if identifier.isdigit():
            digits = identifier.lstrip("0").encode()
            encoded += b"\1" + len(digits).to_bytes(2) + digits
        else:
            encoded += b"\2" + identifier.encode() + b"\0"
    return encoded


def sort_key(version: Version) -> tuple[_Key, bytes, tuple[str, ...]]:
    """Return a key to sort versions, the oldest first.

    Versions that differ only in build metadata are equally new, but the key gives them a fixed
    order.
    """
    return _key(version), _encode(version.build), version.build


class SortedVersions:
    """A sorted list of versions, which represents sets of its versions as bit masks.

    The list has no duplicates, and the oldest version is first. The place of a version is its index
    in the list. A set is an int: bit n is set if the version at place n is in the set. With these
    sets, the versions in a range are found fast, whatever the number of versions.

    >>> versions = SortedVersions([Version("1.2.0"), Version("1.0.0"), Version("2.0.0")])
    >>> bin(versions.within(VersionSpec.of("<2")))
    '0b11'

    :ivar every: the set of all versions.
    """

    def __init__(self, versions: Iterable[Version]) -> None:
        self._versions = sorted(set(versions), key=sort_key)
        self._keys = list(map(_key, self._versions))
        self._places = {version: place for place, version in enumerate(self._versions)}
        self.every = (1 << len(self._versions)) - 1

    def __getitem__(self, place: int) -> Version:
        """Return the version at a place."""
        return self._versions[place]

    def place(self, version: Version) -> int:
        """Return the place of a version in the list, where 0 is the place of the oldest version."""
        return self._places[version]

    def within(self, spec: VersionSpec) -> int:
        """Return the set of the versions that are in a range."""
        places = [bisect.bisect_left(self._keys, edge) for edge in spec._edges]
        if len(places) % 2:
            places.append(len(self._keys))
        found = 0
        for start, end in zip(places[::2], places[1::2], strict=True):
            found |= (1 << end) - (1 << start)
        for version in spec._required:
            found &= self.among((version,))
        return found & ~self.among(spec._excluded) if spec._excluded else found

    def among(self, versions: Iterable[Version]) -> int:
        """Return the set of those given versions that this list contains."""
        found = 0
        for version in versions:
            place = self._places.get(version)
            if place is not None:
                found |= 1 << place
        return found

    def newest(self, chosen: int) -> Version | None:
        """Return the newest version of a set; None if the set is empty."""
        return self._versions[chosen.bit_length() - 1] if chosen else None

    def newest_first(self, chosen: int) -> Iterator[Version]:
        """Yield the versions of a set, the newest first."""
        return map(self._versions.__getitem__, places(chosen))

    def memberships(self, sets: Iterable[int]) -> list[int]:
        """Find out, for each version of the list, which of several sets contain the version.

        :param sets: the sets, as bit masks.
        :returns: a bit mask for each version, the oldest version first: bit n is set if set n
            contains the version.
        """
        changes = [0] * (len(self._versions) + 1)
        for number, chosen in enumerate(sets):
            # Neighbouring versions are usually in the same sets, so only the versions at which a
            # set begins or ends are visited.
            for place in places(chosen ^ chosen << 1):
                changes[place] ^= 1 << number
        return list(itertools.accumulate(changes[:-1], operator.xor))


def places(chosen: int) -> Iterator[int]:
    """Yield the places of the versions in a set, the newest first; see ``SortedVersions``.

    :param chosen: the set, as a bit mask.
    """
    while chosen:
        place = chosen.bit_length() - 1
        yield place
        chosen ^= 1 << place
