# SPDX-License-Identifier: Apache-2.0

"""What the package type generates, for servers and for the engine's class alike."""

from collections.abc import Mapping
from typing import Any

import yaml

from glare_murano.package import Archive, Description, InvalidPackage, Manifest, Problem, Rule

FILE = "greetings.yaml"
BASE = "io.murano.Application"
MAX_SIZE = 100_000


def describe(manifest: Manifest, archive: Archive) -> Description:
    """Describe a package to a server."""
    if FILE not in archive.paths:
        raise InvalidPackage([Problem(Rule.PACKAGE_TYPE_RESULT, FILE, "is missing")])
    greetings = read_greetings(manifest.fqn, archive.read(FILE, MAX_SIZE))
    return Description(
        classes={name: [BASE] for name in greetings},
        requirements=add_core_library(manifest.document),
        ui=make_form(greetings),
    )


def read_greetings(fqn: str, data: bytes) -> dict[str, str]:
    """Return FQN of a class -> its greeting."""
    try:
        greetings = yaml.safe_load(data)
    except yaml.YAMLError as error:
        raise InvalidPackage([Problem(Rule.PACKAGE_TYPE_RESULT, FILE, str(error))]) from error
    if not isinstance(greetings, dict) or not greetings:
        message = "expected a mapping of names to greetings"
        raise InvalidPackage([Problem(Rule.PACKAGE_TYPE_RESULT, FILE, message)])
    return {f"{fqn}.{name}": str(greeting) for name, greeting in greetings.items()}


def add_core_library(document: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the requirements in a manifest, with the type's default for the core library."""
    return {"io.murano": "<2", **(document.get("Require") or {})}


def make_form(greetings: Mapping[str, str]) -> str:
    """Return the form of the first class, which asks for nothing."""
    form = {"Version": 2, "Application": {"?": {"type": next(iter(greetings))}}, "Forms": []}
    return str(yaml.safe_dump(form))
