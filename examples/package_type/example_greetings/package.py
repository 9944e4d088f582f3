# SPDX-License-Identifier: Apache-2.0

"""The package type for the engine."""

import pathlib
from collections.abc import Mapping
from typing import Any

import yaml

from example_greetings import description
from glare_murano.package import Version
from loader.formats.base import PackageBase


class GreetingsPackage(PackageBase):
    """A package with ``greetings.yaml`` at its top."""

    def __init__(
        self,
        format_name: str,
        runtime_version: Version,
        source_directory: str,
        manifest: Mapping[str, Any],
    ) -> None:
        super().__init__(format_name, runtime_version, source_directory, manifest)
        data = pathlib.Path(source_directory, description.FILE).read_bytes()
        self._greetings = description.read_greetings(self.full_name, data)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self._greetings)

    @property
    def requirements(self) -> Mapping[str, str | None]:
        return description.add_core_library(self._manifest)

    @property
    def ui(self) -> str:
        return description.make_form(self._greetings)

    def get_class(self, name: str) -> str:
        greeting = {"Usage": "Out", "Contract": "$.string()"}
        code = {
            "Name": name,
            "Extends": description.BASE,
            "Properties": {"greeting": greeting},
            "Methods": {"deploy": {"Body": [{"$.greeting": self._greetings[name]}]}},
        }
        return str(yaml.safe_dump(code))
