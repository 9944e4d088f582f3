# SPDX-License-Identifier: Apache-2.0

"""Lock files of random closures, their reproduction and their updates."""

import dataclasses
import pathlib
import random
import stat
from collections.abc import Collection, Mapping
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import loader
from glare_murano import resolver
from glare_murano.package import Version, VersionSpec
from glare_murano.wire import Query
from loader import resolution
from loader.catalogs.directory import DirectoryCatalog
from tests import effort, packages
from tests.unit import published
from tests.unit.published import Packages, catalog, ranges

_MANY = settings(
    max_examples=effort.GRAPHS, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _has(found: Packages, fqn: str, text: str) -> bool:
    return any(map(VersionSpec.of(text).match, map(Version, found.get(fqn, ()))))


def _answered(found: Packages, requirements: Mapping[str, str]) -> dict[str, str]:
    """Return the requirements with a version in their range."""
    return {fqn: text for fqn, text in requirements.items() if _has(found, fqn, text)}


def _whole(found: Packages, older: Packages) -> Packages:
    """Return packages without their unsatisfied requirements."""
    return {
        fqn: {
            version: _answered(older if version in older.get(fqn, {}) else found, required)
            for version, required in versions.items()
        }
        for fqn, versions in found.items()
    }


class _Published:
    """A catalogue at the creation of a lock, and later.

    :ivar replaced: releases that have another archive later, as ``FQN version``.
    """

    def __init__(
        self, older: Packages, newer: Packages, replaced: Collection[str] = frozenset()
    ) -> None:
        now = {fqn: {**newer.get(fqn, {}), **older.get(fqn, {})} for fqn in {**older, **newer}}
        self.older = _whole(older, older)
        self.now = _whole(now, older)
        self.replaced = replaced

    def later(self) -> published.Shelf:
        return catalog(self.now, replaced=self.replaced)


_releases = [f"{fqn} {version}" for fqn in published.NAMES for version in published.VERSIONS]
_published = st.builds(
    _Published,
    published.packages,
    published.packages,
    st.frozensets(st.sampled_from(_releases)),
)


def _lock(found: Packages, roots: Mapping[str, str]) -> loader.Lock:
    return loader.Lock.create([catalog(found)], ranges(_answered(found, roots)))


def _query(lock: loader.Lock) -> Query:
    return Query(tuple(lock.requirements.items()))


def _planned(lock: loader.Lock, *later: published.Shelf) -> set[str]:
    """Return the digests of the releases that are loaded from a lock."""
    locked = loader.LockedCatalog(lock, later)
    resolved = resolution.resolve([locked], _query(lock))
    assert not resolved.unsatisfied
    return {choice.release.digest for choice in resolved.chosen}


def _answers(resolved: resolution.Resolution) -> dict[resolver.Demand, str]:
    """Return the release of each requirement."""
    return {d: str(choice.release) for choice in resolved.chosen for d in choice.demands}


def _digests(lock: loader.Lock) -> set[str]:
    return {release.digest for release in lock.releases}


@_MANY
@given(_published, published.requirements)
@example(
    # One version of "a" would do for "b" and "c" alone.
    _Published(
        {
            "a": {"1.0.0": {}, "1.1.0": {}},
            "b": {"1.0.0": {"a": "1", "c": "*"}},
            "c": {"1.0.0": {"a": "1.0"}},
            "on": {"1.0.0": {"a": "1.1"}},
        },
        {},
    ),
    {"b": "*", "on": "*"},
)
def test_a_lock_has_the_closure_of_its_requirements(
    tmp_path: pathlib.Path, catalogue: _Published, roots: Mapping[str, str]
) -> None:
    lock = _lock(catalogue.older, roots)
    lock.save(tmp_path / "lock")
    # Whoever else writes YAML may write it in another way.
    again = yaml.safe_dump(yaml.safe_load((tmp_path / "lock").read_text()), width=20)
    (tmp_path / "again").write_text(again)

    before = resolution.resolve([catalog(catalogue.older)], _query(lock))

    assert _digests(lock) == {choice.release.digest for choice in before.chosen}
    for name in ("lock", "again"):
        read = loader.Lock.load(tmp_path / name)
        assert read == lock
        assert _planned(read, catalogue.later()) == _digests(lock)
    # An engine loads packages one after the other, and gets the same releases.
    answers = _answers(before)
    for demand in answers:
        alone = Query(((demand.fqn, demand.spec),))
        loaded = _answers(resolution.resolve([loader.LockedCatalog(lock)], alone))
        root = resolver.Demand(demand.fqn, demand.spec, None)
        assert loaded.pop(root) == answers[demand]
        assert loaded.items() <= answers.items()


@_MANY
@given(_published, published.requirements, st.randoms())
def test_without_new_releases_the_file_stays_the_same(
    tmp_path: pathlib.Path, catalogue: _Published, roots: Mapping[str, str], random: random.Random
) -> None:
    def shuffled(items: Mapping[str, Any]) -> dict[str, Any]:
        inside = [(k, shuffled(v) if isinstance(v, dict) else v) for k, v in items.items()]
        return dict(random.sample(inside, len(inside)))

    lock = _lock(catalogue.older, roots)
    otherwise = shuffled(catalogue.older)
    again = _lock(otherwise, shuffled(roots))
    updated = lock.update([catalog(otherwise)])

    for name, one in {"lock": lock, "again": again, "updated": updated}.items():
        one.save(tmp_path / name)
    files = {(tmp_path / name).read_bytes() for name in ("lock", "again", "updated")}
    assert len(files) == 1


@_MANY
@given(_published, published.requirements)
def test_an_update_of_all_equals_a_new_lock(
    catalogue: _Published, roots: Mapping[str, str]
) -> None:
    now = [catalogue.later()]
    lock = _lock(catalogue.older, roots)

    assert lock.update(now) == loader.Lock.create(now, lock.requirements)


@_MANY
@given(_published, published.requirements)
@example(
    # One version of "a" serves in the end, beside which the one that was kept drops out.
    _Published(
        {"a": {"1.0.0": {}}, "b": {"1.0.0": {"a": "*"}}},
        {"a": {"2.0.0": {}}, "b": {"2.0.0": {"a": "2"}}},
    ),
    {"a": "*", "b": "*"},
)
@example(
    # Both versions of "a" stay, although the older one would serve for both ranges.
    _Published(
        {"a": {"1.0.0": {}, "1.1.0": {"b": "*"}}, "b": {"1.0.0": {}}},
        {"b": {"1.1.0": {"a": "1.0"}}},
    ),
    {"a": "*"},
)
@example(
    # Of "b", which is left out, a range upon "a" is kept: both require each other.
    _Published(
        {"a": {"0.9.0": {"a": "*", "b": "*"}}, "b": {"0.9.0": {}}},
        {"a": {"1.0.0": {}}, "b": {"1.0.0-rc.1": {"a": "1"}}},
    ),
    {"a": "*"},
)
def test_an_update_of_one_changes_others_only_if_required(
    catalogue: _Published, roots: Mapping[str, str]
) -> None:
    now = [catalog(catalogue.now)]
    lock = _lock(catalogue.older, roots)
    for fqn in {release.fqn for release in lock.releases}:
        updated = lock.update(now, [fqn])

        assert _planned(updated) == _digests(updated)
        for release in updated.releases:
            upon = _ranges_upon(updated, release.fqn)
            assert any(spec.match(release.version) for spec in upon)
            kept = [r.version for r in lock.releases if r.fqn == release.fqn]
            changed = release.fqn != fqn and release.version not in kept
            # On a cycle, planning may keep the ranges of releases that it left out.
            if changed and not _is_on_cycle(catalogue.now, release.fqn):
                assert not all(any(map(spec.match, kept)) for spec in upon)


def _is_on_cycle(packages: Packages, fqn: str) -> bool:
    """Whether some version of a package requires it by way of another package."""
    found: set[str] = set()
    waiting = [fqn]
    while waiting:
        name = waiting.pop()
        required = {each for ranges in packages.get(name, {}).values() for each in ranges}
        required -= {name}
        if fqn in required:
            return True
        waiting += required - found
        found |= required
    return False


@_MANY
@given(_published, published.requirements)
@example(
    _Published({"a": {"1.0.0": {}}, "b": {"1.0.0": {"a": "*"}}}, {}, {"a 1.0.0"}),
    {"b": "*"},
)
def test_an_update_accepts_another_archive_only_of_named_packages(
    catalogue: _Published, roots: Mapping[str, str]
) -> None:
    lock = _lock(catalogue.older, roots)
    locked = {str(release): release for release in lock.releases}
    for fqn in {release.fqn for release in lock.releases}:
        # The chosen versions do not depend on archives.
        planned = {str(r): r for r in lock.update([catalog(catalogue.now)], [fqn]).releases}
        replaced = planned.keys() & locked.keys() & catalogue.replaced
        wrong = {release for release in replaced if locked[release].fqn != fqn}
        if not wrong:
            updated = lock.update([catalogue.later()], [fqn])
            changed = {str(r) for r in updated.releases if locked.get(str(r), r) != r}
            assert {str(r) for r in updated.releases} == planned.keys()
            assert changed == replaced
            continue
        with pytest.raises(loader.LockError) as refusal:
            lock.update([catalogue.later()], [fqn])
        reported = next(
            release for release in wrong if f"{release} is locked" in str(refusal.value)
        )
        assert locked[reported].digest in str(refusal.value)
        assert f"update {locked[reported].fqn} as well" in str(refusal.value)


@_MANY
@given(
    st.dictionaries(st.sampled_from(published.VERSIONS), st.just({}), min_size=1),
    st.dictionaries(st.sampled_from(published.VERSIONS), st.just({}), min_size=1),
    st.sampled_from(published.RANGES),
)
def test_an_update_takes_the_newest_version_in_the_range(
    older: Mapping[str, Mapping[str, str]], newer: Mapping[str, Mapping[str, str]], text: str
) -> None:
    lock = _lock({"a": older, "b": {"1.0.0": {}}}, {"a": text, "b": "*"})
    now = {"a": {**older, **newer}, "b": {"1.0.0": {}, "1.1.0": {}}}
    hypothesis.assume(len(lock.releases) == 2)

    updated = lock.update([catalog(now)], ["a"])

    a, b = updated.releases
    newest = resolver.newest_first(map(Version, now["a"]))
    assert a.version == next(filter(VersionSpec.of(text).match, newest))
    assert str(b.version) == "1.0.0"


def _ranges_upon(lock: loader.Lock, fqn: str) -> list[VersionSpec]:
    required = [lock.requirements, *(release.requirements for release in lock.releases)]
    return [requirements[fqn] for requirements in required if fqn in requirements]


def test_a_missing_locked_version_is_reported() -> None:
    required = {"org.wiki": {"1.0.0": {"org.db": "1"}}, "org.log": {"1.0.0": {}}}
    lock = _lock({**required, "org.db": {"1.0.0": {}}}, {"org.wiki": "*", "org.log": "*"})
    now = catalog({**required, "org.db": {"1.3.0": {}, "2.0.0": {}}})

    with pytest.raises(loader.LockError) as refusal:
        lock.update([now], ["org.log"])
    with pytest.raises(loader.LockError, match=r"\(available: none\); update"):
        lock.update([catalog(required)], ["org.log"])
    with pytest.raises(loader.NoSuchPackage):
        lock.update([catalog(required)], ["org.db"])

    assert str(refusal.value) == (
        "org.db is locked to 1.0.0, which the shelf no longer has (available: 2.0.0, 1.3.0); "
        "update org.db as well; the requirements on it: org.wiki * (1.0.0) -> org.db 1"
    )
    updated = lock.update([now], ["org.log", "org.db"])
    assert "org.db 1.3.0" in map(str, updated.releases)


def test_a_release_without_an_archive_cannot_be_locked(tmp_path: pathlib.Path) -> None:
    packages.write(tmp_path / "org.db", packages.content("org.db"))
    directories = DirectoryCatalog(tmp_path)
    archives = catalog({"io.murano": {"0.1.0": {}}, "org.wiki": {"1.0.0": {"org.db": "1"}}})

    with pytest.raises(loader.LockError) as refusal:
        loader.Lock.create([archives, directories], ranges({"org.wiki": "1"}))

    assert str(refusal.value).startswith(f"org.db 1.0.0 in {tmp_path / 'org.db'} is a ")
    assert str(refusal.value).endswith("; replace the directory by a ZIP file of its content")
    locked = loader.Lock.create(
        [archives, catalog({"org.db": {"1.0.0": {}}})], ranges({"org.wiki": "1"})
    )
    with pytest.raises(loader.LockError, match=r"org\.db 1\.0\.0 in .* without a digest to lock"):
        locked.update([archives, directories])


def test_all_missing_packages_are_reported() -> None:
    found = catalog(
        {
            "org.wiki": {"1.0.0": {"org.db": ">=3", "org.log": ">=3"}},
            "org.db": {"1.0.0": {}},
            "org.log": {"2.0.0": {}},
        }
    )

    with pytest.raises(loader.NoSuchPackage) as missing:
        loader.Lock.create([found], ranges({"org.wiki": "1"}))

    assert missing.value.fqn == "org.db"
    assert missing.value.available == (Version("1.0.0"),)
    (other,) = missing.value.others
    assert (other.fqn, other.available) == ("org.log", (Version("2.0.0"),))
    assert str(missing.value).endswith(
        "on it: org.wiki 1 (1.0.0) -> org.db >=3; also missing: package org.log in the range "
        ">=3, required by org.wiki 1.0.0"
    )


def test_a_string_is_refused_as_a_list_of_packages() -> None:
    found: Packages = {"a": {"1.0.0": {}}}
    lock = _lock(found, {"a": "*"})

    with pytest.raises(loader.LockError, match=r"such as \['a'\], not a string"):
        lock.update([catalog(found)], "a")


def test_a_missing_catalogue_is_reported() -> None:
    lock = _lock({"a": {"1.0.0": {}}}, {"a": "*"})

    for attempt in (lambda: loader.Lock.create([], lock.requirements), lambda: lock.update([])):
        with pytest.raises(loader.LockError, match="there is no catalogue to find packages in"):
            attempt()
    with pytest.raises(loader.CatalogError) as refusal:
        list(loader.LockedCatalog(lock).fetch(lock.releases[0]))
    assert "not in the cache and cannot be fetched, since the lock file" in str(refusal.value)
    assert str(refusal.value).endswith("; pass the catalogues that it was created from")
    assert "was not found" not in str(refusal.value)


@pytest.mark.parametrize("name", ["org/db", "", 1, None])
def test_an_invalid_name_is_refused(name: Any) -> None:
    with pytest.raises(loader.InvalidName):
        loader.Lock.create(catalog({}), {name: "1"})


def test_a_lock_file_stays_a_link_with_its_mode(tmp_path: pathlib.Path) -> None:
    file, link = tmp_path / "shared.lock", tmp_path / "packages.lock"
    file.touch(mode=0o600)
    link.symlink_to(file.name)
    lock = loader.Lock({}, ())

    lock.save(link)

    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert loader.Lock.load(file) == lock


def test_a_directory_is_not_a_lock_file(tmp_path: pathlib.Path) -> None:
    lock = _lock({"a": {"1.0.0": {}}}, {"a": "*"})

    with pytest.raises(loader.LockError, match=f"{tmp_path}: Is a directory; name a readable file"):
        loader.Lock.load(tmp_path)
    with pytest.raises(loader.LockError, match="exists, and is not a file; name a file in a"):
        lock.save(tmp_path)


def test_what_could_not_be_read_again_is_not_written(tmp_path: pathlib.Path) -> None:
    (release,) = _lock({"a": {"1.0.0": {}}}, {"a": "*"}).releases
    zero = VersionSpec.of("0")
    file = tmp_path / "lock"
    for changes, message in (
        ({"yanked": "\ud800"}, "surrogates not allowed"),
        ({"requirements": {f"a{n}": zero for n in range(60_000)}}, "more than 100000 values"),
        ({"requirements": {f"a{n}": zero for n in range(90_000)}}, "at most 1048576 are allowed"),
    ):
        lock = loader.Lock({}, (dataclasses.replace(release, **changes),))
        with pytest.raises(
            loader.LockError, match=f"cannot write the lock file {file}: .*{message}"
        ):
            lock.save(file)
        assert not file.exists()


@pytest.mark.parametrize("path", ["", "/", "a\0b"])
def test_a_lock_file_needs_a_name(path: str) -> None:
    with pytest.raises(loader.LockError, match="cannot write the lock file"):
        loader.Lock({}, ()).save(path)


def test_a_package_missing_in_a_lock_file_is_reported_with_its_remedy(
    tmp_path: pathlib.Path,
) -> None:
    locked = loader.LockedCatalog(_lock({"a": {"1.0.0": {}}}, {"a": "*"}))
    with loader.PackageLoader(locked, tmp_path) as package_loader:
        with pytest.raises(loader.NoSuchPackage) as missing:
            package_loader.load("b", "1")
        with pytest.raises(loader.NoSuchClass) as undefined:
            package_loader.load_class_package("b.Thing", "1")

    remedy = "check the name; or create the lock file again from catalogues with a"
    assert str(missing.value).endswith(f"; {remedy} version in the range; or change the range")
    assert f"; {remedy} package in the range that defines the class" in str(undefined.value)


def test_a_locked_archive_that_is_another_is_reported_with_its_remedy() -> None:
    found: Packages = {"a": {"1.0.0": {}}}
    lock = _lock(found, {"a": "*"})
    other = catalog(found)
    release = dataclasses.replace(lock.releases[0], digest="0" * 64)

    with pytest.raises(loader.CatalogError, match="restore this archive there, or create the"):
        list(loader.LockedCatalog(lock, other).fetch(release))


@pytest.mark.parametrize(
    ("pins", "chosen"),
    [
        ([], {"db 1.3.0"}),
        (["1.2.0"], {"db 1.2.0"}),
        (["1.2.0", "2.0.0"], {"db 1.2.0"}),
        # A pin outside of the range does not count, and the newest locked version is chosen.
        (["2.0.0"], {"db 1.3.0"}),
    ],
)
def test_a_locked_pin_is_chosen_and_not_a_newer_locked_version(
    pins: list[str], chosen: set[str]
) -> None:
    resolved = _resolved_with_pins(pins)
    assert {str(release) for release, _ in resolved.releases if release.fqn == "db"} == chosen
    assert resolved.unsatisfied == ()


def test_a_pin_that_is_not_locked_is_missing() -> None:
    resolved = _resolved_with_pins(["1.1.0"])
    assert not [release for release, _ in resolved.releases if release.fqn == "db"]
    (missing,) = resolved.unsatisfied
    assert missing.demand.fqn == "db"


def _resolved_with_pins(pins: list[str]) -> Any:
    """Plan ``wiki`` by a lock that has ``db`` in 1.2.0, 1.3.0 and 2.0.0."""
    lock = _lock(
        {
            "wiki": {"1.0.0": {"db": "1"}},
            "old": {"1.0.0": {"db": "1.2.0"}},
            "new": {"1.0.0": {"db": "1.3.0"}},
            "newest": {"1.0.0": {"db": "2"}},
            "db": {"1.1.0": {}, "1.2.0": {}, "1.3.0": {}, "2.0.0": {}},
        },
        {"wiki": "1", "old": "1", "new": "1", "newest": "1"},
    )
    query = Query((("wiki", VersionSpec.of("1")),), pins={"db": [Version(each) for each in pins]})
    return loader.LockedCatalog(lock).resolve(query)
