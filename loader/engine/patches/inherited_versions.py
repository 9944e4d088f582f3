# SPDX-License-Identifier: Apache-2.0

"""Inherit one version of a class where possible, and name the versions in errors."""

import collections
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import semantic_version
from murano.dsl import exceptions, murano_method, murano_type

from glare_murano.hitting_set import fewest_newest
from glare_murano.package import VersionSpec
from glare_murano.resolver import newest_first


def merge_inherited_versions() -> None:
    """Let a class inherit a single version of a package, if one version satisfies all ancestors.

    The specification "Murano versioning", section "Side by side", requires this; without such a
    version, the versions count as unrelated classes. Murano 16 fails with a ``TypeError`` when it
    replaces a version, since it compares classes with names. It also fails if all ancestors use
    one version, but with different ranges.
    """

    def build_parent_remappings(murano_class: Any) -> dict[Any, Any]:
        replacements = _replacements(_inherited_ranges(murano_class))
        return {
            ancestor: replacement.find_class(ancestor.name, search_requirements=False)
            for ancestor in murano_class.ancestors()
            if (replacement := replacements.get(ancestor.package)) is not None
            and ancestor.name in replacement.classes
        }

    murano_type.MuranoClass._build_parent_remappings = build_parent_remappings


def describe_ambiguous_members() -> None:
    """Name the classes and their versions in the error for an ambiguous member.

    A class may inherit several versions of one class. It is an error only to use a member that
    more than one of them has (specification "Murano versioning", section "Side by side"). Murano
    16 names only the member, or fails with "No active exception to reraise" for a called method.
    """

    def described(find_single: Callable[..., Any], find_all: Callable[..., Any]) -> Any:
        @functools.wraps(find_single)
        def find(murano_class: Any, name: str) -> Any:
            try:
                return find_single(murano_class, name)
            except (exceptions.AmbiguousMethodName, exceptions.AmbiguousPropertyNameError) as error:
                members = find_all(murano_class, name)
                origins = [_origin(murano_class, member.declaring_type) for member in members]
                error.args = (f"{error} in {murano_class.name}: {'; '.join(origins)}",)
                raise

        return find

    def unique_methods(murano_class: Any) -> Iterator[Any]:
        for name in murano_class.all_method_names:
            try:
                yield murano_class.find_single_method(name)
            except exceptions.AmbiguousMethodName as error:
                method = _raising(error)
                yield murano_method.MuranoMethod(murano_class, name, method, ephemeral=True)

    cls = murano_type.MuranoClass
    cls.find_single_method = described(cls.find_single_method, cls.find_method)
    cls.find_single_property = described(cls.find_single_property, cls.find_property)
    cls._iterate_unique_methods = unique_methods


def _inherited_ranges(murano_class: Any) -> dict[Any, VersionSpec]:
    """Return package -> required range, for the packages of a class and its ancestors."""
    own = murano_class.package
    ranges: dict[Any, set[str]] = collections.defaultdict(set, {own: {f"=={own.version}"}})
    for child in (murano_class, *murano_class.ancestors()):
        for parent in child.parents:
            if parent.package is not child.package:
                ranges[parent.package].add(str(child.package.requirements[parent.package.name]))
    return {package: VersionSpec.of(",".join(specs)) for package, specs in ranges.items()}


def _replacements(ranges: Mapping[Any, VersionSpec]) -> dict[Any, Any]:
    """Return package -> its replacement, so that the fewest versions of each package remain."""
    versions: dict[str, dict[semantic_version.Version, Any]] = collections.defaultdict(dict)
    for package in ranges:
        versions[package.name][package.version] = package
    kept = {
        name: fewest_newest(newest_first(found), [ranges[package] for package in found.values()])
        for name, found in versions.items()
    }
    chosen = ((package, spec.select(kept[package.name])) for package, spec in ranges.items())
    return {p: versions[p.name][version] for p, version in chosen if version != p.version}


def _raising(error: Exception) -> Callable[..., None]:
    def call(*args: Any, **kwargs: Any) -> None:
        raise error

    return call


def _origin(murano_class: Any, ancestor: Any) -> str:
    """Describe an ancestor of a class: its version, and the requiring packages."""
    children = (c for c in (murano_class, *murano_class.ancestors()) if ancestor in c.parents)
    requirers = sorted({f"{child.package.name} {child.package.version}" for child in children})
    by = f", required by {', '.join(requirers)}" if requirers else ""
    return f"{ancestor.name} of {ancestor.package.name} {ancestor.version}{by}"
