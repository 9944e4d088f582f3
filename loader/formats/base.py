# SPDX-License-Identifier: Apache-2.0

"""The interface of package types, including those from plug-ins.

The document "package-type plug-ins" defines the interface, which is the same as in Murano.
"""

import abc
import io
import os
import pathlib
from collections.abc import Collection, Mapping
from typing import Any

from glare_murano.package import Archive, Version, parse_version
from loader.formats.source import DirectorySource, PackageSource, path_within


class Package(abc.ABC):
    """A package as the engine sees it: all its classes are in MuranoPL.

    If the files of a package are in another language, the package type generates a class from them
    when the engine requests the class.
    """

    def __init__(
        self, format_name: str, runtime_version: Version, source_directory: str | PackageSource
    ) -> None:
        """Make a package.

        :param format_name: the name of the format, such as ``MuranoPL``.
        :param runtime_version: the version of the format, such as 1.4.0.
        :param source_directory: the path of the package's files. A package type with
            ``takes_source`` gets a ``PackageSource`` instead; see ``PackageTypes.load``.
        """
        self._format_name = format_name
        self._runtime_version = runtime_version
        if not isinstance(source_directory, PackageSource):
            source_directory = DirectorySource(pathlib.Path(source_directory))
        self._source = source_directory

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.full_name} {self.version}>"

    @property
    def format_name(self) -> str:
        """The name of the format, such as ``MuranoPL``."""
        return self._format_name

    @property
    def runtime_version(self) -> Version:
        """The version of the format, such as 1.4.0."""
        return self._runtime_version

    @property
    def source_directory(self) -> str:
        """The path of the package's files; reading this property unpacks an archive."""
        return os.fspath(self._source)

    @property
    def blob(self) -> bytes:
        """The content of a ZIP file with all files of the package."""
        packed = io.BytesIO()
        with Archive.open(self.source_directory) as archive:
            archive.pack(packed)
        return packed.getvalue()

    @property
    @abc.abstractmethod
    def full_name(self) -> str:
        """The fully qualified name (FQN); Murano calls this attribute ``full_name``."""

    @property
    @abc.abstractmethod
    def version(self) -> Version:
        """The version of the package."""

    @property
    @abc.abstractmethod
    def classes(self) -> Collection[str]:
        """The fully qualified names of the package's classes."""

    @property
    @abc.abstractmethod
    def requirements(self) -> Mapping[str, Any]:
        """The required ranges by FQN; a range is a string or a ``Spec`` of ``semantic_version``."""

    @property
    @abc.abstractmethod
    def package_type(self) -> str:
        """``Application`` or ``Library``."""

    @property
    @abc.abstractmethod
    def display_name(self) -> str:
        """The name shown to users."""

    @property
    @abc.abstractmethod
    def description(self) -> str | None:
        """The description shown to users."""

    @property
    @abc.abstractmethod
    def author(self) -> str | None:
        """The author's name."""

    @property
    @abc.abstractmethod
    def supplier(self) -> Mapping[str, Any] | None:
        """The supplier, as the manifest describes it."""

    @property
    @abc.abstractmethod
    def tags(self) -> list[str]:
        """The tags, for searches."""

    @property
    @abc.abstractmethod
    def logo(self) -> bytes | None:
        """The content of the logo file; None if the package has none."""

    @property
    @abc.abstractmethod
    def supplier_logo(self) -> bytes | None:
        """The content of the supplier's logo file; None if the package has none."""

    @property
    @abc.abstractmethod
    def ui(self) -> bytes | str | None:
        """The form that users fill in, as YAML; None if the package has no form."""

    @abc.abstractmethod
    def get_class(self, name: str) -> str | bytes | tuple[str | bytes, str]:
        """Return the MuranoPL code of a class: YAML, or a pair of the YAML and a path.

        A package type implements this method, and callers use ``read_class``. The path is the path
        of the class file in the package, for error messages.

        :param name: the fully qualified name of the class.
        :raises KeyError: if the package does not define the class.
        """

    def read_class(self, name: str) -> tuple[bytes, str]:
        """Return the MuranoPL code of a class, and the path of its file, for any package type.

        >>> code, path = packages.load("org.db", "1").read_class("org.db.Database")
        >>> path
        'Classes/Database.yaml'

        :param name: the fully qualified name of the class.
        :returns: the code as YAML, and the path of its file in the package. For a generated class,
            the second value is the name of the class instead.
        :raises KeyError: if the package does not define the class.
        :raises FileNotFoundError: if the package lacks the file.
        """
        if name not in self.classes:
            raise KeyError(f"{self.full_name} {self.version} does not define the class {name}")
        found = self.get_class(name)
        code, path = found if isinstance(found, tuple) else (found, name)
        code = code.encode(errors="surrogatepass") if isinstance(code, str) else code
        return code, path_in_package(self, path)

    @abc.abstractmethod
    def get_resource(self, name: str) -> str:
        """Return the path of a resource file on this host.

        :param name: the path of the file, relative to the directory ``Resources``.
        """


def path_in_package(package: Package, path: str) -> str:
    """Return the path of a file, relative to its package.

    :param path: the path, absolute or relative to the package.
    """
    if pathlib.PurePath(path).is_absolute():
        return os.path.relpath(path, package.source_directory)
    return path


class PackageBase(Package):
    """A package that reads its name, version and descriptions from its manifest.

    A subclass defines ``classes``, ``requirements``, ``ui`` and ``get_class``.
    """

    def __init__(
        self,
        format_name: str,
        runtime_version: Version,
        source_directory: str | PackageSource,
        manifest: Mapping[str, Any],
    ) -> None:
        """Make a package.

        :param manifest: the manifest as plain YAML values.
        """
        super().__init__(format_name, runtime_version, source_directory)
        self._manifest = manifest
        self._version = parse_version(manifest.get("Version"))

    @property
    def full_name(self) -> str:
        return str(self._manifest["FullName"])

    @property
    def version(self) -> Version:
        return self._version

    @property
    def package_type(self) -> str:
        return str(self._manifest["Type"])

    @property
    def display_name(self) -> str:
        return str(self._manifest.get("Name") or self.full_name)

    @property
    def description(self) -> str | None:
        return self._manifest.get("Description")

    @property
    def author(self) -> str | None:
        return self._manifest.get("Author")

    @property
    def supplier(self) -> Mapping[str, Any]:
        return self._manifest.get("Supplier") or {}

    @property
    def tags(self) -> list[str]:
        return list(self._manifest.get("Tags") or [])

    @property
    def meta(self) -> Any:
        """The metadata of the package (the key ``Meta`` of the manifest); None without this key."""
        return self._manifest.get("Meta")

    @property
    def logo(self) -> bytes | None:
        return self._source.read(self._manifest.get("Logo") or "logo.png")

    @property
    def supplier_logo(self) -> bytes | None:
        return self._source.read(self.supplier.get("Logo") or "supplier_logo.png")

    def get_resource(self, name: str) -> str:
        """Return the path of a resource file; an archive is unpacked first.

        :raises ValueError: if the name leaves the directory ``Resources``.
        """
        return os.path.join(self._source, path_within("Resources", name))
