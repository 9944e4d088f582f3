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
from loader.environments import object_model

# The size of each cache of parsed ranges.
_MAX_RANGES = 1024

# The versions that stand for no version. murano-api sends ``=0`` for a static action, and
# python-muranoclient sends it for a schema.
_NO_VERSION = (None, "", "=0")


def replace_range_parser() -> None:
    """Parse version ranges with this project's parser, and each range only once in a process.

    Murano 16 refuses ``>=1.2,<2.0,!=1.5``, which is an example in the specification "Murano
    versioning", section "Package requirements". It finds no version in ``!=1.5``. It also parses
    the ranges of every package and class again in each task, which takes longer than to load the
    packages. Here, both of these ranges work, and all other ranges keep their meaning.
    """
    parse = functools.lru_cache(_MAX_RANGES)(
        lambda text: semantic_version.Spec(VersionSpec.of(text).canonical)
    )

    def parse_version_spec(version_spec: object) -> Any:
        is_version = isinstance(version_spec, semantic_version.Version)
        return parse(f"=={version_spec}" if is_version else str(version_spec or "0"))

    helpers.parse_version_spec = parse_version_spec


def cache_package_ranges() -> None:
    """Parse each range that Murano makes for a package or a class only once in a process.

    Two modules of Murano 16 call ``semantic_version.Spec`` again for each package and class, which
    takes time. They use nothing else of ``semantic_version``, and never change a ``Spec``. So here,
    an object that caches each ``Spec`` replaces the module ``semantic_version`` in them.
    """
    ranges = types.SimpleNamespace(Spec=functools.lru_cache(_MAX_RANGES)(semantic_version.Spec))
    murano_package.semantic_version = murano_type.semantic_version = ranges


def take_newest_without_version() -> None:
    """Use the newest version if an object, a static action or a schema names no version.

    The specification "Murano versioning", section "Object version", requires this. Murano 16 uses a
    version 0.x instead, and fails if there is none. It also takes the number 0 in an object for a
    missing version, and reads ``1.10`` without quotes as 1.1. For a malformed type, its error does
    not say what is wrong.

    Here, a missing version means the newest, and the number 0 means 0.x. A fraction is refused, and
    the error about a malformed type says what is wrong. If somebody gives no version for a static
    action or a schema, Murano's clients send ``=0``, so there ``=0`` means the newest. A client
    that wants 0.x sends ``0``. In ``Require``, a missing range still means 0.x. Murano's own
    package loader keeps Murano's rule.
    """
    parse_type_string = helpers.parse_type_string
    generate_schema = schema_generator.generate_schema
    invoke = engine.StaticActionExecutor._invoke

    def parse_header(type_name: Any, version: Any, package: Any) -> Any:
        if not isinstance(helpers.get_package_loader(), EnginePackageLoader):
            return parse_type_string(type_name, version, package)
        class_name, spec, package_name = object_model.parse_header(type_name, version, package)
        return class_name, str(spec), package_name

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
