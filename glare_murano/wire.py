# SPDX-License-Identifier: Apache-2.0

"""Define releases, dependency queries and their answers, and convert them to JSON and back.

Servers, catalogues, the lock file, the offline index and the metadata cache write and read releases
with this module, with the same keys. To add a property of a release, change ``Release``,
``release_to_json`` and ``release_from_json``, and the table in ``fields``. ``doc/openapi.yaml``
describes the HTTP API that uses this JSON.

Functions that read JSON raise ``Malformed`` for an unexpected form.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, Self, TypeVar

from glare_murano.budget import Budget
from glare_murano.eligibility import Excluded
from glare_murano.package import (
    Contents,
    GlareMuranoError,
    Unplannable,
    Version,
    VersionSpec,
    parse_version,
)
from glare_murano.package.errors import quoted, shown
from glare_murano.package.manifest import check_fqn, check_required_name
from glare_murano.resolver import (
    Demand,
    External,
    PackageVersion,
    PassedOver,
    Reason,
    Undefined,
    Unsatisfied,
    Why,
)

# Limits of one request. Servers refuse more, and the loader does not send more.
MAX_REQUIREMENTS = 1000  # also for classes, and for packages with pins
MAX_PINS = 100  # for the versions of one package
MAX_ARCHIVES = 100
MAX_SUBCLASSES = 1000  # in one page
MAX_PACKAGES = 1000  # in one page
MAX_PUBLICATIONS = 100  # also for packages that may have been deleted

# Paths of the API; see ``doc/openapi.yaml``.
VERSION_PATH = "/murano/v1"
ARCHIVES_PATH = "/murano/v1/archives"
CATEGORIES_PATH = "/murano/v1/categories"
DELETIONS_PATH = "/murano/v1/deletions"  # only in Glance
DEPENDENCIES_PATH = "/murano/v1/dependencies"
PACKAGES_PATH = "/murano/v1/packages"
PUBLICATIONS_PATH = "/murano/v1/publications"
SUBCLASSES_PATH = "/murano/v1/subclasses"
YANKS_PATH = "/murano/v1/yanks"
# Options that define which checks a service enforces. The discovery document shows their values.
CHECKS = ("check_forms", "check_public_requirements", "check_requirements")
ENFORCED = "enforce"
# If this header of a request is ``true``, an administrator overrides checks.
OVERRIDE_HEADER = "X-Murano-Override-Checks"

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_KINDS = {dict: "a mapping", list: "a sequence", str: "a string", bool: "a truth value"}

_T = TypeVar("_T")


class Malformed(GlareMuranoError, ValueError):
    """JSON does not have the expected form; the message names the key with the wrong value."""


@dataclasses.dataclass(frozen=True)
class Release:
    """A version of a package in a catalogue.

    >>> for release in catalog.releases("org.wiki"):
    ...     print(release, release.requirements["org.db"])
    org.wiki 1.1.0 >=1,<2
    org.wiki 1.0.0 >=1,<2

    :param fqn: the fully qualified name (FQN) of the package.
    :param requirements: FQN of a required package -> range, including the implicit requirements.
    :param classes: the names of the classes that the package defines.
    :param id: the identifier of the release in its catalogue.
    :param digest: the SHA-256 of the archive, in hexadecimal; empty for a directory.
    :param size: the size of the archive, in bytes; None if unknown.
    :param owner: the project that owns the release; None in a catalogue without projects.
    :param visibility: the visibility, such as ``private`` or ``public``; None in a catalogue
        without projects.
    :param yanked: why the owner has yanked the release; empty if the release is not yanked.
    :param inherits: base class -> its direct subclasses in this package; empty if unknown, as in
        the answer to a dependency query.
    """

    fqn: str
    version: Version
    requirements: Mapping[str, VersionSpec]
    classes: frozenset[str]
    id: str = ""
    digest: str = ""
    size: int | None = None
    owner: str | None = None
    visibility: str | None = None
    yanked: str = ""
    inherits: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict, compare=False)

    @classmethod
    def from_contents(
        cls, contents: Contents, id: str, digest: str = "", size: int | None = None
    ) -> Self:
        """Make the release of a package from its contents.

        :param contents: the contents of the package.
        :param id: the identifier of the release in its catalogue.
        :param digest: the SHA-256 digest of the archive, in hexadecimal; empty for a directory.
        :param size: the size of the archive, in bytes; None if unknown.
        """
        manifest, requirements = contents.manifest, dict(contents.requirements)
        classes = frozenset(definition.name for definition in contents.classes)
        release = cls(manifest.fqn, manifest.version, requirements, classes, id, digest, size)
        return dataclasses.replace(release, inherits=contents.inherits)

    @property
    def key(self) -> PackageVersion:
        """The FQN and the version, in the form that the resolver uses."""
        return PackageVersion(self.fqn, self.version)

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


@dataclasses.dataclass(frozen=True)
class Query:
    """A request for the closure of some requirements; see ``resolver``.

    The closure contains the releases that satisfy the requirements, the releases that those
    require, and so on.

    :param requirements: FQNs of required packages, and ranges.
    :param classes: the class of each object, and the range in the header of the object.
    :param pins: FQN -> pinned versions. A pinned version is taken for every range that contains it.
    :param provided: FQN -> the versions that the engine provides, as extension plug-ins.
    :param package: the id of a stored package that is required as well; None without such a
        package. The package may be a draft.
    :param prereleases: whether any range may choose pre-releases. If not, a pre-release is chosen
        only if it is pinned, or if a range names it exactly.
    :param why: whether the answer says why each release was chosen.
    :param project_id: the project whose private packages may be chosen; None for all projects that
        the client can see.
    :param private_overrides: whether a private package may be chosen although a public package has
        the same name.
    """

    requirements: tuple[tuple[str, VersionSpec], ...] = ()
    classes: tuple[tuple[str, VersionSpec], ...] = ()
    pins: Mapping[str, Collection[Version]] = dataclasses.field(default_factory=dict)
    provided: Mapping[str, Collection[Version]] = dataclasses.field(default_factory=dict)
    package: str | None = None
    prereleases: bool = True
    why: bool = False
    project_id: str | None = None
    private_overrides: bool = True


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to a query: the closure, and the demands that cannot be satisfied.

    A demand is a requirement, together with the release that has the requirement (see
    ``resolver``).

    :param releases: each chosen release with the demands that it satisfies. Because of the first
        demand, the release was added to the closure.
    :param unsatisfied: the demands that no version satisfies.
    :param undefined: the classes of objects for which no release in the required range can be
        chosen.
    :param why: why each release was chosen; empty if the query did not request reasons.
    :param external: the demands that extension plug-ins of the engine satisfy.
    :param excluded: releases that the client can see, but that must not be chosen. If the query
        requests reasons, these are releases of all packages in the plan. If not, they are only
        releases of the packages in ``unsatisfied``.
    """

    releases: tuple[tuple[Release, tuple[Demand, ...]], ...]
    unsatisfied: tuple[Unsatisfied, ...] = ()
    undefined: tuple[Undefined, ...] = ()
    why: Mapping[PackageVersion, Why] = dataclasses.field(default_factory=dict)
    external: tuple[External, ...] = ()
    excluded: tuple[Excluded, ...] = ()


class _Versions(NamedTuple):
    """The versions of a package in an unsatisfied demand; see ``Unsatisfied``."""

    available: tuple[Version, ...]
    exact_only: tuple[Version, ...]
    provided: tuple[Version, ...]

    @classmethod
    def of(cls, missing: Unsatisfied) -> Self:
        """Return the versions in an unsatisfied demand."""
        return cls(missing.available, missing.exact_only, missing.provided)

    @classmethod
    def from_json(cls, content: object) -> Self:
        """Read the versions from the JSON of an unsatisfied demand."""
        return cls(
            get(content, "available", _each(_version)),
            _get_optional(content, "exact_only", _each(_version)) or (),
            _get_optional(content, "provided", _each(_version)) or (),
        )

    def to_json(self) -> dict[str, list[str]]:
        """Return the versions as properties for the JSON of an unsatisfied demand."""
        return {
            key: list(map(str, versions))
            for key, versions in self._asdict().items()
            if versions or key == "available"
        }


def release_to_json(release: Release) -> dict[str, Any]:
    """Return a release as JSON. Properties without a value are left out, and so is ``inherits``."""
    content = {
        "id": release.id or None,
        "name": release.fqn,
        "version": str(release.version),
        "owner": release.owner,
        "visibility": release.visibility,
        "yanked": release.yanked or None,
        "sha256": release.digest or None,
        "size": release.size,
        "requirements": ranges_to_json(release.requirements.items()),
        "class_definitions": sorted(release.classes),
    }
    return {key: value for key, value in content.items() if value is not None}


def release_from_json(content: object) -> Release:
    """Read a release from JSON."""
    return Release(
        fqn=get(content, "name", _fqn),
        version=get(content, "version", _version),
        requirements=get(content, "requirements", ranges_from_json),
        classes=frozenset(get(content, "class_definitions", _each(_fqn))),
        id=_get_optional(content, "id", string) or "",
        digest=_get_optional(content, "sha256", digest) or "",
        size=_get_optional(content, "size", size),
        owner=_get_optional(content, "owner", _any_string),
        visibility=_get_optional(content, "visibility", _any_string),
        yanked=_get_optional(content, "yanked", _any_string) or "",
        inherits=_get_optional(content, "inherits", _inherits_from_json) or {},
    )


def query_to_json(query: Query) -> dict[str, Any] | None:
    """Return a query as JSON.

    :returns: the JSON object. The result is None if the query exceeds the limits of one request, or
        has several ranges for the same package.
    """
    requirements = dict(query.requirements)
    counts = map(len, (query.requirements, query.classes, query.pins, query.provided))
    most_pins = max(map(len, (*query.pins.values(), *query.provided.values())), default=0)
    is_too_large = max(counts) > MAX_REQUIREMENTS or most_pins > MAX_PINS
    if is_too_large or len(requirements) < len(query.requirements):
        return None
    content = {
        "requirements": ranges_to_json(requirements.items()),
        "objects": [{"class": name, "version": spec.text} for name, spec in query.classes],
        "pins": versions_to_json(query.pins),
        "provided": versions_to_json(query.provided) or None,
        "package": query.package,
        "prereleases": query.prereleases,
        "why": query.why or None,
        "project_id": query.project_id,
        "private_overrides": None if query.private_overrides else False,
    }
    return {key: value for key, value in content.items() if value is not None}


def query_from_json(content: object, budget: Budget) -> Query:
    """Read a query from JSON.

    :param content: the JSON object, which was already checked against the JSON schema.
    :param budget: the time limit of the request.
    :raises Unplannable: if the time is over.
    """

    def watched(items: Iterable[_T]) -> Iterable[_T]:
        return budget.watch(items, "reading the query")

    def ranges(found: object) -> tuple[tuple[str, VersionSpec], ...]:
        # Names are not checked: the answer reports a name that is not valid as missing.
        return tuple((fqn, get(found, fqn, _query_range)) for fqn in watched(mapping(found)))

    def objects(found: object) -> tuple[tuple[str, VersionSpec], ...]:
        return tuple(map(_object, watched(sequence(found))))

    def versions(found: object) -> dict[str, list[Version]]:
        return {
            fqn: list(map(_version, sequence(texts)))
            for fqn, texts in watched(mapping(found).items())
        }

    return Query(
        requirements=_get_optional(content, "requirements", ranges) or (),
        classes=_get_optional(content, "objects", objects) or (),
        pins=_get_optional(content, "pins", versions) or {},
        provided=_get_optional(content, "provided", versions) or {},
        package=_get_optional(content, "package", _any_string),
        prereleases=bool(mapping(content).get("prereleases", True)),
        why=bool(mapping(content).get("why", False)),
        project_id=_get_optional(content, "project_id", _any_string),
        private_overrides=bool(mapping(content).get("private_overrides", True)),
    )


def answer_to_json(answer: Answer, budget: Budget) -> dict[str, Any]:
    """Return the answer to a query as JSON.

    :param budget: the time limit of the request.
    :raises Unplannable: if the time is over.
    """
    step = "building the answer"
    return {
        "releases": [
            {
                **release_to_json(release),
                "required_by": list(map(_demand_to_json, demands)),
                **(
                    {"why": _why_to_json(answer.why[release.key])}
                    if release.key in answer.why
                    else {}
                ),
            }
            for release, demands in budget.watch(answer.releases, step)
        ],
        "unsatisfied": _unsatisfied_to_json(budget.watch(answer.unsatisfied, step)),
        "undefined": [
            {
                "class": missing.class_name,
                "range": missing.spec.text,
                "available": missing.available,
            }
            for missing in budget.watch(answer.undefined, step)
        ],
        **({"external": list(map(_external_to_json, answer.external))} if answer.external else {}),
        **({"excluded": list(map(_excluded_to_json, answer.excluded))} if answer.excluded else {}),
    }


def answer_from_json(content: object) -> Answer:
    """Read the answer to a query from JSON."""
    items = [item for item in get(content, "releases", _each(mapping)) if "why" in item]
    return Answer(
        releases=get(content, "releases", _each(_chosen)),
        why={_package_version(item): get(item, "why", _why) for item in items},
        unsatisfied=get(content, "unsatisfied", _unsatisfied_from_json),
        undefined=get(content, "undefined", _each(_undefined)),
        external=_get_optional(content, "external", _each(_external)) or (),
        excluded=_get_optional(content, "excluded", _each(_excluded)) or (),
    )


def ranges_to_json(ranges: Iterable[tuple[str, VersionSpec]]) -> dict[str, str]:
    """Return the range of each FQN as a JSON object, sorted by FQN."""
    return {fqn: spec.text for fqn, spec in sorted(ranges, key=lambda item: item[0])}


def ranges_from_json(content: object) -> dict[str, VersionSpec]:
    """Read a JSON object that maps FQNs to ranges."""
    return {check_required_name(fqn): get(content, fqn, _range) for fqn in mapping(content)}


def _inherits_from_json(content: object) -> dict[str, tuple[str, ...]]:
    """Read a JSON object that maps base classes to subclasses.

    The subclasses of a base class are one string in JSON, joined by commas.
    """
    return {base: tuple(get(content, base, string).split(",")) for base in mapping(content)}


def versions_to_json(versions: Mapping[str, Iterable[Version]]) -> dict[str, list[str]]:
    """Return the versions of each FQN as a JSON object."""
    return {fqn: list(map(str, listed)) for fqn, listed in versions.items()}


def versions_from_json(content: object) -> dict[str, list[Version]]:
    """Read a JSON object that maps FQNs to lists of versions."""
    return {fqn: list(map(_version, sequence(texts))) for fqn, texts in mapping(content).items()}


def checks_from_json(content: object) -> dict[str, str]:
    """Read the values of the options in ``CHECKS`` from a JSON object.

    :returns: name of the option -> value, such as ``ENFORCED``.
    """
    return {name: get(content, name, string) for name in CHECKS}


def mapping(value: object) -> dict[str, Any]:
    """Check that a value is a JSON object, and return it."""
    return _typed(value, dict)


def sequence(value: object) -> list[Any]:
    """Check that a value is a JSON array, and return it."""
    return _typed(value, list)


def string(value: object) -> str:
    """Check that a value is a JSON string and not empty, and return it."""
    if value == "":
        raise Malformed("expected a string, found nothing")
    return _any_string(value)


def digest(value: object) -> str:
    """Check that a value is a SHA-256 digest in hexadecimal, and return it."""
    found = string(value)
    if not _DIGEST.match(found):
        raise Malformed(f"{quoted(found)} is not a valid SHA-256 digest in lower-case hexadecimal")
    return found


def size(value: object) -> int:
    """Check that a value is a number of bytes, and return it."""
    if not isinstance(value, int | str | float) or isinstance(value, bool):
        raise Malformed(f"expected a number of bytes, found {_kind(value)}")
    if not isinstance(value, int) or value < 0:
        raise Malformed(f"{quoted(str(value))} is not a valid number of bytes")
    return value


def get(content: object, key: str, read: Callable[[object], _T]) -> _T:
    """Read the value of a key in a JSON object. The message of an error names the key.

    :param content: the JSON object.
    :param key: the key of the value.
    :param read: a function that checks and converts the value.
    :raises Malformed: if the key is missing, or ``read`` refuses the value.
    """
    found = mapping(content)
    if key not in found:
        raise Malformed(f"{key} is missing")
    try:
        return read(found[key])
    except Unplannable:
        raise
    except GlareMuranoError as error:
        raise Malformed(f"{shown(key)}: {error}") from error


def _demand_to_json(demand: Demand) -> dict[str, Any]:
    by = demand.requirer
    return {
        "name": demand.fqn,
        "range": demand.spec.text,
        "requirer": by and {"name": by.fqn, "version": str(by.version)},
    }


def _external_to_json(external: External) -> dict[str, Any]:
    return {**_demand_to_json(external.demand), "version": str(external.version)}


def _excluded_to_json(excluded: Excluded) -> dict[str, str]:
    return {
        "name": excluded.key.fqn,
        "version": str(excluded.key.version),
        "id": excluded.id,
        "owner": excluded.owner,
        "reason": excluded.reason,
    }


def _why_to_json(why: Why) -> dict[str, Any]:
    return {
        "kept": list(map(_demand_to_json, why.kept)),
        "passed_over": [
            {
                "versions": list(map(str, passed.versions)),
                "reason": passed.reason,
                "requirements": list(map(_demand_to_json, passed.demands)),
            }
            for passed in why.passed_over
        ],
    }


def _why(content: object) -> Why:
    return Why(
        get(content, "kept", _each(_demand)), get(content, "passed_over", _each(_passed_over))
    )


def _passed_over(content: object) -> PassedOver:
    return PassedOver(
        get(content, "versions", _each(_version)),
        get(content, "reason", _reason),
        get(content, "requirements", _each(_demand)),
    )


def _reason(value: object) -> Reason:
    try:
        return Reason(string(value))
    except ValueError as error:
        raise Malformed(f"{quoted(string(value))} is not a known reason") from error


def _query_range(value: object) -> VersionSpec:
    return VersionSpec.of(None if value is None else _any_string(value))


def _object(content: object) -> tuple[str, VersionSpec]:
    return get(content, "class", string), VersionSpec.of(mapping(content).get("version"))


def _chosen(content: object) -> tuple[Release, tuple[Demand, ...]]:
    release = release_from_json(content)
    # If owner and visibility were missing, the release would be treated as the operator's.
    for key in ("id", "sha256", "size", "owner", "visibility"):
        if key not in mapping(content):
            raise Malformed(f"{key} is missing")
    return release, get(content, "required_by", _each(_demand))


def _demand(content: object) -> Demand:
    requirer = get(content, "requirer", _requirer)
    return Demand(get(content, "name", string), get(content, "range", _range), requirer)


def _requirer(content: object) -> PackageVersion | None:
    return None if content is None else _package_version(content)


def _package_version(content: object) -> PackageVersion:
    return PackageVersion(get(content, "name", string), get(content, "version", _version))


def _unsatisfied_to_json(unsatisfied: Iterable[Unsatisfied]) -> list[dict[str, Any]]:
    """Return unsatisfied demands as JSON.

    Many demands may be for one package with many versions. So an entry has no versions if they are
    those of the previous entry for the same package.
    """
    known: dict[str, _Versions] = {}
    listed = []
    for missing in unsatisfied:
        fqn, versions = missing.demand.fqn, _Versions.of(missing)
        content = _demand_to_json(missing.demand)
        if known.get(fqn) != versions:
            known[fqn] = versions
            content |= versions.to_json()
        listed.append(content)
    return listed


def _unsatisfied_from_json(content: object) -> tuple[Unsatisfied, ...]:
    known: dict[str, _Versions] = {}
    return tuple(_unsatisfied(item, known) for item in sequence(content))


def _unsatisfied(content: object, known: dict[str, _Versions]) -> Unsatisfied:
    """Read an unsatisfied demand from JSON.

    :param known: FQN -> the versions in the last entry for the package. The versions in this entry
        are added.
    """
    demand = _demand(content)
    if "available" in mapping(content) or demand.fqn not in known:
        known[demand.fqn] = _Versions.from_json(content)
    return Unsatisfied(demand, *known[demand.fqn])


def _external(content: object) -> External:
    return External(_demand(content), get(content, "version", _version))


def _excluded(content: object) -> Excluded:
    owner, reason = get(content, "owner", _any_string), get(content, "reason", string)
    return Excluded(_package_version(content), get(content, "id", string), owner, shown(reason))


def _undefined(content: object) -> Undefined:
    available = get(content, "available", _each(string))
    return Undefined(get(content, "class", string), get(content, "range", _range), available)


def _fqn(value: object) -> str:
    return check_fqn(string(value))


def _version(value: object) -> Version:
    return parse_version(string(value))


def _range(value: object) -> VersionSpec:
    return VersionSpec.of(string(value))


def _any_string(value: object) -> str:
    return _typed(value, str)


def _typed(value: object, wanted: type[_T]) -> _T:
    if not isinstance(value, wanted):
        raise Malformed(f"expected {_KINDS[wanted]}, found {_kind(value)}")
    return value


def _kind(value: object) -> str:
    return "nothing" if value is None else _KINDS.get(type(value), "a number")


def _each(read: Callable[[object], _T]) -> Callable[[object], tuple[_T, ...]]:
    return lambda value: tuple(map(read, sequence(value)))


def _get_optional(content: object, key: str, read: Callable[[object], _T]) -> _T | None:
    return get(content, key, read) if key in mapping(content) else None
