# SPDX-License-Identifier: Apache-2.0

"""The command that saves packages as files."""

import argparse
import pathlib

from loader.commands import base, parsing, progress_bars
from loader.publishing import saving


class SavePackage(base.Command):
    """Save a package as a ZIP file, or as a bundle with all packages that it requires.

    A bundle is a directory with ZIP files and the file packages.bundle. In another cloud,
    "openstack murano package publish" publishes the packages of this file. If a ZIP file exists
    and has the same content, it is kept. If it has other content, the command fails, or for a
    bundle, replaces it when the download is complete. For example::

        $ openstack murano package save org.example.wiki@1.1.0
        $ openstack murano package save org.example.wiki --closure --file wiki
        $ openstack --os-cloud other murano package publish wiki/packages.bundle
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
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
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        fqn, spec = self.repository.name_and_range(parsed_args.package)
        release, closure = saving.choose(self.catalog, fqn, spec, parsed_args.package.id)
        with progress_bars.shown("saved", self.app.stderr) as report:
            if parsed_args.closure:
                folder = parsed_args.file or pathlib.Path(f"{release.fqn}.{release.version}")
                path = saving.save_bundle(self.catalog, closure, folder, report)
            else:
                path = parsed_args.file or pathlib.Path(saving.file_name(release))
                saving.save(self.catalog, release, path, report)
        self.app.stdout.write(f"{path}\n")
