# SPDX-License-Identifier: Apache-2.0

"""The commands that list and show packages."""

import argparse
from typing import Any

from osc_lib.cli import format_columns

from glare_murano.package import VersionSpec
from glare_murano.package_order import BY_NAME, KEYS, RELEVANCE
from glare_murano.wire import Query
from loader import resolution
from loader.catalogs.base import Catalog
from loader.catalogs.stored_package import StoredPackage
from loader.commands import base, dependency_graph, parsing
from loader.commands.package_search import Search
from loader.resolution import Choice, Resolution

# Option -> the field of a package that the option selects by, and the end of the option's help.
_FILTERS = {
    "class": ("class_definitions", "that define this class"),
    "requirement": ("requirements", "that require this package"),
    "tag": ("tags", "with this tag"),
    "category": ("categories", "of this category"),
    "keyword": ("keywords", "with this keyword"),
    "type": ("type", "of this type: Application or Library"),
    "owner": ("owner", "of this project"),
    "status": ("status", "with this status: drafted, active or deactivated"),
}


class ListPackages(base.Lister):
    """List packages, each in the newest version that matches.

    Without --status, only packages that can be loaded are listed: active ones that were not
    yanked. For example::

        $ openstack murano package list --category Web
        $ openstack murano package list "org.example.*" --all-versions
        $ openstack murano package list --subclass-of io.murano.Application
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_search(parser, "name")
        parser.add_argument("--all-versions", action="store_true", help="List every version.")
        for option, (_, meaning) in _FILTERS.items():
            parser.add_argument(
                f"--{option}",
                dest=option,
                metavar=f"<{option}>",
                help=f"Only packages {meaning}.",
            )
        parser.add_argument("--yanked", action="store_true", help="Only yanked packages.")
        parser.add_argument(
            "--sort",
            type=parsing.order,
            default=BY_NAME,
            metavar="<key>[:asc|desc],...",
            help=f"Sort by these keys: {', '.join(k for k in KEYS if k != RELEVANCE)}.",
        )
        parser.add_argument("--long", action="store_true", help="Show more properties.")

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        search = Search(
            pattern=parsed_args.pattern,
            filters={
                field: getattr(parsed_args, option)
                for option, (field, _) in _FILTERS.items()
                if getattr(parsed_args, option) is not None
            },
            subclass_of=parsed_args.subclass_of,
            yanked=parsed_args.yanked,
            all_versions=parsed_args.all_versions,
            order=parsed_args.sort,
        )
        names = ["Name", "Version", "Display Name", "Type", "Visibility", "ID"]
        if parsed_args.long:
            names += ["Status", "Owner", "Yanked", "Categories", "Tags", "Classes"]
        rows = (_row(package)[: len(names)] for package in search.run(self.repository))
        return names, rows


class ListVersions(base.Lister):
    """List all versions of a package, the newest first.

    Yanked and deactivated versions and drafts are listed as well. For example::

        $ openstack murano package versions org.example.db
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        found = self.repository.find(parsed_args.package)
        names = ("Version", "Status", "Visibility", "Owner", "Yanked", "ID")
        return names, [
            (str(p.version), p.status, p.visibility, p.owner, p.yanked, p.id) for p in found
        ]


class ShowPackage(base.ShowOne):
    """Show the newest version of a package in a range, and which packages require it.

    "chosen" says whether your project would get this package for the range, and if not, why. If
    you give no range, the range of the package's major version is used. For example::

        $ openstack murano package show "org.example.db@>=1,<2"
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> base.Properties:
        package = self.repository.find(parsed_args.package)[0]
        requirers = {str(each) for each in dependency_graph.requirers(self.repository, package)}
        spec = _range_of(package, parsed_args.package.spec)
        chosen = f"{spec}: {_explain(package, spec, self.catalog)}"
        shown = _properties(package, chosen, sorted(requirers))
        return tuple(shown), tuple(shown.values())


def _explain(package: StoredPackage, spec: VersionSpec, catalog: Catalog) -> str:
    """Return ``yes`` if a package is chosen for a range, else ``no`` with the reason.

    The service is queried, since it knows the operator's reserved names.

    :param catalog: the catalogue of the releases that the user's project can load.
    :raises CatalogError: if the service does not answer.
    """
    if package.status != "active":
        return f"no, it is {package.status}"
    query = Query(((package.fqn, spec),), why=True)
    resolved = resolution.resolve([catalog], query)
    choice = resolved.assigned(package.fqn, spec, None)
    if choice is not None and choice.release.id == package.id:
        return "yes"
    return f"no, {_reason(package, spec, resolved, choice)}"


def _reason(
    package: StoredPackage, spec: VersionSpec, resolved: Resolution, choice: Choice | None
) -> str:
    for excluded in resolved.excluded:
        if excluded.id == package.id:
            return excluded.reason
    if not spec.match(package.version):
        return f"it is not in the range {spec}"
    if package.yanked and not spec.is_exactly(package.version):
        return f"it was yanked: {package.yanked}"
    if choice is None:
        return "the user's project cannot use it"
    return f"{choice.release} of project {choice.release.owner} is chosen"


def _range_of(package: StoredPackage, spec: VersionSpec) -> VersionSpec:
    """Return ``spec``, unless it is ``*``.

    For ``*``, return the range of the package's major version. If the package's version is a
    pre-release, return the range of only this version.
    """
    if spec.text != "*":
        return spec
    version = package.version
    # A pre-release is not in the range of its major version.
    return (
        VersionSpec.exactly(version) if version.prerelease else VersionSpec.of(str(version.major))
    )


def _properties(package: StoredPackage, chosen: str, requirers: list[str]) -> dict[str, Any]:
    stored = package.fields
    return {
        "id": package.id,
        "name": package.fqn,
        "version": str(package.version),
        "status": package.status,
        "visibility": package.visibility,
        "owner": package.owner,
        "yanked": package.yanked,
        "chosen": chosen,
        "display_name": stored.get("display_name"),
        "description": stored.get("description"),
        "type": stored.get("type"),
        "format": stored.get("format"),
        "author": stored.get("author"),
        "categories": format_columns.ListColumn(stored.get("categories") or []),
        "tags": format_columns.ListColumn(stored.get("tags") or []),
        "classes": format_columns.ListColumn(stored.get("class_definitions") or []),
        "requirements": format_columns.DictColumn(stored.get("requirements") or {}),
        "required_by": format_columns.ListColumn(requirers),
        "size": package.size,
        "sha256": package.digest,
    }


def _row(package: StoredPackage) -> tuple[Any, ...]:
    stored = package.fields
    lists = (stored.get(field) or [] for field in ("categories", "tags", "class_definitions"))
    return (
        package.fqn,
        str(package.version),
        stored.get("display_name"),
        stored.get("type"),
        package.visibility,
        package.id,
        package.status,
        package.owner,
        package.yanked,
        *map(format_columns.ListColumn, lists),
    )
