# SPDX-License-Identifier: Apache-2.0

"""Costly queries, as data: small requests for which a service could compute for long.

Everybody may send such a query, and may publish the packages of its catalogue. No package breaks a
rule: each could be published.
"""

import dataclasses
import enum
import functools
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from glare_murano.package import Contents, Manifest, Version, VersionSpec
from glare_murano.package.classes import ClassDefinition
from glare_murano.package.manifest import Format


class Outcome(enum.Enum):
    """What a query gets."""

    ANSWERED = "the answer, within the default limit"
    REFUSED = "a refusal at once, by another limit than that of the time"
    STOPPED = "a refusal at the limit of the time"


class Kind(enum.Enum):
    """The request."""

    DEPENDENCIES = "a dependency query"
    SUBCLASSES = "a list of subclasses"
    DELETION = "the deletion of a package"


@dataclasses.dataclass(frozen=True)
class Catalogue:
    """Packages that several queries share.

    :param name: the prefix of their names.
    :param make: returns them, given the prefix.
    """

    name: str
    make: Callable[[str], Iterable[Contents]]


@dataclasses.dataclass(frozen=True)
class CostlyQuery:
    """A query that could cost much.

    :param make: returns the content of the request, given the prefix of the packages' names.
    :param words: words of the refusal.
    """

    name: str
    catalogue: Catalogue
    make: Callable[[str], Mapping[str, Any]]
    kind: Kind = Kind.DEPENDENCIES
    outcome: Outcome = Outcome.ANSWERED
    words: str = ""

    @property
    def content(self) -> Mapping[str, Any]:
        """The content of the request."""
        return self.make(self.catalogue.name)


def contents(
    fqn: str,
    version: str,
    requirements: Mapping[str, str] | None = None,
    classes: Mapping[str, Collection[str]] | None = None,
) -> Contents:
    """Return the contents of a package, by default with one class, ``FQN.Thing``.

    :param classes: class -> its bases.
    """
    classes = {f"{fqn}.Thing": ()} if classes is None else classes
    required = {**(requirements or {}), fqn: version.partition(".")[0]}
    specs = {name: VersionSpec.of(text) for name, text in required.items()}
    manifest = Manifest(
        fqn=fqn,
        version=Version(version),
        format=Format.of("1.4"),
        package_type="Library",
        display_name="Thing",
        description="",
        author="Somebody",
        supplier={},
        tags=("costly",),
        classes={name: f"{number}.yaml" for number, name in enumerate(classes)},
        requirements=specs,
        ui=None,
        logo=None,
        document={},
        warnings=(),
    )
    definitions = tuple(ClassDefinition(name, tuple(bases)) for name, bases in classes.items())
    return Contents(manifest, definitions, specs)


def _excluding(number: int, form: str, clauses: int) -> str:
    """Return a range that excludes some versions; another one for each number."""
    return ",".join(f"!={form.format((number * 7 + clause) % 9000)}" for clause in range(clauses))


def _versions(form: str, count: int) -> Callable[[str], Iterator[Contents]]:
    return lambda prefix: (contents(f"{prefix}.db", form.format(n)) for n in range(count))


def _objects(prefix: str, ranges: Iterable[str], **others: Any) -> Mapping[str, Any]:
    """Return a query with an object for each range."""
    found = [{"class": f"{prefix}.db.Thing", "version": range_} for range_ in ranges]
    return {"objects": found, **others}


def _required(fqns: Iterable[str], **others: Any) -> Mapping[str, Any]:
    return {"requirements": dict.fromkeys(fqns, "1"), **others}


_IDENTIFIERS = ".".join(["a"] * 480)
_OBJECTS = range(1000)

PRERELEASES = Catalogue("org.prereleases", _versions("1.0.0-rc.{}", 100))
BUILDS = Catalogue("org.builds", _versions("1.0.0+b.{}", 100))
LONG = Catalogue("org.long", _versions(f"1.0.0-{_IDENTIFIERS}.{{}}", 60))
VERSIONS = Catalogue("org.versions", _versions("1.{}.0", 2000))


def _requiring_prereleases(prefix: str) -> Iterator[Contents]:
    yield from PRERELEASES.make(prefix)
    for number in range(500):
        range_ = _excluding(number, "1.0.0-rc.{}", 15)
        yield contents(f"{prefix}.app{number}", "1.0.0", {f"{prefix}.db": range_})


def _unsatisfied(prefix: str) -> Iterator[Contents]:
    yield from _versions("1.{}.0", 8000)(prefix)
    for number in range(1000):
        yield contents(f"{prefix}.app{number}", "1.0.0", {f"{prefix}.db": f"77.{number}"})


def _mixed(prefix: str) -> Iterator[Contents]:
    for number in range(2000):
        yield contents(f"{prefix}.db", f"1.{number}.0{'-rc.1' * (number % 2)}")


def _long_requirements(prefix: str) -> Iterator[Contents]:
    for number in range(24):
        first = number * 200
        ranges = {
            f"{prefix}.lib{first + n}": _excluding(first + n, "1.{}.0", 20) for n in range(200)
        }
        yield contents(f"{prefix}.app{number}", "1.0.0", ranges)


def _dense(prefix: str) -> Iterator[Contents]:
    dice = random.Random(0)
    names = [f"{prefix}.app{number}" for number in range(1500)]
    for name in names:
        yield contents(name, "1.0.0", dict.fromkeys(set(dice.sample(names, 200)) - {name}, "1"))


def _ring(prefix: str) -> Iterator[Contents]:
    for number in range(100):
        following = f"{prefix}.app{(number + 1) % 100}"
        newest = "*" if number < 99 else "<2"
        yield contents(f"{prefix}.app{number}", "2.0.0", {following: newest})
        yield contents(f"{prefix}.app{number}", "1.0.0", {following: "<2"})


def _exclusive(prefix: str) -> Iterator[Contents]:
    """Packages in cycles whose versions exclude each other."""
    for number in range(40):
        for major in range(1, 7):
            following, another = ((number + 1) % 40, (number * 7 + 3) % 40)
            ranges = {
                f"{prefix}.app{another}": f">={major * 3 % 6 + 1}",
                f"{prefix}.app{following}": f"<{major}" if major > 1 else "*",
            }
            yield contents(f"{prefix}.app{number}", f"{major}.0.0", ranges)


def _chain(prefix: str) -> Iterator[Contents]:
    """A chain in which each package also requires missing ones."""
    missing = [f"{prefix}.missing{number}" for number in range(60)]
    for number in range(60):
        required = [f"{prefix}.app{number + 1}", *missing]
        yield contents(f"{prefix}.app{number}", "1.0.0", dict.fromkeys(required, "1"))


def _plugins(prefix: str) -> Iterator[Contents]:
    for number in range(200):
        ranges = {f"{prefix}.plugin{n}": "<1" for n in range(250)}
        yield contents(f"{prefix}.app{number}", "1.0.0", ranges)


def _many_classes(prefix: str) -> Iterator[Contents]:
    names = [f"{prefix}.C{number:04}" for number in range(1000)]
    for number in range(72):
        yield contents(f"{prefix}.app{number}", "1.0.0", classes=dict.fromkeys(names, ()))


def _wide(prefix: str) -> Iterator[Contents]:
    """Packages that extend a class, but require other versions than define it."""
    base = f"{prefix}.base"
    for minor in range(500):
        yield contents(base, f"1.{minor}.0", classes={f"{base}.Base": ()})
    for number in range(1000):
        fqn = f"{prefix}.app{number}"
        range_ = f"{_excluding(number, '1.{}.0', 20)},>=2"
        yield contents(fqn, "1.0.0", {base: range_}, {f"{fqn}.Thing": (f"{base}.Base",)})


def _deep(prefix: str) -> Iterator[Contents]:
    """A hierarchy with a class on each level, in packages that require each other."""
    for number in range(16):
        fqn, before = f"{prefix}{number}", f"{prefix}{number - 1}"
        extends = {f"{fqn}.C{n}": (f"{fqn}.C{n - 1}",) if n else () for n in range(500)}
        if number:
            extends[f"{fqn}.C0"] = (f"{before}.C499",)
        yield contents(fqn, "1.0.0", {before: "1"} if number else {}, extends)


def _found_again(prefix: str) -> Iterator[Contents]:
    """A class in many versions, each of which is found a level later than the one before."""
    base, again = f"{prefix}.Base", f"{prefix}.again"
    yield contents(prefix, "1.0.0", classes={base: ()})
    for number in range(60):
        fqn, before = f"{prefix}.level{number}", f"{prefix}.level{number - 1}"
        extended = (base, prefix) if number == 0 else (f"{before}.Thing", before)
        yield contents(fqn, "1.0.0", {extended[1]: "1"}, {f"{fqn}.Thing": (extended[0],)})
        extends = {f"{again}.Thing": (f"{fqn}.Thing",)}
        yield contents(again, f"1.{number}.0", {fqn: "1"}, extends)
    for number in range(500):
        fqn = f"{prefix}.app{number}"
        yield contents(fqn, "1.0.0", {again: f"77.{number}"}, {f"{fqn}.Thing": (f"{again}.Thing",)})


def _popular(prefix: str) -> Iterator[Contents]:
    """A package on whose oldest version many others depend."""
    yield contents(f"{prefix}.db", "1.0.0")
    for minor in range(3000):
        yield contents(f"{prefix}.db", f"2.{minor}.0")
    for number in range(3000):
        range_ = f"{_excluding(number, '3.{}.0', 20)},<2"
        yield contents(f"{prefix}.app{number}", "1.0.0", {f"{prefix}.db": range_})


def _hard_ranges() -> Iterator[str]:
    dice = random.Random(1)
    versions = [f"1.{minor}.0" for minor in range(30)]
    for _ in range(60):
        yield ",".join(f"!={version}" for version in dice.sample(versions, 27))


REQUIRING = Catalogue("org.requiring", _requiring_prereleases)
UNSATISFIED = Catalogue("org.unsatisfied", _unsatisfied)
MIXED = Catalogue("org.mixed", _mixed)
LONG_REQUIREMENTS = Catalogue("org.ranges", _long_requirements)
DENSE = Catalogue("org.dense", _dense)
RING = Catalogue("org.ring", _ring)
EXCLUSIVE = Catalogue("org.exclusive", _exclusive)
CHAIN = Catalogue("org.chain", _chain)
PLUGINS = Catalogue("org.plugins", _plugins)
MANY_CLASSES = Catalogue("org.classes", _many_classes)
FEW = Catalogue("org.few", _versions("1.{}.0", 30))
WIDE = Catalogue("org.wide", _wide)
DEEP = Catalogue("deep", _deep)
FOUND_AGAIN = Catalogue("org.again", _found_again)
POPULAR = Catalogue("org.popular", _popular)

_stopped = functools.partial(CostlyQuery, outcome=Outcome.STOPPED, words="stopped")

QUERIES = (
    CostlyQuery(
        "pre-releases in ranges of 32 clauses",
        PRERELEASES,
        lambda p: _objects(p, (_excluding(n, "1.0.0-rc.{}", 32) for n in _OBJECTS)),
    ),
    CostlyQuery(
        "pre-releases that are not wanted",
        PRERELEASES,
        lambda p: _objects(
            p, (_excluding(n, "1.0.0-rc.{}", 32) for n in _OBJECTS), prereleases=False
        ),
    ),
    CostlyQuery(
        "pre-releases that many packages require",
        REQUIRING,
        lambda p: _required(f"{p}.app{number}" for number in range(500)),
    ),
    CostlyQuery(
        "versions that differ in build metadata",
        BUILDS,
        lambda p: _objects(p, (_excluding(n, "1.0.0+b.{}", 32) for n in _OBJECTS)),
    ),
    CostlyQuery(
        "versions and ranges of a thousand characters",
        LONG,
        lambda p: _objects(p, (f">=1.0.0-{_IDENTIFIERS[:879]}.{n}" for n in _OBJECTS)),
    ),
    CostlyQuery(
        "many versions in many ranges",
        VERSIONS,
        lambda p: _objects(p, (_excluding(n * 5, "1.{}.0", 32) for n in _OBJECTS)),
    ),
    CostlyQuery(
        "an exact version for each object",
        VERSIONS,
        lambda p: _objects(p, (f"1.{n}.0" for n in _OBJECTS), why=True),
    ),
    CostlyQuery(
        "reasons for many ranges",
        VERSIONS,
        lambda p: _objects(p, (f"<1.{n + 900}" for n in _OBJECTS), why=True),
    ),
    CostlyQuery(
        "versions that no range takes",
        VERSIONS,
        lambda p: _objects(p, (f"77.{number}.0" for number in range(100))),
    ),
    CostlyQuery(
        "every second version is left out",
        MIXED,
        lambda p: _objects(p, (f">=1.{n},<1.{n + 900}" for n in _OBJECTS), prereleases=False),
    ),
    CostlyQuery(
        "ranges that no version satisfies",
        UNSATISFIED,
        lambda p: _required(f"{p}.app{number}" for number in range(1000)),
    ),
    CostlyQuery(
        "a hundred thousand pins",
        FEW,
        lambda p: _objects(
            p, ["*"], pins={f"p{n}": [f"{n}.{k}" for k in range(100)] for n in range(1000)}
        ),
    ),
    CostlyQuery(
        "long pins in many ranges",
        FEW,
        lambda p: _objects(
            p,
            (f">=1.{n % 30}" for n in _OBJECTS),
            pins={f"{p}.db": [f"1.0.0-{_IDENTIFIERS}.{k}" for k in range(100)]},
        ),
    ),
    CostlyQuery(
        "a class with a very long name",
        FEW,
        lambda p: {"objects": [{"class": f"{p}.{'x' * 900_000}", "version": "*"}]},
    ),
    CostlyQuery(
        "missing classes beside many",
        MANY_CLASSES,
        lambda p: {"objects": [{"class": f"{p}.C{n:04}x", "version": "*"} for n in range(64)]},
    ),
    CostlyQuery(
        "ranges whose versions are hard to choose",
        FEW,
        lambda p: _objects(p, _hard_ranges()),
        outcome=Outcome.REFUSED,
        words="cannot be found in reasonable time",
    ),
    CostlyQuery("a ring of changes", RING, lambda p: _required([f"{p}.app0", f"{p}.app1"])),
    CostlyQuery(
        "cycles whose versions exclude each other",
        EXCLUSIVE,
        lambda p: {"requirements": {f"{p}.app{n}": "*" for n in range(40)}, "why": True},
    ),
    CostlyQuery(
        "subclasses that require other versions",
        WIDE,
        lambda p: {"class": f"{p}.base.Base"},
        kind=Kind.SUBCLASSES,
    ),
    CostlyQuery(
        "a class that is found again and again",
        FOUND_AGAIN,
        lambda p: {"class": f"{p}.Base"},
        kind=Kind.SUBCLASSES,
    ),
    CostlyQuery(
        "packages with many long ranges",
        LONG_REQUIREMENTS,
        lambda p: _required(f"{p}.app{number}" for number in range(24)),
    ),
    _stopped(
        "packages that require each other",
        DENSE,
        lambda p: _required([f"{p}.app0", f"{p}.app1"], why=True),
    ),
    CostlyQuery("a chain that misses many packages", CHAIN, lambda p: _required([f"{p}.app0"])),
    _stopped(
        "plug-ins in other versions",
        PLUGINS,
        lambda p: _required(
            (f"{p}.app{number}" for number in range(200)),
            provided={f"{p}.plugin{n}": [f"1.{k}.0" for k in range(100)] for n in range(250)},
        ),
    ),
    _stopped("a deep hierarchy", DEEP, lambda p: {"class": f"{p}0.C0"}, kind=Kind.SUBCLASSES),
    _stopped(
        "the dependents of a popular package",
        POPULAR,
        lambda p: {"name": f"{p}.db", "version": "1.0.0"},
        kind=Kind.DELETION,
    ),
)
