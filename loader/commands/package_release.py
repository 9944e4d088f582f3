# SPDX-License-Identifier: Apache-2.0

"""The command that makes a release of a package."""

import argparse
import pathlib
import shlex
import tempfile
from typing import Any

from osc_lib.cli import format_columns

from loader.authoring import releasing
from loader.catalogs.directory import DEV
from loader.commands import base, parsing
from loader.commands.package_publish import PublishPackages


class ReleasePackage(base.ShowOne):
    """Make a release from the directory "dev" of a package.

    The tree of a package is a directory with "dev", and beside it a directory for each released
    version. The new version is the smallest that is enough for the changes since the newest
    release. The files of "dev" are copied into a directory for this version, and Version is set in
    the manifest. If a requirement has no range, and the tree of the required package is beside
    this one, the range is set to fit the newest release in that tree. For example::

        $ openstack murano package release packages/org.example.db --dry-run
        $ openstack murano package release packages/org.example.db --publish
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "tree",
            type=parsing.path,
            metavar="<tree>",
            help='Directory with "dev" and a directory for each version.',
        )
        parser.add_argument(
            "--as-version",
            type=parsing.version,
            metavar="<version>",
            help="The version of the release, instead of the smallest that is enough.",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="Accept a version that is not enough for the changes.",
        )
        parsing.add_requirements(parser)
        parser.add_argument("--dry-run", action="store_true", help="Change nothing.")
        parser.add_argument(
            "--publish",
            action="store_const",
            dest="visibility",
            const="--private",
            help="Publish all versions of the tree that are not published yet.",
        )
        parser.add_argument(
            "--public",
            action="store_const",
            dest="visibility",
            const="--public",
            help="The same as --publish, for every project.",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> base.Properties:
        with (
            tempfile.TemporaryDirectory() as folder,
            self.requirements(parsed_args.requirements) as requirements,
        ):
            release = releasing.prepare(
                parsed_args.tree, pathlib.Path(folder), parsed_args.as_version, requirements
            )
            for warning in release.warnings:
                self.note(f"{parsed_args.tree / DEV}: {warning}")
            if release.comparison is not None:
                for change in release.comparison.changes:
                    self.note(f"{change.part}: {change}")
            if not parsed_args.force:
                releasing.check_version(release)
            if not parsed_args.dry_run:
                releasing.write(release)
        shown: dict[str, Any] = {
            "name": release.fqn,
            "version": str(release.version),
            "after": release.comparison and str(release.comparison.old_version),
            "part": release.comparison and str(release.comparison.part),
            "requirements": format_columns.DictColumn(dict(release.ranges)),
            "directory": str(release.directory),
            "written": not parsed_args.dry_run,
        }
        if parsed_args.visibility and not parsed_args.dry_run:
            published = self._publish(parsed_args.tree, parsed_args.visibility)
            shown["published"] = format_columns.ListColumn(published)
        return tuple(shown), tuple(shown.values())

    def _publish(self, tree: pathlib.Path, visibility: str) -> list[str]:
        command = PublishPackages(self.app, self.app_args)
        arguments = command.get_parser("publish").parse_args([visibility, "--", str(tree)])
        try:
            _, rows = command.take_action(arguments)
        except BaseException:
            self.app.stderr.write(
                f"The release was written. To publish it: openstack murano package publish "
                f"{visibility} {shlex.quote(str(tree))}\n"
            )
            raise
        return [f"{version}: {result}" for _, version, result in rows]
