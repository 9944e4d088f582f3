# SPDX-License-Identifier: Apache-2.0

"""Read version ranges by this project's rules, and read each range only once."""

import functools
import types
from typing import Any

import semantic_version
from murano.common import engine
from murano.dsl import helpers, murano_package, murano_type, schema_generator

from glare_murano.package import VersionSpec
from loader.engine.adapter import EnginePackageLoader

# The size of each cache of parsed ranges.
_MAX_RANGES = 1024

# murano-api sends the last of these for a static action, and python-muranoclient for a schema.
_NO_VERSION = (None, "", "=0")


def replace_range_parser() -> None:
    """Read version ranges with this project's parser, and each range once in a process.

    Murano 16 refuses ``>=1.2,<2.0,!=1.5``, the example of the specification "Murano
    versioning", section "Package requirements", and finds no version in ``!=1.5``. It also
    parses the ranges of every package and class again in each task, which takes longer than
    to load the packages. All other ranges keep their meaning.
    """
    parse = functools.lru_cache(_MAX_RANGES)(
        lambda text: semantic_version.Spec(VersionSpec.of(text).canonical)
    )

    def parse_version_spec(version_spec: object) -> Any:
        is_version = isinstance(version_spec, semantic_version.Version)
        return parse(f"=={version_spec}" if is_version else str(version_spec or "0"))

    helpers.parse_version_spec = parse_version_spec


def cache_package_ranges() -> None:
    """Parse each range of an implicit requirement once in a process.

    Two modules of Murano 16 call ``semantic_version.Spec`` again for each package and class. They
    use nothing else of ``semantic_version``, and never change a ``Spec``. So both get a cached
    ``Spec``, in an object that replaces the module.
    """
    ranges = types.SimpleNamespace(Spec=functools.lru_cache(_MAX_RANGES)(semantic_version.Spec))
    murano_package.semantic_version = murano_type.semantic_version = ranges


def take_newest_without_version() -> None:
    """Take the newest version for an object, a static action or a schema without a version.

    Murano 16 takes a version 0.x, and fails without one. The specification "Murano
    versioning", section "Object version", takes the latest version. In ``Require``, a missing
    range still means 0.x. For a static action or a schema, ``=0`` also stands for no version; a
    client that wants 0.x sends ``0``. Murano's own package loader keeps Murano's rule.
    """
    parse_type_string = helpers.parse_type_string
    generate_schema = schema_generator.generate_schema
    invoke = engine.StaticActionExecutor._invoke

    def parse_header(type_name: str, version: str | None, package: str | None) -> Any:
        if not version and isinstance(helpers.get_package_loader(), EnginePackageLoader):
            version = "*"
        return parse_type_string(type_name, version, package)

    def generate(loader: Any, *args: Any, class_version: str | None = None, **kwargs: Any) -> Any:
        if class_version in _NO_VERSION and isinstance(loader, EnginePackageLoader):
            class_version = "*"
        return generate_schema(loader, *args, class_version=class_version, **kwargs)

    def invoke_newest(executor: Any, mpl_executor: Any) -> Any:
        has_version = executor.action["class_version"] not in _NO_VERSION
        if not has_version and isinstance(mpl_executor.package_loader, EnginePackageLoader):
            executor.action["class_version"] = "*"
        return invoke(executor, mpl_executor)

    helpers.parse_type_string = parse_header
    schema_generator.generate_schema = generate
    engine.StaticActionExecutor._invoke = invoke_newest
