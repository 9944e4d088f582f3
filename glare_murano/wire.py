# SPDX-License-Identifier: Apache-2.0

"""Releases, dependency queries and their answers: the data, and its one JSON form.

Servers, catalogues, the lock file, the offline index and the metadata cache
write and read releases by this module, with the same keys. A new property of a
release is added to ``Release``, ``release_to_json`` and ``release_from_json``,
and to the table in ``fields``. The HTTP API that carries this form is described
in ``doc/openapi.yaml``.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Self, TypeVar

from glare_murano.package import GlareMuranoError, Manifest, Version, VersionSpec, parse_version
from glare_murano.package.contents import class_names
from glare_murano.package.errors import quoted
from glare_murano.package.manifest import check_full_name, check_required_name
from glare_murano.resolver import Demand, PackageVersion, Unsatisfied

# Limits of one request. Servers refuse more, and the loader sends no more.
MAX_REQUIREMENTS = 1000  # also of classes, and of packages with pins
MAX_PINS = 100  # versions of one package
MAX_ARCHIVES = 100

# Paths of the API; see ``doc/openapi.yaml``.
ARCHIVES_PATH = "/murano/v1/archives"
DEPENDENCIES_PATH = "/murano/v1/dependencies"
SUBCLASSES_PATH = "/murano/v1/subclasses"

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")

_T = TypeVar("_T")


class Malformed(GlareMuranoError, ValueError):
    """JSON of another form than this module writes; the message names the key."""


@dataclasses.dataclass(frozen=True)
class Release:
    """A version of a package, as a catalogue knows it.

    >>> for release in catalog.releases("org.wiki"):
    ...     print(release, release.requirements["org.db"])
    org.wiki 1.1.0 >=1,<2
    org.wiki 1.0.0 >=1,<2

    :param fqn: the package's fully qualified name.
    :param requirements: FQN -> range, the implicit ones included.
    :param classes: names of the classes that it defines.
    :param id: its identifier in its catalogue.
    :param digest: the SHA-256 of its archive, in hexadecimal; empty for a
        directory, which has no archive.
    :param size: of its archive, in bytes; None if unknown.
    :param owner: the project that it belongs to; None in a catalogue without
        projects.
    :param visibility: ``private`` or ``public``; None in a catalogue without
        projects.
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

    @classmethod
    def from_manifest(
        cls, manifest: Manifest, id: str, digest: str = "", size: int | None = None
    ) -> Self:
        """Make the release of a package from its manifest."""
        return cls(
            fqn=manifest.full_name,
            version=manifest.version,
            requirements=dict(manifest.requirements),
            classes=frozenset(class_names(manifest)),
            id=id,
            digest=digest,
            size=size,
        )

    @property
    def key(self) -> PackageVersion:
        """Name and version, as the resolver knows it."""
        return PackageVersion(self.fqn, self.version)

    def __str__(self) -> str:
        return f"{self.fqn} {self.version}"


@dataclasses.dataclass(frozen=True)
class Query:
    """The requirements whose closure is wanted.

    :param requirements: FQNs and ranges.
    :param classes: names of classes, and the ranges of their objects' headers.
    :param pins: FQN -> versions that are taken wherever they are in a range.
    :param package: the id of an artifact that is required itself, even a draft.
    :param prereleases: whether pre-releases may be chosen.
    :param project_id: the project whose private packages may be chosen; None
        for every project that the caller can see.
    """

    requirements: tuple[tuple[str, VersionSpec], ...] = ()
    classes: tuple[tuple[str, VersionSpec], ...] = ()
    pins: Mapping[str, Collection[Version]] = dataclasses.field(default_factory=dict)
    package: str | None = None
    prereleases: bool = True
    project_id: str | None = None


@dataclasses.dataclass(frozen=True)
class Undefined:
    """A class that no package in a range defines.

    :param available: packages that define it, as ``FQN version``.
    """

    class_name: str
    spec: VersionSpec
    available: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Answer:
    """The closure of a query.

    :param releases: each release with the demands that it satisfies; the first
        of them is the one by which the release was reached.
    :param unsatisfied: ranges without any version.
    :param undefined: classes that no package defines.
    """

    releases: tuple[tuple[Release, tuple[Demand, ...]], ...]
    unsatisfied: tuple[Unsatisfied, ...] = ()
    undefined: tuple[Undefined, ...] = ()


def release_to_json(release: Release) -> dict[str, Any]:
    """Write a release; properties without a value are left out."""
    optional = {
        "id": release.id or None,
        "owner": release.owner,
        "visibility": release.visibility,
        "sha256": release.digest or None,
        "size": release.size,
    }
    return {
        "name": release.fqn,
        "version": str(release.version),
        **{key: value for key, value in optional.items() if value is not None},
        "requirements": ranges_to_json(release.requirements.items()),
        "class_definitions": sorted(release.classes),
    }


def release_from_json(content: object) -> Release:
    """Read a release.

    :raises Malformed: naming the key.
    """
    item = mapping(content)
    return Release(
        fqn=get(item, "name", _full_name),
        version=get(item, "version", _version),
        requirements=get(item, "requirements", ranges_from_json),
        classes=frozenset(get(item, "class_definitions", _each(_full_name))),
        id=_get_optional(item, "id", string) or "",
        digest=_get_optional(item, "sha256", _digest) or "",
        size=_get_optional(item, "size", _size),
        owner=_get_optional(item, "owner", _text),
        visibility=_get_optional(item, "visibility", _text),
    )


def query_to_json(query: Query) -> dict[str, Any] | None:
    """Write a query.

    :returns: None if a request cannot carry it: it exceeds the limits, or has
        several ranges upon one package.
    """
    requirements = dict(query.requirements)
    counts = (len(query.requirements), len(query.classes), len(query.pins))
    most_pins = max(map(len, query.pins.values()), default=0)
    is_too_large = max(counts) > MAX_REQUIREMENTS or most_pins > MAX_PINS
    if is_too_large or len(requirements) < len(query.requirements):
        return None
    optional = {"package": query.package, "project_id": query.project_id}
    return {
        "requirements": ranges_to_json(requirements.items()),
        "objects": [{"class": name, "version": spec.text} for name, spec in query.classes],
        "pins": {fqn: [str(v) for v in versions] for fqn, versions in query.pins.items()},
        "prereleases": query.prereleases,
        **{key: value for key, value in optional.items() if value is not None},
    }


def query_from_json(content: object) -> Query:
    """Read a query; the server has checked it against its JSON schema.

    :raises Malformed: naming the key.
    """
    body = mapping(content)
    return Query(
        requirements=_get_optional(body, "requirements", _query_ranges) or (),
        classes=_get_optional(body, "objects", _each(_object_from_json)) or (),
        pins=_get_optional(body, "pins", _pins) or {},
        package=_get_optional(body, "package", _text),
        prereleases=bool(body.get("prereleases", True)),
        project_id=_get_optional(body, "project_id", _text),
    )


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Write the answer to a query."""
    return {
        "releases": [
            {**release_to_json(release), "required_by": list(map(_demand_to_json, demands))}
            for release, demands in answer.releases
        ],
        "unsatisfied": [
            {
                "name": missing.demand.fqn,
                "range": missing.demand.spec.text,
                "chain": list(map(_demand_to_json, missing.chain)),
                "available": list(map(str, missing.available)),
            }
            for missing in answer.unsatisfied
        ],
        "undefined": [
            {
                "class": missing.class_name,
                "range": missing.spec.text,
                "available": list(missing.available),
            }
            for missing in answer.undefined
        ],
    }


def answer_from_json(content: object) -> Answer:
    """Read the answer to a query.

    :raises Malformed: naming the key.
    """
    body = mapping(content)
    return Answer(
        releases=get(body, "releases", _each(_chosen_from_json)),
        unsatisfied=get(body, "unsatisfied", _each(_unsatisfied_from_json)),
        undefined=get(body, "undefined", _each(_undefined_from_json)),
    )


def ranges_to_json(ranges: Iterable[tuple[str, VersionSpec]]) -> dict[str, str]:
    """Write ranges by FQN, sorted."""
    return {fqn: spec.text for fqn, spec in sorted(ranges, key=lambda item: item[0])}


def ranges_from_json(content: object) -> dict[str, VersionSpec]:
    """Read ranges by FQN.

    :raises Malformed: naming the package.
    """
    return {
        check_required_name(fqn): _at(fqn, _range, text) for fqn, text in mapping(content).items()
    }


def _chosen_from_json(content: object) -> tuple[Release, tuple[Demand, ...]]:
    item = mapping(content)
    release = release_from_json(item)
    for key in ("id", "sha256", "size"):
        if key not in item:
            raise Malformed(f"{key} is missing")
    return release, get(item, "required_by", _each(_demand_from_json))


def _demand_to_json(demand: Demand) -> dict[str, Any]:
    by = demand.requirer
    return {
        "name": demand.fqn,
        "range": demand.spec.text,
        "requirer": by and {"name": by.fqn, "version": str(by.version)},
    }


def _demand_from_json(content: object) -> Demand:
    item = mapping(content)
    return Demand(
        get(item, "name", string),
        get(item, "range", _range),
        get(item, "requirer", _requirer),
    )


def _requirer(content: object) -> PackageVersion | None:
    if content is None:
        return None
    item = mapping(content)
    return PackageVersion(get(item, "name", string), get(item, "version", _version))


def _unsatisfied_from_json(content: object) -> Unsatisfied:
    item = mapping(content)
    chain = get(item, "chain", _each(_demand_from_json))
    if not chain:
        raise Malformed("chain: expected a requirement at least, found none")
    return Unsatisfied(chain[-1], chain, get(item, "available", _each(_version)))


def _undefined_from_json(content: object) -> Undefined:
    item = mapping(content)
    return Undefined(
        get(item, "class", string),
        get(item, "range", _range),
        get(item, "available", _each(string)),
    )


def _object_from_json(content: object) -> tuple[str, VersionSpec]:
    item = mapping(content)
    return get(item, "class", string), _query_range(item.get("version"))


def _query_ranges(content: object) -> tuple[tuple[str, VersionSpec], ...]:
    # Names are not checked: an impossible name is not found, which the answer says.
    return tuple((fqn, _query_range(text)) for fqn, text in mapping(content).items())


def _query_range(value: object) -> VersionSpec:
    # As in a manifest, null and the empty string are ranges.
    return VersionSpec.of(None if value is None else _text(value))


def _pins(content: object) -> dict[str, list[Version]]:
    return {fqn: list(map(_version, sequence(texts))) for fqn, texts in mapping(content).items()}


def _full_name(value: object) -> str:
    return check_full_name(string(value))


def _version(value: object) -> Version:
    return parse_version(string(value))


def _range(value: object) -> VersionSpec:
    return VersionSpec.of(string(value))


def _digest(value: object) -> str:
    text = string(value)
    if not _DIGEST.match(text):
        raise Malformed(f"{quoted(text)} is not a valid SHA-256 digest in lower-case hexadecimal")
    return text


def _size(value: object) -> int:
    if not isinstance(value, int | str | float) or isinstance(value, bool):
        raise Malformed(f"expected a number of bytes, found {_kind(value)}")
    if not isinstance(value, int) or value < 0:
        raise Malformed(f"{quoted(str(value))} is not a valid number of bytes")
    return value


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object.

    :raises Malformed: if the value is anything else.
    """
    if not isinstance(value, Mapping):
        raise Malformed(f"expected a mapping, found {_kind(value)}")
    return value


def sequence(value: object) -> list[Any]:
    """Return a JSON array.

    :raises Malformed: if the value is anything else.
    """
    if not isinstance(value, list):
        raise Malformed(f"expected a sequence, found {_kind(value)}")
    return value


def string(value: object) -> str:
    """Return a JSON string that is not empty.

    :raises Malformed: if the value is anything else.
    """
    text = _text(value)
    if not text:
        raise Malformed("expected a string, found nothing")
    return text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Malformed(f"expected a string, found {_kind(value)}")
    return value


def _kind(value: object) -> str:
    kinds = {dict: "a mapping", list: "a sequence", str: "a string", bool: "a truth value"}
    return "nothing" if value is None else kinds.get(type(value), "a number")


def get(content: Mapping[str, Any], key: str, read: Callable[[object], _T]) -> _T:
    """Read the value of a key.

    :raises Malformed: if the key is missing or its value is not valid.
    """
    if key not in content:
        raise Malformed(f"{key} is missing")
    return _at(key, read, content[key])


def _get_optional(content: Mapping[str, Any], key: str, read: Callable[[object], _T]) -> _T | None:
    return _at(key, read, content[key]) if key in content else None


def _each(read: Callable[[object], _T]) -> Callable[[object], tuple[_T, ...]]:
    return lambda value: tuple(map(read, sequence(value)))


def _at(key: str, read: Callable[[object], _T], value: object) -> _T:
    """Read a value, and name its key in the error."""
    try:
        return read(value)
    except GlareMuranoError as error:
        raise Malformed(f"{key}: {error}") from error
