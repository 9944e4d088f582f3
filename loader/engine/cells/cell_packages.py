# SPDX-License-Identifier: Apache-2.0

"""Load packages in a cell. The engine's process chooses, fetches and copies them.

See ``package_answers`` for the queries that this module sends.
"""

import copy
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from glare_murano import archive_limits
from glare_murano.inheritance import Subclass
from glare_murano.package import Archive, Limits, VersionSpec, parse_version
from glare_murano.package.manifest import CORE_LIBRARY
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release, release_from_json, versions_from_json
from loader import archive_indexes, errors
from loader.archive_indexes import Identity
from loader.engine import adapter
from loader.engine.cells import core_library
from loader.formats.base import Package
from loader.formats.registry import PackageTypes
from loader.formats.source import ArchiveSource, DirectorySource
from loader.loader import PackageLoader
from loader.subclass_search import Subclasses

Send = Callable[[Any], Any]


class _NotFound(errors.NoSuchPackage, errors.NoSuchClass):
    """The engine's process has not found a package, or a package that defines a class."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.pinned = None


class CellPackages:
    """Requests packages from the engine's process.

    It has those methods of ``PackageLoader`` that requests use.
    """

    def __init__(self, send: Send, directory: pathlib.Path) -> None:
        """Prepare to load packages.

        :param send: a function that sends a query, and returns the answer.
        :param directory: a directory in which archives are unpacked.
        """
        self._send = send
        self._directory = directory
        self._types = PackageTypes(adapter.CONF.murano.enabled_plugins)
        self._loaded: dict[PackageVersion, _LoadedPackage] = {}
        # Query -> what was made of the answer. The engine asks for most packages again and again:
        # in a deployment of 20 packages, 450 of 473 queries were repeated, and took a third of the
        # time.
        self._results: dict[tuple[str, ...], Any] = {}

    def load_object_package(self, fqn: str, range: VersionSpec) -> Package:
        """Load the package of an object; see ``PackageLoader.load_object_package``."""
        return self._load("object package", fqn=fqn, range=range.canonical)

    def load_class_package(self, class_name: str, range: VersionSpec) -> Package:
        """Load a package that defines a class; see ``PackageLoader.load_class_package``."""
        return self._load("class package", class_name=class_name, range=range.canonical)

    def load_requirement(self, package: PackageVersion, fqn: str) -> Package:
        """Load a required package; see ``PackageLoader.load_requirement``."""
        requirer = {"requirer": package.fqn, "version": str(package.version)}
        return self._load("requirement", **requirer, fqn=fqn)

    def subclasses(self, class_name: str, range: str, package: str) -> Subclasses:
        """List the subclasses of a class; see ``PackageLoader.subclasses``."""
        arguments = {"class_name": class_name, "range": range, "package": package}
        return cast(Subclasses, self._get(_subclasses, "subclasses", **arguments))

    def release(self, package: Package) -> Release:
        """Return the release from which a package was loaded."""
        return self._of(package).release

    def is_core_library(self, package: Package) -> bool:
        """Return whether a package is the core library, and can be trusted."""
        return bool(self._of(package).description["is_core_library"])

    def original(self, package: Package) -> Identity | None:
        """Return the identity of the archive of which a package is a copy; None for a directory."""
        return _original(self._of(package).description)

    def class_config(self, release: Release, name: str) -> Any:
        """Return the values that the operator has written for a class.

        They come with the package, since half of the queries of a deployment would ask for them.

        :raises LoaderError: if the operator's file cannot be read.
        """
        answers = self._loaded[release.key].description["class_configs"]
        # Each caller may change its values.
        return copy.deepcopy(_value(answers[name])) if name in answers else {}

    def describe_owner(self, kind: str) -> dict[str, Any]:
        """Return what Keystone knows of the user or the project of the request.

        :param kind: ``user`` or ``project``.
        """
        return dict(self._get(dict, kind))

    def provide(self, *_: object) -> None:
        """Do nothing: the engine's process knows the extension plug-ins."""

    def _load(self, query: str, **arguments: str) -> Package:
        return cast(Package, self._get(self._load_described, query, **arguments))

    def _load_described(self, description: Mapping[str, Any]) -> Package:
        release = release_from_json(description["release"])
        if release.key not in self._loaded:
            path = pathlib.Path(description["path"])
            if original := _original(description):
                _use_index(original, path)
            package = load_at(path, self._directory, self._types)
            self._loaded[release.key] = _LoadedPackage(package, release, description)
            if core_version := description["core_library"]:
                self._keep_core_library(release.key, core_version)
        return self._loaded[release.key].package

    def _keep_core_library(self, requirer: PackageVersion, version: str) -> None:
        """Keep the core library that a package requires, as the result of a query for it."""
        if core := self._loaded.get(PackageVersion(CORE_LIBRARY, parse_version(version))):
            key = ("requirement", requirer.fqn, str(requirer.version), CORE_LIBRARY)
            self._results[key] = core.package

    def _of(self, package: Package) -> "_LoadedPackage":
        return self._loaded[PackageVersion(package.full_name, package.version)]

    def _get(self, make: Callable[[Any], Any], query: str, **arguments: str) -> Any:
        """Return what a function makes of the answer to a query; an answered query is sent once.

        :param make: the function, which gets the value in the answer.
        :raises LoaderError: if the answer is an error.
        """
        key = (query, *arguments.values())
        if key not in self._results:
            self._results[key] = make(_value(self._send({"query": query, **arguments})))
        return self._results[key]


class _LoadedPackage(NamedTuple):
    """A package, its release, and its description by ``package_answers``."""

    package: Package
    release: Release
    description: Mapping[str, Any]


def _value(answer: Mapping[str, Any]) -> Any:
    """Return the value in an answer.

    :raises LoaderError: if the answer is an error.
    """
    if "value" in answer:
        return answer["value"]
    raise (_NotFound if answer["is_missing"] else errors.LoaderError)(answer["error"])


def load_at(path: pathlib.Path, directory: pathlib.Path, types: PackageTypes) -> Package:
    """Load the package in a directory or an archive.

    :param path: the path of the directory or the archive.
    :param directory: the directory in which an archive is unpacked, if its package type needs that.
    :param types: the allowed package types.
    """
    if path.is_dir():
        return types.load(DirectorySource(path))
    limits = read_limits()

    def unpack() -> pathlib.Path:
        target = directory / path.stem
        if not target.exists():
            with Archive.open(path, limits) as archive:
                archive.unpack(target)
        return target

    return types.load(ArchiveSource(lambda: path, unpack, limits))


def read_limits() -> Limits:
    """Return the limits for archives, from the options."""
    return archive_limits.limits(adapter.CONF.package_loader)


def _original(description: Mapping[str, Any]) -> Identity | None:
    found = description["original"]
    return Identity(**found, limits=read_limits()) if found else None


def _use_index(original: Identity, copy: pathlib.Path) -> None:
    """Read the copy of an archive by the index of the original, if the warm process has made it.

    The warm process has the indexes of the public packages that it has parsed. Without an index,
    loading a package takes three times as long; see ``archive_indexes``.

    :param original: the identity of the original.
    """
    if index := archive_indexes.kept(original):
        index.use(copy)


class EngineCellPackageLoader(adapter.EnginePackageLoader):
    """The engine's loader in a cell, which requests the values that the operator has written."""

    def __init__(self, packages: CellPackages) -> None:
        super().__init__(cast(PackageLoader, packages))
        self._requested = packages

    def cleanup(self) -> None:
        """Do nothing: the engine's process closes the loader, and logs what loading has cost."""

    def plan_model(self, model: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the model, which the engine's process has planned."""
        return model

    def restore_fixation_table(self) -> None:
        """Do nothing: the engine's process has the pins."""

    def export_fixation_table(self) -> dict[str, list[str]]:
        """Return no pins, since the engine's process has them."""
        return {}

    def compact_fixation_table(self) -> None:
        """Do nothing: the engine's process has the pins."""

    def class_config(self, release: Release, name: str) -> Any:
        """Return the values that the operator has written for a class."""
        return self._requested.class_config(release, name)

    def _made(self, package: Package, release: Release) -> adapter.EnginePackage:
        """Return the kept object for the core library, or make the object for a package."""
        original = self._requested.original(package)
        if original and self.is_core_library(package) and (kept := core_library.take(original)):
            kept.use(self, package, release)
            return kept
        return super()._made(package, release)


def _subclasses(content: Mapping[str, Any]) -> Subclasses:
    return Subclasses(tuple(map(_subclass, content["found"])), content["is_truncated"])


def _subclass(content: Mapping[str, Any]) -> Subclass:
    packages = versions_from_json(content["packages"])
    return Subclass(
        content["class"],
        tuple(content["extends"]),
        {fqn: tuple(versions) for fqn, versions in packages.items()},
    )
