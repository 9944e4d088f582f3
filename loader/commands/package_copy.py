# SPDX-License-Identifier: Apache-2.0

"""The command that copies packages to another cloud, or to another service."""

import argparse
import pathlib
import tempfile

from openstack.config.cloud_region import CloudRegion

from glare_murano.package.errors import shown
from loader.catalogs import package_service
from loader.catalogs.package_service import PackageService
from loader.catalogs.repository import Repository
from loader.commands import base, package_publish, parsing, progress_bars
from loader.publishing import copying
from loader.publishing.publication import State

_WOULD = package_publish.WOULD | {State.MISSING: "would be copied"}
_DONE = package_publish.DONE | {State.MISSING: "copied"}


class CopyPackages(base.Lister):
    """Copy packages to another cloud of clouds.yaml or another service, all of them or none.

    For a name or a range, the newest version is copied. A yanked version is copied only if you
    give its exact version or its id; the copy is yanked as well. Archives stay the same, byte by
    byte. Display name, description, tags, categories and keywords are copied.

    If the command fails or is stopped, run it again: it copies only what is missing. For
    example::

        $ openstack --os-cloud test murano package copy org.example.wiki --closure \
--to-cloud production
        $ openstack --os-murano-catalog glare murano package copy org.example.wiki \
--to-catalog glance
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsing.add_package(parser, "packages", nargs="+", metavar="<package>")
        parser.add_argument(
            "--to-cloud",
            metavar="<cloud>",
            help="The target cloud, an entry of clouds.yaml; by default, the same cloud.",
        )
        parser.add_argument(
            "--to-catalog",
            choices=package_service.SERVICES,
            help="The target service; by default, the only one that keeps packages.",
        )
        parser.add_argument(
            "--public",
            action="store_const",
            dest="visibility",
            const="public",
            default="private",
            help="Publish for every project of the target cloud; by default, only for the project "
            "of your credentials there.",
        )
        parser.add_argument(
            "--closure", action="store_true", help="Copy all required packages as well."
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Check everything, and upload nothing."
        )

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        cloud, service = self._target(parsed_args)
        target = service.repository(cloud)
        self._check_other(target)
        visibility = parsed_args.visibility
        packages = copying.choose(
            self.repository, self.catalog, parsed_args.packages, closure=parsed_args.closure
        )
        with tempfile.TemporaryDirectory() as folder:
            with progress_bars.shown("downloaded", self.app.stderr) as report:
                copies = copying.plan(
                    self.repository,
                    target,
                    service.catalog(cloud),
                    packages,
                    visibility,
                    pathlib.Path(folder),
                    report,
                    self.note,
                )
            if not parsed_args.dry_run:
                with (
                    package_publish.drafts_stay(self.app.stderr) as uploads,
                    progress_bars.shown("uploaded", self.app.stderr) as report,
                ):
                    copying.copy(target, copies, visibility, uploads.watched(report))
        results = _WOULD if parsed_args.dry_run else _DONE
        rows = [(c.source.fqn, str(c.source.version), results[c.state]) for c in copies]
        return ("Name", "Version", "Result"), rows

    def _target(self, arguments: argparse.Namespace) -> tuple[CloudRegion, PackageService]:
        """Return the target cloud and the target service.

        :raises UnknownService: if the target is the service from which the packages are copied.
        """
        if arguments.to_cloud:
            cloud = self.other_cloud(arguments.to_cloud)
            return cloud, package_service.of_cloud(cloud, arguments.to_catalog)
        service = package_service.SERVICES.get(arguments.to_catalog, self.service)
        if service is self.service:
            raise package_service.UnknownService(
                "choose another cloud with --to-cloud, or the other service with --to-catalog"
            )
        return self.cloud, service

    def _check_other(self, target: Repository) -> None:
        """Check that packages are not copied to the place from which they come.

        A service may have several names in ``clouds.yaml``. A copy to another project of the same
        service is possible.

        :raises UnknownService: if the target has the URL and the project of the source.
        """
        url = target.url()
        is_same = url == self.repository.url() and target.project() == self.repository.project()
        if url and is_same:
            raise package_service.UnknownService(
                f"the target is the service from which the packages come, {shown(url)}; choose "
                f"another cloud or service"
            )
