# SPDX-License-Identifier: Apache-2.0

"""The core library that the warm process keeps: one task of a cell takes it, if it is trusted."""

import pathlib
from typing import Any, cast

import pytest

from glare_murano.package import Archive, Limits
from glare_murano.wire import Release
from loader.archive_indexes import Identity
from loader.engine.cells import core_library as kept
from loader.engine.cells.cell_packages import (
    CellPackages,
    EngineCellPackageLoader,
    load_at,
)
from loader.formats.base import Package
from loader.formats.registry import PackageTypes
from tests import packages


class Requested:
    """What a cell has requested: a package that is a copy of an archive."""

    def __init__(self, original: Identity | None, is_trusted: bool = True) -> None:
        self._original = original
        self._is_trusted = is_trusted

    def original(self, _: Package) -> Identity | None:
        return self._original

    def is_core_library(self, _: Package) -> bool:
        return self._is_trusted


@pytest.fixture
def archive(
    conf: Any, core_library: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    """The core library as an archive; nothing is kept yet."""
    monkeypatch.setattr(kept, "_kept", {})
    path = tmp_path / "core.zip"
    with path.open("wb") as file, Archive.open(core_library / "io.murano") as source:
        source.pack(file)
    return path


def _load(path: pathlib.Path) -> Package:
    return load_at(path, path.parent, PackageTypes([]))


def _made(requested: Requested, package: Package) -> tuple[EngineCellPackageLoader, Any]:
    loader = EngineCellPackageLoader(cast(CellPackages, requested))
    release = Release(package.full_name, package.version, {}, frozenset(package.classes))
    return loader, loader._made(package, release)


def _is_ready(made: Any) -> bool:
    return "io.murano.SharedIp" not in made._load_queue


def test_one_task_takes_the_classes_and_uses_its_own_package(archive: pathlib.Path) -> None:
    identity = Identity.of(archive, Limits())
    kept.keep(identity, _load(archive))
    copy = _load(archive)
    loader, made = _made(Requested(identity), copy)
    assert _is_ready(made)
    assert made.is_core_library
    assert made.application_package is copy
    assert made._engine_loader is loader
    # The task may change the objects that it has taken.
    assert not _is_ready(_made(Requested(identity), copy)[1])


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_package_takes_only_what_was_kept_of_its_archive_and_if_it_is_trusted(
    archive: pathlib.Path, is_trusted: bool
) -> None:
    identity = Identity.of(archive, Limits())
    kept.keep(identity, _load(archive))
    other = None if is_trusted else identity
    _, made = _made(Requested(other, is_trusted), _load(archive))
    assert not _is_ready(made)
    assert made.is_core_library == is_trusted
    assert kept.take(identity)


def test_a_faulty_library_is_not_kept(
    core_library: pathlib.Path, archive: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    content = packages.content("io.murano", Classes={"io.murano.Faulty": "Faulty.yaml"})
    content["Classes/Faulty.yaml"] = b"Name: io.murano.Faulty\nExtends: io.murano.Missing\n"
    package = _load(packages.write(tmp_path / "faulty", content))
    with pytest.raises(Exception, match=r"io\.murano"):
        kept.keep(Identity.of(tmp_path / "faulty", Limits()), package)
    assert not kept._kept
