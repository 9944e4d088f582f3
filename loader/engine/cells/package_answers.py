# SPDX-License-Identifier: Apache-2.0

"""Answer the queries of a cell, in the engine's process.

A query has the form ``{"query": NAME, ARGUMENT: STRING, ...}``. An answer has the form
``{"value": VALUE}``, or ``{"error": TEXT, "is_missing": BOOLEAN}``. Hostile code may send any
query. So the answers contain only what the request may know: packages of its project and public
ones, and its own user and project.
"""

import itertools
import json
import logging
import pathlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from murano.common import auth_utils

from glare_murano.eligibility import PUBLIC, is_from_operator
from glare_murano.package import GlareMuranoError, parse_version
from glare_murano.package.archive_rules import DEFAULT_LIMITS
from glare_murano.package.manifest import CORE_LIBRARY, MURANO_PL
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release, release_to_json
from loader import errors
from loader.archive_indexes import Identity
from loader.engine import adapter, class_configs
from loader.engine.cells import agent_access
from loader.engine.credentials import ExecutionSession
from loader.formats.base import Package
from loader.loader import PackageLoader

LOG = logging.getLogger(__name__)


# The most bytes of the packages that one cell gets.
_MAX_COPIED = 1024**3


class InvalidQuery(GlareMuranoError):
    """A cell sends a query that only hostile code sends."""


class PackageAnswers:
    """Answers the queries of one cell."""

    def __init__(
        self,
        loader: PackageLoader,
        session: ExecutionSession,
        directory: pathlib.Path,
    ) -> None:
        """Prepare to answer.

        :param loader: the loader of the request.
        :param session: the user and the project of the request.
        :param directory: the directory into which packages are copied; the cell can read it.
        """
        self._loader = loader
        self._session = session
        self._directory = directory
        self._loaded: dict[PackageVersion, Package] = {}
        self._described: dict[PackageVersion, Mapping[str, Any]] = {}
        self._owners: dict[str, dict[str, Any]] = {}
        # The classes for which the operator has written values.
        self._configured = class_configs.class_names(adapter.CONF.engine.class_configs)
        self._copies = itertools.count()
        self._copied_bytes = 0

    def answer(self, query: object) -> dict[str, Any]:
        """Answer a query.

        :raises InvalidQuery: if the query does not have the form of a query.
        """
        match query:
            case {"query": "object package", "fqn": str(fqn), "range": str(range)}:
                return self._load(lambda: self._loader.load_object_package(fqn, range))
            case {"query": "class package", "class_name": str(name), "range": str(range)}:
                return self._load(lambda: self._loader.load_class_package(name, range))
            case {
                "query": "requirement",
                "requirer": str(requirer),
                "version": str(version),
                "fqn": str(fqn),
            }:
                return self._load(
                    lambda: self._loader.load_requirement(_key(requirer, version), fqn)
                )
            case {
                "query": "subclasses",
                "class_name": str(name),
                "range": str(range),
                "package": str(package),
            }:
                return _answered(lambda: self._subclasses(name, range, package))
            case {"query": "user"}:
                return self._owner("user", self._session.user_id)
            case {"query": "project"}:
                return self._owner("project", self._session.project_id)
        raise InvalidQuery("a cell has sent a query in a wrong form")

    def public_packages(self) -> list[dict[str, Any]]:
        """Return the loaded packages whose classes every project can use, for ``Cell.preload``.

        Their classes can be parsed once for all cells. Other package types than ``MuranoPL`` are
        left out, since code of a plug-in generates their classes.
        """
        return [
            {
                "path": str(self._loader.path(package)),
                "is_core_library": self._loader.is_core_library(package),
            }
            for package in self._loaded.values()
            if package.format_name == MURANO_PL and _is_public(self._loader.release(package))
        ]

    def _load(self, load: Callable[[], Package]) -> dict[str, Any]:
        return _answered(lambda: self._describe(load()))

    def _describe(self, package: Package) -> Mapping[str, Any]:
        """Copy a package for the cell, and describe it."""
        release = self._loader.release(package)
        if release.key not in self._described:
            self._loaded[release.key] = package
            path = self._loader.path(package)
            self._described[release.key] = {
                "release": release_to_json(release),
                "is_core_library": self._loader.is_core_library(package),
                "path": str(self._copied(path)),
                "original": _identity(path),
                "core_library": self._core_library(release.key),
                "class_configs": self._class_configs(package, release),
            }
        return self._described[release.key]

    def _core_library(self, requirer: PackageVersion) -> str | None:
        """Return the version of the core library for a package; None if none is loaded yet.

        It comes with the package: in a deployment of 20 packages, 20 of 62 queries asked for it.
        """
        if all(each.fqn != CORE_LIBRARY for each in self._loaded):
            return None
        try:
            return str(self._loader.load_requirement(requirer, CORE_LIBRARY).version)
        except GlareMuranoError:
            # If the cell asks, it gets the error.
            return None

    def _copied(self, path: pathlib.Path) -> pathlib.Path:
        """Copy an archive or a directory for the cell.

        :raises LoaderError: if the copies of this cell take too many bytes.
        """
        files = path.rglob("*") if path.is_dir() else [path]
        self._copied_bytes += sum(file.lstat().st_size for file in files)
        if self._copied_bytes > _MAX_COPIED:
            raise errors.LoaderError(
                f"the packages of a request take more than {_MAX_COPIED:,} bytes in its cell"
            )
        return copy_package(path, self._directory, str(next(self._copies)))

    def _owner(self, kind: str, id_: str | None) -> dict[str, Any]:
        """Answer what Keystone knows of the user or the project of the request.

        Keystone is queried once for each, with the engine's own account.
        """
        if id_ is None:
            return {"error": f"the {kind} of the request is unknown", "is_missing": False}
        if kind not in self._owners:
            find = auth_utils.get_user if kind == "user" else auth_utils.get_project
            self._owners[kind] = _answered(lambda: find(id_))
        return self._owners[kind]

    def _subclasses(self, name: str, range: str, package: str) -> dict[str, Any]:
        subclasses = self._loader.subclasses(name, range, package)
        found = [subclass.to_json() for subclass in subclasses.found]
        return {"found": found, "is_truncated": subclasses.is_truncated}

    def _class_configs(self, package: Package, release: Release) -> dict[str, Any]:
        """Return the answers with the values in the operator's files, by class of a package.

        Classes without values are left out, so the package does not learn of files that it may not
        read.
        """
        names = sorted(self._configured.intersection(package.classes))
        answers = {name: _answered_class_config(release, name) for name in names}
        return {name: answer for name, answer in answers.items() if answer != {"value": {}}}


def _answered_class_config(release: Release, name: str) -> dict[str, Any]:
    return _answered(
        lambda: agent_access.without_withheld(adapter.class_config(release, name), adapter.CONF)
    )


def copy_package(path: pathlib.Path, directory: pathlib.Path, name: str) -> pathlib.Path:
    """Copy an archive or a directory, so that a cell cannot change the original.

    A link would not be enough: without Landlock, the cell could write into the file.

    :param path: the path of the archive or the directory.
    :param directory: the directory of the copy.
    :param name: the name of the copy, without a suffix.
    :returns: the path of the copy.
    """
    if path.is_dir():
        copy = directory / name
        shutil.copytree(path, copy, symlinks=True)
    else:
        copy = directory / f"{name}.zip"
        shutil.copyfile(path, copy)
    return copy


def _identity(path: pathlib.Path) -> dict[str, Any] | None:
    """Return the identity of an archive, without the limits; None for a directory."""
    if path.is_dir():
        return None
    identity = Identity.of(path, DEFAULT_LIMITS)
    return {"path": identity.path, "size": identity.size, "changed": identity.changed}


def _is_public(release: Release) -> bool:
    return release.visibility == PUBLIC or is_from_operator(release)


def _key(fqn: str, version: str) -> PackageVersion:
    return PackageVersion(fqn, parse_version(version))


def _answered(find: Callable[[], Any]) -> dict[str, Any]:
    try:
        value = find()
        # A file of the operator may contain a date, for example.
        json.dumps(value)
    except GlareMuranoError as error:
        remedy = adapter.how_to_move(error) if isinstance(error, errors.NoSuchPackage) else ""
        return {"error": f"{error}{remedy}", "is_missing": isinstance(error, errors.NotFound)}
    except Exception:
        # The text may contain what the cell must not know.
        LOG.exception("A query of a cell cannot be answered")
        return {"error": "the engine's log has the reason", "is_missing": False}
    return {"value": value}
