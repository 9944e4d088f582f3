# SPDX-License-Identifier: Apache-2.0

"""The interface of a package, and the part of it that a manifest answers.

It is the interface that Murano's package-type plug-ins are written against
(document "package-type plug-ins").
"""

import abc
import io
import os
import pathlib
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from glare_murano.package import Archive, Version, parse_version
from loader.formats.source import Folder, Source, path_within


class Package(abc.ABC):
    """A package as the engine sees it: always classes in MuranoPL.

    A package type may make those classes up as they are asked for.

    :cvar takes_source: whether the type is made with a ``Source`` in the place
        of the path of a folder, and so has nothing unpacked that it does not
        ask for. It holds for the very class that says so, no other.
    """

    takes_source: ClassVar[bool] = False

    def __init__(
        self, format_name: str, runtime_version: Version, source_directory: str | Source
    ) -> None:
        """Make a package.

        :param format_name: the name part of the format, such as ``MuranoPL``.
        :param runtime_version: the version part of the format.
        :param source_directory: where the package's files lie.
        """
        self._format_name = format_name
        self._runtime_version = runtime_version
        self._source = (
            source_directory
            if isinstance(source_directory, Source)
            else Folder(pathlib.Path(source_directory))
        )

    @property
    def format_name(self) -> str:
        """The canonical name of the format."""
        return self._format_name

    @property
    def runtime_version(self) -> Version:
        """The version of the format."""
        return self._runtime_version

    @property
    def source_directory(self) -> str:
        """Where the package's files lie."""
        return os.fspath(self._source)

    @property
    def blob(self) -> bytes:
        """The package as a ZIP file."""
        packed = io.BytesIO()
        with Archive.open(self.source_directory) as archive:
            archive.pack(packed)
        return packed.getvalue()

    @property
    @abc.abstractmethod
    def full_name(self) -> str:
        """The fully qualified name."""

    @property
    @abc.abstractmethod
    def version(self) -> Version:
        """The version of the package."""

    @property
    @abc.abstractmethod
    def classes(self) -> Collection[str]:
        """The names of the classes that the package defines."""

    @property
    @abc.abstractmethod
    def requirements(self) -> Mapping[str, Any]:
        """FQN of a required package -> range, as a text or a ``Spec``."""

    @property
    @abc.abstractmethod
    def package_type(self) -> str:
        """``Application`` or ``Library``."""

    @property
    @abc.abstractmethod
    def display_name(self) -> str:
        """The name shown to people."""

    @property
    @abc.abstractmethod
    def description(self) -> str | None:
        """What the package is for."""

    @property
    @abc.abstractmethod
    def author(self) -> str | None:
        """Who wrote it."""

    @property
    @abc.abstractmethod
    def supplier(self) -> Mapping[str, Any] | None:
        """Who supplies it."""

    @property
    @abc.abstractmethod
    def tags(self) -> list[str]:
        """Words to find it by."""

    @property
    @abc.abstractmethod
    def logo(self) -> bytes | None:
        """The content of the logo's file."""

    @property
    @abc.abstractmethod
    def supplier_logo(self) -> bytes | None:
        """The content of the supplier's logo's file."""

    @property
    @abc.abstractmethod
    def ui(self) -> bytes | str | None:
        """The form definition, as YAML."""

    @abc.abstractmethod
    def get_class(self, name: str) -> Any:
        """The MuranoPL code of a class: a text, or a pair of text and file name."""

    @abc.abstractmethod
    def get_resource(self, name: str) -> str:
        """The path of a resource file."""


class PackageBase(Package):
    """A package whose describing properties come from its manifest."""

    def __init__(
        self,
        format_name: str,
        runtime_version: Version,
        source_directory: str | Source,
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
        """See ``Package``."""
        return str(self._manifest["FullName"])

    @property
    def version(self) -> Version:
        """See ``Package``."""
        return self._version

    @property
    def package_type(self) -> str:
        """See ``Package``."""
        return str(self._manifest["Type"])

    @property
    def display_name(self) -> str:
        """See ``Package``."""
        return str(self._manifest.get("Name") or self.full_name)

    @property
    def description(self) -> str | None:
        """See ``Package``."""
        return self._manifest.get("Description")

    @property
    def author(self) -> str | None:
        """See ``Package``."""
        return self._manifest.get("Author")

    @property
    def supplier(self) -> Mapping[str, Any]:
        """See ``Package``."""
        return self._manifest.get("Supplier") or {}

    @property
    def tags(self) -> list[str]:
        """See ``Package``."""
        return list(self._manifest.get("Tags") or [])

    @property
    def meta(self) -> Any:
        """The metadata attached to the package (manifest key ``Meta``), or None."""
        return self._manifest.get("Meta")

    @property
    def logo(self) -> bytes | None:
        """See ``Package``."""
        return self._source.read(self._manifest.get("Logo") or "logo.png")

    @property
    def supplier_logo(self) -> bytes | None:
        """See ``Package``."""
        return self._source.read(self.supplier.get("Logo") or "supplier_logo.png")

    def get_resource(self, name: str) -> str:
        """See ``Package``.

        :raises ValueError: if the name leaves the folder of resources.
        """
        return os.path.join(self._source, path_within("Resources", name))
