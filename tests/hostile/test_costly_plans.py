# SPDX-License-Identifier: Apache-2.0

"""The costly queries, for a loader that plans by itself: each ends soon after the loader's limit.

The packages could be legal, and still be costly: what they are is tested here as well.
"""

import collections
import functools
import time
from collections.abc import Callable, Collection, Iterable, Iterator

import pytest

from glare_murano import fields, images, wire
from glare_murano.budget import Budget
from glare_murano.eligibility import Eligibility
from glare_murano.package import Unplannable, VersionSpec
from glare_murano.package.manifest import MAX_REQUIREMENTS, check_fqn
from glare_murano.stored_contents import StoredContents
from glare_murano.wire import Release
from loader import resolution, subclass_search
from loader.catalogs.base import Catalog
from tests.hostile import queries
from tests.hostile.queries import QUERIES, CostlyQuery, Kind

pytestmark = pytest.mark.programs

LIMIT = 1
# Quiet machines keep to one second.
GRACE = 3
# The largest property of an image that every database can store, in bytes.
MAX_PROPERTY = 65_535

CATALOGUES = [each for each in vars(queries).values() if isinstance(each, queries.Catalogue)]


class _Memory(Catalog):
    """The packages of a catalogue, found at once."""

    def __init__(self, catalogue: queries.Catalogue) -> None:
        super().__init__(catalogue.name)
        self._by_fqn: dict[str, list[Release]] = collections.defaultdict(list)
        self._by_class: dict[str, list[Release]] = collections.defaultdict(list)
        self._by_base: dict[str, list[Release]] = collections.defaultdict(list)
        for number, contents in enumerate(catalogue.make(catalogue.name)):
            release = Release.from_contents(contents, str(number))
            self._by_fqn[release.fqn].append(release)
            for name in release.classes:
                self._by_class[name].append(release)
            for name in release.inherits:
                self._by_base[name].append(release)

    def releases(self, fqn: str) -> Iterable[Release]:
        return self._by_fqn.get(fqn, ())

    def releases_defining(self, class_name: str) -> Iterable[Release]:
        return self._by_class.get(class_name, ())

    def releases_extending(self, class_names: Collection[str]) -> Iterator[Release]:
        found = (each for name in class_names for each in self._by_base.get(name, ()))
        return iter({each.id: each for each in found}.values())

    def fetch(self, release: Release) -> Iterable[bytes]:
        raise NotImplementedError


_catalog = functools.lru_cache(maxsize=1)(_Memory)


def _plan(catalog: Catalog, query: CostlyQuery) -> Callable[[], object]:
    """Return a function that answers a query."""
    if query.kind is Kind.SUBCLASSES:
        name, spec = query.content["class"], VersionSpec.of("*")
        eligibility = Eligibility()
        return lambda: subclass_search.search(
            [catalog], name, spec, None, wire.MAX_SUBCLASSES, LIMIT, {}, eligibility
        )
    sought = wire.query_from_json(query.content, Budget(60, ""))
    return lambda: resolution.by_level([catalog], sought, LIMIT)


@pytest.mark.parametrize(
    "query",
    [each for each in QUERIES if each.kind is not Kind.DELETION],
    ids=lambda query: query.name,
)
def test_a_plan_ends_soon_after_its_limit(query: CostlyQuery) -> None:
    plan = _plan(_catalog(query.catalogue), query)
    start = time.process_time()
    refusal = ""
    try:
        plan()
    except Unplannable as error:
        refusal = str(error)

    assert time.process_time() - start < LIMIT + GRACE
    assert not refusal or query.words in refusal or f"after {LIMIT} seconds" in refusal


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda catalogue: catalogue.name)
def test_the_packages_are_legal(catalogue: queries.Catalogue) -> None:
    seen = set()
    for contents in catalogue.make(catalogue.name):
        seen.add((contents.manifest.fqn, str(contents.manifest.version)))
        # Contents that exceed a limit are refused.
        stored = StoredContents.of(contents)
        assert len(contents.requirements) <= MAX_REQUIREMENTS
        check_fqn(contents.manifest.fqn, fields.MAX_NAME)
        largest = max(map(len, images.properties(stored, "0" * 64).values()))
        assert largest <= MAX_PROPERTY
    assert len(seen) == len(list(catalogue.make(catalogue.name)))
