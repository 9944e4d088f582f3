# SPDX-License-Identifier: Apache-2.0

"""Find and draw the base classes and subclasses of a class, with the packages that define them.

A base class is looked up as the engine does it: in the package itself, then in the newest versions
of the packages that it requires. The graph is made from the newest version of each package.
"""

import collections
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from glare_murano.package import VersionSpec
from glare_murano.selection import Selection
from loader import errors
from loader.catalogs.repository import Repository
from loader.catalogs.stored_package import StoredPackage
from loader.commands.dependency_graph import MISSING, range_of
from loader.drawing import pictures
from loader.drawing.pictures import Box, Line

# Returns the packages that define a class, sorted by name, with the newest version of each first.
_Defining = Callable[[str], Sequence[StoredPackage]]


class Extension(NamedTuple):
    """A class and one of its direct base classes.

    :ivar package: the package that defines the class, as ``FQN version``.
    :ivar base: the base class; empty if the class has none.
    :ivar base_package: the package of the base class; ``missing`` if no required package has it.
    :ivar range: the range in which the package requires the base class's package; empty for a base
        class in the package itself.
    """

    name: str
    package: str
    base: str
    base_package: str
    range: str


def find(repository: Repository, name: str) -> list[Extension]:
    """Find all base classes and all subclasses of a class, direct and indirect.

    :returns: a pair for each class and each of its direct base classes. The pairs of the given
        class come first.
    :raises NotFound: if no package defines the class.
    :raises CatalogError: if the service does not answer.
    """

    @functools.cache
    def defining(class_name: str) -> Sequence[StoredPackage]:
        selection = Selection({"class_definitions": [class_name]}, yanked=False)
        return [*repository.packages(selection)]

    newest = _newest(defining(name))
    if not newest:
        raise errors.NotFound(f"no package that can be loaded defines {name}; check the name")
    waiting = collections.deque((name, package) for package in newest)
    waiting.extend(_subclasses(repository, name))
    found: dict[Extension, None] = {}
    seen = set()
    while waiting:
        class_name, package = waiting.popleft()
        if (class_name, package.id) in seen:
            continue
        seen.add((class_name, package.id))
        bases = bases_of(package, class_name)
        for base in bases:
            owner, text = _owner(package, base, defining)
            owner_name = str(owner) if owner else MISSING
            found[Extension(class_name, str(package), base, owner_name, text)] = None
            if owner:
                waiting.append((base, owner))
        if not bases:
            found[Extension(class_name, str(package), "", "", "")] = None
    return [*found]


def bases_of(package: StoredPackage, name: str) -> list[str]:
    """Return the names of a class's direct base classes, as the class's package lists them."""
    return [base for base, subclasses in _inherits(package).items() if name in subclasses]


def _subclasses(repository: Repository, name: str) -> Iterator[tuple[str, StoredPackage]]:
    """Yield the direct and indirect subclasses of a class, each with its package."""
    selection = Selection(subclass_of=name, yanked=False, distinct="name")
    packages = [*repository.packages(selection)]
    known, level = {name}, {name}
    while level:
        following = set[str]()
        for package in packages:
            for base, subclasses in _inherits(package).items():
                if base in level:
                    following.update(subclasses)
                    yield from ((subclass, package) for subclass in subclasses)
        level = following - known
        known |= level


def _inherits(package: StoredPackage) -> Mapping[str, Sequence[str]]:
    inherits = package.fields.get("inherits") or {}
    return {base: subclasses.split(",") for base, subclasses in inherits.items()}


def _owner(
    package: StoredPackage, base: str, defining: _Defining
) -> tuple[StoredPackage | None, str]:
    """Find the package that defines a base class.

    :param package: the package that defines the subclass.
    :param defining: a function that returns the packages that define a class.
    :returns: the package that defines the base class, and the range in which ``package`` requires
        it. The range is empty if it is ``package`` itself. If no required package defines the base
        class, None and an empty string.
    """
    if base in (package.fields.get("class_definitions") or ()):
        return package, ""
    for candidate in defining(base):
        spec: VersionSpec | None = range_of(package, candidate.fqn)
        if spec is not None and spec.match(candidate.version):
            return candidate, spec.text
    return None, ""


def _newest(packages: Sequence[StoredPackage]) -> list[StoredPackage]:
    found: dict[str, StoredPackage] = {}
    for package in packages:
        found.setdefault(package.fqn, package)
    return [*found.values()]


def svg(graph: Sequence[Extension]) -> str:
    """Draw a graph as an SVG picture; each class is to the left of its base classes."""
    name = graph[0].name
    places = dict.fromkeys((edge.name, edge.package) for edge in graph)
    places |= dict.fromkeys((edge.base, edge.base_package) for edge in graph if edge.base)
    versions = collections.Counter(class_name for class_name, _ in places)
    boxes = {
        " ".join(place): _box(*place, versions[place[0]], place[0] == name) for place in places
    }
    lines = [
        Line(
            f"{edge.name} {edge.package}",
            f"{edge.base} {edge.base_package}",
            edge.range,
            f"{edge.name} extends {edge.base}",
        )
        for edge in graph
        if edge.base
    ]
    return pictures.draw(f"The base classes and subclasses of {name}", boxes, lines)


def _box(name: str, package: str, versions: int, is_asked: bool) -> Box:
    forms = {"first"} if is_asked else set()
    lines = [package]
    if versions > 1:
        lines.append(f"one of {versions} packages")
        forms.add("double")
    if package == MISSING:
        forms.add("dotted")
    return Box(name, lines, frozenset(forms))
