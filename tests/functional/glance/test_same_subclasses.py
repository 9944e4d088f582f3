# SPDX-License-Identifier: Apache-2.0

"""The same packages in Glance, in Glare and in directories give the same subclasses."""

import collections
import itertools
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import hypothesis
from hypothesis import strategies as st

from benchmarks import catalogue
from glare_murano import images as form
from glare_murano.package import Archive, Contents, Version, VersionSpec, read_contents
from glare_murano.resolver import newest_first
from loader import DirectoryCatalog, GlareCatalog, PackageLoader
from loader.catalogs.base import Catalog
from tests import effort, packages
from tests.functional.client import PACKAGES, SUBCLASSES, Client
from tests.functional.glance import stored
from tests.functional.glance.conftest import Catalogs
from tests.functional.glance.image_client import ImageClient
from tests.functional.glance.service import Glance
from tests.unit.published import RANGES, VERSIONS

NAMES = ("base", "a", "b")
CLASSES = tuple(f"{name}.{kind}" for name in NAMES for kind in ("One", "Two"))
# Of the project itself, of another one for all, and of a third one for itself: in this order.
VISIBILITY = {"own": "private", "public": "public", "hidden": "private"}
OWNERS = tuple(VISIBILITY)

_counter = itertools.count()


class Made(NamedTuple):
    """A version of a package.

    :ivar extends: class -> its bases; all without the name of the example.
    """

    name: str
    version: str
    owner: str
    require: Mapping[str, str]
    extends: Mapping[str, list[str]]
    is_yanked: bool

    def without_cycles(self) -> "Made":
        """The same without classes that extend themselves, which services refuse."""
        own = [f"{self.name}.One", f"{self.name}.Two"]
        extends = {
            kind: [base for base in bases if base not in own or (kind, base) == ("Two", own[0])]
            for kind, bases in self.extends.items()
        }
        return self._replace(extends=extends)

    def files(self, prefix: str) -> dict[str, bytes]:
        """The files of the package, whose names have a prefix."""
        require = {prefix + name: spec for name, spec in self.require.items()}
        classes = {f"{prefix}{self.name}.{kind}": f"{kind}.yaml" for kind in self.extends}
        keys = {"Classes": classes, "Require": require, "Tags": ["made"]}
        files = packages.content(prefix + self.name, self.version, **keys)
        for kind, bases in self.extends.items():
            listed = ", ".join(prefix + base for base in bases)
            text = f"Name: {prefix}{self.name}.{kind}\nExtends: [{listed}]\n"
            files[f"Classes/{kind}.yaml"] = text.encode()
        return files


_made = st.builds(
    Made,
    st.sampled_from(NAMES),
    st.sampled_from(VERSIONS),
    st.sampled_from(OWNERS),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(RANGES), max_size=3),
    st.dictionaries(
        st.sampled_from(("One", "Two")), st.lists(st.sampled_from(CLASSES), max_size=2, unique=True)
    ),
    st.booleans(),
).map(Made.without_cycles)


def expected(
    found: list[Made], class_name: str, spec: VersionSpec, package: str | None
) -> list[dict[str, Any]]:
    """The subclasses, by going over all classes of all packages until nothing is added."""
    best = {(made.name, made.version): made for made in found}
    bases = {
        key
        for key, made in best.items()
        if class_name in (f"{made.name}.{kind}" for kind in made.extends)
        and made.name == (package or made.name)
        and spec.match(Version(made.version))
    }
    defined = collections.defaultdict(set)
    extends = collections.defaultdict(set)
    while True:
        before = {name: set(keys) for name, keys in defined.items()}
        for (key, made), (kind, names) in (
            (item, each) for item in best.items() for each in item[1].extends.items()
        ):
            for base in names:
                usable = defined[base] | (bases if base == class_name else set())
                if key in usable or any(
                    name != made.name
                    and name in made.require
                    and VersionSpec.of(made.require[name]).match(Version(version))
                    for name, version in usable
                ):
                    defined[f"{made.name}.{kind}"].add(key)
                    extends[f"{made.name}.{kind}"].add(base)
        if before == defined:
            break
    return [
        {
            "class": name,
            "extends": sorted(extends[name]),
            "packages": {
                fqn: [str(v) for v in newest_first({Version(v) for _, v in versions})]
                for fqn, versions in itertools.groupby(sorted(defined[name]), lambda key: key[0])
            },
        }
        for name in sorted(extends)
    ]


def _best(found: list[Made]) -> list[Made]:
    """The packages that the project sees: of the same version, its own."""
    seen = {}
    for made in sorted(found, key=lambda each: OWNERS.index(each.owner)):
        if made.owner != "hidden":
            seen.setdefault((made.name, made.version), made)
    return list(seen.values())


def _pages(get: Callable[[dict[str, str]], Any], query: dict[str, str]) -> Iterator[Any]:
    """All subclasses, from all pages of a service."""
    answer = get(query).json()
    yield from answer["subclasses"]
    while "next" in answer:
        assert len(answer["subclasses"]) == int(query["limit"])
        answer = get({**query, "marker": answer["subclasses"][-1]["class"]}).json()
        yield from answer["subclasses"]


def _of_loader(
    catalogs: list[Catalog], cache: pathlib.Path, query: dict[str, str], maximum: int
) -> tuple[list[Any], bool]:
    with PackageLoader(catalogs, cache, max_subclasses=maximum) as loader:
        answer = loader.subclasses(query["class"], query.get("version", "*"), query.get("package"))
    return [each.to_json() for each in answer.found], answer.is_truncated


@hypothesis.settings(
    max_examples=effort.CLOSURES,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    found=st.lists(_made, max_size=12, unique_by=lambda each: each[:3]),
    class_name=st.sampled_from(CLASSES),
    version=st.none() | st.sampled_from(RANGES),
    package=st.none() | st.sampled_from(NAMES),
    limit=st.integers(1, 3),
)
@hypothesis.example(
    found=[
        Made("base", "1.0.0", "public", {}, {"One": []}, False),
        Made("a", "1.0.0", "public", {"base": "*"}, {"One": ["base.One"]}, False),
        Made("a", "1.0.0", "own", {"base": "*"}, {}, False),
    ],
    class_name="base.One",
    version=None,
    package=None,
    limit=1,
)
@hypothesis.example(
    found=[
        Made("base", "1.0.0", "public", {}, {"One": []}, False),
        Made("base", "1.0.0", "own", {}, {}, False),
        Made("a", "1.0.0", "own", {"base": "*"}, {"One": ["base.One"]}, False),
    ],
    class_name="base.One",
    version=None,
    package=None,
    limit=1,
)
def test_glance_glare_and_directories_give_the_same_subclasses(
    glance: Glance,
    catalog_of: Catalogs,
    as_user: Callable[[str], Client],
    images_of: Callable[..., ImageClient],
    state_dir: pathlib.Path,
    tmp_path: pathlib.Path,
    found: list[Made],
    class_name: str,
    version: str | None,
    package: str | None,
    limit: int,
) -> None:
    number = next(_counter)
    prefix, projects = f"s{number}.", {owner: f"{owner}{number}" for owner in OWNERS}
    project = projects["own"]
    contents = [_contents(made, prefix, tmp_path / made.owner) for made in found]
    places = [(projects[made.owner], VISIBILITY[made.owner]) for made in found]
    properties = [{form.YANKED: "old"} if made.is_yanked else {} for made in found]
    stored.store(
        glance,
        [
            stored.Package(read, *place, properties=each)
            for read, place, each in zip(contents, places, properties, strict=True)
        ],
    )
    catalogue.load(
        state_dir / "glare.sqlite",
        [catalogue.Artifact(read, *place) for read, place in zip(contents, places, strict=True)],
    )
    for made in found:
        if made.is_yanked:
            _yank(as_user(projects[made.owner]), projects[made.owner], made, prefix)
    glare = as_user(project)
    in_glare = GlareCatalog(glare.session(), project_id=project, endpoint=glare.url)
    halves = [tmp_path / f"{prefix}{half}" for half in range(2)]
    for half, made in enumerate(_best(found)):
        _contents(made, prefix, halves[half % 2])
    directories = [DirectoryCatalog(half) for half in halves if half.exists()]
    query = {"class": prefix + class_name}
    if version is not None:
        query["version"] = version
    if package is not None:
        query["package"] = prefix + package
    spec = VersionSpec.of("*" if version is None else version)

    answer = expected(_best(found), class_name, spec, package)

    def plain(answer: Any) -> Any:
        return json.loads(json.dumps(answer).replace(prefix, ""))

    paged, images = {**query, "limit": str(limit)}, images_of(project)
    for get in (
        lambda query: glare.query(SUBCLASSES, query),
        lambda query: images.request("GET", SUBCLASSES, params=query),
    ):
        assert plain(list(_pages(get, paged))) == answer
    _check_lists((glare.query, images.read), query, prefix, answer)
    in_glance = catalog_of(project)
    mixed = [*directories[:1], in_glare, in_glance]
    for catalogs in ([in_glare], [in_glance], directories, [*directories[:1], in_glare], mixed):
        if catalogs:
            shown, is_truncated = _of_loader(catalogs, tmp_path / "cache", query, limit)
            assert plain(shown) == answer[:limit]
            assert is_truncated == (len(answer) > limit)


def _check_lists(
    reads: tuple[Callable[..., Any], ...], query: dict[str, str], prefix: str, answer: list[Any]
) -> None:
    """Check which packages are listed that define subclasses; a list has no other conditions."""
    if query.keys() != {"class"}:
        return
    defining = {
        (prefix + fqn, version)
        for subclass in answer
        for fqn, versions in subclass["packages"].items()
        for version in versions
    }
    for read in reads:
        listed = read(PACKAGES, {"subclass_of": query["class"], "distinct": "version"}).json()
        assert {(each["name"], each["version"]) for each in listed["packages"]} == defining


def _yank(client: Client, owner: str, made: Made, prefix: str) -> None:
    filters = {"name": prefix + made.name, "version": made.version, "owner": owner}
    (artifact,) = client.request("GET", "", params=filters).json()["artifacts"]
    assert client.yank(artifact["id"], "old").status_code == 200


def _contents(made: Made, prefix: str, folder: pathlib.Path) -> Contents:
    place = folder / f"{prefix}{made.name}" / made.version
    with Archive.open(packages.write(place, made.files(prefix))) as archive:
        return read_contents(archive)
