# SPDX-License-Identifier: Apache-2.0

"""The command that begins a new package."""

import argparse
import pathlib
import shlex

from loader.authoring import package_template
from loader.commands import base, parsing


class InitPackage(base.Command):
    """Begin a new package, with a class and a test.

    The package is valid and its test passes. No cloud is needed. For example::

        $ openstack murano package init org.example.wiki
        $ openstack murano package init org.example.db --type Library \\
            --directory packages/org.example.db/dev
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "name", metavar="<name>", help="Name of the package, such as org.example.wiki."
        )
        parser.add_argument(
            "--directory",
            type=parsing.path,
            metavar="<directory>",
            help='A new or empty directory for the package (default: its name). In "dev", the '
            "package has no version, since each release sets it.",
        )
        parser.add_argument(
            "--type",
            choices=("Application", "Library"),
            default="Application",
            help="An application, which users deploy (default), or a library, whose classes other "
            "packages use.",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        folder = parsed_args.directory or pathlib.Path(parsed_args.name)
        for path in package_template.create(folder, parsed_args.name, parsed_args.type):
            self.app.stdout.write(f"{folder / path}\n")
        place = shlex.quote(str(folder))
        self.app.stderr.write(
            f"Check the package, and run its test with the core library of Murano:\n"
            f"  openstack murano package check {place}\n"
            f"  murano-glare-test-runner --path CORE_LIBRARY {place}\n"
        )
