# SPDX-License-Identifier: Apache-2.0

"""The command that compares the interfaces of two versions of a package."""

import argparse

from glare_murano.package import Archive, read_manifest
from loader.authoring import local_packages
from loader.commands import base, parsing
from loader.compatibility import compare


class ComparePackages(base.Lister):
    """Compare two versions of a package: list the changes, and the version that they require.

    Each version is a package in the cloud, or a directory or ZIP file on this host, whose path has
    to contain a slash. The table shows the file and line of each change: in the old version for a
    removal, else in the new version. The last line says whether the number of the new version is
    high enough for the changes. For example::

        $ openstack murano package compare org.example.db@1.2.0 ./org.example.db
    """

    nothing = ""
    _code = 0

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package_or_path(parser, "old")
        parsing.add_package_or_path(parser, "new")
        parsing.add_requirements(parser)
        parser.add_argument(
            "--check",
            action="store_true",
            help="Exit with 1 if the version of the new package is not enough.",
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self._code

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        old, new = parsed_args.old, parsed_args.new
        with (
            self.source(old) as before,
            self.source(new) as after,
            self.requirements(parsed_args.requirements, old, new) as requirements,
        ):
            for place, source in ((old, before), (new, after)):
                # This error names the place of an invalid package; errors of ``compare`` do not.
                with local_packages.named(place), Archive.open(source) as archive:
                    read_manifest(archive)
            comparison = compare(before, after, requirements)
        for each in comparison.unseen:
            self.note(f"not read: {each}; add a directory that contains it with --path")
        verdict = comparison.verdict
        self.note(f"{comparison.fqn}: {verdict}")
        if parsed_args.check and not verdict.is_enough and not verdict.is_unversioned:
            self._code = base.REFUSED
        rows = [
            (
                str(each.part),
                each.file,
                each.line or None,
                "old" if each.place.is_old else "new",
                each.class_name,
                each.message,
                str(each.rule),
            )
            for each in comparison.changes
        ]
        return ("Part", "File", "Line", "Version", "Class", "Change", "Rule"), rows
