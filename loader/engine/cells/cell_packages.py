# SPDX-License-Identifier: Apache-2.0

"""Load packages in a cell. The engine's process chooses, fetches and copies them.

See ``package_answers`` for the questions that this module asks.
"""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any, cast

from glare_murano.inheritance import Subclass
from glare_murano.package import Archive, VersionSpec
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release, release_from_json, versions_from_json
from loader import errors
from loader.engine import adapter
from loader.formats.base import Package
from loader.formats.registry import PackageTypes
from loader.formats.source import ArchiveSource, DirectorySource, PackageSource
from loader.loader import PackageLoader
from loader.subclass_search import Subclasses

Ask = Callable[[Any], Any]


class _NotFound(errors.NoSuchPackage, errors.NoSuchClass):
    """The engine's process has not found a package, or a package that defines a class."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.pinned = None


class CellPackages:
    """Asks the engine's process for packages.

    It has those methods of ``PackageLoader`` that requests use.
    """

    def __init__(self, ask: Ask, directory: pathlib.Path) -> None:
        """Prepare to load packages.

        :param ask: a function that asks a question, and returns the answer.
        :param directory: a directory in which archives are unpacked.
        """
        self._ask = ask
        self._directory = directory
        self._types = PackageTypes(adapter.CONF.murano.enabled_plugins)
        self._loaded: dict[PackageVersion, Package] = {}
        self._answers: dict[PackageVersion, Mapping[str, Any]] = {}

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
        answer = self._get("subclasses", class_name=class_name, range=range, package=package)
        return Subclasses(tuple(map(_subclass, answer["found"])), answer["is_truncated"])

    def release(self, package: Package) -> Release:
        """Return the release from which a package was loaded."""
        return release_from_json(self._answer(package)["release"])

    def is_core_library(self, package: Package) -> bool:
        """Return whether a package is the core library, and can be trusted."""
        return bool(self._answer(package)["is_core_library"])

    def class_config(self, release: Release, name: str) -> Any:
        """Return the values that the operator has written for a class."""
        package = {"fqn": release.fqn, "version": str(release.version)}
        return self._get("class config", **package, class_name=name)

    def describe_owner(self, kind: str) -> dict[str, Any]:
        """Return what Keystone knows of the user or the project of the request.

        :param kind: ``user`` or ``project``.
        """
        return dict(self._get(kind))

    def provide(self, *_: object) -> None:
        """Do nothing: the engine's process knows the extension plug-ins."""

    def _load(self, question: str, **arguments: str) -> Package:
        answer = self._get(question, **arguments)
        release = release_from_json(answer["release"])
        if release.key not in self._loaded:
            path = pathlib.Path(answer["path"])
            self._loaded[release.key] = self._types.load(source_at(path, self._unpacked))
            self._answers[release.key] = answer
        return self._loaded[release.key]

    def _unpacked(self, path: pathlib.Path) -> pathlib.Path:
        target = self._directory / path.stem
        if not target.exists():
            with Archive.open(path) as archive:
                archive.unpack(target)
        return target

    def _answer(self, package: Package) -> Mapping[str, Any]:
        return self._answers[PackageVersion(package.full_name, package.version)]

    def _get(self, question: str, **arguments: str) -> Any:
        """Ask a question, and return the value in the answer.

        :raises LoaderError: if the answer is an error.
        """
        answer = self._ask({"question": question, **arguments})
        if "value" in answer:
            return answer["value"]
        raise (_NotFound if answer["is_missing"] else errors.LoaderError)(answer["error"])


def source_at(path: pathlib.Path, unpack: Callable[[pathlib.Path], pathlib.Path]) -> PackageSource:
    """Return the files of the package in a directory or an archive.

    :param unpack: a function that unpacks an archive, and returns the directory of its files.
    """
    if path.is_dir():
        return DirectorySource(path)
    return ArchiveSource(lambda: path, lambda: unpack(path))


class EngineCellPackageLoader(adapter.EnginePackageLoader):
    """The engine's loader in a cell, which asks for the values that the operator has written."""

    def __init__(self, packages: CellPackages) -> None:
        super().__init__(cast(PackageLoader, packages))
        self._asked = packages

    def cleanup(self) -> None:
        """Do nothing: the engine's process closes the loader, and logs what loading has cost."""

    def class_config(self, release: Release, name: str) -> Any:
        """Return the values that the operator has written for a class."""
        return self._asked.class_config(release, name)


def _subclass(content: Mapping[str, Any]) -> Subclass:
    packages = versions_from_json(content["packages"])
    return Subclass(
        content["class"],
        tuple(content["extends"]),
        {fqn: tuple(versions) for fqn, versions in packages.items()},
    )
