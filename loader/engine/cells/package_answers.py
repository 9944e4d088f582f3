# SPDX-License-Identifier: Apache-2.0

"""Answer the questions of a cell, in the engine's process.

A question has the form ``{"question": NAME, ARGUMENT: STRING, ...}``. An answer has the form
``{"value": VALUE}``, or ``{"error": TEXT, "is_missing": BOOLEAN}``. Hostile code may ask any
question. So the answers contain only what the request may know: packages of its project and public
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
from glare_murano.package.manifest import MURANO_PL
from glare_murano.resolver import PackageVersion
from glare_murano.wire import Release, release_to_json
from loader import errors
from loader.engine import adapter
from loader.engine.credentials import ExecutionSession
from loader.formats.base import Package
from loader.loader import PackageLoader

LOG = logging.getLogger(__name__)


class InvalidQuestion(GlareMuranoError):
    """A cell asks what this project's code never asks, so hostile code has taken it over."""


class PackageAnswers:
    """Answers the questions of one cell."""

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
        self._copies = itertools.count()

    def answer(self, question: object) -> dict[str, Any]:
        """Answer a question.

        :raises InvalidQuestion: if the question does not have the form of a question.
        """
        match question:
            case {"question": "object package", "fqn": str(fqn), "range": str(range)}:
                return self._load(lambda: self._loader.load_object_package(fqn, range))
            case {"question": "class package", "class_name": str(name), "range": str(range)}:
                return self._load(lambda: self._loader.load_class_package(name, range))
            case {
                "question": "requirement",
                "requirer": str(requirer),
                "version": str(version),
                "fqn": str(fqn),
            }:
                return self._load(
                    lambda: self._loader.load_requirement(_key(requirer, version), fqn)
                )
            case {
                "question": "subclasses",
                "class_name": str(name),
                "range": str(range),
                "package": str(package),
            }:
                return _answered(lambda: self._subclasses(name, range, package))
            case {
                "question": "class config",
                "fqn": str(fqn),
                "version": str(version),
                "class_name": str(name),
            }:
                return _answered(lambda: self._values(_key(fqn, version), name))
            case {"question": "user"}:
                return self._owner("user", self._session.user_id)
            case {"question": "project"}:
                return self._owner("project", self._session.project_id)
        raise InvalidQuestion("a cell has asked a question in a wrong form")

    @property
    def count(self) -> int:
        """The number of packages that the cell has loaded."""
        return len(self._loaded)

    def public_paths(self) -> list[str]:
        """Return the paths of the loaded packages whose classes every project can use.

        Their classes can be parsed once for all cells. Other package types than ``MuranoPL`` are
        left out, since code of a plug-in generates their classes.
        """
        return [
            str(self._loader.path(package))
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
            self._described[release.key] = {
                "release": release_to_json(release),
                "is_core_library": self._loader.is_core_library(package),
                "path": str(self._copied(self._loader.path(package))),
            }
        return self._described[release.key]

    def _copied(self, path: pathlib.Path) -> pathlib.Path:
        """Copy an archive or a directory, so that the cell cannot change the original.

        A link would not be enough: Landlock does not restrict changes of the mode of a file.
        """
        if path.is_dir():
            copy = self._directory / str(next(self._copies))
            shutil.copytree(path, copy, symlinks=True)
        else:
            copy = self._directory / f"{next(self._copies)}.zip"
            shutil.copyfile(path, copy)
        return copy

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

    def _values(self, key: PackageVersion, class_name: str) -> Any:
        package = self._loaded.get(key)
        # The name becomes a part of a path.
        if package is None or class_name not in package.classes:
            raise errors.LoaderError(f"{key} was not loaded, or does not define this class")
        return adapter.class_config(self._loader.release(package), class_name)


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
        return {"error": str(error), "is_missing": isinstance(error, errors.NotFound)}
    except Exception:
        # The text may contain what the cell must not know.
        LOG.exception("A question of a cell cannot be answered")
        return {"error": "the engine's log has the reason", "is_missing": False}
    return {"value": value}
