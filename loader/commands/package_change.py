# SPDX-License-Identifier: Apache-2.0

"""The commands that change or delete packages in the cloud."""

import argparse
from collections.abc import Sequence

from loader.catalogs.stored_package import StoredPackage
from loader.commands import base, dependency_graph, parsing
from loader.publishing import publication

_LISTS = {"tag": "tags", "category": "categories"}


class _ChangePackage(base.Command):
    """A command that changes one version of a package."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package(parser)


class SetPackage(_ChangePackage):
    """Set properties of a package: its display name, description, tags and categories.

    For example::

        $ openstack murano package set org.example.wiki@1.1.0 --category Web --tag wiki
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--display-name",
            type=parsing.not_blank,
            metavar="<name>",
            help="The name that users read.",
        )
        parser.add_argument("--description", metavar="<text>", help="The description.")
        _add_lists(parser, "Add to")

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        fields = {
            name: value
            for name in ("display_name", "description")
            if (value := getattr(parsed_args, name)) is not None
        }
        _check_named(*fields, parsed_args.tag, parsed_args.category)

        def edit(package: StoredPackage) -> dict[str, object]:
            values: dict[str, object] = dict(fields)
            for option, field in _LISTS.items():
                before = package.fields.get(field) or []
                if added := getattr(parsed_args, option):
                    values[field] = list(dict.fromkeys([*before, *added]))
            return values

        self.repository.edit(self.repository.find_one(parsed_args.package), edit)


class UnsetPackage(_ChangePackage):
    """Remove properties of a package: its description, tags or categories.

    For example::

        $ openstack murano package unset org.example.wiki@1.1.0 --category Web
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--description", action="store_true", help="Remove the description.")
        _add_lists(parser, "Remove from")
        for field in _LISTS.values():
            parser.add_argument(f"--all-{field}", action="store_true", help=f"Remove all {field}.")

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        all_of_a_list = [getattr(parsed_args, f"all_{field}") for field in _LISTS.values()]
        _check_named(parsed_args.description, parsed_args.tag, parsed_args.category, *all_of_a_list)

        def edit(package: StoredPackage) -> dict[str, object]:
            values: dict[str, object] = {"description": ""} if parsed_args.description else {}
            for option, field in _LISTS.items():
                before = package.fields.get(field) or []
                removed = getattr(parsed_args, option)
                if getattr(parsed_args, f"all_{field}"):
                    removed = before
                left = [value for value in before if value not in removed]
                if left != before:
                    values[field] = left
            return values

        self.repository.edit(self.repository.find_one(parsed_args.package), edit)


def _add_lists(parser: argparse.ArgumentParser, action: str) -> None:
    for option, field in _LISTS.items():
        parser.add_argument(
            f"--{option}",
            action="append",
            default=[],
            type=parsing.not_blank,
            metavar=f"<{option}>",
            help=f"{action} the {field} (repeat for several).",
        )


def _check_named(*options: object) -> None:
    """Check that at least one property is named.

    :param options: the values of the options that name properties.
    :raises base.InvalidOptions: if no option is given.
    """
    if not any(options):
        raise base.InvalidOptions("nothing to change: name at least one option, such as --tag")


class YankPackage(_ChangePackage):
    """Yank a version of a package, for example because it loses data.

    A yanked version is no longer chosen for a range. It is still used if it is pinned or in a lock
    file, or if a range of exactly this version requires it. So deployed environments keep working.
    For example::

        $ openstack murano package yank org.example.db@1.2.0 --reason "loses data; use 1.2.1"
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--reason",
            required=True,
            type=parsing.reason,
            metavar="<text>",
            help="The reason, in one line; loaders show it when the version is still used.",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        package = self.repository.find_one(parsed_args.package)
        self.repository.yank(package, parsed_args.reason)


class UnyankPackage(_ChangePackage):
    """Unyank a version of a package, so that it is chosen for ranges again.

    For example::

        $ openstack murano package unyank org.example.db@1.2.0
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.repository.yank(self.repository.find_one(parsed_args.package), "")


class DeactivatePackage(_ChangePackage):
    """Deactivate a version of a package: it cannot be loaded or downloaded any more.

    By default, only administrators can do this. For example::

        $ openstack murano package deactivate org.example.db@1.2.0
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        package = self.repository.find_one(parsed_args.package)
        self.repository.change(package, status="deactivated")


class ReactivatePackage(_ChangePackage):
    """Reactivate a deactivated version of a package, so that it can be loaded again.

    For example::

        $ openstack murano package reactivate org.example.db@1.2.0
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.repository.change(self.repository.find_one(parsed_args.package), status="active")


class DeletePackages(base.Command):
    """Delete versions of packages; this cannot be undone.

    On a terminal, the packages that require these versions are shown, and you have to confirm.
    Packages are deleted before those that they require, whatever the order of the arguments. If a
    version is in use, yank it instead. For example::

        $ openstack murano package delete org.example.db@1.0.0
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package(parser, "packages", nargs="+", metavar="<package>")
        parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        packages = [self.repository.find_one(package) for package in parsed_args.packages]
        if not parsed_args.yes:
            self._ask(packages)
        # The service refuses to delete a package while another one requires it.
        for group in reversed(list(publication.required_first(packages))):
            for package in group:
                self.repository.delete(package)

    def _ask(self, packages: Sequence[StoredPackage]) -> None:
        for package in packages:
            requirers = dependency_graph.requirers(self.repository, package)
            names = ", ".join(sorted({str(requirer) for requirer in requirers})) or "no package"
            self.note(f"{package} ({package.status}, {package.visibility}): required by {names}")
        self.confirm(f"Delete {len(packages)} package(s)?")
