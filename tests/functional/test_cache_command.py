# SPDX-License-Identifier: Apache-2.0

"""``openstack murano cache``: list, show, prune and verify what a loader has stored."""

import hashlib
import os
import pathlib

import pytest

import loader
from loader.cache import cache_directory
from tests import packages
from tests.functional.openstack_command import OpenStack


@pytest.fixture
def archives(name: str) -> dict[str, bytes]:
    """Versions of a package, with their archives."""
    return {version: packages.package(name, version) for version in ("1.0.0", "1.9.0", "1.10.0")}


@pytest.fixture
def directory(tmp_path: pathlib.Path, archives: dict[str, bytes]) -> pathlib.Path:
    """A cache with all versions, 1.10.0 stored last."""
    for archive in archives.values():
        with loader.Cache(tmp_path / "cache") as cache:
            _use(cache, archive)
    return tmp_path / "cache"


def _use(cache: loader.Cache, archive: bytes) -> None:
    cache.archive(_digest(archive), lambda: [archive])


def _digest(archive: bytes) -> str:
    return hashlib.sha256(archive).hexdigest()


def test_packages_are_listed_with_the_newest_version_first(
    openstack: OpenStack, name: str, archives: dict[str, bytes], directory: pathlib.Path
) -> None:
    rows = openstack.json("cache", "list", "--directory", directory)
    assert [(row["Name"], row["Version"]) for row in rows] == [
        (name, "1.10.0"),
        (name, "1.9.0"),
        (name, "1.0.0"),
    ]
    assert {row["Version"]: row["SHA-256"] for row in rows} == {
        version: _digest(archive) for version, archive in archives.items()
    }
    assert {row["Size"] for row in rows} == {4096}
    times = {row["Version"]: row["Last Used"] for row in rows}
    assert times["1.0.0"] <= times["1.9.0"] <= times["1.10.0"]
    assert times["1.0.0"].endswith("+00:00")


def test_sizes_have_units_in_tables_and_are_numbers_elsewhere(
    openstack: OpenStack, directory: pathlib.Path
) -> None:
    listed = ("cache", "list", "--directory", directory, "-c", "Size")
    assert "| 4.0 KiB |" in openstack.ok(*listed).out
    for plain in ("value", "csv"):
        assert openstack.ok(*listed, "-f", plain).out.split()[-1] == "4096"


def test_packages_in_use_are_marked_and_not_pruned(
    openstack: OpenStack, archives: dict[str, bytes], directory: pathlib.Path
) -> None:
    with loader.Cache(directory) as cache:
        _use(cache, archives["1.0.0"])
        rows = openstack.json("cache", "list", "--directory", directory)
        in_use = {row["Version"]: row["In Use"] for row in rows}
        assert in_use == {"1.10.0": False, "1.9.0": False, "1.0.0": True}
        pruned = openstack.json("cache", "prune", "--max-size", 0, "--directory", directory)
        assert [row["Version"] for row in pruned] == ["1.9.0", "1.10.0"]
    rows = openstack.json("cache", "list", "--directory", directory)
    assert [(row["Version"], row["In Use"]) for row in rows] == [("1.0.0", False)]


def test_a_listing_does_not_count_as_a_use(openstack: OpenStack, directory: pathlib.Path) -> None:
    listed = ("cache", "list", "--directory", directory)
    before = openstack.json(*listed)
    openstack.ok("cache", "show", before[-1]["SHA-256"], "--directory", directory)
    assert openstack.json(*listed) == before


def test_the_least_recently_used_packages_are_pruned(
    openstack: OpenStack, name: str, directory: pathlib.Path
) -> None:
    pruned = openstack.ok("cache", "prune", "--max-size", "8K", "--directory", directory)
    assert f"| {name} | 1.0.0   | 4.0 KiB |" in pruned.out
    assert pruned.err == "4.0 KiB were freed.\n"
    rows = openstack.json("cache", "list", "--directory", directory)
    assert [row["Version"] for row in rows] == ["1.10.0", "1.9.0"]
    assert openstack.ok("cache", "prune", "--max-size", "1G", "--directory", directory).err == (
        "0 B were freed.\n"
    )
    invalid = openstack.fails(
        "cache", "prune", "--max-size", "much", "--directory", directory, code=2
    )
    assert "much is not a size" in invalid.err


def test_a_package_is_shown_by_range_or_digest(
    openstack: OpenStack, name: str, archives: dict[str, bytes], directory: pathlib.Path
) -> None:
    digest = _digest(archives["1.9.0"])
    for reference in (f"{name}@<1.10", f"{name}@1.9.0", digest):
        shown = openstack.json("cache", "show", reference, "--directory", directory)
        assert (shown["name"], shown["version"], shown["sha256"]) == (name, "1.9.0", digest)
        assert pathlib.Path(shown["archive"]).read_bytes() == archives["1.9.0"]
    shown = openstack.json("cache", "show", name, "--directory", directory)
    assert shown["version"] == "1.10.0"
    missing = openstack.fails("cache", "show", f"{name}@2", "--directory", directory, code=3)
    assert f"it has {name} 1.10.0, {name} 1.9.0, {name} 1.0.0" in missing.err


def test_several_archives_of_a_version_are_shown_by_digest(
    openstack: OpenStack, name: str, directory: pathlib.Path
) -> None:
    other = packages.package(name, "1.10.0", Author="Another")
    with loader.Cache(directory) as cache:
        _use(cache, other)
    ambiguous = openstack.fails("cache", "show", name, "--directory", directory, code=2)
    assert _digest(other) in ambiguous.err
    openstack.ok("cache", "show", _digest(other), "--directory", directory)


def _damage(path: pathlib.Path, data: bytes) -> None:
    """Change an archive without a trace in its time of change."""
    times = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_damaged_packages_are_found_and_named(
    openstack: OpenStack, name: str, archives: dict[str, bytes], directory: pathlib.Path
) -> None:
    intact = openstack.ok("cache", "verify", "--directory", directory, "-f", "json")
    assert intact.json() == []
    damaged = _digest(archives["1.9.0"])
    # Its name can be read, in contrast to that of the other one.
    _damage(directory / "archives" / damaged, packages.package(name, "1.9.0", Author="Other"))
    unreadable = _digest(archives["1.0.0"])
    _damage(directory / "archives" / unreadable, b"nothing")

    openstack.ok("cache", "verify", f"{name}@1.10.0", "--directory", directory)
    found = openstack.fails("cache", "verify", "--directory", directory, "-f", "json")

    rows = {row["SHA-256"]: (row["Name"], row["Version"]) for row in found.json()}
    assert rows == {damaged: (name, "1.9.0"), unreadable: ("", "")}
    assert f"{unreadable}, {name} 1.9.0" in found.err
    assert "Traceback" not in found.err
    left = openstack.json("cache", "list", "--directory", directory)
    assert [row["Version"] for row in left] == ["1.10.0"]


def test_only_a_cache_is_looked_into(openstack: OpenStack, tmp_path: pathlib.Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for folder in (empty, tmp_path / "missing"):
        refused = openstack.fails("cache", "list", "--directory", folder)
        assert f"{folder} is not a package cache" in refused.err
    assert list(empty.iterdir()) == []
    assert not (tmp_path / "missing").exists()


def test_the_cache_of_the_user_is_the_default(
    openstack: OpenStack, monkeypatch: pytest.MonkeyPatch, directory: pathlib.Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory.parent))
    directory.rename(cache_directory.of_user())
    assert cache_directory.of_user().parent == directory.parent
    assert len(openstack.json("cache", "list")) == 3
