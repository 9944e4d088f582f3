# SPDX-License-Identifier: Apache-2.0

"""Packages that are a Heat template: one class, and its form, made up from it."""

import pathlib
from collections.abc import Mapping
from typing import Any

from glare_murano.package import InvalidPackage, Problem, Version, safe_yaml
from glare_murano.package.hot import class_code, form, yaql
from glare_murano.package.hot.template import FILE_NAME, Template
from glare_murano.package.rules import Rule
from loader.formats.base import PackageBase


class HOTPackage(PackageBase):
    """A package of the format ``Heat.HOT``.

    At its top lies ``template.yaml``; nested templates and files that it
    refers to lie below ``Resources/HotFiles``, Heat environments below
    ``Resources/HotEnvironments``.
    """

    def __init__(
        self,
        format_name: str,
        runtime_version: Version,
        source_directory: str,
        manifest: Mapping[str, Any],
    ) -> None:
        """Make a package, and read its template.

        :raises InvalidPackage: if there is none, or with all that is wrong
            in it.
        """
        super().__init__(format_name, runtime_version, source_directory, manifest)
        self._template_path = pathlib.Path(source_directory, FILE_NAME)
        self._template = Template.parse(_read(self._template_path))

    @property
    def classes(self) -> tuple[str]:
        """See ``Package``; the class has the package's name."""
        return (self.full_name,)

    @property
    def requirements(self) -> Mapping[str, str | None]:
        """See ``Package``; as written, without the implicit ones."""
        return self._manifest.get("Require") or {}

    @property
    def ui(self) -> bytes | str:
        """See ``Package``; the package's own form, or else one made from the template."""
        own = self._source.read(self._manifest.get("UI") or "ui.yaml", "UI")
        if own is not None:
            return own
        made = form.make_form(self.full_name, self.version, self.description, self._template)
        return yaql.dump(made)

    def get_class(self, name: str) -> str:
        """See ``Package``; the class is made from the template.

        :raises KeyError: if the package does not define it.
        """
        if name != self.full_name:
            raise KeyError(name)
        definition = class_code.make_class(
            name,
            self._template,
            self._files(class_code.FILES),
            bool(self._files(class_code.ENVIRONMENTS)),
        )
        return yaql.dump(definition)

    def get_resource(self, name: str) -> str:
        """See ``Package``; the template is the resource with the package's name."""
        return str(self._template_path) if name == self.full_name else super().get_resource(name)

    def _files(self, folder: str) -> list[str]:
        """The paths of all files below a folder of resources, sorted."""
        base = pathlib.Path(self.get_resource(folder))
        return sorted(p.relative_to(base).as_posix() for p in base.rglob("*") if p.is_file())


def _read(path: pathlib.Path) -> bytes:
    try:
        with path.open("rb") as stream:
            # One byte more than a document may have, so that it is refused.
            return stream.read(safe_yaml.MAX_SIZE + 1)
    except FileNotFoundError as error:
        message = "is not at the top of the package; it holds the Heat template"
        raise InvalidPackage([Problem(Rule.TEMPLATE_MISSING, FILE_NAME, message)]) from error
