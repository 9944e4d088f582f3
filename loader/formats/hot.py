# SPDX-License-Identifier: Apache-2.0

"""The package type ``Heat.HOT``, which generates a class and a form from a Heat template."""

import pathlib
from collections.abc import Mapping
from typing import Any

from glare_murano.package import Version, safe_yaml
from glare_murano.package.hot import class_code, form, yaql_dumper
from glare_murano.package.hot.description import template_missing
from glare_murano.package.hot.template import TEMPLATE_FILE, Template
from loader.formats.base import PackageBase


class HOTPackage(PackageBase):
    """A package of the format ``Heat.HOT``, with ``template.yaml`` in its top directory.

    Nested templates and other files of the template are in ``Resources/HotFiles``. Heat
    environments are in ``Resources/HotEnvironments``.
    """

    def __init__(
        self,
        format_name: str,
        runtime_version: Version,
        source_directory: str,
        manifest: Mapping[str, Any],
    ) -> None:
        """Make a package, and parse its template.

        :raises InvalidPackage: if the template is missing or not valid.
        """
        super().__init__(format_name, runtime_version, source_directory, manifest)
        self._template_path = pathlib.Path(source_directory, TEMPLATE_FILE)
        self._template = Template.parse(_read(self._template_path))

    @property
    def classes(self) -> tuple[str]:
        """The name of the only class, which is the package's name."""
        return (self.full_name,)

    @property
    def requirements(self) -> Mapping[str, str | None]:
        return self._manifest.get("Require") or {}

    @property
    def ui(self) -> bytes | str:
        """The form in the package, or else a form that is generated from the template."""
        own = self._source.read(self._manifest.get("UI") or "ui.yaml", "UI")
        if own is not None:
            return own
        made = form.make_form(self.full_name, self.version, self.description, self._template)
        return yaql_dumper.dump(made)

    def get_class(self, name: str) -> str:
        if name != self.full_name:
            raise KeyError(name)
        files = self._files(class_code.FILES)
        has_environments = bool(self._files(class_code.ENVIRONMENTS))
        made = class_code.make_class(name, self._template, files, has_environments)
        return yaql_dumper.dump(made)

    def get_resource(self, name: str) -> str:
        """Return the path of a resource file, or of the HOT template.

        :param name: the path of the file below ``Resources``; for the template, the package's name.
        """
        return str(self._template_path) if name == self.full_name else super().get_resource(name)

    def _files(self, directory: str) -> list[str]:
        """Return the relative paths of all files in a directory of resources, sorted."""
        base = pathlib.Path(self.get_resource(directory))
        return sorted(p.relative_to(base).as_posix() for p in base.rglob("*") if p.is_file())


def _read(path: pathlib.Path) -> bytes:
    try:
        with path.open("rb") as stream:
            # One byte more than the limit is read, so that the parser refuses a larger file.
            return stream.read(safe_yaml.MAX_SIZE + 1)
    except FileNotFoundError as error:
        raise template_missing() from error
