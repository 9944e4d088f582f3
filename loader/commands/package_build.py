# SPDX-License-Identifier: Apache-2.0

"""The command that builds the archive of a package."""

import argparse

from loader.authoring import building
from loader.commands import base, parsing


class BuildPackage(base.ShowOne):
    """Build the ZIP file of a package.

    The same files always give the same ZIP file with the same SHA-256, on every host. The package
    is checked first, by the rules for uploads. Problems in its form for the dashboard are only
    warnings, since an operator can configure a server to accept them. No cloud is needed. For
    example::

        $ openstack murano package build org.example.wiki/1.1.0
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "path", type=parsing.path, metavar="<path>", help="Directory or ZIP file of a package."
        )
        parser.add_argument(
            "--file",
            type=parsing.path,
            metavar="<file>",
            help="The ZIP file to write (default: NAME.VERSION.zip in the current directory).",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> base.Properties:
        built = building.build(parsed_args.path, parsed_args.file)
        for warning in built.warnings:
            self.note(f"{built.place}: {warning}")
        shown = {
            "name": built.fqn,
            "version": str(built.version),
            "file": str(built.archive),
            "size": built.size,
            "sha256": built.digest,
        }
        return tuple(shown), tuple(shown.values())
