# SPDX-License-Identifier: Apache-2.0

"""The command that saves packages as files."""

import argparse
import pathlib

from loader.commands import base, parsing, progress_bars
from loader.publishing import exports


class SavePackage(base.Command):
    """Save a package as a ZIP file, or save it with all packages that it requires as a bundle.

    A bundle is a directory with ZIP files and the file packages.bundle. With this file, "openstack
    murano package publish" publishes the packages in another cloud. If a ZIP file exists already
    and has the same content, it is kept. If its content is different, the command fails. In a
    bundle, a file with different content is replaced when the download is complete. For example::

        $ openstack murano package save org.example.wiki@1.1.0
        $ openstack murano package save org.example.wiki --closure --file wiki
        $ openstack --os-cloud other murano package publish wiki/packages.bundle
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package(parser)
        parser.add_argument(
            "--file",
            type=parsing.path,
            metavar="<path>",
            help="The ZIP file, or the directory of the bundle; by default NAME.VERSION.zip or "
            "NAME.VERSION in the current directory.",
        )
        parser.add_argument(
            "--closure", action="store_true", help="Save all required packages as well."
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        fqn, spec = self.repository.name_and_range(parsed_args.package)
        release, closure = exports.choose(self.catalog, fqn, spec, parsed_args.package.id)
        with progress_bars.shown("saved", self.app.stderr) as report:
            if parsed_args.closure:
                folder = parsed_args.file or pathlib.Path(f"{release.fqn}.{release.version}")
                path = exports.save_bundle(self.catalog, closure, folder, report)
            else:
                path = parsed_args.file or pathlib.Path(exports.file_name(release))
                exports.save(self.catalog, release, path, report)
        self.app.stdout.write(f"{path}\n")
