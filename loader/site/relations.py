# SPDX-License-Identifier: Apache-2.0

"""Find which packages of a catalogue require each other, and which classes extend each other.

Subclasses are searched only in the newest release of each package.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from glare_murano import resolver
from glare_murano.package import Version, VersionSpec, parse_version

# What the pages of other releases show of a release, as JSON; see ``of_document``.
Summary = dict[str, Any]


class Dependent(NamedTuple):
    """A package that requires another package in a range that contains a given version.

    :ivar versions: the requiring versions, the newest first.
    :ivar range: the range that the newest of these versions requires.
    :ivar others: the other versions of the required package that are in this range, the newest
        first.
    """

    fqn: str
    versions: Sequence[str]
    range: str
    others: Sequence[str]


class Subclass(NamedTuple):
    """A class in the newest release of a package, which extends another class directly.

    :ivar name: the name of the subclass.
    :ivar fqn: the package of the subclass.
    """

    name: str
    fqn: str


class Base(NamedTuple):
    """A base class, which may be in another package.

    :ivar name: the name of the class.
    :ivar fqn: the package of the class.
    :ivar version: the version of this package.
    """

    name: str
    fqn: str
    version: str


class Relations:
    """The requirements and the inheritance between the releases of a catalogue.

    :param packages: FQN -> version -> summary.
    :param newest: FQN -> the version that a user gets if the user requests no version.
    """

    def __init__(
        self, packages: Mapping[str, Mapping[str, Summary]], newest: Mapping[str, str]
    ) -> None:
        self._packages = packages
        self._newest = newest
        self._versions = {
            fqn: newest_first(releases) for fqn, releases in packages.items() if releases
        }
        self._requirers = collections.defaultdict[str, list[str]](list)
        self._extending = collections.defaultdict[str, set[Subclass]](set)
        # Class -> FQN -> the versions that define the class, the newest first.
        self._defining: dict[str, dict[str, list[Version]]] = {}
        for fqn, versions in self._versions.items():
            for version in versions:
                for name in packages[fqn][str(version)]["classes"]:
                    self._defining.setdefault(name, {}).setdefault(fqn, []).append(version)
        for fqn in sorted(self._versions):
            releases = packages[fqn]
            required = {name for each in releases.values() for name in each["requirements"]}
            for name in required:
                self._requirers[name].append(fqn)
            for class_name, bases in releases[newest[fqn]]["classes"].items():
                for base in bases:
                    self._extending[base].add(Subclass(class_name, fqn))

    def newest(self, fqn: str) -> str | None:
        """Return the newest version of a package; None if the package is not in the catalogue."""
        return self._newest.get(fqn)

    def dependents(self, fqn: str, version: str) -> Iterator[Dependent]:
        """Yield the packages that require a package in a range with the given version."""
        required = parse_version(version)
        for requirer in self._requirers.get(fqn, ()):
            found = {
                str(each): written
                for each in self._versions[requirer]
                for written in [self._packages[requirer][str(each)]["requirements"].get(fqn)]
                if written is not None and VersionSpec.of(written).match(required)
            }
            if found:
                spec = VersionSpec.of(next(iter(found.values())))
                others = [str(each) for each in self._versions[fqn] if spec.match(each)]
                others = [each for each in others if each != version]
                yield Dependent(requirer, [*found], spec.text, others)

    def requirers(self, fqn: str) -> Sequence[str]:
        """Return all packages with a version that requires the package ``fqn``, in any range."""
        return self._requirers.get(fqn, ())

    def owner(self, summary: Summary, fqn: str, class_name: str) -> tuple[str, str] | None:
        """Return which release defines a class that another release extends or uses.

        If the release does not define the class itself, its required packages are searched. The
        newest release that is in the required range and defines the class is returned.

        :param summary: the summary of the release that uses the class.
        :param fqn: the package of this release.
        :param class_name: the name of the class.
        :returns: FQN and version; None if no searched release defines the class.
        """
        if class_name in summary["classes"]:
            return fqn, summary["version"]
        defining = self._defining.get(class_name, {})
        for required in summary["requirements"] if defining else ():
            spec = VersionSpec.of(summary["requirements"][required])
            for version in defining.get(required, ()):
                if spec.match(version):
                    return required, str(version)
        return None

    def bases(self, summary: Summary, fqn: str, class_name: str) -> Iterator[Base]:
        """Yield the direct and indirect base classes of a class, the nearest first.

        Base classes that are not in the catalogue are left out.

        :param summary: the summary of the release that defines the class.
        :param fqn: the package of this release.
        """
        waiting = collections.deque([(summary, fqn, class_name)])
        known = {class_name}
        while waiting:
            owner_summary, owner_fqn, current = waiting.popleft()
            for base in owner_summary["classes"].get(current, ()):
                owner = self.owner(owner_summary, owner_fqn, base)
                if base in known or owner is None:
                    continue
                known.add(base)
                yield Base(base, *owner)
                waiting.append((self._packages[owner[0]][owner[1]], owner[0], base))

    def subclasses(self, class_name: str) -> Sequence[Subclass]:
        """Return the direct subclasses of a class, sorted by name."""
        return sorted(self._extending.get(class_name, ()))


def newest_first(versions: Iterable[str]) -> tuple[Version, ...]:
    """Parse and sort versions, the newest first."""
    return resolver.newest_first(map(parse_version, versions))


def of_document(version: str, document: Mapping[str, Any]) -> Summary:
    """Return the summary of a release: what the pages of other releases need to know about it.

    :param version: the version of the release.
    :param document: the document of the release, from ``documents.read``.
    """
    classes = document.get("classes", ())
    used = {base for each in classes for base in each["bases"]}
    used.update(name for each in classes for one in _declarations(each) for name in one["classes"])
    found = {
        "version": version,
        "requirements": document.get("requirements", {}),
        "classes": {each["name"]: each["bases"] for each in classes},
        "uses": sorted(used),
    }
    kept = ("problems", "is_temporary")
    return found | {key: document[key] for key in kept if key in document}


def members(each: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the members of a class as the pages of its subclasses show them.

    :param each: the class, from a document.
    :returns: pairs: ``property NAME`` and the declaration without title and description, or
        ``method NAME`` and ``action``; for a method that is not public, the word is empty.
    """
    for one in each["properties"]:
        keys = ("name", "usage", "contract", "classes", "default", "required", "metadata")
        yield f"property {one['name']}", {key: one[key] for key in keys}
    for method in each["methods"]:
        yield f"method {method['name']}", "action" if method["public"] else ""


def _declarations(each: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from each["properties"]
    yield from each["initializer"]
    for method in each["methods"]:
        yield from method["arguments"]
