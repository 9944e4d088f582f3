# SPDX-License-Identifier: Apache-2.0

"""The command that compares the files of two packages."""

import argparse

from glare_murano.package.errors import escaped
from loader.authoring import differences
from loader.commands import base, parsing


class DiffPackages(base.Command):
    """Show the differences between the files of two packages.

    A package is in the cloud, or on this host as a directory or a ZIP file, whose path has to
    contain a slash. The exit code is 0 even if the packages differ. For example::

        $ openstack murano package diff org.example.db@1.2.0 org.example.db@1.3.0
        $ openstack murano package diff org.example.db ./org.example.db
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package_or_path(parser, "old")
        parsing.add_package_or_path(parser, "new")

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        with self.opened(parsed_args.old) as old, self.opened(parsed_args.new) as new:
            names = str(parsed_args.old), str(parsed_args.new)
            for line in differences.diff(old, new, *names):
                self.app.stdout.write(f"{escaped(line, keep=chr(9))}\n")
